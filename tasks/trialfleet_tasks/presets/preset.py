"""What the kinds of environments mean: how a language's dependencies are fetched, and its tests run and read."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.task import ToolEnvironment
from trialfleet_repository.environments.tool_environment import find_tool
from trialfleet_repository.languages import language_of_kind
from trialfleet_repository.languages.preset import Preset, ToolPreset, VersionOf, restrict_tree
from trialfleet_repository.trees import ROOT, Tree, pack


def preset(environment: ToolEnvironment, tree: Tree) -> ToolPreset:
    """What the kind means for this repository, with what the task file says in its place.

    Raises `OperatorError` when the repository lacks what the kind needs."""
    if environment.directory is not None and not restrict_tree(tree, environment.directory):
        raise OperatorError(
            f"the repository has no folder {environment.directory}",
            where="environment.directory",
            hint="name a folder of the tree before the fix, or leave it out",
        )
    found = _preset_of(environment.kind)(environment, tree, lambda name: find_tool(name)[1])
    names = ("tools", "inputs", "fetch", "warm", "keep", "test_command", "results")
    given = {name: getattr(environment, name) for name in names if getattr(environment, name) is not None}
    return replace(found, **given)


def inputs(patterns: tuple[str, ...], tree: Tree) -> bytes:
    """The files that decide what is fetched, as a tar.

    >>> from trialfleet_repository.trees import TreeEntry, unpack
    >>> sorted(unpack(inputs(("go.mod",), {"go.mod": TreeEntry(b""), "a.go": TreeEntry(b"")})))
    ['go.mod']
    """
    return pack({path: entry for path, entry in tree.items() if _matches(path, patterns)})


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    """By the whole path or by its last name."""
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in (path, path.rpartition("/")[2]))


def _commands(environment: ToolEnvironment, _: Tree, __: VersionOf) -> ToolPreset:
    assert environment.test_command is not None, "the task file's schema requires it"
    assert environment.results is not None, "the task file's schema requires it"
    program = environment.test_command[0]
    return ToolPreset(
        tools={} if "/" in program or environment.tools is not None else {program: ""},
        inputs=(),
        directory=environment.directory or ROOT,
        test_command=environment.test_command,
        results=environment.results,
    )


def _preset_of(kind: str) -> Preset:
    language = language_of_kind(kind)
    return _commands if language is None or language.preset is None else language.preset
