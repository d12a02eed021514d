"""Selects the context of a repository or a folder: the files that agents read as instructions, what their links
lead to, and the documents that they import."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from trialfleet_agents.context_files import COPIES, is_context_file
from trialfleet_agents.instruction_pages import find_pages
from trialfleet_deliveries.declared_texts import (
    DEEPEST_IMPORT,
    find_imports,
    has_imports,
    leaves_workspace,
    read_text,
)
from trialfleet_repository.trees import (
    EntryKind,
    Tree,
    TreeEntry,
    check,
    link_to,
    linked_files,
    links_of,
    resolve,
)

_PROSE = {"", ".md", ".mdc", ".markdown", ".txt", ".rst", ".adoc"}
_SETTINGS = {".json", ".jsonc", ".toml", ".yaml", ".yml"}
_FOLDERS = {"skills", "commands", "agents", "rules", "prompts", "instructions", "hooks", "output-styles"}


@dataclass(frozen=True)
class FileListing:
    """Files and links of a repository or a folder. `read`: the bytes of files, and the targets of links."""

    kinds: Mapping[str, EntryKind]
    read: Callable[[Collection[str]], Mapping[str, bytes]]


@dataclass(frozen=True)
class OwnContext:
    """`leaving`: links of context files that leave the listing, which no context can hold. `sources`: the files of
    the listing that the tree was made of."""

    tree: dict[str, TreeEntry]
    leaving: tuple[str, ...] = ()
    sources: frozenset[str] = frozenset()


def list_tree(tree: Tree) -> FileListing:
    """Of a tree in memory."""
    kinds = {path: entry.kind for path, entry in tree.items()}
    return FileListing(kinds, lambda paths: {path: tree[path].data for path in paths})


def select_repository_context(listing: FileListing) -> OwnContext:
    """Of a repository: without pages of documentation that are only named so, and without copies of ours."""
    pages = find_pages(listing.kinds)
    return _select(listing, (path for path in listing.kinds if path not in pages and not path.startswith(COPIES)))


def select_context(listing: FileListing) -> OwnContext:
    """Of a folder that people made for it.

    >>> tree = {"CLAUDE.md": TreeEntry(b"See @docs/a.md"), "docs/a.md": TreeEntry(b"x"), "b.py": TreeEntry(b"")}
    >>> sorted(select_context(list_tree(tree)).tree)
    ['CLAUDE.md', 'docs/a.md']
    """
    return _select(listing, listing.kinds)


def _select(listing: FileListing, paths: Iterable[str]) -> OwnContext:
    """A link stays one where it leads to files of the context, and becomes a copy of the instructions to which it
    leads elsewhere. A link to code stays, too, and leads to the workspace's: that of this revision could be the
    fix."""
    chosen = [path for path in paths if is_context_file(path)]
    links = _read_links(listing)
    files = listing.kinds.keys() - links.keys()
    own_links = [path for path in chosen if path in links]
    led = linked_files(links, files, own_links)
    copies = {link: found for link, found in led.items() if all(map(_may_be_copied, found.values()))}
    sources = {path: path for path in chosen if path in files}
    sources |= {path: file for found in copies.values() for path, file in found.items()}
    sources |= _follow_imports(listing, sources, links, files)
    kept = set[str]()
    for link in own_links:
        copied = copies.get(link, {})
        if all(sources.get(file) == file for file in copied.values()):
            kept.add(link)
            sources = {path: file for path, file in sources.items() if path not in copied}
    return _build(listing, sources, kept, links)


def _build(
    listing: FileListing, sources: Mapping[str, str], kept: Collection[str], links: Mapping[str, str]
) -> OwnContext:
    """`kept`: links that stay. One that would lead elsewhere without the other links of the listing leads straight
    to its target."""
    data = listing.read(sorted({*sources.values()}))
    leads = {link: resolve(link, links) for link in kept}
    tree = {path: TreeEntry(data[file], listing.kinds[file]) for path, file in sources.items()}
    tree |= {link: link_to(links[link]) for link, lead in leads.items() if lead is not None}
    there = links_of(tree)
    for link, lead in leads.items():
        if lead is not None and resolve(link, there) != lead:
            straight = posixpath.relpath(lead or ".", posixpath.dirname(link) or ".")
            tree[link] = link_to(straight)
    leaving = tuple(sorted(link for link, lead in leads.items() if lead is None))
    return OwnContext(dict(sorted(check(tree).items())), leaving, frozenset(sources.values()))


def _read_links(listing: FileListing) -> dict[str, str]:
    paths = [path for path, kind in listing.kinds.items() if kind is EntryKind.LINK]
    return {path: os.fsdecode(target) for path, target in listing.read(paths).items()}


def _may_be_copied(file: str) -> bool:
    """Whether a file to which a link leads holds instructions or an agent's settings, or is a part of a skill, a
    hook, ... Where the link itself is tells nothing: a skill may link to code."""
    folders = PurePosixPath(file).parent.parts
    return PurePosixPath(file).suffix.lower() in {*_PROSE, *_SETTINGS} or not _FOLDERS.isdisjoint(folders)


def _follow_imports(
    listing: FileListing, sources: Mapping[str, str], links: Mapping[str, str], files: Collection[str]
) -> dict[str, str]:
    """Documents that instructions import, by the path that names them -> their files. Links on the way stay out of
    it: a workspace may have a folder there. What else an `@path` names (code, a manifest) is the workspace's."""
    found = dict[str, str]()
    level = dict(sources)
    for depth in range(DEEPEST_IMPORT):
        texts = listing.read(sorted({*level.values()}))
        named = {
            target
            for path, file in level.items()
            if depth or has_imports(path, texts[file])
            for base in (path, file)
            for target in find_imports(base, read_text(texts[file]))
        }
        level = dict[str, str]()
        for target in sorted(named - sources.keys() - found.keys()):
            file = None if leaves_workspace(target) else resolve(target, links)
            if file is not None and file in files and PurePosixPath(file).suffix.lower() in _PROSE:
                level[target] = file
        found |= level
    return found
