"""Which paths of a repository are tests."""

from __future__ import annotations

import re

_TEST_FOLDERS = frozenset({"tests", "test", "testdata", "__tests__", "__snapshots__", "__mocks__", "__fixtures__"})
_TEST_NAMES = re.compile(
    r"conftest\.py|test_.*\.py|.*_test\.(?:py|go)"
    r"|(?:.*_)?tests?\.rs"
    r"|.*[._](?:test|spec)(?:-d)?\.[cm]?[jt]sx?|.*\.snap",
    re.DOTALL,
)
# Gradle's source sets besides src/test
_SOURCE_SET = re.compile(r"(?:^|/)src/(?:[A-Za-z]+Tests?|testFixtures)/(?:java|kotlin|groovy|resources)/")


def is_test_path(path: str) -> bool:
    """By convention: below tests/ or test/, or named test_*.py, *_test.py or conftest.py; likewise in Go,
    JavaScript, Rust, Java and Kotlin, with the data and snapshots that only tests read.

    >>> [is_test_path(p) for p in ("tests/a.py", "pkg/test_a.py", "pkg/contest.py", "conftest.py")]
    [True, True, False, True]
    >>> [is_test_path(p) for p in ("cart/cart_test.go", "cart/testdata/a.json", "cart/cart.go")]
    [True, True, False]
    >>> [is_test_path(p) for p in ("src/a.test.ts", "src/a.spec.jsx", "__tests__/a.ts", "src/test.ts")]
    [True, True, True, False]
    >>> [is_test_path(p) for p in ("src/cart/tests.rs", "src/cart_test.rs", "src/cart.rs", "src/contest.rs")]
    [True, True, False, False]
    >>> [is_test_path(p) for p in ("core/src/test/java/ATest.java", "src/main/java/org/x/Test.java")]
    [True, False]
    """
    folders, _, name = path.rpartition("/")
    return (
        _TEST_NAMES.fullmatch(name) is not None
        or not _TEST_FOLDERS.isdisjoint(folders.split("/"))
        or _SOURCE_SET.search(path) is not None
    )
