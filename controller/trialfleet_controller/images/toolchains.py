"""Toolchains for images: which of this machine's programs are copied, and which come from Debian packages.

An image must have the versions that tasks were validated with. A program is copied if it is self-contained: it
has a separate folder (Go, a JDK, Maven, a toolchain of rustup), or is one file that needs only libraries that
every Debian has. The others come from Debian's packages; `trialfleet-pod bake` refuses another version.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trialfleet_ledger.child_program import ChildFailure, run_program
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.user_folders import home_folder
from trialfleet_repository.environments.tool_environment import find_tool
from trialfleet_repository.languages import LANGUAGES

_SHARED = ("/", "/usr", "/usr/local", "/opt")  # folders that are no program's own
_DEBIAN_NODE = Path("/usr/share/nodejs")  # one folder per module, which need each other
_EVERYWHERE = re.compile(r"linux-vdso|ld-linux|lib(?:c|m|dl|rt|pthread|gcc_s|stdc\+\+|z|atomic)\.so\.")
_C_COMPILER = ("gcc", "libc6-dev")
_UNREAD = {"share/doc", "share/man"}  # of a toolchain; rustup's is half of it


@dataclass(frozen=True)
class ToolFolder:
    """A folder or a single file that is copied. `programs`: name -> path below it; "." for a file."""

    source: Path
    programs: Mapping[str, str]


@dataclass(frozen=True)
class Toolchains:
    """What an image needs for some programs. `packages`: of Debian."""

    copied: tuple[ToolFolder, ...] = ()
    packages: tuple[str, ...] = ()


def toolchains(tools: Iterable[str]) -> Toolchains:
    """Those of this machine for the programs of these names. Raises `OperatorError` for a program that is not
    here, or can neither be copied nor installed."""
    wanted = sorted(set(tools))
    linkers = {name for language in LANGUAGES.values() for name in language.linkers}
    packages = set[str](_C_COMPILER if linkers & set(wanted) and shutil.which("cc") else ())
    found: dict[Path, dict[str, str]] = {}
    for name in wanted:
        program = find_tool(name)[0].resolve()
        folder = _own_folder(program)
        if folder is not None:
            found.setdefault(folder, {})[name] = str(program.relative_to(folder))
        elif _stands_alone(program):
            found[program] = {name: "."}
        else:
            packages.add(_package(name, program))
    copied = tuple(ToolFolder(source, programs) for source, programs in sorted(found.items()))
    return Toolchains(copied, tuple(sorted(packages)))


def _own_folder(program: Path) -> Path | None:
    folder = program.parent.parent
    shared = {*_SHARED, str(home_folder()), str(home_folder() / ".local")}
    if program.parent.name != "bin" or str(folder) in shared or folder.is_relative_to(_DEBIAN_NODE):
        return None
    return folder


def _stands_alone(program: Path) -> bool:
    """Whether it is a binary whose libraries every Debian has."""
    with program.open("rb") as file:
        if file.read(4) != b"\x7fELF":
            return False
    ended = run_program(("ldd", program))
    if isinstance(ended, ChildFailure):
        return "not a dynamic executable" in ended.reason
    lines = ended.stdout.decode(errors="replace").splitlines()
    return all(_EVERYWHERE.search(line) for line in lines if "=>" in line or "/" in line)


def _package(name: str, program: Path) -> str:
    """The Debian package that it is of. Raises `OperatorError`."""
    if shutil.which("dpkg-query"):
        ended = run_program(("dpkg-query", "-S", program))
        text = "" if isinstance(ended, ChildFailure) else ended.stdout.decode(errors="replace")
        owner = re.match(r"([a-z0-9][a-z0-9+.-]*)(?::\w+)?: ", text)
        if owner:
            return owner[1]
    raise OperatorError(
        f"{name} ({program}) can neither be copied into an image nor installed there from a Debian package",
        where="--for",
        hint="name a --base image that has it in this machine's version, and add --base-has-tools",
    )


def write_toolchains(copied: Iterable[ToolFolder], target: Path, *, at: float) -> None:
    """Copy them below `target`, with links to all programs in `target`/bin. Folders get the time `at`, so that
    the same toolchains give the same layer of an image."""
    for number, each in enumerate(copied):
        place = target / f"{number}-{each.source.name}"
        place.parent.mkdir(parents=True, exist_ok=True)
        if each.source.is_dir():
            _copy(each.source, place)
        else:
            shutil.copy2(each.source, place)
        (target / "bin").mkdir(exist_ok=True)
        for name, path in each.programs.items():
            (target / "bin" / name).symlink_to(os.path.normpath(f"../{place.name}/{path}"))
    _readable(target, at)


def _readable(target: Path, at: float) -> None:
    for above, _, files in os.walk(target):
        for path in (Path(above), *(Path(above, name) for name in files)):
            if not path.is_symlink():
                mode = path.stat().st_mode
                path.chmod(mode | 0o444 | (0o111 if mode & 0o100 else 0))
        os.utime(above, (at, at))


def _copy(source: Path, target: Path) -> None:
    """The folder without its documentation. Links within it stay; others become what they point to."""

    def unread(folder: str, names: list[str]) -> list[str]:
        base = Path(folder).relative_to(source)
        return [name for name in names if str(base / name) in _UNREAD]

    shutil.copytree(source, target, symlinks=True, ignore=unread)
    for folder, folders, files in os.walk(target):
        for name in (*folders, *files):
            link = Path(folder, name)
            if link.is_symlink():
                _settle(link, source / link.relative_to(target), source)


def _settle(link: Path, original: Path, source: Path) -> None:
    if original.exists() and original.resolve().is_relative_to(source) and not original.readlink().is_absolute():
        return
    link.unlink()
    if original.is_dir():
        shutil.copytree(original, link, ignore_dangling_symlinks=True)
    elif original.is_file():
        shutil.copy2(original, link)
