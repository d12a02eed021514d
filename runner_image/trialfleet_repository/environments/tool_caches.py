"""Caches that a new environment takes over from an older one of the same repository, so that little is fetched and
compiled again."""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from trialfleet_ledger.canonical import digest
from trialfleet_ledger.records.base import Sha256
from trialfleet_ledger.records.environment import ToolEnvironmentRef
from trialfleet_repository.cache import locked
from trialfleet_repository.environments.tool_environment import KEPT, furnishings
from trialfleet_repository.languages import LANGUAGES, language_of_kind
from trialfleet_repository.languages.tool_traits import NO_TRAITS, ToolTraits
from trialfleet_sandbox.interpreter import FURNISHINGS

_OLD_S = 24 * 3600.0


def caches_of(ref: ToolEnvironmentRef) -> Sha256 | None:
    """Equal for environments of one repository whose tools and variables are equal: their tools look up what they
    cached by its content or by its whole name and version."""
    same = (ref.kind, ref.repository, ref.tools, ref.variables, ref.links)
    return digest(list(same)) if ref.repository else None


@contextmanager
def taking_turns(folder: Path, ref: ToolEnvironmentRef) -> Generator[Path | None]:
    """The environment to begin with (`seed_of`). While there is none, one is built alone, so that the others can
    begin with its caches instead of compiling the same."""
    wanted, seed = caches_of(ref), seed_of(folder, ref)
    if wanted is None or seed is not None:
        yield seed
        return
    with locked(turn_of(folder, wanted)):
        yield seed_of(folder, ref)


def turn_of(folder: Path, caches: Sha256) -> Path:
    """What `taking_turns` locks for an environment in `folder`."""
    return folder.with_name(f".first-{caches[:32]}")


def seed_of(folder: Path, ref: ToolEnvironmentRef) -> Path | None:
    """The newest environment in the cache whose caches a new one can start with."""
    wanted = caches_of(ref)
    files = sorted(folder.parent.glob(f"*/{FURNISHINGS}"), key=lambda file: -file.stat().st_mtime)
    found = (file.parent for file in files if file.parent != folder)
    return next((each for each in found if wanted and _caches_in(each) == wanted), None)


def _caches_in(environment: Path) -> Sha256 | None:
    """None where another release wrote what this one cannot read."""
    try:
        return furnishings(environment).caches
    except ValueError:
        return None


def take_over(seed: Path, folder: Path, kind: str, *, one_place: bool = False) -> None:
    """Copy the seed's caches into `folder`. What a tool can tell was not used there since is marked as old:
    `drop_unused` removes it after the build, or every environment would hold what all before it needed.
    `one_place`: both appear at the same path when their tools run."""
    traits = _traits(kind)
    of_its_place = None if one_place else traits.of_its_place

    def excluded(path: Path) -> bool:
        return traits.left_out(path) or path.parts == (of_its_place,)

    def left_out(place: str, names: list[str]) -> set[str]:
        inner = Path(place).relative_to(seed)
        return {name for name in names if excluded(inner / name)}

    for child in seed.iterdir():
        if child.is_dir() and child.name not in ("bin", KEPT) and not excluded(Path(child.name)):
            shutil.copytree(child, folder / child.name, symlinks=True, ignore=left_out)  # with the times of files
            _make_writable(folder / child.name)
    old = time.time() - 2 * _OLD_S
    for file in _marked_files(folder, kind):
        os.utime(file, (old, old))


def drop_unused(folder: Path, kind: str) -> None:
    """Of what was taken over, remove what the new environment's commands did not use."""
    for file in _marked_files(folder, kind):
        if time.time() - file.stat().st_mtime > _OLD_S:
            file.unlink()
    for language in LANGUAGES.values():
        language.tools.drop_unused(folder)


def _marked_files(folder: Path, kind: str) -> Iterator[Path]:
    marked = _traits(kind).marked
    if marked is not None:
        yield from (path for path in (folder / marked).glob("*/*") if path.is_file())


def _traits(kind: str) -> ToolTraits:
    language = language_of_kind(kind)
    return NO_TRAITS if language is None else language.tools


def _make_writable(folder: Path) -> None:
    """A finished environment is read-only, and a tool writes its records again: some name the folder."""
    for path, _, files in os.walk(folder):
        Path(path).chmod(0o755)
        for file in (Path(path, name) for name in files):
            if not file.is_symlink():
                file.chmod(file.stat().st_mode | stat.S_IWUSR)
