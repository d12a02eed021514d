"""A plugin of pytest that scores: a stand-alone module for Python 3.8 and later, and any pytest since 3.

A project's own settings (`addopts`, ini values) may select tests, stop after a failure, reorder, repeat, rename or
demand a coverage. Then not all tests of a task count, or one fails for another reason than itself. This takes such
settings back, unless the command line of the task itself has them. What it took back, and which tests pytest
collected, goes to a file in HOME.
"""

from __future__ import annotations

import json
import os
import sys

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

RECORD = os.path.join(os.path.expanduser("~"), "test-settings.json")  # noqa: PTH111, PTH118 - start-up time

# Destination -> its value where it has no effect, and how a command line spells it. Of pytest, then of plugins.
NEUTRAL: dict[str, tuple[object, tuple[str, ...]]] = {
    "maxfail": (0, ("-x", "--exitfirst", "--maxfail")),
    "markexpr": ("", ("-m",)),
    "keyword": ("", ("-k",)),
    "deselect": (None, ("--deselect",)),
    "ignore": (None, ("--ignore",)),
    "ignore_glob": (None, ("--ignore-glob",)),
    "lf": (False, ("--lf", "--last-failed")),
    "failedfirst": (False, ("--ff", "--failed-first")),
    "newfirst": (False, ("--nf", "--new-first")),
    "stepwise": (False, ("--sw", "--stepwise")),
    "stepwise_skip": (False, ("--sw-skip", "--stepwise-skip")),
    "collectonly": (False, ("--co", "--collect-only")),
    "setuponly": (False, ("--setup-only",)),
    "setupplan": (False, ("--setup-plan",)),
    "usepdb": (False, ("--pdb",)),
    "trace": (False, ("--trace",)),
    "strict": (False, ("--strict",)),
    "strict_markers": (False, ("--strict-markers",)),
    "strict_config": (False, ("--strict-config",)),
    "junitprefix": (None, ("--junit-prefix", "--junitprefix")),
    "cov_source": ([], ("--cov",)),  # pytest-cov
    "cov_fail_under": (None, ("--cov-fail-under",)),
    "numprocesses": (None, ("-n", "--numprocesses")),  # pytest-xdist
    "dist": ("no", ("-d", "--dist")),
    "tx": ([], ("--tx",)),
    "count": (1, ("--count",)),  # pytest-repeat
    "randomly_reorganize": (False, ("--randomly-dont-reorganize",)),  # pytest-randomly
    "random_order_bucket": ("default:module", ("--random-order-bucket",)),  # pytest-random-order
    "random_order_enabled": (False, ("--random-order",)),
    "benchmark_only": (False, ("--benchmark-only",)),  # pytest-benchmark
    "benchmark_skip": (False, ("--benchmark-skip",)),
    "splits": (None, ("--splits",)),  # pytest-split
    "group": (None, ("--group",)),
    "testmon": (False, ("--testmon",)),  # pytest-testmon
    "picked": (None, ("--picked",)),  # pytest-picked
    "error_for_skips": (False, ("--error-for-skips",)),
    "suppress_tests_failed_exit_code": (False, ("--suppress-tests-failed-exit-code",)),  # pytest-custom-exit-code
    "suppress_no_test_exit_code": (False, ("--suppress-no-test-exit-code",)),
}
# Of pytest's cache, which the command line turns off: pytest would not know the words.
OF_THE_CACHE = {
    "lf": ("--lf", "--last-failed"),
    "failedfirst": ("--ff", "--failed-first"),
    "newfirst": ("--nf", "--new-first"),
    "cacheclear": ("--cache-clear",),
    "stepwise": ("--sw", "--stepwise"),
    "stepwise_skip": ("--sw-skip", "--stepwise-skip"),
    "stepwise_reset": ("--sw-reset", "--stepwise-reset"),
}

# Options that a value of an ini file stands in for: 0 also says that there is none.
OVER_INI = {"timeout": ("--timeout",), "reruns": ("--reruns",)}  # pytest-timeout, pytest-rerunfailures
STRICT = ("strict_config", "strict_markers")  # ini values since pytest 9, which the options set

# With these, a project keeps tests from its own runs: slow ones, or those that fail by chance.
SELECTING = ("markexpr", "keyword", "deselect")

taken_back: list[str] = []
selection: dict[str, Any] = {}
parsers: list[Any] = []


def is_spelled(words: tuple[str, ...]) -> bool:
    """Whether the task's own command has one of the options."""
    given = sys.argv[1:]
    short = tuple(word for word in words if len(word) == 2)
    return any(word.partition("=")[0] in words or (word[:2] in short and word[1:2] != "-") for word in given)


def take_back(options: Any) -> None:
    """In a namespace of parsed options."""
    for name, (neutral, words) in NEUTRAL.items():
        value = getattr(options, name, neutral)
        if value and value != neutral and not is_spelled(words):
            setattr(options, name, neutral)
            if name in SELECTING:
                selection[name] = value
            note(words[-1])
    for name, words in OVER_INI.items():
        if hasattr(options, name) and not is_spelled(words):
            if getattr(options, name):
                note(words[-1])
            setattr(options, name, 0)


def take_back_values(config: Any) -> None:
    """Of ini files."""
    for name in STRICT:
        word = f"--{name.replace('_', '-')}"
        try:
            is_set = bool(config.getini(name) or config.getini("strict"))
        except (ValueError, KeyError):  # unknown to this version
            continue
        if is_set and not is_spelled((word,)):
            config._inicache[name] = False
            note(word)


def note(word: str) -> None:
    if word not in taken_back:
        taken_back.append(word)


def pytest_addoption(parser: Any) -> None:
    """Before pytest 5.4 no plugin manager is given here: `pytest_plugin_registered` comes next, and has it."""
    parsers.append(parser)


def pytest_plugin_registered(manager: Any) -> None:
    """What the cache's options would be, where the cache is turned off."""
    if not parsers:
        return
    parser = parsers.pop()
    for name, words in OF_THE_CACHE.items() if manager.is_blocked("cacheprovider") else ():
        try:
            parser.addoption(*words, action="store_true", dest=name, default=False)
        except ValueError:  # there after all
            continue


@pytest.hookimpl(hookwrapper=True)
def pytest_load_initial_conftests(early_config: Any) -> Generator[None, Any, None]:
    """Before plugins read what was parsed so far."""
    take_back(early_config.known_args_namespace)
    yield


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: Any) -> None:
    """Before plugins read what was parsed; and the report, where the project turns its plugin off."""
    take_back(config.option)
    take_back_values(config)
    if getattr(config.option, "xmlpath", None) and not config.pluginmanager.hasplugin("junitxml"):
        from _pytest import junitxml

        junitxml.pytest_configure(config)
        note("-p no:junitxml")


def set_options(options: Any, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(options, name, value)


def list_deselected(session: Any) -> list[str]:
    """The tests that the project's own settings would leave out; none where this pytest cannot say it."""
    from _pytest import main, mark

    options: Any = session.config.option
    left, now = list(session.items), {name: getattr(options, name, None) for name in selection}
    try:
        set_options(options, selection)
        for module in (mark, main):
            module.pytest_collection_modifyitems(left, session.config)
    except Exception:  # of a version with other names, or an expression that is none
        return []
    finally:
        set_options(options, now)
    kept = set(map(id, left))
    return [item.nodeid for item in session.items if id(item) not in kept]


def pytest_collection_finish(session: Any) -> None:
    """Write what is about to run. Not where the task's own command selects by itself."""
    selected = any(is_spelled(NEUTRAL[name][1]) for name in ("markexpr", "keyword", "deselect", "maxfail"))
    record = {
        "taken_back": sorted(taken_back),
        "collected": None if selected else [i.nodeid for i in session.items],
        "deselected": list_deselected(session),
    }
    try:
        with open(RECORD, "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump(record, file)
    except OSError:  # tests may have no HOME that they can write
        return
