"""`cargo test`, both streams in one file: captured from cargo 1.95."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_repository.languages.rust.libtest import read_libtest
from trialfleet_repository.results.exact import ReadResults, exact_outcomes
from trialfleet_repository.results.junit import MAX_BYTES, MAX_CASES
from trialfleet_repository.results.limits import MAX_TEXT, ResultError

LIB = "crates/x/src/lib.rs"
FOO = "crates/x/tests/foo.rs"


def artifact(source: str, executable: str | None, kind: str = "test", package: str = "tiny-x") -> str:
    """The line of cargo for one compiled target, in the folder /w."""
    return json.dumps(
        {
            "reason": "compiler-artifact",
            "package_id": f"path+file:///w/crates/x#{package}@0.1.0",
            "target": {"kind": [kind], "src_path": f"/w/{source}"},
            "executable": executable and f"/w/target/debug/deps/{executable}",
        }
    )


BUILT = "\n".join(
    [
        "   Compiling tiny-x v0.1.0 (/w/crates/x)",
        artifact(LIB, None, "lib"),
        artifact(LIB, "tiny_x-6c34", "lib"),
        artifact(FOO, "foo-d125"),
        artifact("crates/x/tests/aborts.rs", "aborts-3354"),
        '{"reason":"build-finished","success":true}',
        "    Finished `test` profile [unoptimized + debuginfo] target(s) in 2.07s\n",
    ]
)
UNIT_TESTS = """     Running unittests src/lib.rs (target/debug/deps/tiny_x-6c34)

running 6 tests
test tests::adds ... ok
test tests::does_not_panic - should panic ... FAILED
test tests::ignored ... ignored
test tests::ignored_why ... ignored, needs time
test tests::fails ... FAILED
test tests::panics - should panic ... ok

failures:

---- tests::does_not_panic stdout ----
note: test did not panic as expected at crates/x/src/lib.rs:15:32
---- tests::fails stdout ----
before

thread 'tests::fails' (14024) panicked at crates/x/src/lib.rs:11:46:
---- tests::adds stdout ----
test tests::adds ... FAILED


failures:
    tests::does_not_panic
    tests::fails

test result: FAILED. 2 passed; 2 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.13s

error: test failed, to rerun pass `-p tiny-x --lib`
"""
ABORTS = """     Running tests/aborts.rs (target/debug/deps/aborts-3354)

running 2 tests
error: test failed, to rerun pass `-p tiny-x --test aborts`

Caused by:
  process didn't exit successfully: `/w/target/debug/deps/aborts-3354` (signal: 6, SIGABRT: process abort signal)
"""
INTEGRATION = """     Running tests/foo.rs (target/debug/deps/foo-d125)

running 1 test
test integration ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

"""
DOCTESTS = """   Doc-tests tiny_x

running 1 test
test crates/x/src/lib.rs - (line 2) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.77s
"""
NOT_COMPILED = """error[E0433]: cannot find module or crate `nowhere` in this scope
 --> crates/y/tests/broken.rs:1:23
  |
1 | #[test] fn broken() { nowhere::f(); }

error: could not compile `tiny-y` (test "broken") due to 1 previous error
warning: build failed, waiting for other jobs to finish...
{"reason":"build-finished","success":false}
"""


def read(text: str) -> ReadResults:
    return read_libtest(text.encode(), "/w")


def test_every_outcome_is_told_apart() -> None:
    results = read(BUILT + UNIT_TESTS + INTEGRATION)
    assert exact_outcomes(results.cases) == {
        f"{LIB}::tests::adds": "passed",
        f"{LIB}::tests::does_not_panic": "failed",
        f"{LIB}::tests::ignored": "skipped",
        f"{LIB}::tests::ignored_why": "skipped",
        f"{LIB}::tests::fails": "failed",
        f"{LIB}::tests::panics": "passed",
        f"{FOO}::integration": "passed",
    }


def test_the_text_of_a_failure_may_hold_the_runners_own_words() -> None:
    texts = {case.name: case.text for case in read(BUILT + UNIT_TESTS).cases}
    assert texts["tests::does_not_panic"].startswith("note: test did not panic")
    assert texts["tests::fails"].startswith("before\n")
    assert "test tests::adds ... FAILED" in texts["tests::fails"]
    assert texts["tests::adds"] == ""


def test_the_output_lacks_the_messages_for_machines() -> None:
    output = read(BUILT + UNIT_TESTS).output
    assert output is not None
    assert '"reason"' not in output
    assert output.endswith(UNIT_TESTS)


def test_json_that_a_test_prints_stays_in_the_output() -> None:
    printed = artifact("src/forged.rs", "foo-d125") + "\n"
    results = read(BUILT + UNIT_TESTS + printed + INTEGRATION)
    assert printed in (results.output or "")
    assert f"{FOO}::integration" in exact_outcomes(results.cases)


def test_documentation_tests_are_left_out() -> None:
    assert len(read(BUILT + INTEGRATION + DOCTESTS).cases) == 1


def test_a_program_that_aborts_is_an_error_and_the_next_one_counts() -> None:
    aborted, passed = read(BUILT + ABORTS + INTEGRATION).cases
    assert (aborted.classname, aborted.name, aborted.outcome) == ("crates/x/tests/aborts.rs", "", "error")
    assert not aborted.at_collection
    assert "SIGABRT" in aborted.text
    assert (passed.classname, passed.outcome) == (FOO, "passed")


def test_a_test_that_aborts_while_tests_run_one_at_a_time_has_failed() -> None:
    one_thread = ABORTS.replace("error: test failed", "test aborts ... error: test failed")
    assert exact_outcomes(read(BUILT + one_thread).cases) == {"crates/x/tests/aborts.rs::aborts": "failed"}


def test_an_outcome_may_follow_what_the_test_printed() -> None:
    printed = INTEGRATION.replace("... ok", "... a child process prints\nok")
    assert exact_outcomes(read(BUILT + printed).cases) == {f"{FOO}::integration": "passed"}


def test_the_verbose_form_and_colours_are_understood() -> None:
    verbose = INTEGRATION.replace(
        "tests/foo.rs (target/debug/deps/foo-d125)", "`A=b /w/target/debug/deps/foo-d125`"
    )
    coloured = verbose.replace("     Running", "\x1b[1m\x1b[92m     Running\x1b[0m").replace(
        "ok\n", "\x1b[32mok\x1b[m\n"
    )
    assert exact_outcomes(read(BUILT + coloured).cases) == {f"{FOO}::integration": "passed"}


def test_without_messages_the_unit_is_the_path_within_the_package() -> None:
    assert exact_outcomes(read(INTEGRATION).cases) == {"tests/foo.rs::integration": "passed"}


def test_a_target_that_does_not_compile_is_a_collection_failure() -> None:
    [broken] = read(BUILT.replace("true", "false") + NOT_COMPILED).cases
    assert broken.at_collection
    assert (broken.classname, broken.name) == ("crates/y/tests/broken.rs", "")
    assert broken.text.startswith("error[E0433]")


@pytest.mark.parametrize(
    ("target", "unit"),
    [
        (" (lib test)", LIB),
        (" (lib)", LIB),
        ("", "tiny-x"),
        (' (test "gone")', "tiny-x"),
        (" (build script)", "tiny-x"),
    ],
)
def test_the_unit_that_does_not_compile_is_the_crate_when_its_path_is_unknown(target: str, unit: str) -> None:
    failed = f"error: could not compile `tiny-x`{target} due to 2 previous errors; 1 warning emitted\n"
    assert [(case.classname, case.at_collection) for case in read(BUILT + failed).cases] == [(unit, True)]


def test_a_build_script_that_fails_is_a_collection_failure() -> None:
    failed = (
        "error: failed to run custom build command for `tiny-z v0.1.0 (/w/crates/z)`\n\nCaused by:\n  no header\n"
    )
    [broken] = read(failed).cases
    assert (broken.classname, broken.at_collection) == ("tiny-z", True)
    assert "no header" in broken.text


def test_a_broken_manifest_is_a_collection_failure() -> None:
    [broken] = read("error: unclosed array, expected `]`\n --> crates/z/Cargo.toml:6:7\n").cases
    assert (broken.classname, broken.at_collection) == ("Cargo.toml", True)


def test_warnings_are_no_failures() -> None:
    assert read("warning: unused variable: `x`\n" + BUILT).cases == ()


def test_too_much_is_refused() -> None:
    with pytest.raises(ResultError, match="larger than"):
        read_libtest(b" " * (MAX_BYTES + 1), "/w")
    many = "".join(f"test t{n} ... ok\n" for n in range(MAX_CASES + 1))
    with pytest.raises(ResultError, match="more than"):
        read(INTEGRATION + many)


def test_texts_are_bounded_and_repeated_headers_cost_little() -> None:
    header = "---- integration stdout ----\nx\n"
    begun = time.monotonic()
    [case] = read(INTEGRATION.replace("... ok", "... FAILED\n\nfailures:\n" + header * 200_000)).cases
    assert len(case.text) == MAX_TEXT
    assert time.monotonic() - begun < 30


@given(st.binary() | st.text(alphabet="test .okFAILED-\n{}`(:) Runigsdu").map(str.encode))
def test_only_result_errors_are_raised(data: bytes) -> None:
    with contextlib.suppress(ResultError):
        read_libtest(data, "/w")
        read_libtest(b'{"reason":"compiler-artifact","target":' + data + b"}\n", "/w")
        read_libtest(INTEGRATION.encode() + b"test " + data + b"\nfailures:\n" + data, "/w")
