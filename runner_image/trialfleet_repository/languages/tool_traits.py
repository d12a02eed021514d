"""What the tools of a language do with the files of an environment, so that these can be shared and kept small."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path


def _nothing(_: Path) -> bool:
    return False


def _keep_all(_: Path) -> None:
    return None


@dataclass(frozen=True)
class ToolTraits:
    """`left_out`: folders of an environment that a new one does not copy, since the tool unpacks them again from
    what it downloaded. `of_its_place`: the cache that holds for one place alone. Elsewhere the tool makes all of
    it again, and an attempt would try to rewrite the records that the build did not renew. `marked`: the cache
    whose files' times say what was used: the tool renews them if they are older than an hour. `drop_unused`:
    removes what the tool's own records in a built environment do not name. `compiled`: caches that hold nothing
    but what a compiler makes of sources. `compiled_beside`: by the cache that an environment of the tool has,
    finds folders of a workspace that hold nothing else either. `locks`: names of files that a program locks:
    each attempt makes its own. `written`: ends of names of files that a program opens for writing: each attempt
    has copies. `trimmed`: names of files that say when a program last removed what is old."""

    left_out: Callable[[Path], bool] = _nothing
    of_its_place: str | None = None
    marked: str | None = None
    drop_unused: Callable[[Path], None] = _keep_all
    compiled: tuple[str, ...] = ()
    compiled_beside: Mapping[str, Callable[[Path], Iterable[Path]]] = field(
        default_factory=dict[str, "Callable[[Path], Iterable[Path]]"]
    )
    locks: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    trimmed: tuple[str, ...] = ()


NO_TRAITS = ToolTraits()
