"""What MkDocs adds to docs/: navigation by the index page, and a page for each file of the repository that a page
links to."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
ASSETS = Path(__file__).parent / "assets"
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")
FENCED = re.compile(r"^(`{3,}).*?^\1`*$", re.MULTILINE | re.DOTALL)
REPOSITORY = "repository"  # the site's folder of such pages
PROJECT = ("CONTRIBUTING.md", "CHANGELOG.md")  # in the navigation, besides the pages of docs/
DOWNLOADED = ("mermaid.min.js", "iframe-worker.js")  # by the Makefile: the theme would load them from elsewhere
GALLERY = ROOT / "build" / "gallery"  # by `make gallery`
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".json": "json", ".sh": "bash"}


def navigation(index: str) -> list[Any]:
    """The sections of the index page with the pages that each links to, in its order.

    >>> navigation("# D\\n## How-to\\n| a | [Mine](how-to/mine.md) |\\n## Reference\\n[x](x.md#y), [s](schema/)")
    ['README.md', {'How-to': ['how-to/mine.md']}, {'Reference': ['x.md', 'schema/index.md']}]
    """
    found: list[Any] = ["README.md"]
    for section in index.split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        pages = [_page(path) for path in LINK.findall(text)]
        found.append({title: list(dict.fromkeys(pages))})
    return found


def _page(path: str) -> str:
    return f"{path}index.md" if path.endswith("/") else path


def outside(page: str, markdown: str) -> Iterator[str]:
    """Paths in the repository, without those of pages, to which a page of docs/ links.

    >>> list(outside("how-to/a.md", "[b](b.md) [c](../../examples/c.yaml) [e](../reference/schema/)"))
    ['examples/c.yaml', 'docs/reference/schema/']
    """
    for path in LINK.findall(FENCED.sub("", markdown)):
        found = _in_repository(page, path)
        if not (found.startswith("docs/") and found.endswith(".md")):
            yield found


def _in_repository(page: str, path: str) -> str:
    """Where a link of a page leads, from the repository's root."""
    of_docs = not page.startswith(f"{REPOSITORY}/")
    folder = posixpath.dirname(f"docs/{page}" if of_docs else page.removeprefix(f"{REPOSITORY}/"))
    return posixpath.normpath(posixpath.join(folder, path)) + ("/" if path.endswith("/") else "")


def _place(path: str) -> str:
    """Where in the site the page about a path of the repository is."""
    if path.startswith("docs/"):
        return _page(path.removeprefix("docs/"))
    return f"{REPOSITORY}/{path.rstrip('/')}" + ("" if path.endswith(".md") else ".md")


def _text(path: str) -> str:
    """The page about a file or folder of the repository; pages of a folder of docs/ list its files."""
    found = ROOT / path
    if path.endswith(".md"):
        return found.read_text()
    if path.startswith("docs/"):
        rows = [f"- [`{file.name}`]({file.name})" for file in sorted(found.iterdir()) if file.is_file()]
        return "\n".join([f"# Files of {found.name}", "", *rows, ""])
    files = sorted(file for file in found.iterdir() if file.is_file()) if found.is_dir() else [found]
    shown = [
        f"## {file.name}\n\n``````{_LANGUAGES.get(file.suffix, 'text')}\n{file.read_text()}\n``````"
        for file in files
    ]
    return "\n\n".join([f"# `{path}`", *shown, ""])


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Navigation."""
    pages = navigation((Path(config.docs_dir) / "README.md").read_text())
    gallery = ["gallery.md"] if GALLERY.is_dir() else []
    config.nav = [*pages, *gallery, {"Project": [_place(name) for name in PROJECT]}]
    config.extra["polyfills"] = ["assets/iframe-worker.js"]  # for the plugin `offline`
    return config


def _add_gallery(files: Files, config: MkDocsConfig) -> None:
    text = (Path(__file__).parent / "gallery.md.in").read_text()
    files.append(File.generated(config, "gallery.md", content=text))
    for path in sorted(GALLERY.rglob("*")):
        if path.is_file():
            place = f"gallery/{path.relative_to(GALLERY)}"
            files.append(File.generated(config, place, abs_src_path=str(path)))


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Pages of the repository's files, and the site's own style and scripts."""
    if GALLERY.is_dir():
        _add_gallery(files, config)
    wanted: set[str] = set(PROJECT)
    for file in files.documentation_pages():
        wanted.update(outside(file.src_uri, file.content_string))
    for name in PROJECT:
        wanted.update(outside(_place(name), _text(name)))
    for path in sorted(wanted):
        if path.endswith("/") or not path.startswith("docs/"):  # MkDocs copies the files of docs/
            page = File.generated(config, _place(path), content=_text(path))
            page.inclusion = InclusionLevel.INCLUDED if path in PROJECT else InclusionLevel.NOT_IN_NAV
            files.append(page)
    for asset in (*sorted(ASSETS.iterdir()), *(ROOT / "build" / name for name in DOWNLOADED)):
        files.append(File.generated(config, f"assets/{asset.name}", abs_src_path=str(asset)))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Links to the repository lead to the pages made here."""
    here = page.file.src_uri

    def moved(match: re.Match[str]) -> str:
        found = _in_repository(here, match[1])
        if found.startswith("docs/") and not found.endswith("/"):
            place = found.removeprefix("docs/")
        else:
            place = _place(found)
        return posixpath.relpath(place, posixpath.dirname(here) or ".")

    parts = re.split(r"(^`{3,}.*?^`{3,}$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(moved, part) for part in parts)
