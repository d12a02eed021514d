"""How a task's tests are called: the words of their command, and the folder that it is called in."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path, PurePosixPath

from trialfleet_ledger.records.task_order import ResultFormat
from trialfleet_ledger.untrusted import regular_file
from trialfleet_repository.languages import format_named
from trialfleet_repository.languages.built_paths import find_built_paths
from trialfleet_repository.languages.report_format import ReadFile
from trialfleet_repository.languages.settings_record import SettingsPlugin
from trialfleet_repository.trees import ROOT

MAX_MANIFEST = 2**20
_PACKAGED = "node_modules/"  # of a package, or of one that its folder lies in


@dataclass(frozen=True)
class CalledTests:
    """`command`: argv, in which {tests}, {junit} and {environment} are replaced. `directory`: folder of the
    workspace that it is called in."""

    command: tuple[str, ...]
    results: ResultFormat
    directory: str = ROOT

    @property
    def built(self) -> tuple[str, ...]:
        """Paths of the workspace that a build before the tests makes."""
        return find_built_paths(self.command, self.directory)

    def selected(self, tests: Sequence[str], workspace: Path) -> tuple[str, ...]:
        """What is put in the place of `{tests}` for ids or test files, whose paths start at the workspace."""

        def read(path: str) -> bytes | None:
            file = regular_file(workspace / path)
            if file is None:
                return None
            with file:
                return file.read(MAX_MANIFEST)

        return self.selection(tests, read)

    def selection(self, tests: Sequence[str], read: ReadFile) -> tuple[str, ...]:
        """As `selected`, where `read` reads a path of the workspace."""

        def below(path: str) -> bytes | None:
            return read(os.path.normpath(f"{self.directory}/{path}"))

        found = format_named(self.results)
        start = f"{self.directory}/" if found.from_directory else ""
        return found.arguments([test.removeprefix(start) for test in tests], below)

    def argv(
        self, tests: Sequence[str], report: str, environment: str, programs: frozenset[str], workspace: Path
    ) -> tuple[str, ...]:
        """The command with its places filled, from its folder."""
        words = argv(self.command, tests, report, environment, programs)
        at = _program(words)
        if not words[at].startswith(_PACKAGED):
            return words
        up = len(PurePosixPath(self.directory).parts)
        places = ["../" * level + words[at] for level in range(up + 1)]
        found = (place for place in places if (workspace / self.directory / place).exists())
        return (*words[:at], next(found, words[at]), *words[at + 1 :])

    def there(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """The command for a program that starts at the root of the workspace.

        >>> CalledTests((), "go", "cart").there(("go", "test"))
        ('sh', '-c', 'cd "$0" && exec "$@"', './cart', 'go', 'test')
        """
        if self.directory == ROOT:
            return words
        return ("sh", "-c", 'cd "$0" && exec "$@"', f"./{self.directory}", *words)


def _program(words: Sequence[str]) -> int:
    """Where it stands: `env` and settings may come first.

    >>> _program(("env", "A=b", "mocha", "C=d")), _program(("go", "test"))
    (2, 0)
    """
    return len(_settings_of(words)) + (words[0] == "env")


def load_plugin(
    plugin: SettingsPlugin, folder: str, words: tuple[str, ...], env: Mapping[str, str], report: str
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Command and variables with which its runner loads a plugin from a folder, also where the command itself sets
    such a variable by `env`.

    >>> plugin = SettingsPlugin(variables=lambda env, folder: {"A": f"{env.get('A', '')} {folder}".strip()})
    >>> load_plugin(plugin, "/p", ("env", "A=b", "mocha", "C=d"), {"A": "x", "D": "e"}, "")[0]
    ('env', 'A=b /p', 'mocha', 'C=d')
    >>> load_plugin(plugin, "/p", ("go", "test"), {"A": "x", "D": "e"}, "")
    (('go', 'test'), {'A': 'x /p', 'D': 'e'})
    """
    own = dict(word.split("=", 1) for word in _settings_of(words))
    changed = plugin.variables({**env, **own}, folder)
    kept = [f"{name}={changed.get(name, value)}" for name, value in own.items()]
    variables, at = {**env, **changed}, _program(words)
    return ("env", *kept)[:at] + plugin.call(words[at:], variables, report), variables


def _settings_of(words: Sequence[str]) -> tuple[str, ...]:
    """Those of variables that `env` makes for the program.

    >>> _settings_of(("env", "A=b", "mocha", "C=d")), _settings_of(("go", "test"))
    (('A=b',), ())
    """
    return tuple(takewhile(lambda word: "=" in word, words[1:])) if words[0] == "env" else ()


def argv(
    command: Sequence[str], tests: Sequence[str], report: str, environment: str, programs: frozenset[str]
) -> tuple[str, ...]:
    """The command with its places filled; the program is the environment's when it has one of that name.

    >>> argv(("python", "run.py", "--xml={junit}", "{tests}"), ["a", "b"], "/r.xml", "/e", frozenset({"python"}))
    ('/e/bin/python', 'run.py', '--xml=/r.xml', 'a', 'b')
    >>> argv(("mvn", "-Dtest={tests}"), ["A", "B"], "/r.xml", "/e", frozenset())
    ('mvn', '-Dtest=A,B')
    """
    fillings = {"{junit}": report, "{tests}": ",".join(tests), "{environment}": environment}
    words: list[str] = []
    for word in command:
        if word == "{tests}":
            words += tests
            continue
        for place, text in fillings.items():
            word = word.replace(place, text)
        words.append(word)
    first = f"{environment}/bin/{words[0]}" if words[0] in programs else words[0]
    return (first, *words[1:])
