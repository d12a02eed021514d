"""How the runners of unittest are given their tests, and how our record of them is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from posixpath import dirname

from trialfleet_repository.languages.python.must_fail import make_unittest_file
from trialfleet_repository.languages.python.pytest import select_functions
from trialfleet_repository.languages.report_format import ReadFile, ReportFormat, each_once
from trialfleet_repository.languages.run_files import RunFiles
from trialfleet_repository.languages.settings_record import SettingsPlugin, put_folder_first
from trialfleet_repository.results import junit
from trialfleet_repository.results.exact import ReadResults

RECORDER = Path(__file__).with_name("unittest_recorder.py")
_RECORDER = "trialfleet_unittest"  # that no project has
_MAKES_TESTS = re.compile(rb"\b(?:load_tests|nose2|parameterized|scenarios)\b")


def _give_names(tests: Sequence[str], read: ReadFile) -> tuple[str, ...]:
    """Dotted names: of methods, or of modules for files and where a module makes its tests when it is loaded."""
    names: list[str] = []
    for test in select_functions(tests):
        path, *inner = test.split("::")
        whole = not inner or _MAKES_TESTS.search(read(path) or b"") is not None
        names.append(".".join((module_name(path, read), *(() if whole else inner))))
    return each_once(names)


def module_name(path: str, read: ReadFile) -> str:
    """As it is imported from the folder that holds its outermost package.

    >>> files = {"src/shop/tests/__init__.py": b""}
    >>> module_name("src/shop/tests/test_cart.py", files.get), module_name("tests/test_cart.py", files.get)
    ('tests.test_cart', 'test_cart')
    """
    root = import_root(path, read)
    return junit.module_name(path.removeprefix(f"{root}/" if root else ""))


def import_root(path: str, read: ReadFile) -> str:
    """The folder that a module is imported from; "" for the repository's root."""
    folder = dirname(path)
    while folder and read(f"{folder}/__init__.py") is not None:
        folder = dirname(folder)
    return folder


def _read(files: RunFiles) -> ReadResults:
    """The recorder names files from the folder where it ran, which is the root."""
    return ReadResults(junit.parse(files.read_report()))


def _record_call(words: tuple[str, ...], variables: Mapping[str, str], report: str) -> tuple[str, ...]:
    return wrap_call(words, _RECORDER, report, f"{variables['VIRTUAL_ENV']}/bin/python")


def wrap_call(words: Sequence[str], recorder: str, report: str, python: str) -> tuple[str, ...]:
    """The call of an interpreter, or of a script that `python` runs, in a process of the module `recorder`.

    >>> wrap_call(("/bin/python", "-W", "error", "-m", "unittest", "test_a"), "rec", "/r.xml", "/bin/python")
    ('/bin/python', '-W', 'error', '-m', 'rec', '/r.xml', '-m', 'unittest', 'test_a')
    >>> wrap_call(("/bin/nose2", "test_a"), "rec", "/r.xml", "/bin/python")
    ('/bin/python', '-m', 'rec', '/r.xml', '/bin/nose2', 'test_a')
    """
    own = ("-m", recorder, report)
    if not PurePosixPath(words[0]).name.startswith("python"):
        return (python, *own, *words)
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] != "-m":
        at += 2 if words[at] in ("-W", "-X") else 1
    return (*words[:at], *own, *words[at:])


UNITTEST = ReportFormat(
    "unittest",
    _read,
    (".py",),
    "unittest",
    _give_names,
    from_directory=False,
    must_fail=make_unittest_file,
    plugin=SettingsPlugin({f"{_RECORDER}.py": RECORDER}, put_folder_first, _record_call),
)
