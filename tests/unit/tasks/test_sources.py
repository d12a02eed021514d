"""Where trees come from: archives as data, index pages as pip reads them, folders as they lie."""

from __future__ import annotations

import contextlib
import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments import package_index
from trialfleet_repository.environments.package_index import (
    fetch_sdist,
    find_links,
    index_url,
    parse_page,
    pip_option,
)
from trialfleet_repository.trees import EntryKind, TreeEntry, TreeError
from trialfleet_tasks.settings import Settings, load_settings, mirror_map, mirror_of
from trialfleet_tasks.sources import path as folders
from trialfleet_tasks.sources.sdist import release, unpack_archive, with_older_files


def tar_gz(**files: str) -> bytes:
    """Text by path; `->target` is a link."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            if text.startswith("->"):
                info.type, info.linkname = tarfile.SYMTYPE, text[2:]
                tar.addfile(info)
            else:
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


def test_an_archive_loses_its_root_folder_git_and_leaving_links() -> None:
    tree = unpack_archive(
        tar_gz(**{"p-1/a.py": "x", "p-1/.git/config": "bad", "p-1/ok": "->a.py", "p-1/away": "->../../etc/passwd"})
    )
    assert tree == {"a.py": TreeEntry(b"x"), "ok": TreeEntry(b"a.py", EntryKind.LINK)}


def test_a_zip_is_an_sdist_too() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("p-1/a.py", "x")
    assert unpack_archive(buffer.getvalue()) == {"a.py": TreeEntry(b"x")}


@pytest.mark.parametrize(
    "files",
    [{"p-1/a": "", "q/b": ""}, {"a": ""}, {"p-1/../../a": ""}, {"/p-1/a": ""}, {"p-1/l": "->.", "p-1/l/x": ""}],
)
def test_archives_that_are_no_sdist_are_refused(files: dict[str, str]) -> None:
    with pytest.raises(TreeError):
        unpack_archive(tar_gz(**files))


NEW = {"a.py": TreeEntry(b"new"), "same.py": TreeEntry(b""), "added.py": TreeEntry(b"")}
OLD = {"a.py": TreeEntry(b"old"), "same.py": TreeEntry(b""), "gone.py": TreeEntry(b"g")}


def test_named_files_are_as_in_the_older_release() -> None:
    tree = with_older_files(NEW, OLD, ("a.py", "added.py", "gone.py"), where="w")
    assert tree == {"a.py": TreeEntry(b"old"), "same.py": TreeEntry(b""), "gone.py": TreeEntry(b"g")}


@pytest.mark.parametrize(("name", "words"), [("same.py", "the same"), ("typo.py", "neither"), ("d", "a folder")])
def test_named_files_must_differ(name: str, words: str) -> None:
    with pytest.raises(OperatorError, match=words):
        with_older_files({**NEW, "d/x": TreeEntry(b"")}, OLD, (name,), where="f.yaml: source.files")


JSON = b"""{"files": [
 {"filename": "p-1.tar.gz", "url": "../../files/p-1.tar.gz", "hashes": {"sha256": "abc"}},
 {"filename": "p-1-py3-none-any.whl", "url": "https://else.example/p.whl", "hashes": {}}]}"""
HTML = b"""<!DOCTYPE html><body><a href="../../files/p-1.tar.gz#sha256=abc">p-1.tar.gz</a>
<a href="https://else.example/p-1-py3-none-any.whl">x</a></body>"""


@pytest.mark.parametrize(("body", "kind"), [(JSON, "application/vnd.pypi.simple.v1+json"), (HTML, "text/html")])
def test_addresses_on_an_index_page_may_be_relative(body: bytes, kind: str) -> None:
    links = parse_page(body, kind, "https://index.example/root/simple/p/")
    assert links["p-1.tar.gz"] == "https://index.example/root/files/p-1.tar.gz#sha256=abc"
    assert links["p-1-py3-none-any.whl"].startswith("https://else.example/")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"{", "application/json"),
        (b"[]", "application/json"),
        (b'{"files": null}', "application/json"),
        (b'{"files": [1]}', "application/json"),
        (b'{"files": [{"filename": "p-1.tar.gz"}]}', "application/json"),
        (b'{"files": [{"filename": "p-1.tar.gz", "url": "http://[bad"}]}', "application/json"),
        (b'{"files": [{"filename": "p-1.tar.gz", "url": "/a", "hashes": {"sha256": 1}}]}', "application/json"),
        (b'<a href="http://[bad/p-1.tar.gz">', "text/html"),
        (b"<![x", "text/html"),
        (b"\xff\xfe", "text/html"),
        (b"", ""),
    ],
)
def test_a_page_that_is_none_of_an_index_is_refused_with_its_address(
    body: bytes, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")
    monkeypatch.setattr(package_index, "_get", lambda url, *_, **__: (body, kind, url))
    with pytest.raises(OperatorError, match="index"):
        fetch_sdist("p", "1", "abc", where="tasks.yaml")


@given(st.binary(), st.sampled_from(["text/html", "application/json"]))
def test_any_page_of_an_index_is_read_or_refused(body: bytes, kind: str) -> None:
    with contextlib.suppress(ValueError, AssertionError):
        parse_page(body, kind, "https://index.example/simple/p/")


def test_the_index_is_the_one_that_pip_or_uv_is_told(tmp_path: Path) -> None:
    conf = tmp_path / "pip.conf"
    conf.write_text("[global]\nindex-url = https://conf.example/simple\nfind-links = /a /b\n")
    quiet = {"HOME": str(tmp_path), "PIP_CONFIG_FILE": str(conf)}
    assert index_url(quiet) == "https://conf.example/simple"
    assert index_url(quiet | {"UV_DEFAULT_INDEX": "mine=https://uv.example/simple"}) == "https://uv.example/simple"
    assert (
        index_url(quiet | {"PIP_INDEX_URL": "https://env.example/simple?a=b"}) == "https://env.example/simple?a=b"
    )
    assert find_links(quiet) == ("/a", "/b")
    assert pip_option("no-such-option", quiet) is None


def test_without_a_setting_uv_knows_the_index(tmp_path: Path) -> None:
    assert "://" in index_url({"HOME": str(tmp_path)})


def test_a_local_folder_of_archives_stands_before_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tar_gz(**{"my_pkg-1.0/a.py": "x"})
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "my_pkg-1.0.tar.gz").write_bytes(data)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "nowhere").as_uri())
    cache = Cache(tmp_path / "cache")
    assert fetch_sdist("My.Pkg", "1.0", sha256(data), where="w") == ("my_pkg-1.0.tar.gz", data)
    assert release("my-pkg==1.0", sha256(data), cache=cache, where="w") == {"a.py": TreeEntry(b"x")}
    (tmp_path / "links" / "my_pkg-1.0.tar.gz").unlink()
    assert release("my-pkg==1.0", sha256(data), cache=cache, where="w") == {"a.py": TreeEntry(b"x")}  # kept
    with pytest.raises(OperatorError, match="cannot be read"):
        release("my-pkg==1.0", "0" * 64, cache=cache, where="f.yaml: source.fixed")


def test_an_archive_with_another_digest_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "simple" / "p"
    page.mkdir(parents=True)
    (page / "p-1.tar.gz").write_bytes(tar_gz(**{"p-1/a": "x"}))
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setattr(
        "trialfleet_tasks.sources.sdist.fetch_sdist",
        lambda *_, **__: ("p-1.tar.gz", (page / "p-1.tar.gz").read_bytes()),
    )
    with pytest.raises(OperatorError, match="has SHA-256"):
        release("p==1", "0" * 64, cache=Cache(tmp_path / "cache"), where="w")


def test_a_folder_is_read_without_git_and_caches(tmp_path: Path) -> None:
    for name in ("src/a.py", ".git/config", "src/__pycache__/a.pyc", ".venv/x", "node_modules/y"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert set(folders.read(tmp_path, where="w")) == {"src/a.py"}


def test_a_folder_that_is_missing_or_empty_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="no such folder"):
        folders.read(tmp_path / "gone", where="w")
    with pytest.raises(OperatorError, match="no files"):
        folders.read(tmp_path, where="w")


def test_mirrors_of_settings_and_options(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("mirrors: {'https://example.org/a/b.git': /srv/b}\n")
    settings = load_settings(tmp_path / "settings.yaml")
    mirrors = mirror_map(settings, ("https://EXAMPLE.org/c/d/=/srv/d",))
    assert mirror_of("https://example.org/a/b", mirrors) == Path("/srv/b")
    assert mirror_of("https://example.org/c/d.git", mirrors) == Path("/srv/d")
    assert mirror_of("https://example.org/C/d", mirrors) is None
    assert mirror_map(settings, ("https://example.org/a/b=/other",)) == {"https://example.org/a/b": Path("/other")}
    assert load_settings(tmp_path / "gone.yaml") == Settings()


@pytest.mark.parametrize("option", ["https://example.org/a", "=dir", "https://example.org/a="])
def test_a_mirror_option_that_is_no_pair_is_refused(option: str) -> None:
    with pytest.raises(OperatorError, match="not URL=DIR"):
        mirror_map(Settings(), (option,))
