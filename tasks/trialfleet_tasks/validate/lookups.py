"""The paths that programs look up, as strace records them: those that exist, and those that do not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from posixpath import join, normpath

from trialfleet_ledger.untrusted import regular_file
from trialfleet_repository.languages import LANGUAGES
from trialfleet_repository.trees import Tree, links_of, resolve
from trialfleet_sandbox.interpreter import SYSTEM_PATH
from trialfleet_sandbox.protocol import SandboxCapabilities
from trialfleet_tasks.validate.product_classes import PathLookups

LOG = "lookups.log"  # in HOME
VARIABLES = {"UV_USE_IO_URING": "0"}  # of libuv: else Node looks up files without system calls
SLOWER = 3  # the time limit of tests whose look-ups are recorded, by that of others
_CALLS = "trace=%file,fchdir,clone,clone3,fork,vfork"
_OPTIONS = ("-f", "--seccomp-bpf", "-y", "-qq", "-e", "signal=none", "-e", _CALLS)
MAX_LOG_BYTES = 512 * 2**20
MAX_LINE_BYTES = 2**16
MAX_PATHS = 500_000
_LINE = re.compile(rb"(\d{1,10}) +(?:<\.\.\. )?(\w{1,40})(.*)\Z", re.DOTALL)
_CWD = re.compile(rb"\(AT_FDCWD<([^>]*)>")
_OTHER_FOLDER = re.compile(rb"\(\d{1,10}<([^>]*)>")
_QUOTED = re.compile(rb"\"((?:[^\"\\]|\\.)*)\"")
_RESULT = re.compile(rb"\)\s{1,99}= (-?\d{1,10})(?: (E[A-Z]+))?")
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f"}
_FORKS = (b"clone", b"clone3", b"fork", b"vfork")
_ABSENT = (b"ENOENT", b"ENOTDIR")


class LookupsUnknown(Exception):
    """They cannot be recorded here, or not all of them."""


def refuse_tracing(capabilities: SandboxCapabilities) -> None:
    """Raises `LookupsUnknown` where programs run in another container, or strace cannot be used."""
    if capabilities.separate_container:
        raise LookupsUnknown("tests run in another container")
    problem = probe_strace()
    if problem is not None:
        raise LookupsUnknown(problem)


@cache
def probe_strace() -> str | None:
    """Why strace cannot be used on this machine; None: it works. Runs it once per process."""
    program = shutil.which("strace", path=SYSTEM_PATH)
    if program is None:
        return "strace is not installed"
    command = (program, *_OPTIONS, "-o", os.devnull, "--", "true")
    try:
        done = subprocess.run(command, capture_output=True, env={"PATH": SYSTEM_PATH}, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"strace does not run: {error}"
    if done.returncode != 0:
        return f"strace is installed, but: {done.stderr.decode(errors='replace').strip()[-300:]}"
    return None


def traced(home: str) -> tuple[str, ...]:
    """The words before a command whose look-ups are recorded. `home`: as the command sees it."""
    return ("strace", *_OPTIONS, "-o", f"{home}/{LOG}", "--")


def read_lookups(log: Path, *, workspace: str, start: str, tree: Tree) -> PathLookups:
    """Below the workspace, by the tree that it was a copy of. `workspace`: as the program saw it; `start`: the
    folder that it began in. Raises `LookupsUnknown` if there is no log, or more than is read."""
    file = regular_file(log)
    if file is None:
        raise LookupsUnknown("strace wrote no log")
    paths = _SeenPaths(start)
    with file:
        if file.seek(0, 2) > MAX_LOG_BYTES:
            raise LookupsUnknown(f"the log of strace has more than {MAX_LOG_BYTES >> 20} MiB")
        file.seek(0)
        while line := file.readline(MAX_LINE_BYTES):
            paths.read_line(line.rstrip(b"\n"))
            if len(paths.outcomes) > MAX_PATHS:
                raise LookupsUnknown(f"the tests look up more than {MAX_PATHS} paths")
    return _below(paths.outcomes, workspace, tree)


@dataclass
class _SeenPaths:
    """`outcomes`: absolute path -> whether anything was there at any time. `folders`: of each process."""

    start: str
    outcomes: dict[str, bool] = field(default_factory=dict[str, bool])
    folders: dict[bytes, str] = field(default_factory=dict[bytes, str])
    begun: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])  # calls that another line ends

    def read_line(self, line: bytes) -> None:
        match = _LINE.match(line)
        if match is None:
            return
        process, call, rest = match.groups()
        if rest.endswith(b"<unfinished ...>"):
            self.begun[process] = rest.removesuffix(b"<unfinished ...>")
            return
        if rest.startswith(b" resumed>"):
            rest = self.begun.pop(process, b"(") + rest.removeprefix(b" resumed>")
        results = list(_RESULT.finditer(rest))
        if results:
            self._add(process, call, rest, results[-1])

    def _add(self, process: bytes, call: bytes, words: bytes, result: re.Match[bytes]) -> None:
        number, error = result.groups()
        here = _CWD.match(words)
        if here:
            self.folders[process] = _text(here[1])
        folder = self.folders.get(process, self.start)
        other = _OTHER_FOLDER.match(words)
        quoted = _QUOTED.search(words, 0, result.start())
        path = _text(quoted[1]) if quoted else "" if other else None
        place = None if path is None else normpath(join(folder if other is None else _text(other[1]), path))
        if call in _FORKS:
            self.folders[number] = folder
        elif place is not None and not number.startswith(b"-"):
            self.outcomes[place] = True
            if call in (b"chdir", b"fchdir"):
                self.folders[process] = place
        elif place is not None and error in _ABSENT:
            self.outcomes.setdefault(place, False)


def _text(escaped: bytes) -> str:
    r"""
    >>> _text(rb"a\303\244\"\n")
    'aä"\n'
    """
    if b"\\" not in escaped:
        return escaped.decode("utf-8", "surrogateescape")
    plain = _ESCAPE.sub(_unescaped, escaped)
    return plain.decode("utf-8", "surrogateescape")


def _unescaped(match: re.Match[bytes]) -> bytes:
    word = match[1]
    return bytes([int(word, 8) & 255]) if word[:1] in b"01234567" else _LETTERS.get(word, word)


def _below(outcomes: Mapping[str, bool], workspace: str, tree: Tree) -> PathLookups:
    """Paths from the workspace's root, without links; what is compiled stands for its sources."""
    links, folder = links_of(tree), workspace.rstrip("/") + "/"
    hits: set[str] = set()
    misses: set[str] = set()
    for path, was_there in outcomes.items():
        if path.startswith(folder):
            inside = resolve(path.removeprefix(folder), links) if links else path.removeprefix(folder)
            for source in _sources(inside) if inside else ():
                (hits if was_there or source in tree else misses).add(source)
    return PathLookups(frozenset(hits), frozenset(misses))


def _sources(path: str) -> Iterable[str]:
    """The path, or the sources that a compiled file is made of."""
    compiled: Iterator[str] = (source for each in LANGUAGES.values() for source in each.sources_of(path))
    return tuple(compiled) or (path,)
