"""The package index, as pip and uv are configured on this machine: one file of one release, checked by digest."""

from __future__ import annotations

import base64
import configparser
import html.parser
import http.client
import os
import re
import ssl
import sys
import urllib.request
from collections.abc import Mapping
from functools import cache as once
from pathlib import Path
from typing import cast
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit

from pydantic import BaseModel

from trialfleet_ledger.child_program import ChildFailure, run_program
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.interpreters import uv_program
from trialfleet_ledger.user_folders import home_folder
from trialfleet_repository.cache import uv_folders

_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_PAGE_BYTES = 64 * 2**20
_FILE_BYTES = 512 * 2**20
_HINT = "set PIP_INDEX_URL, or index-url in pip's configuration"


def index_url(environ: Mapping[str, str] = os.environ) -> str:
    """Base of the simple API: pip's variable or configuration file, else uv's, else what uv uses by default."""
    for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        if environ.get(name):
            return environ[name].strip().rpartition("=")[2] if name.startswith("UV") else environ[name].strip()
    return pip_option("index-url", environ) or _uv_default()


def find_links(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Folders and pages that pip would search in addition to the index."""
    return tuple((environ.get("PIP_FIND_LINKS") or pip_option("find-links", environ) or "").split())


def ca_file(environ: Mapping[str, str] = os.environ) -> str | None:
    """The certificate bundle that pip is configured to trust."""
    chosen = environ.get("PIP_CERT") or pip_option("cert", environ) or environ.get("SSL_CERT_FILE")
    return chosen if chosen and Path(chosen).exists() else None


def pip_option(option: str, environ: Mapping[str, str]) -> str | None:
    """A global or install option of pip's configuration files; the one that pip reads last wins."""
    found: str | None = None
    for path in _pip_files(environ):
        parser = configparser.RawConfigParser()
        try:
            parser.read(path)
        except (configparser.Error, UnicodeDecodeError):
            continue
        for section in ("global", "install", "download"):
            if parser.has_option(section, option):
                found = parser.get(section, option).strip() or found
    return found


def _pip_files(environ: Mapping[str, str]) -> list[Path]:
    home = Path(environ.get("HOME") or home_folder())
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    shared = [
        Path(folder) / "pip/pip.conf" for folder in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")
    ]
    files = [*shared, Path("/etc/pip.conf"), home / ".pip/pip.conf", config / "pip/pip.conf"]
    files.append(Path(sys.prefix) / "pip.conf")
    if environ.get("PIP_CONFIG_FILE"):
        files.append(Path(environ["PIP_CONFIG_FILE"]))
    return files


@once
def _uv_default() -> str:
    """uv knows the public index; nothing here needs to."""
    asked = ("pip", "compile", "--quiet", "--no-header", "--emit-index-url", "--offline", "-")
    ended = run_program((uv_program(), *asked), env={**os.environ, **uv_folders()})
    if isinstance(ended, ChildFailure):
        raise OperatorError(
            f"uv does not say which package index it uses: {ended}", hint=f"correct it, or {_HINT}"
        )
    match = re.search(
        r"^--(?:default-)?index(?:-url)? (\S+)$", ended.stdout.decode(errors="replace"), re.MULTILINE
    )
    if match is None:
        raise OperatorError("no package index is configured", hint=_HINT)
    return match[1]


def _linked_sdist(name: str, version: str, sha256: str) -> tuple[str, bytes] | None:
    """From the folders of `find-links`."""
    for folder in find_links():
        path = Path(folder.removeprefix("file://"))
        for candidate in sorted(path.iterdir()) if path.is_dir() else ():
            if is_sdist_of(candidate.name, name, version):
                data = candidate.read_bytes()
                if _sha256(data) == sha256:
                    return candidate.name, data
    return None


def fetch_sdist(name: str, version: str, sha256: str, *, where: str) -> tuple[str, bytes]:
    """File name and bytes of the release's source archive with that SHA-256 (the caller verifies the bytes).

    Raises `OperatorError` when the index or a `find-links` folder does not offer it.
    """
    linked = _linked_sdist(name, version, sha256)
    if linked is not None:
        return linked
    page = urljoin(index_url().rstrip("/") + "/", canonical_name(name) + "/")
    body, kind, final = _get(page, _PAGE_BYTES, where=where, accept=_ACCEPT)
    try:
        links = parse_page(body, kind, final)
    except (ValueError, AssertionError) as error:
        raise OperatorError(f"{page} is not a page of a package index: {error}", where=where, hint=_HINT) from None
    offered = {file: url for file, url in links.items() if is_sdist_of(file, name, version)}
    if not offered:
        raise OperatorError(
            f"the index has no source archive of {name} {version}",
            where=where,
            hint="choose a release with an sdist, or another index (" + _HINT + ")",
        )
    chosen = next((f for f, u in offered.items() if sha256 in u), next(iter(offered)))
    data, _, _ = _get(urldefrag(offered[chosen])[0], _FILE_BYTES, where=where)
    return chosen, data


class _File(BaseModel):
    """Of a release, in the JSON of the simple API (PEP 691)."""

    filename: str
    url: str
    hashes: dict[str, str] = {}
    size: int | None = None  # PEP 700


class _Page(BaseModel):
    """One project, in the JSON of the simple API."""

    files: list[_File]


@once
def find_sizes(name: str) -> Mapping[str, tuple[str, int]]:
    """SHA-256 of each file of a project -> its name and bytes, by the index's metadata. Empty where the index does
    not say it, or cannot be read."""
    page = urljoin(index_url().rstrip("/") + "/", canonical_name(name) + "/")
    try:
        body, kind, _ = _get(page, _PAGE_BYTES, where="environment.lock", accept=_ACCEPT)
        files = _Page.model_validate_json(body).files if "json" in kind else []
    except (OperatorError, ValueError):
        return {}
    return {each.hashes.get("sha256", ""): (each.filename, each.size) for each in files if each.size}


def parse_page(body: bytes, content_type: str, base: str) -> dict[str, str]:
    """File name -> absolute url (with its `#sha256=` where known) of a simple API page, JSON or HTML.

    Raises `ValueError`, and for some HTML `AssertionError`, for what is no such page.
    """
    if "json" in content_type:
        files = _Page.model_validate_json(body).files
        return {file.filename: urljoin(base, file.url) + _fragment(file.hashes) for file in files}
    reader = _Links(base)
    reader.feed(body.decode("utf-8", "replace"))
    return reader.found


def _fragment(hashes: Mapping[str, str]) -> str:
    return f"#sha256={hashes['sha256']}" if hashes.get("sha256") else ""


class _Links(html.parser.HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__()
        self.base = base
        self.found: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        href = values.get("href")
        if tag == "base" and href:
            self.base = urljoin(self.base, href)
        if tag == "a" and href:
            url = urljoin(self.base, href)
            self.found[unquote(urlsplit(url).path.rpartition("/")[2])] = url


def canonical_name(name: str) -> str:
    """PEP 503.

    >>> canonical_name("Ansible_Core")
    'ansible-core'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def is_sdist_of(file: str, name: str, version: str) -> bool:
    """Whether a file name is the source archive of that release.

    >>> is_sdist_of("graphiti_core-0.3.1.tar.gz", "graphiti-core", "0.3.1")
    True
    """
    for suffix in (".tar.gz", ".zip", ".tar.bz2", ".tar.xz"):
        if file.endswith(suffix):
            project, _, found = file.removesuffix(suffix).rpartition("-")
            return canonical_name(project) == canonical_name(name) and found == version
    return False


def _sha256(data: bytes) -> str:
    from trialfleet_ledger.canonical import sha256

    return sha256(data)


def _get(url: str, limit: int, *, where: str, accept: str = "*/*") -> tuple[bytes, str, str]:
    """Body, content type, final url."""
    bare, headers = _with_login(url)
    if urlsplit(bare).scheme not in ("http", "https", "file"):
        raise OperatorError(f"{bare} is not the URL of a package index", where=where, hint=_HINT)
    request = urllib.request.Request(bare, headers={"Accept": accept, **headers})  # noqa: S310 - checked above
    context = ssl.create_default_context(cafile=ca_file())
    try:
        with urllib.request.urlopen(request, timeout=60, context=context) as answer:  # noqa: S310
            body = cast("bytes", answer.read(limit + 1))
            kind, final = str(answer.headers.get("Content-Type", "")), str(answer.url)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise OperatorError(f"{bare} cannot be read: {error}", where=where, hint=_HINT) from None
    if len(body) > limit:
        raise OperatorError(f"{bare} is larger than {limit} bytes", where=where)
    return body, kind, final


def _with_login(url: str) -> tuple[str, dict[str, str]]:
    """The url without its user and password, and the header that carries them."""
    parts = urlsplit(url)
    if parts.username is None:
        return url, {}
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return bare, {"Authorization": "Basic " + base64.b64encode(login).decode()}
