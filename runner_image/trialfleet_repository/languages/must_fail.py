"""A file of tests that must fail, made from a fail-to-pass test: what makes every test pass is seen there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

MAX_CHARS = 2**19  # of a test file: a longer one is not copied
MAX_TESTS = 8  # in one file: they run once for every pass


class NoMustFail(ValueError):
    """Why no such file can be made."""


@dataclass(frozen=True)
class FailToPass:
    """What it is made from. `ids`: of the fail-to-pass tests. `files`: path -> text of the files that may hold
    them. `mark`: a word, by which the new file and its tests differ from those there are."""

    ids: tuple[str, ...]
    files: Mapping[str, str]
    mark: str


@dataclass(frozen=True)
class FailingFile:
    """A file of the scored tree. `tests`: what its test runner is given; ids, or the file itself. The names of the
    tests that must fail contain the mark. `exit_code`: as in `MustFailTest`, if the file sees to that."""

    path: str
    text: str
    tests: tuple[str, ...]
    exit_code: int | None = None


MakeMustFail = Callable[[FailToPass], FailingFile]  # raises `NoMustFail`


def make_none(_: FailToPass) -> FailingFile:
    """Raises `NoMustFail`."""
    raise NoMustFail("it is not made for this test runner")


def path_beside(path: str, mark: str, ends: tuple[str, ...]) -> str:
    """A path in the same folder that the same test runner collects. `ends`: what the name's first part may end
    with, the longest first.

    >>> path_beside("a/test_b.py", "z1", ("_test",)), path_beside("a/b_test.py", "z1", ("_test",))
    ('a/test_b_z1.py', 'a/b_z1_test.py')
    >>> path_beside("a/b.test.js", "z1", ("-test",)), path_beside("b-test.js", "z1", ("-test",))
    ('a/b_z1.test.js', 'b_z1-test.js')
    """
    folder, slash, name = path.rpartition("/")
    stem, dot, rest = name.partition(".")
    end = next((end for end in ends if stem.endswith(end) and stem != end), "")
    return f"{folder}{slash}{stem.removesuffix(end)}_{mark}{end}{dot}{rest}"


def tests_of_files(tests: FailToPass) -> dict[str, str]:
    """Path -> the name of the first test there, where ids begin with the path of a file."""
    found: dict[str, str] = {}
    for test in tests.ids:
        path, _, name = test.partition("::")
        if path in tests.files:
            found.setdefault(path, name)
    return found
