"""Which arguments of a command line name a script, and which of them will not be found. Without its script an
interpreter fails in every trial, and the campaign looks like a result."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

_INTERPRETERS = re.compile(r"python[\d.]*|pypy[\d.]*|bash|dash|sh|zsh|node|ruby|perl")
_NO_SCRIPT = ("-c", "-m", "-e")  # the program is in the next argument, or a module
_WITH_VALUE = {"-W", "-X", "-r", "--require", "-o"}
_SUFFIXES = {".py", ".pyz", ".sh", ".bash", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl"}
_INSIDE = ("/workspace", "/home/agent")  # where a sandbox shows the trial's own folders


def scripts(argv: Sequence[str]) -> tuple[tuple[int, str], ...]:
    """(Place, path) of the arguments that name a script: the interpreter's own, and what has a script's suffix.

    >>> scripts(["python3", "-u", "main", "--out=x.py", "tools/b.sh"]), scripts(["sh", "-c", "run a.py"])
    (((2, 'main'), (4, 'tools/b.sh')), ())
    """
    own = _own(argv) if _INTERPRETERS.fullmatch(PurePosixPath(argv[0]).name) else None
    return tuple(
        (n, argument)
        for n, argument in enumerate(argv)
        if n
        and (n == own or (PurePosixPath(argument).suffix in _SUFFIXES and re.fullmatch(r"[^-\s]\S*", argument)))
    )


def _own(argv: Sequence[str]) -> int | None:
    """The place of the interpreter's script."""
    value_follows = False
    for n, argument in enumerate(argv[1:], 1):
        if argument.startswith(_NO_SCRIPT):
            return None
        if not value_follows and not argument.startswith("-"):
            return n
        value_follows = argument in _WITH_VALUE
    return None


def missing_scripts(argv: Sequence[str], seen: Sequence[Path]) -> Iterator[str]:
    """A warning for each script with an absolute path that is not on this machine, or in none of the folders that
    are `seen` by the agent."""
    for n, name in scripts(argv):
        path = Path(name)
        if not path.is_absolute() or name.startswith(_INSIDE):
            continue
        if not path.exists():
            yield f"agent.options.argv[{n}]: {name} does not exist: the agent will fail in every trial"
        elif not any(path.is_relative_to(folder) for folder in seen):
            yield (
                f"agent.options.argv[{n}]: {name} is in no folder that the agent can see: add {path.parent} to "
                "agent.options.mounts"
            )


def workspace_scripts(argv: Sequence[str]) -> dict[str, int]:
    """Scripts with a relative path, which are looked up in the workspace -> their place."""
    return {str(PurePosixPath(name)): n for n, name in scripts(argv) if not PurePosixPath(name).is_absolute()}
