"""Reports of Jest 30, Mocha 12, Vitest 2, Bun 1.4 and node:test (Node 18.15, 20 and 22), shortened."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_repository.languages.ecmascript import reports as javascript
from trialfleet_repository.languages.ecmascript.bun import read_bun
from trialfleet_repository.languages.ecmascript.reports import read_jest, read_mocha, read_node
from trialfleet_repository.languages.ecmascript.vitest import read_vitest
from trialfleet_repository.languages.run_files import RunFiles
from trialfleet_repository.read_results import read_results
from trialfleet_repository.results.exact import ReadResults, exact_outcomes
from trialfleet_repository.results.junit import MAX_BYTES, MAX_CASES, JunitCase, JUnitError
from trialfleet_repository.results.limits import ResultError

REPORTER = Path(javascript.__file__).with_name("node_reporter.mjs")
JEST = r"""{"numFailedTests":3,"success":false,"testResults":[
{"assertionResults":[
 {"ancestorTitles":["sum"],"failureMessages":[],"fullName":"sum adds","status":"passed","title":"adds"},
 {"ancestorTitles":["sum"],"failureMessages":["Error: expected 4"],"status":"failed","title":"fails"},
 {"ancestorTitles":["sum"],"failureMessages":[],"status":"pending","title":"later"},
 {"ancestorTitles":["sum"],"failureMessages":[],"status":"todo","title":"to do"},
 {"ancestorTitles":["sum"],"failureMessages":[],"status":"passed","title":"many 1"},
 {"ancestorTitles":["sum","inner"],"failureMessages":["Error: oh"],"status":"failed","title":"adds"},
 {"ancestorTitles":[],"failureMessages":[],"status":"passed","title":"top"},
 {"ancestorTitles":[],"failureMessages":["Error: again"],"status":"failed","title":"top"}],
 "message":"  ● sum › fails","name":"/w/jest/a.test.js","status":"failed"},
{"assertionResults":[{"ancestorTitles":[],"failureMessages":[],"status":"passed","title":"t"}],
 "message":"\n\n  ● Test suite failed to run\n\n    after all","name":"/w/jest/d.test.js","status":"failed"},
{"assertionResults":[],"coverage":{},
 "message":"  ● Test suite failed to run\n\n    Cannot find module './nowhere' from 'b.test.js'",
 "name":"/w/jest/b.test.js","status":"failed"}],"wasInterrupted":false}"""
MOCHA = r"""{"stats":{"tests":5},"tests":[
 {"title":"top","fullTitle":"top","file":"/w/mocha/a.spec.js","err":{}},
 {"title":"twice","fullTitle":"twice","file":"/w/mocha/a.spec.js","err":{"message":"done() twice"}},
 {"title":"fails","fullTitle":"sum fails","file":"/w/mocha/a.spec.js","err":{"stack":"AssertionError: 1 !== 2"}},
 {"title":"later","fullTitle":"sum later","file":"/w/mocha/a.spec.js","err":{}},
 {"title":"adds","fullTitle":"sum inner adds","file":"/w/mocha/a.spec.js","err":{}}],
"pending":[{"title":"later","fullTitle":"sum later","file":"/w/mocha/a.spec.js","err":{}}],
"failures":[
 {"title":"twice","fullTitle":"twice","file":"/w/mocha/a.spec.js","err":{"message":"done() twice"}},
 {"title":"fails","fullTitle":"sum fails","file":"/w/mocha/a.spec.js","err":{"stack":"AssertionError: 1 !== 2"}},
 {"title":"\"before all\" hook for \"never\"","fullTitle":"sum hook \"before all\" hook for \"never\"",
  "file":"/w/mocha/a.spec.js","err":{"message":"hook"}}],
"passes":[]}"""
VITEST = """<?xml version="1.0" encoding="UTF-8" ?>
<testsuites name="vitest tests" tests="15" failures="8" errors="0" time="1.659">
    <testsuite name="vit/a.test.js" tests="6" failures="4" errors="0" skipped="3" time="0.008">
        <testcase classname="vit/a.test.js" name="sum &gt; adds" time="0.001"></testcase>
        <testcase classname="vit/a.test.js" name="sum &gt; fails &lt;&amp;&gt;" time="0.005">
            <failure message="expected 3 to be 4 // Object.is equality" type="AssertionError">
AssertionError: expected 3 to be 4
            </failure>
        </testcase>
        <testcase classname="vit/a.test.js" name="sum &gt; later" time="0"><skipped/></testcase>
        <testcase classname="vit/a.test.js" name="top" time="0.00005"></testcase>
        <testcase classname="vit/a.test.js" name="h &gt; never" time="0"><skipped/></testcase>
        <testcase classname="vit/a.test.js" name="h" time="0.0002">
            <failure message="hook" type="Error">Error: hook</failure>
        </testcase>
    </testsuite>
    <testsuite name="vit/b.test.js" tests="1" failures="1" errors="0" skipped="0" time="0">
        <testcase classname="vit/b.test.js" name="vit/b.test.js" time="0">
            <failure message="Failed to load url ./nowhere" type="Error">Error: Failed to load</failure>
        </testcase>
    </testsuite>
    <testsuite name="vit/d.test.js" tests="2" failures="1" errors="0" skipped="0" time="0.003">
        <testcase classname="vit/d.test.js" name="t" time="0.0004"></testcase>
        <testcase classname="vit/d.test.js" name="vit/d.test.js" time="0.003">
            <failure message="after all" type="Error">Error: after all</failure>
        </testcase>
    </testsuite>
</testsuites>"""
NODE_TESTS = """
import { test, describe, it, before } from 'node:test';
describe('sum', () => {
  it('adds', () => {});
  it('fails', () => { throw new Error('oh'); });
  it.skip('later', () => {});
  it('to do', { todo: true }, () => { throw new Error('x'); });
  describe('inner', () => { it('adds', () => {}); });
  describe('hook', () => { before(() => { throw new Error('set-up'); }); it('never', () => {}); });
});
test('parent', async (t) => { await t.test('child', () => {}); });
"""


def outcomes(results: ReadResults) -> dict[str, str]:
    return dict(exact_outcomes(results.cases))


def without_name(results: ReadResults) -> dict[str, tuple[bool, JunitCase]]:
    return {case.classname: (case.at_collection, case) for case in results.cases if not case.name}


def test_jest_names_tests_by_their_titles_and_the_worst_of_two_counts() -> None:
    assert outcomes(read_jest(JEST.encode(), "/w/")) == {
        "jest/a.test.js::sum > adds": "passed",
        "jest/a.test.js::sum > fails": "failed",
        "jest/a.test.js::sum > later": "skipped",
        "jest/a.test.js::sum > to do": "skipped",
        "jest/a.test.js::sum > many 1": "passed",
        "jest/a.test.js::sum > inner > adds": "failed",
        "jest/a.test.js::top": "failed",
        "jest/d.test.js::t": "passed",
    }


def test_a_file_that_jest_cannot_load_is_a_collection_failure_and_a_failed_hook_is_not() -> None:
    found = without_name(read_jest(JEST.encode(), "/w"))
    assert {unit: at_collection for unit, (at_collection, _) in found.items()} == {
        "jest/b.test.js": True,
        "jest/d.test.js": False,
    }
    assert "Cannot find module" in found["jest/b.test.js"][1].text


def test_mocha_sets_the_own_title_of_a_test_apart() -> None:
    results = read_mocha(MOCHA.encode(), "/w")
    assert outcomes(results) == {
        "mocha/a.spec.js::top": "passed",
        "mocha/a.spec.js::twice": "failed",
        "mocha/a.spec.js::sum > fails": "failed",
        "mocha/a.spec.js::sum > later": "skipped",
        "mocha/a.spec.js::sum inner > adds": "passed",
        'mocha/a.spec.js::sum hook > "before all" hook for "never"': "error",
    }
    assert "AssertionError: 1 !== 2" in {case.text for case in results.cases}


def test_vitest_names_files_that_cannot_be_loaded_like_tests() -> None:
    results = read_vitest(VITEST.encode())
    assert outcomes(results) == {
        "vit/a.test.js::sum > adds": "passed",
        "vit/a.test.js::sum > fails <&>": "failed",
        "vit/a.test.js::sum > later": "skipped",
        "vit/a.test.js::top": "passed",
        "vit/a.test.js::h > never": "skipped",
        "vit/a.test.js::h": "error",
        "vit/d.test.js::t": "passed",
    }
    assert {unit: at_collection for unit, (at_collection, _) in without_name(results).items()} == {
        "vit/b.test.js": True,
        "vit/d.test.js": False,
    }


BUN = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="bun test" tests="5" assertions="2" failures="2" skipped="1" time="0.02">
  <testsuite name="test/a.test.ts" file="test/a.test.ts" tests="4" failures="1" skipped="1" time="0.01">
    <testsuite name="total" file="test/a.test.ts" line="2" tests="3" failures="1" skipped="1" time="0">
      <testcase name="adds" classname="total" time="0.0" file="test/a.test.ts" line="3" assertions="1">
        <failure type="AssertionError" message="Expected: 3&#10;Received: 1">AssertionError: Expected: 3</failure>
      </testcase>
      <testsuite name="inner" file="test/a.test.ts" line="5" tests="2" failures="0" skipped="1" time="0">
        <testcase name="deep &amp; &lt;b&gt;" classname="inner &gt; total" file="test/a.test.ts" line="5" />
        <testcase name="no" classname="inner &gt; total" file="test/a.test.ts" line="5"><skipped /></testcase>
      </testsuite>
    </testsuite>
    <testcase name="alone" classname="" time="0.000003" file="test/a.test.ts" line="7" assertions="0" />
  </testsuite>
  <testsuite name="test/c.test.ts" file="test/c.test.ts" tests="1" failures="1" skipped="0" time="0.002">
    <testsuite name="hooked" file="test/c.test.ts" line="2" tests="1" failures="1" skipped="0" time="0">
      <testcase name="(unnamed)" classname="hooked" time="0.0005" file="test/c.test.ts" assertions="0">
        <failure type="Error" message="hook">Error: hook</failure>
      </testcase>
    </testsuite>
  </testsuite>
</testsuites>"""


def test_bun() -> None:
    results = read_bun(BUN.encode())
    assert outcomes(results) == {
        "test/a.test.ts::total > adds": "failed",
        "test/a.test.ts::inner > total > deep & <b>": "passed",
        "test/a.test.ts::inner > total > no": "skipped",
        "test/a.test.ts::alone": "passed",
        "test/c.test.ts::hooked > (unnamed)": "error",
    }
    assert results.cases[0].text == "AssertionError: Expected: 3"
    with pytest.raises(JUnitError):
        read_bun(b"nothing")


def test_an_unexpected_error_in_a_test_of_vitest_is_a_failed_test() -> None:
    report = '<testsuites><testcase classname="a" name="t"><error message="x"/></testcase></testsuites>'
    assert outcomes(read_vitest(report.encode())) == {"a::t": "failed"}


NODE = r"""
{"file":"/w/a.mjs","name":"sum > adds","outcome":"passed","suite":false,"hook":false,"whole":false,"text":""}
{"file":"/w/a.mjs","name":"sum > fails","outcome":"failed","suite":false,"hook":false,"whole":false,"text":"x"}
{"file":"/w/a.mjs","name":"sum > hook","outcome":"failed","suite":true,"hook":true,"whole":false,"text":"set-up"}
{"file":"/w/a.mjs","name":"sum","outcome":"failed","suite":true,"hook":false,"whole":false,"text":""}
{"file":"/w/b.mjs","name":"b.mjs","outcome":"failed","suite":false,"hook":false,"whole":true,"text":"not found"}
{"file":"/w/e.mjs","name":"e.mjs","outcome":"passed","suite":false,"hook":false,"whole":true,"text":""}
{"file":"/w/f.mjs","name":"t","outcome":"passed","suite":false,"hook":false,"whole":false,"text":""}
{"file":"/w/f.mjs","name":"f.mjs","outcome":"failed","suite":false,"hook":false,"whole":true,"text":"test failed"}
"""


def test_the_lines_of_the_reporter_are_read() -> None:
    results = read_node(NODE.encode(), "/w")
    assert outcomes(results) == {
        "a.mjs::sum > adds": "passed",
        "a.mjs::sum > fails": "failed",
        "a.mjs::sum > hook": "error",
        "f.mjs::t": "passed",
    }
    assert [(case.classname, case.at_collection) for case in results.cases if not case.name] == [
        ("b.mjs", True),
        ("f.mjs", False),
    ]


@pytest.mark.needs("node")
def test_node_reports_every_test_through_the_reporter(tmp_path: Path) -> None:
    (tmp_path / "a.test.mjs").write_text(NODE_TESTS)
    (tmp_path / "b.test.mjs").write_text("import './nowhere.mjs';\n")
    (tmp_path / "c.test.mjs").write_text("export const x = 1;\n")
    late = (
        "import { test } from 'node:test'; test('t', () => {}); setTimeout(() => { throw new Error('late') }, 50);"
    )
    (tmp_path / "d.test.mjs").write_text(late)
    node = shutil.which("node") or "node"
    words = [node, "--test", f"--test-reporter={REPORTER}", "--test-reporter-destination=report"]
    files = sorted(path.name for path in tmp_path.iterdir())
    ended = subprocess.run([*words, *files], cwd=tmp_path, check=False, capture_output=True, timeout=120)
    assert ended.returncode == 1, ended.stderr
    results = read_node((tmp_path / "report").read_bytes(), str(tmp_path))
    assert outcomes(results) == {
        "a.test.mjs::sum > adds": "passed",
        "a.test.mjs::sum > fails": "failed",
        "a.test.mjs::sum > later": "skipped",
        "a.test.mjs::sum > to do": "skipped",
        "a.test.mjs::sum > inner > adds": "passed",
        "a.test.mjs::sum > hook > never": "failed",
        "a.test.mjs::sum > hook": "error",
        "a.test.mjs::parent > child": "passed",
        "a.test.mjs::parent": "passed",
        "d.test.mjs::t": "passed",
    }
    assert {unit: at_collection for unit, (at_collection, _) in without_name(results).items()} == {
        "b.test.mjs": True,
        "d.test.mjs": False,
    }
    assert "nowhere.mjs" in without_name(results)["b.test.mjs"][1].text


def test_node_lines_that_are_malformed_are_left_out() -> None:
    good = {"file": "/w/a.mjs", "name": "t", "outcome": "passed", "suite": False, "whole": False, "text": ""}
    lines = [
        json.dumps(good),
        "{",
        "[]",
        '{"outcome":"odd","name":"x"}',
        "\udcff{",
        json.dumps({**good, "outcome": []}),
    ]
    assert outcomes(read_node("\n".join(lines).encode("utf-8", "surrogateescape"), "/w")) == {"a.mjs::t": "passed"}


@pytest.mark.parametrize("read", [read_jest, read_mocha])
@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (b"", "not a JSON object"),
        (b"[1]", "not a JSON object"),
        (b'{"testResults":{},"tests":1}', "not a JSON object"),
        (b"[" * 100_000, "not a JSON object"),
        (b'{"tests":[' + b"[]," * 3_000_000, "more than"),
        (b" " * (MAX_BYTES + 1), "larger than"),
    ],
    ids=["empty", "list", "no list", "deep", "many", "large"],
)
def test_what_is_no_report_is_refused(
    read: Callable[[bytes, str], ReadResults], report: bytes, reason: str
) -> None:
    with pytest.raises(ResultError, match=reason):
        read(report, "/w")


def test_too_many_tests_are_refused() -> None:
    line = b'{"file":"/w/a.mjs","name":"t","outcome":"passed"}\n'
    with pytest.raises(ResultError, match="more than"):
        read_node(line * (MAX_CASES + 1), "/w")


def test_texts_are_bounded_together() -> None:
    line = json.dumps({"file": "/w/a.mjs", "name": "t", "outcome": "failed", "text": "é" * 30_000}) + "\n"
    cases = read_node(line.encode() * 300, "/w").cases
    assert sum(len(case.text) for case in cases) <= MAX_BYTES


JSON = st.recursive(
    st.none() | st.integers() | st.text() | st.sampled_from(["passed", "failed", "/w/a"]),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(
                ["tests", "testResults", "assertionResults", "status", "err", "file", "name", "title"]
            ),
            inner,
        )
    ),
)


@given(st.binary() | JSON.map(lambda value: json.dumps({"tests": value, "testResults": value}).encode()))
def test_only_result_errors_are_raised(data: bytes) -> None:
    for read in (read_jest, read_mocha, read_node):
        with contextlib.suppress(ResultError):
            read(data, "/w")
    with contextlib.suppress(JUnitError, ResultError):
        read_vitest(data)


def test_an_old_mocha_prints_its_report(tmp_path: Path) -> None:
    """It does so behind what tests print, which may look like a report."""
    (tmp_path / "record").mkdir()
    printed = f'words of a test\n{{\n  "stats": {{}}}}\n{{\n  "stats": {{}},\n{MOCHA.strip()[1:]}'
    (tmp_path / "record/stdout").write_text(printed)
    files = RunFiles(tmp_path / "none.xml", tmp_path / "record", tmp_path, "/w", printed)
    found, expected = read_results("mocha", files), read_mocha(MOCHA.encode(), "/w")
    assert found.cases == expected.cases
    assert found.output is not None
    assert found.output.startswith('words of a test\n{\n  "stats": {}}\nFAILED mocha/a.spec.js ')
    assert "AssertionError: 1 !== 2" in found.output
    (tmp_path / "none.xml").write_text(MOCHA)
    assert read_results("mocha", files).output is None
    (tmp_path / "none.xml").unlink()
    (tmp_path / "record/stdout").write_text("nothing of the kind\n")
    with pytest.raises(ResultError):
        read_results("mocha", files)
