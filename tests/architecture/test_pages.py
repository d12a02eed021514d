"""Links between pages lead somewhere, and the page that says where things are names paths that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)(?:#([^)\s]+))?\)|\]\(#([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    return [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]


def anchors(page: Path) -> set[str]:
    """Of the headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_lead_somewhere() -> None:
    dead: list[str] = []
    for page in pages():
        for path, anchor, here in LINK.findall(FENCED.sub("", page.read_text())):
            target = (page.parent / path).resolve() if path else page
            lost = not target.exists() or (
                target.suffix == ".md" and bool(anchor or here) and (anchor or here) not in anchors(target)
            )
            if lost:
                dead.append(f"{page.relative_to(ROOT)}: {path}#{anchor or here}")
    assert dead == []


def test_every_page_is_reached_from_the_index() -> None:
    index = ROOT / "docs/README.md"
    linked = {(index.parent / path).resolve() for path, _, _ in LINK.findall(index.read_text()) if path}
    below = [page for page in (ROOT / "docs").rglob("*.md") if page != index]
    assert [str(page.relative_to(ROOT)) for page in below if page not in linked] == []


def test_no_page_holds_an_unresolved_merge() -> None:
    marked = [page for page in pages() if re.search(r"^(<{7}|={7}|>{7})( |$)", page.read_text(), re.MULTILINE)]
    assert [str(page.relative_to(ROOT)) for page in marked] == []


def test_every_place_for_a_change_exists() -> None:
    page = (ROOT / "docs/explanation/architecture.md").read_text()
    rows = re.findall(r"^\| .+ \| (.+) \|$", page.split("## Where to change what")[1], re.MULTILINE)[1:]
    named = [path for row in rows for path in re.findall(r"`([\w./-]+)`", row)]
    assert len(rows) >= 30
    assert [path for path in named if not (ROOT / path).exists()] == []
