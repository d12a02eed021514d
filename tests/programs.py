"""The programs that tests start: the list of programs.tsv, and a check of every start against it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("programs.tsv")
SYSTEM_FOLDERS = ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin")
PYTHON = re.compile(r"(python|pypy)[0-9.]*")


@dataclass(frozen=True)
class Program:
    name: str
    package: str | None
    """The Debian package; None: it comes from elsewhere, as `needed_by` says."""
    needed_by: str
    npm: str | None = None
    """The package and version that .ci/run installs with npm."""

    @property
    def label(self) -> str:
        if self.npm:
            return f"{self.name} (npm install --prefix {npm_folder(self.name)} {self.npm})"
        return f"{self.name} (apt install {self.package})" if self.package else f"{self.name} ({self.needed_by})"


def table() -> dict[str, Program]:
    rows = (line.split("\t") for line in TABLE.read_text().splitlines() if line and not line.startswith("#"))
    return {name: _program(name, package, by) for name, package, by in rows}


def _program(name: str, package: str, needed_by: str) -> Program:
    if package.startswith("npm:"):
        return Program(name, None, needed_by, package.removeprefix("npm:"))
    return Program(name, None if package == "-" else package, needed_by)


def npm_folder(name: str) -> Path:
    """Where .ci/run installs a program that npm has."""
    return Path(os.environ.get("TRIALFLEET_CI_AGENTS", "/opt/trialfleet-ci"), "npm", name)


def npm_programs(name: str) -> Path:
    """The folder of that program, for a PATH."""
    return npm_folder(name) / "node_modules" / ".bin"


def unlisted(argv: Sequence[object], listed: frozenset[str]) -> str | None:
    """The name of the program that `argv` starts if it belongs to the system and `listed` lacks it.

    Interpreters of Python and programs with a path outside of the system's folders (what a test wrote, a virtual
    environment's) belong to the tests themselves.
    """
    program = Path(str(argv[0]))
    of_system = str(program.parent) in SYSTEM_FOLDERS if program.is_absolute() else len(program.parts) == 1
    if not of_system or PYTHON.fullmatch(program.name):
        return None
    return None if program.name in listed else program.name


class Starts:
    """Names of system programs that this process starts and that the table does not name."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.listed = frozenset(table())
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if event != "subprocess.Popen":
            return
        argv = arguments[1]
        name = unlisted(argv if isinstance(argv, (list, tuple)) else (argv,), self.listed)
        if name is not None:
            self.names.add(name)

    def take(self) -> set[str]:
        found, self.names = self.names, set()
        return found
