"""Where `nearest` starts from: the frame that a failure output names, and frames as words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_deliveries.anchor import anchor_for, deepest_frame, frames_as_words
from trialfleet_ledger.task import AnchorPath
from trialfleet_repository.languages import is_test_path

PATHS = {
    "src/pkg/core.py",
    "src/pkg/deep.py",
    "src/pkg/__init__.py",
    "tests/test_core.py",
    "tests/helpers.py",
    "conftest.py",
    "runners.py",
}

LONG = """\
=================================== FAILURES ===================================
__________________________________ test_one ____________________________________

    def test_one():
>       assert run() == 1

tests/test_core.py:5:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _
src/pkg/core.py:10: in run
    return deep()
src/pkg/deep.py:3: in deep
    return json.loads("")
/usr/lib/python3.11/json/__init__.py:346: in loads
    return _default_decoder.decode(s)
/usr/lib/python3.11/json/decoder.py:355: JSONDecodeError
_____________________________ test_two ________________________________________
src/pkg/core.py:10: AssertionError
=============================== warnings summary ===============================
src/pkg/__init__.py:1: DeprecationWarning: old
=========================== short test summary info ============================
FAILED tests/test_core.py::test_one - json.decoder.JSONDecodeError
"""

CLASSIC = """\
Traceback (most recent call last):
  File "/workspace/tests/helpers.py", line 3, in <module>
    go()
  File "/workspace/src/pkg/core.py", line 1, in go
    import asyncio.runners
  File "/usr/lib/python3.11/asyncio/runners.py", line 2, in run
    raise ValueError
ValueError
"""


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (LONG, "src/pkg/deep.py"),
        (CLASSIC, "src/pkg/core.py"),
        ('E     File "/workspace/src/pkg/deep.py", line 1\nE       x =\n', "src/pkg/deep.py"),
        ("tests/test_core.py:5: AssertionError\n", None),
        ("conftest.py:5: in fixture\ntests/helpers.py:1: Error\n", None),
        ("../../usr/lib/python3.11/json/decoder.py:355: JSONDecodeError\n", None),
        ("/somewhere/src/pkg/core.py:1: in x\n", None),
        ("src/pkg/../pkg/core.py:1: in x\n", "src/pkg/core.py"),
        ("src/pkg/gone.py:1: in x\n", None),
        ("  src/pkg/core.py:12: DeprecationWarning: old\n", None),
        ("src/pkg/core.py:12: \n", "src/pkg/core.py"),
        ("src/pkg/core.py:12: assert 1 == 2\n", None),
        ("src/pkg/core.py:x: in y\n", None),
        ("", None),
    ],
)
def test_deepest_frame(output: str, expected: str | None) -> None:
    assert deepest_frame(output, PATHS) == expected


def test_the_first_failure_that_reaches_the_repository_decides() -> None:
    only_tests_first = "___ test_a ___\ntests/test_core.py:1: Error\n___ test_b ___\nsrc/pkg/core.py:2: Error\n"
    assert deepest_frame(only_tests_first, PATHS) == "src/pkg/core.py"


def test_failures_of_unittest_are_told_apart() -> None:
    line = "=" * 70
    output = "".join(
        f'{line}\nFAIL: {name}\nTraceback (most recent call last):\n  File "shop/{name}.py", line 3, in f\n'
        for name in ("cart", "mail")
    )
    assert deepest_frame(output, ["shop/cart.py", "shop/mail.py"]) == "shop/cart.py"


def test_warnings_are_no_frames_whatever_their_indent() -> None:
    assert deepest_frame("=== warnings summary ===\nsrc/pkg/core.py:1: in x\n", PATHS) is None


def test_modes() -> None:
    def anchor(mode: object, source: str = "failing_test") -> str | None:
        return anchor_for(
            mode,  # type: ignore[arg-type]
            prompt_source=source,  # type: ignore[arg-type]
            paths=PATHS,
            failure_output=LONG,
            test_file="tests/test_core.py",
            targets=("tests/test_core.py", "src/pkg/core.py"),
            predicted="src/pkg/best.py",
        )

    assert anchor("traceback") == "src/pkg/deep.py"
    assert anchor("test_file") == "tests/test_core.py"
    assert anchor("oracle") == "src/pkg/core.py"
    assert anchor(AnchorPath(path="src/pkg/x.py")) == "src/pkg/x.py"
    assert anchor("targets") == "src/pkg/best.py"
    for source in ("issue", "commit_message"):
        assert anchor("targets", source) == "src/pkg/best.py"  # it was predicted from the task's words alone
        assert anchor("traceback", source) is None  # a hidden test's traceback would leak
        assert anchor("test_file", source) is None
        assert anchor(AnchorPath(path="src/pkg/x.py"), source) == "src/pkg/x.py"


def test_is_test_path() -> None:
    tests = ["tests/a.py", "a/test/b.py", "test_a.py", "a/b_test.py", "a/conftest.py"]
    others = ["src/a.py", "a/testing.py", "a/latest.py", "attest/a.py", "test_data.json", "a/contest.py"]
    assert all(map(is_test_path, tests))
    assert not any(map(is_test_path, others))


def test_is_test_path_in_other_languages() -> None:
    tests = """
        cart/cart_test.go cart/testdata/a.json
        src/a.test.ts src/a.spec.tsx src/a.test.mjs src/a.test-d.ts src/__tests__/a.ts src/__snapshots__/a.ts.snap
        src/__mocks__/fs.js src/__fixtures__/a.json test/helper.ts src/a.snap
        tests/cart.rs src/cart/tests.rs src/cart/test.rs src/cart_test.rs src/cart_tests.rs src/cart/tests/total.rs
        src/test/java/org/x/CartTest.java core/src/test/resources/a.xml src/integrationTest/kotlin/A.kt
        src/testFixtures/java/Carts.java
    """
    others = """
        cart/cart.go cart/test.go cart/contest.go src/a.ts src/latest.ts src/a.tests.ts src/test.ts src/spec.ts
        src/cart.rs src/attests.rs src/testing.rs src/abTest/index.ts
        src/main/java/org/x/CartTest.java mytestdata/a.json
    """
    assert [path for path in tests.split() if not is_test_path(path)] == []
    assert [path for path in others.split() if is_test_path(path)] == []


OUTPUT = """\
    def test_total():
>       assert total([1]) == 2

tests/test_rules.py:7:
_ _ _
shop/pricing/rules.py:9: in total
    raise ValueError("shop/pricing/rules.py is odd")
E   File "/workspace/shop/other.py", line 3, in f
=== warnings summary ===
shop/old.py:31
  shop/old.py:31: DeprecationWarning: gone"""


def test_frames_and_warnings_name_no_file() -> None:
    assert frames_as_words(OUTPUT).splitlines() == [
        "    def test_total():",
        ">       assert total([1]) == 2",
        "",
        "tests test_rules 7:",
        "_ _ _",
        "shop pricing rules 9: in total",
        '    raise ValueError("shop/pricing/rules.py is odd")',
        'E   File " workspace shop other ", line 3, in f',
        "=== warnings summary ===",
        "shop old 31",
        "  shop old 31: DeprecationWarning: gone",
    ]


@given(st.text())
def test_a_text_without_frames_stays(text: str) -> None:
    assert ".py" in text or frames_as_words(text) == text
