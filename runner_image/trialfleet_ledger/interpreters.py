"""Python interpreters of this machine, and uv."""

from __future__ import annotations

import os
import platform
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.user_folders import home_folder

_ASK = (
    "import sys,platform;print(sys.implementation.name, platform.python_version(), "
    "getattr(sys,'_base_executable',sys.executable))"
)


@dataclass(frozen=True)
class Interpreter:
    """A CPython of this machine. `path` is its real file, `version` whole: "3.11.7"."""

    path: Path
    version: str

    @property
    def minor(self) -> str:
        """ "3.11"."""
        return ".".join(self.version.split(".")[:2])


def find_interpreter(wanted: tuple[str, ...], *, for_other_uid: bool = False) -> Interpreter:
    """The first wanted version that this machine has, best first. Raises `OperatorError`.

    `for_other_uid`: another user must be able to execute it; one below /root does not do.
    """
    found = next(interpreters(wanted, for_other_uid=for_other_uid), None)
    if found:
        return found
    hidden = next(interpreters(wanted), None) if for_other_uid else None
    if hidden:
        raise OperatorError(
            f"{hidden.path} cannot be executed by the agent's user",
            where="environment.python",
            hint="install a system-wide Python, or bubblewrap (it needs no other user)",
        )
    raise OperatorError(
        f"no Python {' or '.join(wanted)} on this machine",
        where="environment.python",
        hint="install one of them and put it on PATH, for example with apt, pyenv or `uv python install`",
    )


def interpreters(wanted: tuple[str, ...], *, for_other_uid: bool = False) -> Iterator[Interpreter]:
    """Every interpreter that fits, once, in the order of `wanted`; of one version, ours and those on PATH first.

    One after the other: asking a program what it is costs a process.
    """
    found: set[Path] = set()
    for version in wanted:
        for program in _candidates(version):
            known = _ask(str(program))
            if known is None or known.path in found or not (known.version + ".").startswith(version + "."):
                continue
            found.add(known.path)
            if not for_other_uid or executable_by_others(known.path):
                yield known


def executable_by_others(path: Path) -> bool:
    """Whether any user may walk to the real file and execute it.

    >>> executable_by_others(Path("/bin/sh"))
    True
    """
    real = path.resolve()
    if not real.stat().st_mode & stat.S_IXOTH:
        return False
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in real.parents)


def _candidates(version: str) -> Iterator[Path]:
    if not re.fullmatch(r"3\.\d{1,2}(\.\d{1,3})?", version):
        raise OperatorError(
            f"{version!r} is not a Python version", where="environment.python", hint='write "3.11"'
        )
    minor = ".".join(version.split(".")[:2])
    if f"{sys.version_info[0]}.{sys.version_info[1]}" == minor:
        yield Path(getattr(sys, "_base_executable", sys.executable))
    for folder in os.get_exec_path():
        found = shutil.which(f"python{minor}", path=folder)
        if found:
            yield Path(found)
    for program in (Path(f"/usr/bin/python{minor}"), Path(f"/usr/local/bin/python{minor}")):
        if program.exists():
            yield program
    for root in (os.environ.get("PYENV_ROOT") or str(home_folder() / ".pyenv"),):
        yield from sorted(Path(root, "versions").glob(f"{minor}*/bin/python{minor}"), reverse=True)


@cache
def _ask(program: str) -> Interpreter | None:
    """What the program is; None when it does not run or is not CPython (a version manager's shim without it)."""
    ours = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    if Path(program).resolve() == ours and sys.implementation.name == "cpython":
        return Interpreter(ours, platform.python_version())
    try:
        ended = subprocess.run(
            (program, "-I", "-S", "-c", _ASK),
            cwd="/",
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.fullmatch(r"cpython (\S+) (.+)\n", ended.stdout)
    return Interpreter(Path(match[2]).resolve(), match[1]) if ended.returncode == 0 and match else None


def uv_program() -> str:
    """uv in this interpreter's folder, otherwise on PATH. Raises `OperatorError`."""
    adjacent = Path(sys.executable).parent / "uv"
    found = str(adjacent) if adjacent.exists() else shutil.which("uv")
    if found is None:
        raise OperatorError("uv is not installed", hint="pip install uv")
    return found
