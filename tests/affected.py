"""The test files that a change reaches: `python -m tests.affected [REVISION]` prints them, for `make affected`.

A change is what differs from a revision of git (default: HEAD), with files that git does not know yet. A test file
is reached if it imports a changed module, directly or not, or starts it. As imported count modules that a string
names (`-m trialfleet_…`, a registry, a program), all that an f-string may name, and what examples import, of
pages that the test names; of the program `trialfleet`, the commands that the test's strings name. A changed file
that is no module, or a script that nothing imports, reaches the modules beside it and above it, and those whose
strings name it or its first folder. What nothing names, and what all tests share, reaches every test.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath

import grimp

ROOT = Path(__file__).parents[1]
SOURCES = {
    "runner_image": (
        "trialfleet_git",
        "trialfleet_ledger",
        "trialfleet_sandbox",
        "trialfleet_repository",
        "trialfleet_deliveries",
        "trialfleet_agents",
        "trialfleet_runner",
        "trialfleet_search",
        "trialfleet_targets",
    ),
    "tasks": ("trialfleet_tasks",),
    "controller": ("trialfleet_controller",),
    "analysis": ("trialfleet_statistics", "trialfleet_designs", "trialfleet_analysis"),
    ".": ("tests",),
}
SHARED = ("pyproject.toml", "requirements/dev.txt")  # of every test
WALKS_ALL = ("tests/unit/test_doctests.py",)  # as those of tests/architecture
UNTESTED = (".gitignore", "LICENSE", "CHANGELOG.md")
NAMED = re.compile(r"\btrialfleet_[a-z]+(?:\.\w+)*")
IMPORTED = re.compile(r"\bfrom (trialfleet_[\w.]+) import (\w+(?:, \w+)*)")
EXAMPLES = re.compile(r"```python\n(.*?)```", re.DOTALL)
PROGRAM = re.compile(r"bin/trialfleet(?:-pod)?$")
CONSOLES = {"trialfleet_runner.cli", "trialfleet_runner.console"}


class Imports:
    """Which modules of this checkout import or start which."""

    def __init__(self) -> None:
        sys.path[:0] = [str(ROOT / folder) for folder in SOURCES]
        packages = [package for names in SOURCES.values() for package in names]
        self._graph = grimp.build_graph(*packages, cache_dir=None)
        self.modules = self._graph.modules
        self.files = {path: module for module in self.modules if (path := self._path(module)) is not None}
        self.paths = {module: path for path, module in self.files.items()}
        self._tests: dict[str, set[str]] = {}
        self._add_started()
        self._add_entry_points()
        self._add_commands()

    def importers(self, module: str) -> set[str]:
        """`module` and all that import it, directly or not; those of the modules of a package, too."""
        start = {module, *self._graph.find_descendants(module)}
        return start.union(*(self._graph.find_downstream_modules(one) for one in start))

    def tests(self, module: str) -> set[str]:
        """The files of tests among the importers, and those below a conftest.py that is one."""
        if module not in self._tests:
            self._tests[module] = self._importing_tests(module)
        return self._tests[module]

    def _importing_tests(self, module: str) -> set[str]:
        files = {
            self.paths[one] for one in self.importers(module) if one.startswith("tests.") and one in self.paths
        }
        below = tuple(path.removesuffix("conftest.py") for path in files if path.endswith("/conftest.py"))
        return files | {path for path in self.files if path.startswith("tests/") and path.startswith(below)}

    @cached_property
    def test_files(self) -> set[str]:
        """All that this checkout has."""
        return {path for path in self.files if re.match(r"tests/(?:.*/)?test_[^/]*\.py$", path)}

    @cached_property
    def words(self) -> dict[str, set[str]]:
        """The parts of paths, and the words, of each module's strings."""
        return {name: set(re.split(r"[\s/]+", " ".join(texts))) for name, texts in self.strings.items()}

    @cached_property
    def parts(self) -> dict[str, set[str]]:
        """The strings of each module, and what slashes divide them into."""
        return {
            name: {part for text in texts for part in (text, *text.split("/"))}
            for name, texts in self.strings.items()
        }

    @cached_property
    def strings(self) -> dict[str, list[str]]:
        """The string constants of each module."""
        return {module: _strings(nodes) for module, nodes in self._nodes.items()}

    @cached_property
    def _nodes(self) -> dict[str, list[ast.AST]]:
        return {
            module: list(ast.walk(ast.parse((ROOT / path).read_bytes()))) for path, module in self.files.items()
        }

    def _path(self, module: str) -> str | None:
        for folder, packages in SOURCES.items():
            if module.split(".")[0] in packages:
                stem = PurePosixPath(folder) / module.replace(".", "/")
                tries = (f"{stem}.py", f"{stem}/__init__.py")
                return next((path for path in tries if (ROOT / path).is_file()), None)
        return None

    def _add_started(self) -> None:
        for module, strings in self.strings.items():
            texts = [*strings, *(self._examples(strings) if module.startswith("tests.") else ())]
            named = {name for text in texts for name in self._named(text)} | self._computed(module)
            for one in named - {module}:
                self._graph.add_import(importer=module, imported=one)

    def _computed(self, module: str) -> set[str]:
        """Modules that an f-string may name: `f"trialfleet_x.{method}.prepare"`."""
        forms = [_pattern(node, module) for node in self._nodes[module] if isinstance(node, ast.JoinedStr)]
        wanted = [re.compile(form) for form in forms if form.startswith("trialfleet_")]
        return {name for name in self.modules for one in wanted if one.fullmatch(name)}

    def _examples(self, strings: list[str]) -> Iterator[str]:
        """Of the pages that a test names."""
        for name in {text.rpartition("/")[2] for text in strings if text.endswith(".md")} & self._pages.keys():
            yield from EXAMPLES.findall(self._pages[name])

    @cached_property
    def _pages(self) -> dict[str, str]:
        return {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")}

    @cached_property
    def _points(self) -> dict[str, dict[str, str]]:
        """Group of entry points -> name -> module."""
        groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
        return {
            group: {name: point.split(":")[0] for name, point in points.items()}
            for group, points in groups.items()
        }

    def _add_entry_points(self) -> None:
        """Those that a module loads by group and name."""
        for module, nodes in self._nodes.items():
            for call in (node for node in nodes if isinstance(node, ast.Call)):
                given = {one.arg: one.value.value for one in call.keywords if isinstance(one.value, ast.Constant)}
                imported = self._points.get(str(given.get("group")), {}).get(str(given.get("name")))
                if imported is not None:
                    self._graph.add_import(importer=module, imported=imported)

    def _add_commands(self) -> None:
        """The console imports the module of the command that it runs, and of no other."""
        modules = self._points["trialfleet.commands"]
        for module in [one for one in self.files.values() if one.startswith("tests.")]:
            used = {
                module,
                *(one for one in self._graph.find_upstream_modules(module) if one.startswith("tests.")),
            }
            if any(CONSOLES & self._graph.find_modules_directly_imported_by(one) for one in used):
                for command in modules.keys() & set().union(*(self.words.get(one, ()) for one in used)):
                    self._graph.add_import(importer=module, imported=modules[command])
        for module in [one for one in self.files.values() if self._lists_commands(one)]:
            for imported in set(modules.values()) - {module}:
                self._graph.add_import(importer=module, imported=imported)

    def _lists_commands(self, module: str) -> bool:
        """Whether it asks for all commands, to describe each."""
        imports = (node for node in self._nodes[module] if isinstance(node, ast.ImportFrom))
        return any(node.module in CONSOLES and node.names[0].name == "SUMMARIES" for node in imports)

    def _named(self, text: str) -> Iterator[str]:
        if PROGRAM.search(text):
            yield "trialfleet_runner.console"
        imported = [f"{package}.{name}" for package, names in IMPORTED.findall(text) for name in names.split(", ")]
        for match in (*NAMED.findall(text), *imported):
            parts = match.split(".")
            known = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
            if (module := next((name for name in known if name in self.modules), None)) is not None:
                yield module
                if f"{module}.__main__" in self.modules:
                    yield f"{module}.__main__"


def _pattern(text: ast.JoinedStr, module: str) -> str:
    """Of the module names that an f-string of `module` may give."""
    parts: list[str] = []
    for part in text.values:
        if isinstance(part, ast.Constant):
            parts.append(re.escape(str(part.value)))
        else:
            is_own_name = isinstance(part, ast.FormattedValue) and ast.unparse(part.value) == "__name__"
            parts.append(re.escape(module) if is_own_name else r"\w+")
    return "".join(parts)


def _strings(nodes: list[ast.AST]) -> list[str]:
    docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
    constants = (node for node in nodes if isinstance(node, ast.Constant) and node not in docstrings)
    return [node.value for node in constants if isinstance(node.value, str)]


def affected_tests(changed: Iterable[str], imports: Imports) -> set[str]:
    """The test files that a change of these files of the checkout (paths from its root) reaches."""
    every = imports.test_files
    reached: set[str] = set()
    for path in changed:
        module = imports.files.get(path)
        more = set[str]() if module is None else imports.tests(module) | _tests_of_script(path, imports)
        if module is None or not imports.tests(module) & every:
            file = _tests_of_file(path, imports)
            if file is None:
                return set(every)
            more |= file
        reached |= more if module is None else more | _walks_all(every)
    return reached & every


def _tests_of_script(path: str, imports: Imports) -> set[str]:
    """Of what executes it by its path."""
    if '__name__ == "__main__"' not in (ROOT / path).read_text(encoding="utf-8"):
        return set()
    started = {module for module, words in imports.words.items() if PurePosixPath(path).name in words}
    return set[str]().union(*map(imports.tests, started))


def _walks_all(every: set[str]) -> set[str]:
    return {test for test in every if test.startswith("tests/architecture/") or test in WALKS_ALL}


def _tests_of_file(path: str, imports: Imports) -> set[str] | None:
    """None: nobody knows."""
    if path in UNTESTED:
        return set()
    beside = {module for file, module in imports.files.items() if _beside(path, file)}
    names = {path, *(PurePosixPath(path).parts[n] for n in (0, -1))}
    reached = beside | {module for module, parts in imports.parts.items() if not names.isdisjoint(parts)}
    if path in SHARED or not reached:
        return None
    return {test for module in reached for test in imports.tests(module)}


def _beside(path: str, module_file: str) -> bool:
    """Whether a file of a package's data lies in a module's folder or below it."""
    folder = str(PurePosixPath(module_file).parent)
    return folder.count("/") >= 1 and path.startswith(f"{folder}/") and not path.endswith(".md")


def _changed(revision: str) -> list[str]:
    git = ["git", "-C", str(ROOT)]
    told = (
        [*git, "diff", "--name-only", "--no-renames", "-z", revision],
        [*git, "ls-files", "-z", "--others", "--exclude-standard"],
    )
    lists = (subprocess.run(argv, check=True, capture_output=True, text=True).stdout for argv in told)
    return [path for text in lists for path in text.split("\0") if path]


def main(revision: str = "HEAD") -> None:
    """Print the test files that the changes since `revision` reach, one a line."""
    print(*sorted(affected_tests(_changed(revision), Imports())), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
