"""JUnit XML to outcomes: pytest's own spelling of ids, and files that nobody has to read."""

from __future__ import annotations

import pytest

from trialfleet_repository.results.junit import (
    JunitCase,
    JUnitError,
    address,
    collection_failures,
    outcomes,
    parse,
    results,
)


def xml(*cases: str) -> bytes:
    inner = "".join(cases)
    return f'<?xml version="1.0"?><testsuites><testsuite name="pytest">{inner}</testsuite></testsuites>'.encode()


ALL = xml(
    '<testcase classname="tests.test_a" name="test_ok" file="tests/test_a.py" line="1" time="0.1" />',
    '<testcase classname="tests.test_a" name="test_bad[x]"><failure message="assert 0">E</failure></testcase>',
    '<testcase classname="tests.test_a.TestC.TestD" name="test_err"><error message="setup">E</error></testcase>',
    '<testcase classname="tests.test_a" name="test_skip"><skipped type="pytest.skip" message="no" /></testcase>',
)


def test_every_outcome_is_told_apart() -> None:
    ids = [
        "tests/test_a.py::test_ok",
        "tests/test_a.py::test_bad[x]",
        "tests/test_a.py::TestC::TestD::test_err",
        "tests/test_a.py::test_skip",
        "tests/test_a.py::test_gone",
    ]
    found = results(ids, parse(ALL))
    assert [r.outcome for r in found] == ["passed", "failed", "error", "skipped", "missing"]
    assert [r.id for r in found] == ids


def test_ids_are_found_from_the_cases() -> None:
    assert outcomes(parse(ALL), ["tests/test_a.py"]) == {
        "tests/test_a.py::test_ok": "passed",
        "tests/test_a.py::test_bad[x]": "failed",
        "tests/test_a.py::TestC::TestD::test_err": "error",
        "tests/test_a.py::test_skip": "skipped",
    }


def test_ids_from_a_root_folder_below_the_start() -> None:
    cases = parse(xml('<testcase classname="unit.test_a.TestB" name="test_c" />'))
    assert outcomes(cases, ["test/unit/test_a.py"]) == {"test/unit/test_a.py::TestB::test_c": "passed"}
    assert results(["test/unit/test_a.py::TestB::test_c"], cases)[0].outcome == "passed"


def test_a_tail_that_two_files_share_is_nobodys() -> None:
    cases = [JunitCase("a.test_x", "test_c", None, "passed"), JunitCase("b.test_x", "test_c", None, "failed")]
    assert results(["test_x.py::test_c"], cases)[0].outcome == "missing"
    assert results(["b/test_x.py::test_c"], cases)[0].outcome == "failed"


def test_of_setup_call_and_teardown_the_worst_counts() -> None:
    cases = parse(
        xml(
            '<testcase classname="t" name="a" />',
            '<testcase classname="t" name="a"><error message="failed on teardown">E</error></testcase>',
            '<testcase classname="t" name="b"><failure>F</failure><error>E</error></testcase>',
        )
    )
    assert [r.outcome for r in results(["t.py::a", "t.py::b"], cases)] == ["error", "error"]


def test_a_module_that_cannot_be_collected_is_no_test() -> None:
    cases = parse(
        xml('<testcase classname="" name="tests.test_a"><error message="collection failure">E</error></testcase>')
    )
    assert [c.name for c in collection_failures(cases)] == ["tests.test_a"]
    assert outcomes(cases, ["tests/test_a.py"]) == {}


@pytest.mark.parametrize(
    ("test_id", "expected"),
    [
        ("a/test_b.py::test_c", ("a.test_b", "test_c")),
        ("a/test_b.py::C::test_c[d/e.py::f]", ("a.test_b.C", "test_c[d/e.py::f]")),
        ("test_b.py::test_c[a[b]c]", ("test_b", "test_c[a[b]c]")),
        ("test_b.py::test_c[\x00é]", ("test_b", "test_c[#x00é]")),
    ],
)
def test_ids_are_spelt_as_pytest_spells_them(test_id: str, expected: tuple[str, str]) -> None:
    assert address(test_id) == expected


BOMB = b"""<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>
<testsuites><testsuite><testcase classname="t" name="&b;"/></testsuite></testsuites>"""


@pytest.mark.parametrize(
    "data", [b"", b"<html/>", b"<testsuite>", b"\x00\x01", BOMB, b"<testsuite><testcase></x>"]
)
def test_what_is_not_junit_is_refused(data: bytes) -> None:
    with pytest.raises(JUnitError):
        parse(data)


def test_an_outer_entity_is_never_read() -> None:
    outer = b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><testsuite><testcase name="&e;"/></testsuite>'
    with pytest.raises(JUnitError, match="declares"):
        parse(outer)
