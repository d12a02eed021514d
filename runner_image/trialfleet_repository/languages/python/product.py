"""The modules of a Python product: what its entry points and the modules that a fix changes import, and what
imports these."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import takewhile

from trialfleet_ledger.untrusted import mapping
from trialfleet_repository.languages.manifest_files import file_in, folders_above, toml_of
from trialfleet_repository.languages.project_files import ProjectFiles, joined_path, reach_files
from trialfleet_repository.languages.protocol import is_test_path

_DOTTED = re.compile(r"\.{0,9}[A-Za-z_]\w{0,99}(?:\.[A-Za-z_]\w{0,99}){0,20}")
_LOADERS = {"import_module", "__import__", "iter_modules", "walk_packages", "spec_from_file_location"}
_ASSERTS = re.compile(rb"^[ \t]{0,99}assert\b|\bAssertionError\b|\b(?:pytest|unittest|hypothesis)\b", re.M)
_DEFINED = re.compile(rb"^[ \t]{0,99}(?:async[ \t]{1,9})?(?:def|class)[ \t]{1,9}(\w{1,99})", re.M)
_CALLED = re.compile(
    rb"^[ \t]{0,99}(?:(?:async|await|with|yield|from)[ \t]{1,9}){0,3}(?:\w{1,99}\.){0,9}(\w{1,99})\(", re.M
)
_FOR_TESTS = re.compile(r"(?:\A|[/_])(?:testing|fixtures?|mocks?|fakes?|stubs?)(?:[/_.]|\Z)")
_ANY = "*"  # a name that is computed
_ENTRY = re.compile(rb"=\s{0,9}([A-Za-z_][\w.]{0,200}):[A-Za-z_]")
_FACTS = ("scripts", "gui-scripts", "entry-points")


def find_python_product(project: ProjectFiles) -> frozenset[str]:
    modules = _PythonModules(project)
    return reach_files((*modules.entries(), *modules.callers()), modules.imported_by)


class _PythonModules:
    def __init__(self, project: ProjectFiles) -> None:
        self.project = project
        self.sources = frozenset(path for path in project.sources if path.endswith((".py", ".pyi")))

    def entries(self) -> Iterator[str]:
        """Changed modules with the packages that hold them, and what the project's metadata names."""
        for path in self.project.changed:
            if path in self.sources:
                yield path
                yield from self._packages_of(path)
        for name in self._declared():
            yield from self._modules(name, self.roots)

    def callers(self) -> frozenset[str]:
        """Modules of the changed packages that need a changed module: a test may reach it through them, and what
        is wrong there may be put right here. Those that may be the tests' own are not among them."""
        importers: dict[str, list[str]] = {}
        for path in self.sources:
            if self._scope(path) in self._changed_scopes and not self._may_judge(path):
                for needed in self._named_by(path):
                    importers.setdefault(needed, []).append(path)
        changed = self.sources.intersection(self.project.changed)
        return reach_files(changed, lambda path: importers.get(path, ()))

    def _may_judge(self, path: str) -> bool:
        """Whether a module has the name of a helper of tests, asserts something, or defines what a test calls
        without using the result."""
        if _FOR_TESTS.search(path):
            return True
        texts = list(self.project.texts(path))
        defined = {name for data in texts for name in _DEFINED.findall(data)}
        return any(map(_ASSERTS.search, texts)) or not self._statements.isdisjoint(defined)

    @cached_property
    def _statements(self) -> frozenset[bytes]:
        """Names that lines of tests begin to call."""
        tests = {
            path for tree in self.project.trees for path in tree if path.endswith(".py") and is_test_path(path)
        }
        return frozenset(
            name for path in tests for data in self.project.texts(path) for name in _CALLED.findall(data)
        )

    @cached_property
    def _changed_scopes(self) -> frozenset[str]:
        return frozenset(self._scope(path) for path in self.project.changed if path in self.sources)

    def _scope(self, path: str) -> str:
        """The folder of the outermost package that holds the module, or its own."""
        above = list(folders_above(path))[1:]
        packages = list(takewhile(lambda folder: file_in(folder, "__init__.py") in self.sources, above))
        return (packages or above)[-1 if packages else 0]

    def _declared(self) -> Iterator[str]:
        """Modules that run as scripts, and the package of the project's name."""
        folders = {place for path in self.project.changed for place in folders_above(path)}
        for file in (file_in(folder, name) for folder in sorted(folders) for name in ("setup.cfg", "setup.py")):
            yield from (name.decode() for data in self.project.texts(file) for name in _ENTRY.findall(data))
        for tree in self.project.trees:
            for folder in sorted(folders):
                facts = toml_of(tree, file_in(folder, "pyproject.toml"))
                for table in (mapping(facts.get("project")), mapping(mapping(facts.get("tool")).get("poetry"))):
                    yield str(table.get("name", "")).replace("-", "_").lower()
                    yield from (text.partition(":")[0] for name in _FACTS for text in _texts(table.get(name)))

    def imported_by(self, path: str) -> Iterator[str]:
        """The project's modules that a module needs."""
        yield from self._packages_of(path)
        yield from self._named_by(path)

    def _named_by(self, path: str) -> Iterator[str]:
        """Those that it imports, or names as a text: many are loaded by their names."""
        folder = path.rpartition("/")[0] or "."
        for data in self.project.texts(path):
            for name in dict.fromkeys(_imports(data)):
                if name == _ANY:
                    yield from self._package_modules(path)
                    continue
                dots = len(name) - len(name.lstrip("."))
                above = joined_path(folder, "../" * (dots - 1))
                roots = self.roots if not dots else (above,) if above else ()
                yield from self._modules(name[dots:], roots)

    def _package_modules(self, path: str) -> Iterator[str]:
        """All modules of the outermost package that holds the module: it may load any of them."""
        packages = [file.rpartition("/")[0] for file in self._packages_of(path)]
        if packages and packages[-1]:
            yield from (source for source in self.sources if source.startswith(f"{packages[-1]}/"))

    def _modules(self, name: str, roots: Iterable[str]) -> Iterator[str]:
        if not name.replace(".", "").isidentifier():
            return
        place = name.replace(".", "/")
        for root in roots:
            for end in (".py", "/__init__.py", ".pyi"):
                path = file_in(root, place + end)
                if path in self.sources:
                    yield path

    def _packages_of(self, path: str) -> Iterator[str]:
        """`__init__.py` and `__main__.py` of the packages that hold the module."""
        for folder in list(folders_above(path))[1:]:
            if file_in(folder, "__init__.py") not in self.sources:
                return
            yield from (
                file for end in ("init", "main") if (file := file_in(folder, f"__{end}__.py")) in self.sources
            )

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """Folders from which modules are imported: the task's, and those that hold the changed packages."""
        changed = (path for path in self.project.changed if path in self.sources)
        return tuple(dict.fromkeys((*self.project.roots, ".", "src", *map(self._root, changed))))

    def _root(self, path: str) -> str:
        places = list(folders_above(path))[1:]
        return next((place for place in places if file_in(place, "__init__.py") not in self.sources), places[-1])


def _imports(source: bytes) -> Iterator[str]:
    """Dotted names, "*" for one that is computed; each dot in front is a package further up, the first of them the
    module's own.

    >>> list(_imports(b"import a.b\\nfrom .c import d\\nload('e.f')"))
    ['a.b', '.c', '.c.d', 'e.f']
    >>> list(_imports(b"import_module(name)"))
    ['*']
    """
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, level=level, names=names):
                base = "." * level + (module or "")
                yield from (base,) if module else ()
                yield from (f"{base}.{alias.name}" if module else base + alias.name for alias in names)
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=[first, *_]) if (
                called in _LOADERS and not isinstance(first, ast.Constant)
            ):
                yield _ANY
            case ast.Constant(value=str(text)) if "." in text and _DOTTED.fullmatch(text):
                yield text
            case _:
                pass


def _texts(value: object) -> Iterator[str]:
    """The texts of a table, or of the tables in it."""
    for inner in mapping(value).values():
        for text in (inner, *mapping(inner).values()):
            if isinstance(text, str):
                yield text
