"""A command of tests that builds first: what it is called by, and what the build makes."""

from __future__ import annotations

from collections.abc import Sequence
from posixpath import join, normpath

BUILT_TESTS = "built_tests.mjs"  # a file of ours, in environments
MAKES = "--makes="


def find_built_paths(command: Sequence[str], directory: str) -> tuple[str, ...]:
    """Paths of the workspace that the command says it makes. `directory`: the folder in which it is called.

    >>> find_built_paths(("node", "{environment}/built_tests.mjs", "--makes=a", "--", "x", "--makes=b"), "web")
    ('web/a',)
    """
    if not any(word.endswith(f"/{BUILT_TESTS}") for word in command[1:2]):
        return ()
    options = command[: command.index("--")] if "--" in command else command
    named = (word.removeprefix(MAKES) for word in options if word.startswith(MAKES))
    return tuple(normpath(join(directory, path)) for path in named)
