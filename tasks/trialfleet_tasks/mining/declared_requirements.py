"""Finds which packages the tests of a Python project need where it says so outside of its metadata: in tox, nox,
hatch, pixi, conda, Pipfile, requirements files and CI. The files are only read. Pure."""

from __future__ import annotations

import ast
import configparser
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from posixpath import dirname, join, normpath
from typing import Any, cast

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from trialfleet_ledger.untrusted import mapping
from trialfleet_repository.languages.python import is_workflow
from trialfleet_repository.trees import Tree
from trialfleet_tasks.foreign_yaml import parse_foreign_yaml
from trialfleet_tasks.mining.resolver_input import parse_requirement
from trialfleet_tasks.mining.toml_files import read_toml

_FOR_TESTS = re.compile(
    r"(?:^|[-_.:/])(?:tests?|testing|unit\w*|pytest|ci|dev|default|py[\w.{},]*)(?:$|[-_.:])", re.IGNORECASE
)
_TEST_SECTION = re.compile(r"testenv(?::(?:tests?|unit\w*|py[\w.,{}-]*))?")
_FACTORS = re.compile(r"^(?P<names>!?[\w.,{}-]+):\s+(?P<rest>.*)$")
_REFERENCE = re.compile(r"\{\[([^\]{}]+)\](\w+)\}")
_TEST_FACTORS = re.compile(r"(?:tests?|py[\w.{},]*)(?:-|$)")
_RUNS_TESTS = re.compile(
    r"\b(?:pytest|py\.test|unittest|trial|nose2?|stestr|manage\.py test|runtests|tox|nox|coverage run"
    r"|make (?:test|check))\b"
)
_INSTALL = re.compile(r"\bpip3?\s+install\b(.*)")
_CONDA = re.compile(r"^(?:[\w.-]+::)?([A-Za-z0-9][\w.-]*)\s*(.*)$")
_CONDA_FOLDERS = r"(?:\.?(?:ci|conda|continuous_integration|requirements|github|tests?)/(?:[\w.-]+/)?)?"
_CONDA_FILE = re.compile(_CONDA_FOLDERS + r"[\w.-]*env(?:ironment)?[\w.-]*\.ya?ml")
_FILE_OF_TESTS = re.compile(
    r"(?:tests?|testing)/(?:requirements/[\w.-]+|[\w.-]*requirements[\w.-]*)\.(?:txt|in)"
    r"|(?:requirements/)?[\w.-]*test[\w.-]*\.(?:txt|in)"
)
_NO_NEED = frozenset(  # tools of developers, and what every environment has
    {
        "pip",
        "wheel",
        "tox",
        "nox",
        "hatch",
        "poetry",
        "pdm",
        "uv",
        "rye",
        "pixi",
        "build",
        "twine",
        "codecov",
        "python",
    }
    | {
        "coveralls",
        "pre-commit",
        "pip-tools",
        "virtualenv",
        "pipenv",
        "tox-gh-actions",
        "tox-uv",
        "flit",
        "python",
    }
)
_WITH_VALUE = frozenset(
    {"-i", "--index-url", "--extra-index-url", "-f", "--find-links", "-t", "--target", "--python"}
)
_MAX_DEPTH = 5


def find_test_requirements(tree: Tree) -> tuple[str, ...]:
    """Requirements of PEP 508, each once. What is only a constraint follows the others if it constrains one."""
    files = _RequirementFiles(tree)
    lines = [line for find in _PLACES for line in files.expand(find(tree), "")]
    wanted = dict.fromkeys(filter(None, map(_requirement, lines)))
    names = {canonicalize_name(Requirement(line).name) for line in wanted}
    limits = (line for line in files.constraints if canonicalize_name(Requirement(line).name) in names)
    return (*wanted, *(line for line in dict.fromkeys(limits) if line not in wanted))


def _requirement(line: str) -> str | None:
    """As PEP 508 has it; None for a path, an option, an address or a tool."""
    wanted = parse_requirement(line.partition(" #")[0].partition(" --hash")[0].strip().rstrip("\\").strip())
    return None if wanted is None or canonicalize_name(wanted.name) in _NO_NEED else str(wanted)


class _RequirementFiles:
    """Follows `-r` and `-c` in lines of requirements. `constraints`: what `-c` led to."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.constraints: list[str] = []

    def expand(self, lines: Iterable[str], folder: str, depth: int = 0) -> Iterator[str]:
        for line in lines:
            option = re.match(r"(?:-(r|c)\s*|--(requirement|constraint)[=\s]\s*)(\S+)", line)
            if option is None:
                yield line
            elif depth < _MAX_DEPTH:
                path = normpath(join(folder, re.sub(r"^\{(?:toxinidir|tox_root)\}/", "", option[3])))
                content = self.tree[path].data.decode(errors="replace").splitlines() if path in self.tree else []
                nested = list(self.expand(map(str.strip, content), dirname(path), depth + 1))
                if "c" in (option[1] or option[2])[:1]:
                    self.constraints += filter(None, map(_requirement, nested))
                else:
                    yield from nested


def _text(tree: Tree, path: str) -> str:
    return tree[path].data.decode(errors="replace") if path in tree else ""


def _strings(value: Any) -> tuple[str, ...]:
    items = cast("Sequence[Any]", value) if isinstance(value, list) else ()
    return tuple(item for item in items if isinstance(item, str))


# --- tox ---


def _tox(tree: Tree) -> Iterator[str]:
    tool = mapping(mapping(read_toml(tree, "pyproject.toml").get("tool")).get("tox"))
    legacy = tool.get("legacy_tox_ini")
    for text in (_text(tree, "tox.ini"), _text(tree, "setup.cfg"), legacy if isinstance(legacy, str) else ""):
        yield from _tox_ini(text)
    for table in (tool, read_toml(tree, "tox.toml")):
        yield from _strings(mapping(table.get("env_run_base")).get("deps"))
        for name, section in mapping(table.get("env")).items():
            if _FOR_TESTS.search(name):
                yield from _strings(mapping(section).get("deps"))


def _tox_ini(text: str) -> Iterator[str]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return

    def deps(section: str, name: str = "deps", depth: int = 0) -> Iterator[str]:
        for line in parser.get(section, name, fallback="").splitlines():
            stated = _FACTORS.match(line.strip())
            if stated is not None and not _TEST_FACTORS.match(stated["names"]):
                continue  # of one environment among several, which may contradict each other
            line = stated["rest"] if stated else line.strip()
            reference = _REFERENCE.fullmatch(line)
            if reference is None:
                yield line
            elif depth < _MAX_DEPTH:
                yield from deps(reference[1], reference[2], depth + 1)

    for section in filter(_TEST_SECTION.fullmatch, parser.sections()):
        yield from deps(section)
        for line in parser.get(section, "commands_pre", fallback="").splitlines():
            yield from _installed(line)


# --- nox ---


def _nox(tree: Tree) -> Iterator[str]:
    try:
        module = ast.parse(_text(tree, "noxfile.py"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    known = {
        target.id: node.value
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for session in module.body:
        if isinstance(session, ast.FunctionDef) and _is_test_session(session):
            for call in ast.walk(session):
                if isinstance(call, ast.Call) and ast.unparse(call.func).endswith((".install", ".conda_install")):
                    yield from _paired(_words(call.args, known))


def _is_test_session(session: ast.FunctionDef) -> bool:
    decorated = any("session" in ast.unparse(each) for each in session.decorator_list)
    return decorated and (_FOR_TESTS.search(session.name) is not None or "pytest" in ast.unparse(session))


def _words(arguments: Iterable[ast.expr], known: Mapping[str, ast.expr]) -> Iterator[str]:
    for argument in arguments:
        if isinstance(argument, ast.Starred):
            value = argument.value
            value = known.get(value.id, value) if isinstance(value, ast.Name) else value
            yield from _words(value.elts, {}) if isinstance(value, ast.List | ast.Tuple) else ()
        elif isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield argument.value


def _paired(words: Iterable[str]) -> Iterator[str]:
    """Lines of requirements: an option and its value are one."""
    left = list(words)
    while left:
        word = left.pop(0)
        if word in ("-r", "-c", "--requirement", "--constraint") and left:
            yield f"{word} {left.pop(0)}"
        elif (word in _WITH_VALUE and left) or (word in ("-e", "--editable") and left):
            left.pop(0)
        elif word.startswith(("-r", "-c", "--requirement=", "--constraint=")) or not word.startswith("-"):
            yield word


# --- tables ---


def _hatch(tree: Tree) -> Iterator[str]:
    tool = mapping(mapping(read_toml(tree, "pyproject.toml").get("tool")).get("hatch"))
    for table in (tool, read_toml(tree, "hatch.toml")):
        for name, section in mapping(table.get("envs")).items():
            if _FOR_TESTS.search(name):
                yield from _strings(mapping(section).get("dependencies"))
                yield from _strings(mapping(section).get("extra-dependencies"))


def _uv_and_rye(tree: Tree) -> Iterator[str]:
    tool = mapping(read_toml(tree, "pyproject.toml").get("tool"))
    for name in ("uv", "rye"):
        yield from _strings(mapping(tool.get(name)).get("dev-dependencies"))


def _pixi(tree: Tree) -> Iterator[str]:
    tool = mapping(mapping(read_toml(tree, "pyproject.toml").get("tool")).get("pixi"))
    for table in (tool, read_toml(tree, "pixi.toml")):
        features = mapping(table.get("feature"))
        tables = [table, *(mapping(features[name]) for name in features if _FOR_TESTS.search(name))]
        for one in tables:
            yield from _table_lines(one.get("pypi-dependencies"))
            rows = (f"{name} {_version(value)}" for name, value in mapping(one.get("dependencies")).items())
            yield from filter(None, map(_of_conda, rows))


def _pipfile(tree: Tree) -> Iterator[str]:
    for section in ("packages", "dev-packages"):
        yield from _table_lines(read_toml(tree, "Pipfile").get(section))


def _table_lines(table: Any) -> Iterator[str]:
    """Of `name = "version"` or `name = {version = …, extras = […]}`."""
    for name, value in mapping(table).items():
        facts = mapping(value)
        if not facts.keys() & {"path", "git", "url", "file", "editable"}:
            extras = ",".join(_strings(facts.get("extras")))
            yield f"{name}{f'[{extras}]' if extras else ''}{_version(value)}"


def _version(value: Any) -> str:
    text = value if isinstance(value, str) else mapping(value).get("version")
    return "" if not isinstance(text, str) or text.strip() in ("*", "") else text.strip()


def _conda(tree: Tree) -> Iterator[str]:
    for path in tree:
        if _CONDA_FILE.fullmatch(path):
            rows = parse_foreign_yaml(tree[path].data).get("dependencies")
            for row in cast("Sequence[Any]", rows) if isinstance(rows, list) else ():
                if isinstance(row, str):
                    yield from filter(None, [_of_conda(row)])
                yield from _strings(mapping(row).get("pip"))


def _of_conda(line: str) -> str | None:
    """
    >>> _of_conda("conda-forge::numpy=1.26"), _of_conda("scipy >=1.9"), _of_conda("pytest==8.1=py312")
    ('numpy==1.26.*', 'scipy>=1.9', 'pytest==8.1')
    """
    match = _CONDA.match(line.strip())
    if match is None or match[1] in ("python", "pip"):
        return None
    name, version = match[1].removesuffix("-base"), match[2].strip()
    if re.match(r"=[^=]", version):
        number = version[1:].partition("=")[0].removesuffix("*").rstrip(".")
        return f"{name}=={number}.*"
    exact = re.fullmatch(r"==([^=\s]+)(?:=\S*)?", version)
    if exact is not None:
        return f"{name}=={exact[1]}"
    return f"{name}{version.partition(' ')[0]}" if version.startswith(("<", ">", "!", "~")) else name


# --- commands ---


def _ci(tree: Tree) -> Iterator[str]:
    """Of the jobs that run tests."""
    for path in sorted(filter(is_workflow, tree)):
        root = parse_foreign_yaml(tree[path].data)
        for job in map(mapping, (mapping(root.get("jobs")) or root).values()):
            steps = cast("Sequence[Any]", job.get("steps")) if isinstance(job.get("steps"), list) else ()
            scripts = [str(mapping(step).get("run") or "") for step in steps]
            scripts += [*_strings(job.get("before_script")), *_strings(job.get("script"))]
            if any(map(_RUNS_TESTS.search, scripts)):
                for line in re.sub(r"\\\n\s*", " ", "\n".join(scripts)).splitlines():
                    yield from _installed(line)


def _installed(line: str) -> Iterator[str]:
    """What a shell line's `pip install` names."""
    for command in re.split(r"&&|;|\|\|", line):
        match = _INSTALL.search(command)
        if match is None or "${{" in command or "$" in command:
            continue
        try:
            yield from _paired(shlex.split(match[1], comments=True))
        except ValueError:  # an open quotation
            continue


def _files(tree: Tree) -> Iterator[str]:
    """Files of requirements among the tests, and those for tests elsewhere."""
    for path in sorted(filter(_FILE_OF_TESTS.fullmatch, tree)):
        yield f"-r {path}"


_PLACES: tuple[Callable[[Tree], Iterator[str]], ...] = (
    *(_files, _tox, _nox, _hatch, _uv_and_rye, _pixi, _pipfile, _conda, _ci),
)
