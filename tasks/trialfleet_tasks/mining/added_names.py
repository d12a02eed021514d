"""Tests that use a name that only the fix adds: no prompt could tell an agent that name."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from trialfleet_repository.languages import PYTHON, Language
from trialfleet_repository.results.junit import function_id
from trialfleet_repository.trees import Tree, TreeEntry
from trialfleet_tasks.mining.bound_names import without_bound, without_bound_in
from trialfleet_tasks.mining.declared_tests import DeclaredTests
from trialfleet_tasks.mining.imported_names import own_packages, without_imported

_RUST_ROOT = re.compile(r"(?:/(?:lib|main|mod))?\.rs$")  # what follows the folder of its modules
_COMMENTS = re.compile(
    rb"""("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`[^`]*`)|//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/|\Z)""", re.DOTALL
)
_RUST_TESTS = re.compile(
    rb"^([ \t]*)#\[cfg\(test\)\]\n(?:\1#\[[^\n]*\n)*\1(?:pub )?mod \w+ \{\n.*?(?:^\1\}|\Z)",
    re.DOTALL | re.MULTILINE,
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
_PROSE = (".md", ".rst", ".adoc", ".txt")
_SHOWS = re.compile(r"(?:^|/)(?:examples?|docs?|demos?|samples?|benchmarks?)/", re.IGNORECASE)  # how code is used


def added_names(before: Tree, fix: Mapping[str, TreeEntry | None]) -> frozenset[str]:
    """Names that the fix's code holds, outside of comments, and no file of the tree before it does. What its code
    imports from other packages is not the fix's, nor are the words of examples beside other code.

    >>> before = {"a.py": TreeEntry(b"def total(): ...")}
    >>> sorted(added_names(before, {"a.py": TreeEntry(b"def total(rounded): ..."), "a.md": TreeEntry(b"cents")}))
    ['rounded']
    """
    own = own_packages({**before, **{path: entry for path, entry in fix.items() if entry}})
    changed = {path: entry.data for path, entry in fix.items() if entry and not path.endswith(_PROSE)}
    changed = {path: data for path, data in changed.items() if not _SHOWS.search(path)} or changed
    after = names(without_imported(path, _code(path, data), own) for path, data in changed.items())
    return frozenset(after - names(entry.data for entry in before.values())) if after else frozenset()


def _code(path: str, data: bytes) -> bytes:
    r'''Without comments, and docstrings: a word of them is no name. Without the tests beside Rust's code.

    >>> _code("a.go", b'url := "http://a" // whole /* a\n/* b\n*/ x')
    b'url := "http://a"  \n  x'
    >>> _code("src/lib.rs", b'fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}')
    b'fn a() {}\n\nfn c() {}'
    >>> _code("a.py", b'def a():\n    "Words."\n    return 1  # more words')
    b'def a():\n    """"""\n    return 1'
    '''
    if path.endswith((".py", ".pyi")):
        module = _parsed(data)
        return data if module is None else _python_code(module).encode(errors="replace")
    if path.endswith(".rs"):
        data = _RUST_TESTS.sub(b"", data)
    return _COMMENTS.sub(lambda match: match[1] or b" ", data)


def names(files: Iterable[bytes]) -> set[str]:
    """All identifiers of some files, in any language."""
    return {name for data in files for name in _NAME.findall(data.decode(errors="replace"))}


def using_tests(
    added: frozenset[str],
    tests: Iterable[str],
    *,
    before: Tree,
    fixed: Tree,
    language: Language = PYTHON,
    files: Sequence[str] = (),
) -> dict[str, str]:
    """Test id -> the first name among `added` in the test's own text, without its variables. Strings are included:
    a test may patch or get something by its name. `files`: the test files that the fix changes.

    Of a Python test whose function is not found nothing is known, and it is left out. For a test of another
    language that is not found, all lines count that the fix adds to its file.
    """
    find = _python_text(fixed) if language is PYTHON else _TestTexts(before, fixed, language, files).code_of
    used = {test: added & set(_NAME.findall(find(test))) for test in tests}
    return {test: min(names) for test, names in used.items() if names}


def _python_text(tree: Tree) -> Callable[[str], str]:
    """The text of a test's function by pytest's id."""
    functions: dict[str, dict[str, str]] = {}

    def find(test: str) -> str:
        path, _, name = function_id(test).partition("::")
        if path not in functions:
            functions[path] = _functions(tree[path].data) if path in tree else {}
        return functions[path].get(name, "")

    return find


@dataclass(frozen=True)
class _TestTexts:
    """Texts of tests with ids `UNIT::NAME`, which are searched in the files that may be the unit's."""

    before: Tree
    fixed: Tree
    language: Language
    files: Sequence[str]
    _units: dict[str, tuple[list[DeclaredTests], str]] = field(
        default_factory=dict[str, "tuple[list[DeclaredTests], str]"]
    )

    def of(self, test: str) -> str:
        unit, _, name = test.partition("::")
        if unit not in self._units:
            self._units[unit] = self._unit(unit)
        declared, added = self._units[unit]
        return next((text for file in declared if (text := file.find(name)) is not None), added)

    def code_of(self, test: str) -> str:
        """Without comments and its own variables."""
        return without_bound(_code("", self.of(test).encode()).decode())

    def _unit(self, unit: str) -> tuple[list[DeclaredTests], str]:
        """Its files, the changed ones first, and what the fix adds to the changed ones."""
        changed = self._fitting(unit, self.files) or [path for path in self.files if path in self.fixed]
        code = (path for path in self.fixed if path.endswith(self.language.suffixes) and path not in self.files)
        read = [
            DeclaredTests(_text(self.fixed, path), self.language.name)
            for path in (*changed, *self._fitting(unit, code))
        ]
        return read, "\n".join(line for path in changed for line in self._added_lines(path))

    def _fitting(self, unit: str, paths: Iterable[str]) -> list[str]:
        ranked = [(rank, path) for path in paths if path in self.fixed and (rank := _rank(unit, path))]
        best = max((rank for rank, _ in ranked), default=0)
        return [path for rank, path in ranked if rank == best]

    def _added_lines(self, path: str) -> list[str]:
        known = set(_text(self.before, path).splitlines()) if path in self.before else set[str]()
        return [line for line in _text(self.fixed, path).splitlines() if line not in known]


def _rank(unit: str, path: str) -> int:
    """How well a file fits a unit, which is a path, a Go package, a class or the root of a crate; 0: not at all.

    >>> _rank("src/a.test.ts", "src/a.test.ts") > 0, _rank("src/a.test.ts", "web/src/b.test.ts")
    (True, 0)
    >>> _rank("a/src/lib.rs", "a/src/cart.rs"), _rank("tests/it.rs", "tests/it/cart.rs")
    (1, 1)
    >>> _rank("example.com/m/cart", "cart/cart_test.go") > _rank("example.com/m/cart", "main_test.go") > 0
    True
    >>> _rank("org.x.ATest", "src/test/java/org/x/ATest.java") > _rank("org.x.ATest", "b/ATest.java") > 0
    True
    """
    folder, _, name = path.rpartition("/")
    if name.endswith(".rs"):
        return int(path == unit or path.startswith(_RUST_ROOT.sub("", unit) + "/"))
    if unit == path or unit.endswith("/" + path) or path.endswith("/" + unit):
        return len(path)
    if name.endswith(".go"):
        return 1 + len(folder) if ("/" + unit).endswith("/" + folder) or not folder else 0
    if name.endswith((".java", ".kt")):
        parts = unit.partition("$")[0].split(".")
        whole = (folder.split("/") if folder else []) + [name.rpartition(".")[0]]
        same = takewhile(lambda pair: pair[0] == pair[1], zip(reversed(parts), reversed(whole), strict=False))
        return sum(1 for _ in same)
    return 0


def _text(tree: Tree, path: str) -> str:
    return tree[path].data.decode(errors="replace")


def _functions(source: bytes) -> dict[str, str]:
    """`Class::function` -> its text, without its own variables, comments and docstrings."""
    module = _parsed(source)
    found: dict[str, str] = {}

    def collect(nodes: Iterable[ast.stmt], prefix: str) -> None:
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                collect(node.body, f"{prefix}{node.name}::")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[prefix + node.name] = without_bound_in(node, _python_code(node))

    collect(module.body if module else (), "")
    return found


def _parsed(source: bytes) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _python_code(tree: ast.AST) -> str:
    """Without comments. Docstrings become empty in `tree`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                first.value = ast.Constant("")
    try:
        return ast.unparse(tree)
    except RecursionError:
        return ""
