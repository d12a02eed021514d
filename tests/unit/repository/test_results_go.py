"""`go test -json`: captured from Go 1.26, and as Go 1.23 prints it (GODEBUG=gotestjsonbuildtext=1)."""

from __future__ import annotations

import contextlib
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_repository.languages.go.results import read_go
from trialfleet_repository.results.exact import exact_outcomes, exact_results
from trialfleet_repository.results.junit import MAX_BYTES, MAX_CASES
from trialfleet_repository.results.limits import MAX_TEXT, ResultError

A = "example.com/tiny/a"
ENDINGS = r"""
{"Action":"start","Package":"example.com/tiny/a"}
{"Time":"2026-11-23T21:12:00.2Z","Action":"run","Package":"example.com/tiny/a","Test":"TestPass"}
{"Action":"output","Package":"example.com/tiny/a","Test":"TestPass","Output":"=== RUN   TestPass\n"}
{"Action":"output","Package":"example.com/tiny/a","Test":"TestPass","Output":"no newline"}
{"Action":"output","Package":"example.com/tiny/a","Test":"TestPass","Output":"--- PASS: TestPass (0.00s)\n"}
{"Action":"pass","Package":"example.com/tiny/a","Test":"TestPass","Elapsed":0}
{"Action":"run","Package":"example.com/tiny/a","Test":"TestSkip"}
{"Action":"output","Package":"example.com/tiny/a","Test":"TestSkip","Output":"    a_test.go:10: later\n"}
{"Action":"skip","Package":"example.com/tiny/a","Test":"TestSkip","Elapsed":0}
{"Action":"run","Package":"example.com/tiny/a","Test":"TestSub"}
{"Action":"run","Package":"example.com/tiny/a","Test":"TestSub/one"}
{"Action":"pass","Package":"example.com/tiny/a","Test":"TestSub/one","Elapsed":0}
{"Action":"run","Package":"example.com/tiny/a","Test":"TestSub/two_words"}
{"Action":"output","Package":"example.com/tiny/a","Test":"TestSub/two_words","Output":"    a_test.go:13: bad\n"}
{"Action":"fail","Package":"example.com/tiny/a","Test":"TestSub/two_words","Elapsed":0}
{"Action":"fail","Package":"example.com/tiny/a","Test":"TestSub","Elapsed":0}
{"Action":"output","Package":"example.com/tiny/a","Output":"FAIL\texample.com/tiny/a\t0.002s\n"}
{"Action":"fail","Package":"example.com/tiny/a","Elapsed":0.003}
"""
NOT_BUILT = r"""
{"ImportPath":"example.com/tiny/d","Action":"build-output","Output":"# example.com/tiny/d\n"}
{"ImportPath":"example.com/tiny/d","Action":"build-output","Output":"d/d.go:2:23: undefined: nope\n"}
{"ImportPath":"example.com/tiny/d","Action":"build-fail"}
{"Action":"start","Package":"example.com/tiny/e"}
{"Action":"output","Package":"example.com/tiny/e","Output":"FAIL\texample.com/tiny/e [build failed]\n"}
{"Action":"fail","Package":"example.com/tiny/e","Elapsed":0,"FailedBuild":"example.com/tiny/d"}
"""
VET = r"""
{"ImportPath":"tiny/v [tiny/v.test]","Action":"build-output","Output":"# tiny/v\n"}
{"ImportPath":"tiny/v [tiny/v.test]","Action":"build-output","Output":"v/v_test.go:8:40: bad\n"}
{"ImportPath":"tiny/v [tiny/v.test]","Action":"build-fail"}
{"Action":"start","Package":"tiny/v"}
{"Action":"fail","Package":"tiny/v","Elapsed":0,"FailedBuild":"tiny/v [tiny/v.test]"}
"""
GO_1_23 = r"""# example.com/tiny/s
s/s_test.go:6:2: no required module provides package example.com/tiny/nowhere; to add it:
# example.com/tiny/b [example.com/tiny/b.test]
b/b_test.go:5:28: undefined: undefined
{"Action":"start","Package":"example.com/tiny/s"}
{"Action":"output","Package":"example.com/tiny/s","Output":"FAIL\texample.com/tiny/s [setup failed]\n"}
{"Action":"fail","Package":"example.com/tiny/s","Elapsed":0}
{"Action":"start","Package":"example.com/tiny/b"}
{"Action":"output","Package":"example.com/tiny/b","Output":"FAIL\texample.com/tiny/b [build failed]\n"}
{"Action":"fail","Package":"example.com/tiny/b","Elapsed":0.002}
"""
EXITS = r"""
{"Action":"start","Package":"example.com/tiny/x"}
{"Action":"run","Package":"example.com/tiny/x","Test":"TestBefore"}
{"Action":"pass","Package":"example.com/tiny/x","Test":"TestBefore","Elapsed":0}
{"Action":"run","Package":"example.com/tiny/x","Test":"TestExits"}
{"Action":"output","Package":"example.com/tiny/x","Test":"TestExits","Output":"going\n"}
{"Action":"output","Package":"example.com/tiny/x","Output":"FAIL\texample.com/tiny/x\t0.011s\n"}
{"Action":"fail","Package":"example.com/tiny/x","Elapsed":0.013}
"""
TEST_MAIN = r"""
{"Action":"start","Package":"example.com/tiny/n"}
{"Action":"output","Package":"example.com/tiny/n","Output":"panic: main\n"}
{"Action":"fail","Package":"example.com/tiny/n","Elapsed":0.005}
"""
NO_TESTS = r"""
{"Action":"start","Package":"example.com/tiny/c"}
{"Action":"output","Package":"example.com/tiny/c","Output":"?   \texample.com/tiny/c\t[no test files]\n"}
{"Action":"skip","Package":"example.com/tiny/c","Elapsed":0}
"""


def test_tests_and_subtests_have_an_outcome_each() -> None:
    read = read_go(ENDINGS.encode())
    assert exact_outcomes(read.cases) == {
        f"{A}::TestPass": "passed",
        f"{A}::TestSkip": "skipped",
        f"{A}::TestSub": "failed",
        f"{A}::TestSub/one": "passed",
        f"{A}::TestSub/two_words": "failed",
    }
    [failed] = [case for case in read.cases if case.name == "TestSub/two_words"]
    assert failed.text == "    a_test.go:13: bad\n"
    assert not any(case.at_collection for case in read.cases)


def test_the_output_is_what_go_test_prints_of_failures() -> None:
    output = read_go(ENDINGS.encode()).output
    assert output is not None
    assert "a_test.go:13: bad" in output
    assert "TestPass" not in output, "nothing is said of tests that pass"
    assert output.rstrip().endswith("FAIL\texample.com/tiny/a\t0.002s")


def test_an_id_that_did_not_run_is_missing() -> None:
    found = exact_results([f"{A}::TestPass", f"{A}::TestGone"], read_go(ENDINGS.encode()).cases)
    assert [result.outcome for result in found] == ["passed", "missing"]


def test_a_package_whose_dependency_does_not_compile_is_a_collection_failure_next_to_one_that_runs() -> None:
    read = read_go((NOT_BUILT + ENDINGS).encode())
    [broken] = [case for case in read.cases if case.at_collection]
    assert (broken.classname, broken.name) == ("example.com/tiny/e", "")
    assert "undefined: nope" in broken.text
    assert exact_outcomes(read.cases)[f"{A}::TestPass"] == "passed"


def test_what_vet_refuses_is_a_collection_failure() -> None:
    [broken] = read_go(VET.encode()).cases
    assert broken.at_collection
    assert "v_test.go:8:40" in broken.text


def test_build_failures_of_older_versions_are_found() -> None:
    s, b = read_go(GO_1_23.encode()).cases
    assert s.at_collection
    assert b.at_collection
    assert "no required module" in s.text
    assert "undefined: undefined" in b.text
    assert "no required module" not in b.text


def test_build_failures_without_any_event_are_found() -> None:
    [broken] = read_go(b"FAIL\texample.com/tiny/b [build failed]\nFAIL\n").cases
    assert (broken.classname, broken.at_collection) == ("example.com/tiny/b", True)


def test_an_unreadable_go_mod_is_a_collection_failure() -> None:
    [broken] = read_go(b"go: errors parsing go.mod:\ngo.mod:3: unknown directive: x\n").cases
    assert (broken.classname, broken.at_collection) == ("go.mod", True)


def test_a_test_that_ends_the_program_has_failed() -> None:
    before, exits = read_go(EXITS.encode()).cases
    assert (before.name, before.outcome) == ("TestBefore", "passed")
    assert (exits.name, exits.outcome, exits.text) == ("TestExits", "failed", "going\n")


def test_a_program_that_ends_before_its_tests_is_a_collection_failure() -> None:
    [broken] = read_go(TEST_MAIN.encode()).cases
    assert broken.at_collection
    assert broken.text == "panic: main\n"


def test_a_package_that_fails_although_its_tests_passed_is_no_collection_failure() -> None:
    lines = [line for line in EXITS.splitlines() if "TestExits" not in line]
    passed, failed = read_go("\n".join(lines).encode()).cases
    assert passed.outcome == "passed"
    assert (failed.name, failed.outcome, failed.at_collection) == ("", "error", False)


def test_a_package_without_tests_has_no_case() -> None:
    assert read_go(NO_TESTS.encode()).cases == ()


def test_of_a_repeated_test_the_worst_outcome_counts() -> None:
    def event(action: str) -> str:
        return json.dumps({"Action": action, "Package": "p", "Test": "T"})

    for order in (("fail", "pass"), ("pass", "fail")):
        read = read_go("\n".join(map(event, order)).encode())
        assert exact_outcomes(read.cases) == {"p::T": "failed"}


def test_what_is_malformed_is_left_out() -> None:
    hostile = b'{"Action":\n\xff\xfe{"\n[1]\n{"Action":5,"Package":[],"Test":{}}\n' + b"[" * 100_000 + b"\n"
    deep = b'{"Action":' + b"[" * 100_000 + b"\n"
    surrogate = b'{"Action":"fail","Package":"p","Test":"T\\ud800","Output":"\\udfff"}\n'
    [case] = read_go(hostile + deep + surrogate).cases
    assert (case.name, case.text) == ("T?", "?")


def test_too_much_is_refused() -> None:
    with pytest.raises(ResultError, match="larger than"):
        read_go(b" " * (MAX_BYTES + 1))
    many = "".join(f'{{"Action":"run","Package":"p","Test":"{n}"}}\n' for n in range(MAX_CASES + 1))
    with pytest.raises(ResultError, match="more than"):
        read_go(many.encode())


def test_the_text_of_a_test_is_bounded() -> None:
    line = json.dumps({"Action": "output", "Package": "p", "Test": "T", "Output": "x" * 1000}) + "\n"
    [case] = read_go((line * 1000).encode()).cases
    assert len(case.text) == MAX_TEXT


def test_many_lines_need_little_memory() -> None:
    data = b"\n" * 500_000
    tracemalloc.start()
    read_go(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * len(data)


@given(st.binary() | st.text(alphabet='{}[]":,\\ntuld0 FAIL\t#ActionPackgeTesOuput').map(str.encode))
def test_only_result_errors_are_raised(data: bytes) -> None:
    with contextlib.suppress(ResultError):
        read_go(data + b"\n" + b'{"Action":"' + data + b'","Package":"p"}')
