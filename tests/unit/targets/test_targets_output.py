"""What test runners say around a failure leaves a request; names, messages and places stay."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.targets.sources_fixture import source_files
from trialfleet_targets.default.output import without_runner
from trialfleet_targets.default.ranking import Default
from trialfleet_targets.default.request import Request
from trialfleet_targets.index import build
from trialfleet_targets.snapshot import Snapshot

PYTEST = """
============================= test session starts ==============================
platform linux -- Python 3.11.7, pytest-8.3.2, pluggy-1.5.0
rootdir: /src
configfile: pyproject.toml
plugins: asyncio-0.23
collected 3 items

tests/test_session.py .F.                                                [100%]

=================================== FAILURES ===================================
_________________________________ test_renew __________________________________

>       assert renew() == 1
E       assert 2 == 1

tests/test_session.py:4: AssertionError
/usr/lib/python3.11/site-packages/_pytest/runner.py:341: in from_call
----------------------------- Captured stdout call -----------------------------
=========================== short test summary info ============================
FAILED tests/test_session.py::test_renew - assert 2 == 1
========================= 1 failed, 2 passed in 0.12s ==========================
"""
UNITTEST = """
$ python -m pytest tests/test_session.py
======================================================================
FAIL: test_renew (tests.test_session.Renewal)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/usr/lib/python3.11/unittest/case.py", line 57, in testPartExecutor
AssertionError: 2 != 1

Ran 3 tests in 0.001s
FAILED (failures=1)
"""
JEST = """
PASS src/mail.test.ts
FAIL src/session.test.ts
  ● renews the cookie

    expect(received).toBe(expected) // Object.is equality

    at Object.toBe (src/session.test.ts:4:20)
    at Object.<anonymous> (node_modules/jest-circus/build/run.js:3:4)
Test Suites: 1 failed, 1 passed, 2 total
Tests:       1 failed, 2 passed, 3 total
Snapshots:   0 total
Time:        0.5 s
Ran all test suites.
"""
VITEST = """
 RUN  v1.6.0 /src
 ✓ src/mail.test.ts (3 tests) 5ms
 × renews the cookie 3ms
⎯⎯⎯⎯⎯⎯⎯ Failed Tests 1 ⎯⎯⎯⎯⎯⎯⎯
 FAIL  src/session.test.ts > renews the cookie
 ❯ src/session.ts:3:4
 Test Files  1 failed | 1 passed (2)
      Tests  1 failed | 3 passed (4)
   Start at  10:00:00
   Duration  300ms (transform 50ms)
"""
GO = """
=== RUN   TestRenew
    session_test.go:12: expected 200, got 404
--- FAIL: TestRenew (0.00s)
--- PASS: TestMail (0.00s)
FAIL
FAIL	shop/session	0.003s
ok  	shop/mail	(cached)
exit status 1
"""
CARGO = """
   Compiling shop v0.1.0 (/src)
     Running unittests src/lib.rs (target/debug/deps/shop-0123)
running 2 tests
test mail::sends ... ok
test session::renews ... FAILED

failures:

---- session::renews stdout ----
thread 'session::renews' panicked at src/session.rs:3:4:
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
test result: FAILED. 1 passed; 1 failed; 0 ignored
error: test failed, to rerun pass `--lib`
"""
SUREFIRE = """
[INFO] Running shop.SessionTest
[ERROR] Tests run: 3, Failures: 1, Errors: 0
[ERROR] shop.SessionTest.renews  Time elapsed: 0.01 s  <<< FAILURE!
org.opentest4j.AssertionFailedError: expected: <1> but was: <2>
	at org.junit.jupiter.api.AssertEquals.fail(AssertEquals.java:3)
	at shop.SessionTest.renews(SessionTest.java:12)
[ERROR] BUILD FAILURE
"""


@pytest.mark.parametrize(
    ("output", "left"),
    [
        (
            PYTEST,
            [
                "tests/test_session.py",
                "test_renew",
                "assert renew() == 1",
                "assert 2 == 1",
                "tests/test_session.py:4: AssertionError",
                "tests/test_session.py::test_renew - assert 2 == 1",
            ],
        ),
        (UNITTEST, ["tests/test_session.py", "test_renew (tests.test_session.Renewal)", "AssertionError: 2 != 1"]),
        (JEST, ["src/session.test.ts", "renews the cookie", "at Object.toBe (src/session.test.ts:4:20)"]),
        (VITEST, ["renews the cookie 3ms", "src/session.test.ts > renews the cookie", "src/session.ts:3:4"]),
        (GO, ["session_test.go:12: expected 200, got 404", "TestRenew"]),
        (
            CARGO,
            ["session::renews", "session::renews", "thread 'session::renews' panicked at src/session.rs:3:4:"],
        ),
        (
            SUREFIRE,
            [
                "shop.SessionTest.renews  Time elapsed: 0.01 s",
                "expected: <1> but was: <2>",
                "at shop.SessionTest.renews(SessionTest.java:12)",
            ],
        ),
    ],
)
def test_only_what_is_of_this_failure_stays(output: str, left: list[str]) -> None:
    said = without_runner(f"The cookie is lost\n{output}")
    assert [line.strip() for line in said.split("\n") if line.strip()] == ["The cookie is lost", *left]


@pytest.mark.parametrize(
    "text",
    [
        "pytest crashes when a fixture fails",
        "fix: jest matchers\n\nTests pass again, and the FAIL state is kept:\n- running twice\n> as quoted\n",
        "Collect all items\n\nFailures of the runner are shown in 3 tests.\n\nE is a constant",
        "Show options\n\npytest --help renders them.\nTests: two handlers on one address\nTime: it takes long",
        "=== RUN TestX",
        "PASS\nok\n",
    ],
)
def test_prose_stays_as_it_is(text: str) -> None:
    assert without_runner(text) == text


@given(st.text(alphabet="ab .:-\n\u00e9", max_size=200))
def test_a_text_without_a_runner_is_untouched_or_loses_rules_only(text: str) -> None:
    kept = [line for line in text.split("\n") if line.strip(" -")]
    assert [line for line in without_runner(text).split("\n") if line.strip(" -")] == kept


@given(st.text(max_size=300))
def test_twice_is_once_or_less(text: str) -> None:
    assert len(without_runner(without_runner(text))) <= len(without_runner(text)) <= len(text)


def test_a_request_begins_where_the_output_ends() -> None:
    request = Request.of(f"=== RUN   TestRenew\n{PYTEST}\nplease repair it")
    assert request.core.keys() == {"test", "session", "testsession", "py"}
    assert "pytest" not in request.all
    assert "platform" not in request.all
    assert {"renew", "repair"} <= request.all.keys()


def test_the_runner_does_not_lead_to_files_named_like_it() -> None:
    project = {
        "shop/pytest.py": "def collected(items, session, failures):\n    return platform, rootdir, plugins\n",
        "shop/session.py": "def renew():\n    return 2\n",
        "shop/mail.py": "def send(letter):\n    return letter\n",
    }
    index = build(Snapshot("c" * 40, 1_700_000_000, source_files(project), (), ()))
    assert Default(index).rank(f"The test fails:\n{PYTEST}")[0].path == "shop/session.py"


@pytest.mark.parametrize(
    "line",
    ["= " * 900, "1 failed " * 200, "at " * 600, " " * 1900 + "x", "x" + " " * 1900 + "x", "=" * 1999 + "x"],
)
def test_no_line_takes_long(line: str) -> None:
    began = time.process_time()
    without_runner(f"{line}\n" * 32)
    assert time.process_time() - began < 1
