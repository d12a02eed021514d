"""What a Python repository says about itself, read from its files: no code of it runs."""

from __future__ import annotations

import configparser
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from trialfleet_ledger.untrusted import mapping
from trialfleet_repository.trees import Tree
from trialfleet_tasks.mining.declared_requirements import find_test_requirements
from trialfleet_tasks.mining.resolver_input import format_pin, parse_requirement
from trialfleet_tasks.mining.setup_arguments import is_about, read_setup_arguments
from trialfleet_tasks.mining.toml_files import read_toml

_FOR_TESTS = re.compile(r"^(?:tests?|testing|unit-?tests?|pytest|ci)$", re.IGNORECASE)
_FOR_DEVELOPMENT = re.compile(r"^(?:dev|develop|development|all)$", re.IGNORECASE)
_REQUIREMENTS = re.compile(
    r"^(?:requirements/)?[\w.-]*requirements[\w.-]*\.(?:txt|in)$|^requirements/[\w.-]+\.(?:txt|in)$"
)
_TEST_FILE = re.compile(r"test|dev", re.IGNORECASE)
_RUNNER = re.compile(r"pytest\b(?!-)", re.IGNORECASE)
_OWN_EXTRAS = re.compile(r"^(?:-e\s+|--editable[=\s]\s*)?\./?\[([\w\s,.-]+)\]", re.MULTILINE)
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ARGUMENTS = ("name", "python_requires", "install_requires", "extras_require", "tests_require")
_LOCKS = ("uv.lock", "pdm.lock", "poetry.lock", "pylock.toml")


@dataclass(frozen=True)
class PythonProject:
    """Metadata of the project, as far as its files hold it. Requirements are those of PEP 508.

    `groups`: optional dependencies and dependency groups, by name; those for tests, and those for development.
    `extras`: names of the former. `pins`: `name==version` of a lock that lies in the tree; `locked_needs`: what
    each package of that lock needs, by canonical names. `odd_pins`: entries of the lock that are not used, without
    a valid name and version, each after the lock's path. `entry_points`: text of an entry_points.txt. `for_tests`:
    what files that are no metadata, such as tox.ini, install for tests.
    """

    name: str | None = None
    requires_python: str | None = None
    dependencies: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    extras: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()
    locked_needs: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    odd_pins: tuple[str, ...] = ()
    entry_points: str | None = None
    for_tests: tuple[str, ...] = ()

    def requirements(
        self, *, development: bool, declared: Sequence[str] = (), more: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Everything that tests need, each once, without the project itself. `development`: with the groups that
        are for more than tests; without groups for tests they are taken in any case. `declared`: further groups.
        `more`: further requirements.

        >>> groups = {"test": ("pytest", "shop[fast]"), "fast": ("numpy",), "docs": ("mkdocs",)}
        >>> PythonProject("shop", dependencies=("click>8",), groups=groups).requirements(development=False)
        ('click>8', 'pytest', 'numpy')
        """
        tests = [name for name in self.groups if _FOR_TESTS.match(name)]
        broader = [name for name in self.groups if _FOR_DEVELOPMENT.match(name)]
        chosen = list(dict.fromkeys([*tests, *(broader if development or not tests else ()), *declared]))
        wanted = [*self.dependencies, *(line for name in chosen for line in self.groups[name]), *more]
        found = dict.fromkeys(self._expanded(wanted, frozenset(chosen)))
        names = {canonicalize_name(Requirement(line).name) for line in found}
        return (*found, *(() if "pytest" in names else ("pytest",)))

    def without(self, requirements: tuple[str, ...], lacking: Collection[str]) -> tuple[str, ...]:
        """Those that are not of `lacking` packages, or are needed by the project itself.

        >>> PythonProject(dependencies=("click",)).without(("click", "brotlipy==0.7.*"), ["click", "brotlipy"])
        ('click',)
        """
        own = {_package(line) for line in self.dependencies}
        return tuple(line for line in requirements if (name := _package(line)) not in lacking or name in own)

    def pins_without(self, lacking: Collection[str]) -> tuple[str, ...]:
        """Pins that say nothing of how these packages are to be had: neither theirs nor those of what needs them.

        >>> needs = {"shop": frozenset({"keys"}), "keys": frozenset({"evdev"})}
        >>> project = PythonProject(pins=("shop==1", "keys==2", "rich==3"), locked_needs=needs)
        >>> project.pins_without(["evdev"]), project.pins_without([])
        (('rich==3',), ('shop==1', 'keys==2', 'rich==3'))
        """
        gone = set(lacking)
        while more := {name for name, needs in self.locked_needs.items() if needs & gone} - gone:
            gone |= more
        return tuple(pin for pin in self.pins if canonicalize_name(pin.partition("==")[0]) not in gone)

    def _expanded(self, lines: Iterable[str], seen: frozenset[str]) -> Iterator[str]:
        """With the project's own extras in the place of `project[extra]`; without what is no requirement."""
        for line in lines:
            wanted = parse_requirement(line)
            if wanted is None:
                continue
            if self.name is None or canonicalize_name(wanted.name) != canonicalize_name(self.name):
                yield str(wanted)
                continue
            for extra in sorted(wanted.extras - seen):
                yield from self._expanded(self.groups.get(extra, ()), seen | {extra})


def read_project(tree: Tree) -> PythonProject:
    """By pyproject.toml, setup.cfg, setup.py (what is written there), requirements files, locks, in this order."""
    toml = read_toml(tree, "pyproject.toml")
    tool = mapping(toml.get("tool"))
    project, poetry = mapping(toml.get("project")), mapping(tool.get("poetry"))
    setup = _setup_cfg(tree) | _setup_py(tree)
    extras = _lines_of(setup.get("extras_require")) | _lines_of(project.get("optional-dependencies"))
    groups = {
        **_poetry_groups(poetry),
        **extras,
        **_dependency_groups(mapping(toml.get("dependency-groups"))),
        **_lines_of(mapping(tool.get("pdm")).get("dev-dependencies")),
    }
    plain, for_tests = _requirements_files(tree, extras)
    lock = _read_lock(tree)
    own = (
        _strings(project.get("dependencies"))
        or _poetry(poetry.get("dependencies"))
        or setup.get("install_requires")
    )
    if any(map(_RUNNER.match, plain)):  # they are its developers' environment
        plain, for_tests = (), (*for_tests, *plain)
    if for_tests:
        groups["test"] = (*groups.get("test", ()), *for_tests)
    return PythonProject(
        name=_text(project.get("name") or poetry.get("name") or setup.get("name")),
        requires_python=project.get("requires-python")
        or _caret(mapping(poetry.get("dependencies")).get("python"))
        or setup.get("python_requires"),
        dependencies=tuple(own or ()) or plain,
        groups=groups,
        extras=tuple(extras),
        pins=lock.pins,
        locked_needs=lock.needs,
        odd_pins=lock.odd,
        entry_points=_entry_points(project, poetry),
        for_tests=(*(setup.get("tests_require") or ()), *find_test_requirements(tree)),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _package(line: str) -> str:
    """Its canonical name; the line itself where it is no requirement."""
    try:
        return canonicalize_name(Requirement(line).name)
    except InvalidRequirement:
        return line


def _strings(value: Any) -> tuple[str, ...]:
    return tuple(item for item in _list(value) if isinstance(item, str))


def _list(value: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def _lines_of(groups: Any) -> dict[str, tuple[str, ...]]:
    """setuptools takes a text for a list of one."""
    return {
        name: (lines,) if isinstance(lines, str) else _strings(lines) for name, lines in mapping(groups).items()
    }


def _dependency_groups(groups: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """PEP 735: a group may include others."""

    def lines(name: str, seen: frozenset[str]) -> Iterator[str]:
        for item in _list(groups.get(name)):
            included = str(mapping(item).get("include-group"))
            if isinstance(item, str):
                yield item
            elif included not in seen:
                yield from lines(included, seen | {included})

    return {name: tuple(lines(name, frozenset({name}))) for name in groups}


def _poetry_groups(poetry: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    groups = {
        name: _poetry(mapping(group).get("dependencies")) for name, group in mapping(poetry.get("group")).items()
    }
    old = poetry.get("dev-dependencies")
    return groups | ({"dev": _poetry(old)} if old else {})


def _poetry(table: Any) -> tuple[str, ...]:
    """Poetry's table of dependencies as requirements; optional ones too, for tests may need them."""
    found: list[str] = []
    for name, value in mapping(table).items():
        facts = mapping(value) or {"version": value}
        if name.lower() != "python" and isinstance(facts.get("version"), str):
            extras = ",".join(_strings(facts.get("extras")))
            found.append(f"{name}{f'[{extras}]' if extras else ''}{_caret(facts['version']) or ''}")
    return tuple(found)


def _caret(version: Any) -> str | None:
    """A constraint of Poetry as PEP 440 writes it.

    >>> _caret("^1.2"), _caret("~3.4.1"), _caret("2.0"), _caret("*"), _caret(">=3.8,<4.0")
    ('>=1.2,<2', '>=3.4.1,<3.5', '==2.0', None, '>=3.8,<4.0')
    """
    if not isinstance(version, str) or version.strip() in ("", "*"):
        return None
    parts: list[str] = []
    for part in map(str.strip, version.split("||")[0].split(",")):
        match = re.fullmatch(r"([\^~])\s*(\d+(?:\.\d+)*)\S*", part)
        if match is None:
            parts.append(part if part[:1] in "<>=!~" else f"=={part}")
            continue
        numbers = [int(number) for number in match[2].split(".")]
        place = min(1, len(numbers) - 1)
        if match[1] == "^":
            place = next((n for n, number in enumerate(numbers) if number), len(numbers) - 1)
        above = [*numbers[:place], numbers[place] + 1]
        parts.append(f">={match[2]},<{'.'.join(map(str, above))}")
    return ",".join(parts)


def _setup_cfg(tree: Tree) -> dict[str, Any]:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(tree["setup.cfg"].data.decode() if "setup.cfg" in tree else "")
    except (configparser.Error, UnicodeDecodeError):
        return {}
    found: dict[str, Any] = {"name": parser.get("metadata", "name", fallback=None)}
    if parser.has_section("options"):
        found["python_requires"] = parser.get("options", "python_requires", fallback=None)
        for name in ("install_requires", "tests_require"):
            found[name] = _text_lines(parser.get("options", name, fallback=""))
    if parser.has_section("options.extras_require"):
        found["extras_require"] = {n: _text_lines(v) for n, v in parser.items("options.extras_require")}
    return {name: value for name, value in found.items() if value}


def _setup_py(tree: Tree) -> dict[str, Any]:
    files = {path: entry.data for path, entry in tree.items() if is_about(path)}
    found = read_setup_arguments(tree["setup.py"].data, _ARGUMENTS, files) if "setup.py" in tree else {}
    for name in ("install_requires", "tests_require"):
        if name in found:
            found[name] = _setup_lines(found[name])
    return found


def _setup_lines(value: Any) -> tuple[str, ...]:
    """setuptools takes a text for its lines."""
    return tuple(_text_lines(value)) if isinstance(value, str) else _strings(value)


def _text_lines(text: str) -> list[str]:
    lines = (re.sub(r"(?:^|\s)#.*", "", line).strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("-")]


def _requirements_files(
    tree: Tree, extras: Mapping[str, tuple[str, ...]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(Of the project, of its tests): requirement lines of files near the root, with `extras` that they name."""
    plain: list[str] = []
    for_tests: list[str] = []
    for path in sorted(filter(_REQUIREMENTS.match, tree)):
        if "doc" not in path:
            text = tree[path].data.decode(errors="replace")
            lines = (line.split(" --hash")[0].rstrip("\\ ") for line in text.splitlines())
            named = {name.strip() for found in _OWN_EXTRAS.findall(text) for name in found.split(",")}
            needs = (line for name in sorted(named) for line in extras.get(name, ()))
            (for_tests if _TEST_FILE.search(path) else plain).extend([*needs, *_text_lines("\n".join(lines))])
    return tuple(plain), tuple(for_tests)


@dataclass(frozen=True)
class _LockFile:
    """`pins`: `name==version` of every package that has one version. `odd`: entries that are no such pin, each
    after the lock's path. `needs`: what each package needs, by canonical names."""

    pins: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    needs: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])


def _read_lock(tree: Tree) -> _LockFile:
    """The first that is there."""
    for path in _LOCKS:
        toml = read_toml(tree, path)
        versions: dict[str, set[str]] = {}
        needs: dict[str, set[str]] = {}
        for package in map(mapping, _list(toml.get("package")) or _list(toml.get("packages"))):
            name, version = _text(package.get("name")), _text(package.get("version"))
            if name and version:
                versions.setdefault(name, set()).add(version)
                needs.setdefault(canonicalize_name(name), set()).update(_needs(package.get("dependencies")))
        if versions:
            single = [(name, next(iter(v))) for name, v in sorted(versions.items()) if len(v) == 1]
            pins = tuple(filter(None, (format_pin(*each) for each in single)))
            odd = tuple(f"{path}: {name} {version}" for name, version in single if not format_pin(name, version))
            return _LockFile(pins, odd, {name: frozenset(each) for name, each in needs.items()})
    return _LockFile()


def _needs(dependencies: Any) -> Iterator[str]:
    """Canonical names, of uv's tables, PDM's requirements or Poetry's table."""
    rows = [_text(mapping(row).get("name")) or _text(row) for row in _list(dependencies)]
    for row in (*rows, *mapping(dependencies)):
        found = _PACKAGE.match(row or "")
        if found:
            yield canonicalize_name(found[0])


def _entry_points(project: Mapping[str, Any], poetry: Mapping[str, Any]) -> str | None:
    groups = {
        "console_scripts": project.get("scripts") or poetry.get("scripts"),
        **mapping(project.get("entry-points") or poetry.get("plugins")),
    }
    text = ""
    for group, rows in groups.items():
        lines = [f"{name} = {target}" for name, target in mapping(rows).items() if isinstance(target, str)]
        text += "\n".join([f"[{group}]", *lines]) + "\n" if lines else ""
    return text or None
