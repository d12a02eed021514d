"""The tests of the packages that a fix changes, besides the test files that it changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from trialfleet_repository.languages import Language

MOST = 200  # test files
_ASIDE = frozenset({"src", "lib", "main", "test", "tests", "__tests__", "spec", "java", "kotlin", "unit"})


def tests_of_packages(
    language: Language, paths: Iterable[str], *, source: Sequence[str], tests: Sequence[str]
) -> tuple[str, ...]:
    """What a test runner can be given for the changed packages, the changed test files left out. `paths`: of the
    whole tree; `source`, `tests`: files that the fix changes, those of source most changed first.

    Where runners take a file's whole package, the source files. For the others test files
    in the folder of a changed file, or in the folder of the tests that mirrors it.

    >>> from trialfleet_repository.languages import ECMASCRIPT
    >>> paths = ["src/cart/a.ts", "test/cart/a.test.ts", "test/cart/b.test.ts", "test/tax/c.test.ts"]
    >>> tests_of_packages(ECMASCRIPT, paths, source=["src/cart/a.ts"], tests=["test/cart/a.test.ts"])
    ('test/cart/b.test.ts',)
    """
    if language.takes_packages:
        return tuple(source)
    folders = {_folder(path) for path in (*source, *tests)}
    places = {_place(path) for path in source}
    wide = [
        path
        for path in language.test_modules(sorted(paths))
        if path not in tests and (_folder(path) in folders or _same_place(_place(path), places))
    ]
    return tuple(wide[:MOST])


def _folder(path: str) -> str:
    return str(PurePosixPath(path).parent)


def _place(path: str) -> tuple[str, ...]:
    """The folders that say what the code is about.

    >>> _place("src/main/java/org/x/A.java"), _place("src/test/java/org/x/ATest.java")
    (('org', 'x'), ('org', 'x'))
    """
    return tuple(part for part in PurePosixPath(path).parts[:-1] if part not in _ASIDE)


def _same_place(place: tuple[str, ...], places: Iterable[tuple[str, ...]]) -> bool:
    """Whether they are equal, or the one is the end of the other: tests often leave the first folder out.

    >>> _same_place(("cart",), [("shop", "cart")]), _same_place((), [("shop", "cart")])
    (True, False)
    """
    return bool(place) and any(place in (other, other[-len(place) :]) for other in places)
