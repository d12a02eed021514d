"""What of a project's own test command mining uses, by the files that say it: nothing of them runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_repository.languages.python import is_command_file
from trialfleet_repository.trees import TreeEntry
from trialfleet_tasks.mining.declared_call import DeclaredCall
from trialfleet_tasks.mining.declared_command import declared_calls, declared_command
from trialfleet_tasks.mining.pytest_call import parsed
from trialfleet_tasks.mining.unittest_call import UNITTEST

TOX = """[tox]
envlist = py311
[testenv]
deps = pytest
setenv =
    SHOP_MODE = test
    DATA = {toxinidir}/data
    WHERE = {envdir}
    PYTHONPATH = {toxinidir}/lib
    COVERAGE_FILE = x
commands =
    pip install pytest
    cov: coverage run -m pytest -p no:randomly \\
        -c {toxinidir}/tests/own.ini -n 4 {posargs:tests}
"""
NOX = """import nox
@nox.session(python=["3.11"])
def lint(session):
    session.run("ruff", "check")
@nox.session
def tests(session):
    session.install("pytest")
    session.run("python", "-m", "pytest", "-W", "error", *session.posargs, env={"SHOP_MODE": "test", "A": where})
"""
MAKE = """PYTEST ?= uv run pytest
OPTIONS = --import-mode=importlib -v
build:
\tpytest --never
test: build ## run the tests
\t@echo pytest
\tSHOP_MODE=test $(PYTEST) $(OPTIONS) $(MORE) tests/
"""
WORKFLOW = """name: tests
on: push
env: {SHOP_MODE: test, TOKEN: "${{ secrets.TOKEN }}"}
jobs:
  test:
    steps:
      - uses: actions/checkout@v4
      - run: pip install -e . pytest
      - run: |
          cd .
          poetry run pytest --asyncio-mode=auto --durations 5 \\
            -k "not slow"
        env: {LEVEL: 3, DEBUG: true, ROOT: "${{ github.workspace }}/x"}
"""
TESTS = TreeEntry(b"")


def tree(**files: str) -> dict[str, TreeEntry]:
    return {name.replace("__", "/").replace("_DOT_", "."): TreeEntry(t.encode()) for name, t in files.items()}


def test_tox() -> None:
    files = tree(tox_DOT_ini=TOX, tests__own_DOT_ini="[pytest]")
    assert declared_command(files) == DeclaredCall(
        "tox.ini",
        arguments=("-p", "no:randomly", "-c", "tests/own.ini"),
        env={"SHOP_MODE": "test", "DATA": "{workspace}/data"},
        pythonpath=("lib",),
        refused=("WHERE",),
    )


def test_nox_make_and_workflows() -> None:
    nox = declared_command(tree(noxfile_DOT_py=NOX))
    assert nox == DeclaredCall("noxfile.py", ("-W", "error"), env={"SHOP_MODE": "test"}, refused=("A",))
    make = declared_command(tree(Makefile=MAKE))
    assert make == DeclaredCall("Makefile", ("--import-mode", "importlib"), env={"SHOP_MODE": "test"})
    path = ".github/workflows/tests.yml"
    workflow = declared_command({path: TreeEntry(WORKFLOW.encode())})
    assert workflow == DeclaredCall(
        path,
        arguments=("--asyncio-mode", "auto"),
        needs={"--asyncio-mode auto": "pytest-asyncio"},
        env={"SHOP_MODE": "test", "LEVEL": "3", "DEBUG": "true", "ROOT": "{workspace}/x"},
        refused=("TOKEN",),
    )
    gitlab = "variables: {A: b}\ntest: {script: [pip install x, pytest -p no:faulthandler]}\n"
    found = declared_command({".gitlab-ci.yml": TreeEntry(gitlab.encode())})
    assert found == DeclaredCall(".gitlab-ci.yml", ("-p", "no:faulthandler"), env={"A": "b"})


CI = """
jobs:
  doctest: {steps: [{run: python -m pytest --doctest-modules shop --ignore shop/tests -Werror}]}
  types: {steps: [{run: pytest -p no:types shop/tests/test_types.py}]}
  all: {steps: [{run: pytest -p no:faulthandler shop/tests}]}
  more: {steps: [{run: pytest -p no:more}]}
"""


UNKNOWN = "jobs:\n  a: {steps: [{run: pytest -p no:x $FILES}]}\n  b: {steps: [{run: pytest -p no:y shop/tests}]}"


@pytest.mark.parametrize(
    ("ci", "option"),
    [
        (CI, "no:faulthandler"),
        (CI.replace(" shop/tests}]}\n  more", " other}]}\n  more"), "no:more"),
        (CI.replace("run: pytest -p no:faulthandler shop/", "run: cd shop && pytest -p no:first "), "no:first"),
        ("jobs:\n  a: {steps: [{run: pytest --doctest-modules -p no:x}]}", "no:x"),
        (UNKNOWN, "no:x"),
    ],
)
def test_the_job_with_most_test_files_says_how(ci: str, option: str) -> None:
    files = [f"shop/tests/test_{name}.py" for name in ("types", "cart", "mail")]
    tree = {path: TreeEntry(b"") for path in files} | {".github/workflows/ci.yml": TreeEntry(ci.encode())}
    call = declared_command(tree)
    assert call is not None
    assert call.arguments == ("-p", option)


def test_a_call_of_another_project_is_none_of_ours() -> None:
    ci = "jobs:\n  other: {steps: [{run: cd other && pytest}]}\n"
    files = tree(tox_DOT_ini="[testenv]\ncommands = python -m unittest discover -s src", src__test_a_DOT_py="")
    files[".github/workflows/ci.yml"] = TreeEntry(ci.encode())
    calls = declared_calls(files)
    assert [(call.place, call.program) for call in calls] == [("tox.ini", "python -m unittest"), ("", "pytest")]


def test_the_order_of_the_places_and_pytest_before_other_runners() -> None:
    other = "[testenv]\ncommands = python -m unittest discover {envdir}\n"
    both = tree(tox_DOT_ini=other, Makefile="test:\n\tpytest -p no:faulthandler\n")
    found = declared_command(both)
    assert found == DeclaredCall("Makefile", ("-p", "no:faulthandler"))
    found = declared_command(tree(tox_DOT_ini=other))
    assert found == DeclaredCall("tox.ini", runs_another=True, runner=UNITTEST)
    assert declared_calls(tree(tox_DOT_ini=other)) == (found, DeclaredCall(""))
    assert declared_command(tree(tox_DOT_ini="[testenv]\ncommands = ruff check\n")) is None


@pytest.mark.parametrize(
    ("line", "runner", "pythonpath", "refused"),
    [
        ("python -W error -m unittest -v -b tests.test_cart", ("python", "-Werror", "-m", "unittest"), None, ()),
        ("coverage run -m unittest discover -s tests -p '*_test.py'", UNITTEST, ("tests",), ()),
        ("python -m unittest discover tests", UNITTEST, ("tests",), ()),
        ("python -m unittest discover -s app/tests -t app", UNITTEST, ("app",), ()),
        ("cd app && python -m unittest discover", UNITTEST, ("app",), ()),
        ("python -m unittest discover -s $HERE", UNITTEST, None, ()),
        ("python setup.py test", UNITTEST, None, ("setup.py test (tests are run by unittest)",)),
        ("stestr run --slowest", UNITTEST, None, ("stestr (tests are run by unittest)",)),
        ("python -m twisted.trial -j 4 shop", UNITTEST, None, ("twisted.trial (tests are run by unittest)",)),
        ("nose2 -v --with-coverage", ("python", "-m", "nose2"), None, ()),
        ("python -m nose2 -s tests --layers", ("python", "-m", "nose2"), ("tests",), ("--layers",)),
        ("cd app && ./manage.py test --parallel 4 --tag fast shop -v 2 --settings=shop.ci",
         ("python", "app/manage.py", "test", "--noinput", "--settings=shop.ci"), ("app",), ()),
        ("django/manage.py test", None, None, ("`django/manage.py test` (tests are run by pytest)",)),
        ("python runtests.py --settings $SETTINGS --live -j2", ("python", "runtests.py", "--parallel=1"), None,
         ("--settings=$SETTINGS", "--live")),
        ("cd tests && \0 runtests.py", ("python", "tests/runtests.py"), ("tests",), ()),
        ("pip install nose2 stestr", "none", None, ()),
    ],
)  # fmt: skip
def test_runners_that_are_built_on_unittest(
    line: str, runner: tuple[str, ...] | str | None, pythonpath: tuple[str, ...] | None, refused: tuple[str, ...]
) -> None:
    files = {"app/manage.py": "", "runtests.py": 'add_argument("--parallel")', "tests/runtests.py": ""}
    files["Makefile"] = f"test:\n\t{line}\n"
    found = declared_command({path: TreeEntry(text.encode()) for path, text in files.items()})
    if runner == "none":
        assert found is None
        return
    assert found is not None
    assert found.runs_another
    assert (found.runner or None, found.pythonpath, found.refused) == (runner, pythonpath, refused)


@pytest.mark.parametrize(
    ("line", "arguments", "refused"),
    [
        ("pytest -v -q -sx --cov=shop --cov-report xml -n auto -k 'a or b' -m unit tests/", (), ()),
        ("pytest -pno:x -Werror -oaddopts=", ("-p", "no:x", "-W", "error", "-o", "addopts="), ()),
        ("pytest --rootdir=. --confcutdir tests", ("--rootdir", ".", "--confcutdir", "tests"), ()),
        ("pytest --runslow --live --backend=postgres", (), ("--live", "--backend=postgres")),
        ("pytest -c ../other.ini --rootdir=/etc", (), ("-c ../other.ini", "--rootdir /etc")),
        ("pytest -c {home}/x", (), ("-c {home}/x",)),
        ("pytest -p no:junitxml -o junit_family=xunit2", (), ("-p no:junitxml", "-o junit_family=xunit2")),
        ("pytest -W $WARNINGS -p `plugin`", (), ("-W $WARNINGS", "-p `plugin`")),
        ("cd tests && pytest -p no:x", ("-p", "no:x"), ("cd tests (tests are run in the root)",)),
        ("LD_PRELOAD=x OPENAI_API_KEY=fake HOME=/x pytest", (), ("LD_PRELOAD", "OPENAI_API_KEY")),
        ("PYTEST_ADDOPTS='-p no:x -v' pytest", ("-p", "no:x"), ()),
    ],
)  # fmt: skip
def test_what_is_used_of_a_line(line: str, arguments: tuple[str, ...], refused: tuple[str, ...]) -> None:
    found = parsed("Makefile", line, {}, ["tests/a.py"])
    assert found is not None
    assert (found.arguments, found.refused) == (arguments, refused)


@pytest.mark.parametrize("line", ["pip install pytest", "echo pytest", "ruff check", "pytest 'open", ""])
def test_lines_that_run_no_tests(line: str) -> None:
    assert parsed("Makefile", line, {}, ()) is None


def test_plugins_that_the_environment_lacks_are_left_out() -> None:
    line = "pytest -p shop.testing -p pytest_mock -p pytest_foo --ds=shop.settings --forked"
    found = parsed("Makefile", line, {}, ["shop/testing.py"])
    assert found is not None
    kept = found.among(["pytest_mock", "Pytest.Django"])
    assert kept.arguments == ("-p", "shop.testing", "-p", "pytest_mock", "--ds", "shop.settings")
    assert kept.refused == (
        "-p pytest_foo (the environment has no pytest_foo)",
        "--forked (the environment has no pytest-forked)",
    )
    assert kept.given == ("-p shop.testing", "-p pytest_mock", "--ds shop.settings")


@given(st.sampled_from(["tox.ini", "noxfile.py", "Makefile", ".gitlab-ci.yml", ".github/workflows/a.yml"]),
       st.one_of(st.binary(max_size=200), st.sampled_from([TOX, NOX, MAKE, WORKFLOW]).map(str.encode)),
       st.integers(0, 200))  # fmt: skip
def test_no_file_is_too_odd(name: str, content: bytes, cut: int) -> None:
    assert is_command_file(name)
    found = declared_command({name: TreeEntry(content[cut:])})
    words = [] if found is None else [*found.arguments, *found.env, *found.env.values(), *found.refused]
    assert all("\0" not in word and "\x1b" not in word for word in words)


def test_a_file_of_aliases_ends() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefghijk", "bcdefghijkl", strict=True)
    )
    assert declared_command({".gitlab-ci.yml": TreeEntry(bomb.encode())}) is None
