"""Finds how a Python project calls its tests: in tox, nox, Makefile and CI files, which are only read. Pure."""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from trialfleet_ledger.untrusted import mapping
from trialfleet_repository.languages import PYTHON
from trialfleet_repository.languages.python import is_workflow
from trialfleet_repository.trees import Tree
from trialfleet_tasks.foreign_yaml import parse_foreign_yaml
from trialfleet_tasks.mining.declared_call import DeclaredCall
from trialfleet_tasks.mining.pytest_call import parsed

UNKNOWN = "\0"  # in the place of what only a run would tell
_TEST_SECTION = re.compile(r"testenv(?::(?:tests?|unit\w*|py[\w.,{}-]*))?")
_FOR_TESTS = re.compile(r"test|\bci\b|python", re.IGNORECASE)
_TARGET = re.compile(r"^(?:tests?|unit-?tests?|check|pytest)\b[\w\s-]*::?(?!=)", re.MULTILINE)
_CONDITION = re.compile(r"^!?[\w.,{}-]+:\s+")
_Line = tuple[str, Mapping[str, str]]  # a shell line, and the variables around it


def declared_command(tree: Tree) -> DeclaredCall | None:
    """The call of a test runner that is given most test files, in tox.ini, noxfile.py, Makefile or CI's files; of
    several the first, in this order; one of pytest rather than of another runner."""
    return next((call for call in declared_calls(tree) if call.place), None)


def declared_calls(tree: Tree) -> tuple[DeclaredCall, ...]:
    """Those that differ: of pytest, then of other runners, each by the number of test files that they are given.
    Where no call of pytest is declared, its usual one comes last."""
    calls = [
        _with_options_of_script(call, tree)
        for place, lines in _places(tree)
        for line, env in lines
        if (call := parsed(place, line, env, tree.keys())) is not None
    ]
    tests = [path for path in tree if PYTHON.is_test_module(path)]
    covered = {id(call): _covered(call, tests) for call in calls}
    calls = [call for call in calls if covered[id(call)]] or calls  # others are of other projects, or of examples
    calls.sort(key=lambda call: (call.runs_another, -covered[id(call)], bool(call.runner and call.refused)))
    found: dict[str, DeclaredCall] = {}
    for call in calls:
        found.setdefault(call.key, call)
    usual = () if any(not call.runner for call in calls) else (DeclaredCall(""),)
    return (*found.values(), *usual)


def _with_options_of_script(call: DeclaredCall, tree: Tree) -> DeclaredCall:
    """In one process, if the project's own script knows how to run in several."""
    script = next((word for word in call.runner if word.endswith("runtests.py") and word in tree), None)
    parallel = script is not None and b"--parallel" in tree[script].data
    return replace(call, runner=(*call.runner, "--parallel=1")) if parallel else call


def _covered(call: DeclaredCall, tests: Sequence[str]) -> int:
    """How many test files it is given. A job of doctests is given modules, and often leaves out the tests among
    them."""
    if call.is_doctest:
        return 0
    if any(not {UNKNOWN, "$"}.isdisjoint(target) or target == "." for target in call.targets):
        return len(tests)
    return sum(any(f"{path}/".startswith(f"{target}/") for target in call.targets) for path in tests)


def _places(tree: Tree) -> Iterator[tuple[str, Iterator[_Line]]]:
    for path, read in (("tox.ini", _tox), ("noxfile.py", _nox), ("Makefile", _make)):
        if path in tree:
            yield path, read(tree[path].data.decode(errors="replace"))
    for path in sorted(filter(is_workflow, tree), key=lambda path: (not _FOR_TESTS.search(path), path)):
        yield path, _workflow(tree[path].data)


def _joined(text: str) -> Iterator[str]:
    """Lines, with those that a backslash continues."""
    yield from (line.strip() for line in re.sub(r"\\\n\s*", " ", text).splitlines() if line.strip())


def _tox(text: str) -> Iterator[_Line]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    for section in parser.sections():
        if _TEST_SECTION.fullmatch(section):
            said = {name: value for base in ("testenv", section) if parser.has_section(base)
                    for name, value in parser.items(base)}  # fmt: skip
            folder = said.get("changedir") or said.get("change_dir") or ""
            start = "" if folder in ("", "{toxinidir}", "{tox_root}") else f"cd {_substituted(folder)} && "
            env = dict(_settings(said.get("setenv") or said.get("set_env") or ""))
            for line in _joined(said.get("commands", "")):
                yield start + _substituted(_CONDITION.sub("", line).lstrip("-! ")), env


def _settings(text: str) -> Iterator[tuple[str, str]]:
    for line in _joined(text):
        name, equals, value = _CONDITION.sub("", line).partition("=")
        if equals:
            yield name.strip(), _substituted(value.strip())


def _substituted(text: str) -> str:
    """With what tox would put in, as far as it is known."""
    text = re.sub(r"\{(?:toxinidir|tox_root)\}", "{workspace}", text)
    text = re.sub(r"\{posargs(?::[^{}]*)?\}", "", text)
    text = re.sub(r"\{(?:envtmpdir|env_tmp_dir)\}", "{home}/tmp", text)
    text = re.sub(r"\{env:\w+:([^{}]*)\}", r"\1", text)
    return re.sub(r"\{(?!workspace\}|home\})[^{}]*\}", UNKNOWN, text)


def _nox(text: str) -> Iterator[_Line]:
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for session in module.body:
        decorators = session.decorator_list if isinstance(session, ast.FunctionDef) else ()
        if any("session" in ast.unparse(each) for each in decorators):
            for call in ast.walk(session):
                if isinstance(call, ast.Call) and ast.unparse(call.func).endswith((".run", ".run_always")):
                    yield " ".join(_words(call)), _env_of(call)


def _words(call: ast.Call) -> Iterator[str]:
    """Arguments as a shell writes them; positional arguments of the session are none of the command's own."""
    for argument in call.args:
        if not isinstance(argument, ast.Starred):
            constant = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
            yield "'" + (str(cast("ast.Constant", argument).value) if constant else UNKNOWN).replace("'", "") + "'"


def _env_of(call: ast.Call) -> dict[str, str]:
    value = next((keyword.value for keyword in call.keywords if keyword.arg == "env"), None)
    if not isinstance(value, ast.Dict):
        return {}
    pairs = ((_constant(key), _constant(item)) for key, item in zip(value.keys, value.values, strict=True))
    return {name: item or UNKNOWN for name, item in pairs if name}


def _constant(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _make(text: str) -> Iterator[_Line]:
    known = dict(re.findall(r"^(\w+)\s*[:?]?=\s*(.*)$", text, re.MULTILINE))

    def filled(line: str) -> str:
        for _ in range(3):
            line = re.sub(r"\$[({](\w+)[)}]", lambda match: known.get(match[1], UNKNOWN), line)
        return line.replace("$$", "$")

    for target in _TARGET.finditer(text):
        end = text.find("\n", target.end())
        recipe = re.match(r"(?:\t.*\n?|[ \t]*\n)*", text[end + 1 :]) if end >= 0 else None
        for line in _joined(recipe[0] if recipe else ""):
            yield filled(line.lstrip("@-+")), {}


def _workflow(data: bytes) -> Iterator[_Line]:
    root = parse_foreign_yaml(data)
    jobs = mapping(root.get("jobs")) or root
    for job in map(mapping, jobs.values()):
        around = _texts(root.get("env")) | _texts(root.get("variables")) | _texts(job.get("env"))
        around |= _texts(job.get("variables"))
        scripts = ({"run": line} for line in _list(job.get("script")))
        for step in (*map(mapping, _list(job.get("steps"))), *scripts):
            folder, script = step.get("working-directory"), step.get("run")
            start = f"cd {_known(folder)} && " if folder and isinstance(folder, str) else ""
            for line in _joined(script if isinstance(script, str) else ""):
                yield start + _known(line), around | _texts(step.get("env"))


def _list(value: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def _texts(table: Any) -> dict[str, str]:
    return {
        str(name): _known(str(value).lower() if isinstance(value, bool) else str(value))
        for name, value in mapping(table).items()
        if isinstance(value, str | int | float | bool)
    }


def _known(text: str) -> str:
    text = re.sub(r"\$\{\{\s*github\.workspace\s*\}\}/?", "{workspace}/", text)
    return re.sub(r"\$\{\{.*?\}\}", UNKNOWN, text)
