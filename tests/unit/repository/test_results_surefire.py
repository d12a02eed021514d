"""Reports of Surefire 3.2.5 with JUnit 4 and 5, and the output of Maven 3.8; and any JUnit XML."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_repository.languages.jvm.surefire import read_gradle, read_surefire
from trialfleet_repository.results.exact import exact_outcomes
from trialfleet_repository.results.generic import read_junit
from trialfleet_repository.results.junit import MAX_BYTES, JUnitError
from trialfleet_repository.results.limits import ResultError

SUM = b"""<?xml version="1.0" encoding="UTF-8"?>
<testsuite xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" name="org.x.SumTest$Inner" tests="8">
  <properties><property name="java.version" value="17"/></properties>
  <testcase name="adds" classname="org.x.SumTest" time="0.008"/>
  <testcase name="many(int)[1]" classname="org.x.SumTest" time="0.025"/>
  <testcase name="many(int)[2]" classname="org.x.SumTest" time="0.015">
    <failure message="expected: &lt;1&gt;" type="E"><![CDATA[expected: <1> but was: <2>]]></failure>
  </testcase>
  <testcase name="throwsIt" classname="org.x.SumTest" time="0.001">
    <error message="no" type="java.lang.IllegalStateException"><![CDATA[IllegalStateException: no]]></error>
    <system-out><![CDATA[printed]]></system-out>
  </testcase>
  <testcase name="skipped" classname="org.x.SumTest" time="0.0"><skipped message="later"/></testcase>
  <testcase name="within" classname="org.x.SumTest$Inner" time="0.0"/>
  <testcase name="flaky" classname="org.x.SumTest"><flakyFailure message="once">E</flakyFailure></testcase>
  <testcase name="twice" classname="org.x.SumTest"><failure>E</failure><rerunFailure>E</rerunFailure></testcase>
</testsuite>"""
SET_UP = b"""<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="org.x.BrokenInitTest" tests="1" errors="1">
  <testcase name="" classname="org.x.BrokenInitTest" time="0.051">
    <error message="set-up" type="java.lang.IllegalStateException"><![CDATA[at BrokenInitTest.before]]></error>
  </testcase>
</testsuite>"""
NOT_COMPILED = """[INFO] Compiling 5 source files with javac [debug release 17] to target/test-classes
[INFO] -------------------------------------------------------------
[ERROR] COMPILATION ERROR :
[INFO] -------------------------------------------------------------
[ERROR] /w/src/test/java/org/x/BadTest.java:[1,33] cannot find symbol
  symbol:   class Test
  location: class org.x.BadTest
[ERROR] /w/src/test/java/org/x/WorseTest.java:[1,57] incompatible types
[INFO] 2 errors
[INFO] BUILD FAILURE
[ERROR] Failed to execute goal org.apache.maven.plugins:maven-compiler-plugin:3.11.0:testCompile\
 on project tiny: Compilation failure: Compilation failure:
[ERROR] /w/src/test/java/org/x/BadTest.java:[1,33] cannot find symbol
"""
UNREADABLE = """[ERROR] [ERROR] Some problems were encountered while processing the POMs:
[FATAL] Non-readable POM /w/pom.xml: no more data available
[ERROR] The build could not read 1 project -> [Help 1]
[ERROR]     Non-readable POM /w/pom.xml: no more data available
"""


def test_a_test_that_throws_has_failed() -> None:
    results = read_surefire([SUM], "")
    assert exact_outcomes(results.cases) == {
        "org.x.SumTest::adds": "passed",
        "org.x.SumTest::many(int)[1]": "passed",
        "org.x.SumTest::many(int)[2]": "failed",
        "org.x.SumTest::throwsIt": "failed",
        "org.x.SumTest::skipped": "skipped",
        "org.x.SumTest$Inner::within": "passed",
        "org.x.SumTest::flaky": "passed",
        "org.x.SumTest::twice": "failed",
    }
    assert "IllegalStateException: no" in {case.text for case in results.cases}


@pytest.mark.parametrize("name", [b"", b"org.x.BrokenInitTest", b"BrokenInitTest"])
def test_a_class_that_cannot_be_set_up_is_an_error_of_no_test(name: bytes) -> None:
    [case] = read_surefire([SET_UP.replace(b'name=""', b'name="' + name + b'"')], "").cases
    assert (case.classname, case.name, case.outcome) == ("org.x.BrokenInitTest", "", "error")
    assert not case.at_collection


def test_each_source_file_that_does_not_compile_is_a_collection_failure() -> None:
    bad, worse = read_surefire([], NOT_COMPILED).cases
    assert (bad.classname, bad.at_collection) == ("org.x.BadTest", True)
    assert (worse.classname, worse.at_collection) == ("org.x.WorseTest", True)
    assert "symbol:   class Test" in bad.text
    assert bad.text.count("cannot find symbol") == 1


def test_kotlin_and_colours_are_understood() -> None:
    output = (
        "[\x1b[1;31mERROR\x1b[m] COMPILATION ERROR :\n[ERROR] file:///w/src/test/kotlin/org/x/KTest.kt:[5,3] bad\n"
    )
    [case] = read_surefire([], output).cases
    assert (case.classname, case.at_collection) == ("org.x.KTest", True)


def test_a_project_file_that_cannot_be_read_is_a_collection_failure() -> None:
    [case] = read_surefire([], UNREADABLE).cases
    assert (case.classname, case.at_collection) == ("pom.xml", True)
    assert "Non-readable POM" in case.text


def test_what_a_test_prints_about_compilers_is_no_collection_failure() -> None:
    assert not any(
        case.at_collection for case in read_surefire([SUM], "Compilation failure\nCOMPILATION ERROR\n").cases
    )


def test_a_report_that_is_no_xml_is_left_out() -> None:
    assert len(read_surefire([b"<testsuite>", b"\xff", SET_UP], "").cases) == 1


def test_reports_are_bounded_together() -> None:
    half = b"<testsuite>" + b" " * (MAX_BYTES // 2) + b"</testsuite>"
    with pytest.raises(ResultError, match="together"):
        read_surefire(iter([half, half]), "")


def test_any_junit_xml_is_read() -> None:
    report = b"""<testsuites><testsuite>
    <testcase classname="A" name="t" file="a/x.rb"/>
    <testcase classname="A" name="u"><failure>no</failure></testcase>
    <testcase classname="" name="tests.test_a" ><error message="collection failure">E</error></testcase>
    </testsuite></testsuites>"""
    results = read_junit(report)
    assert exact_outcomes(results.cases) == {"a/x.rb::t": "passed", "A::u": "failed"}
    assert [case.at_collection for case in results.cases] == [False, False, True]


@given(st.binary(), st.text() | st.text(alphabet="[EROR] COMPILATION/a.java:\n"))
def test_only_result_errors_are_raised(data: bytes, output: str) -> None:
    with contextlib.suppress(ResultError):
        read_surefire([data, b"<testsuite><testcase name='" + data + b"'/></testsuite>"], output)
        read_surefire([], "[ERROR] COMPILATION ERROR :\n[ERROR] " + output)
    with contextlib.suppress(ResultError, JUnitError):
        read_junit(data)


GRADLE_NOT_COMPILED = """> Task :core:compileTestJava FAILED
/w/core/src/test/java/org/x/SumTest.java:6: error: cannot find symbol
    @Test public void adds() { check(Sum.of(1, 2) == 3); }
                                        ^
  symbol:   method of(int,int)
2 errors

FAILURE: Build failed with an exception.
* What went wrong:
Execution failed for task ':core:compileTestJava'.
> Compilation failed; see the compiler error output for details.
"""


def test_gradle_names_what_does_not_compile() -> None:
    (case,) = read_gradle([], GRADLE_NOT_COMPILED).cases
    assert case.at_collection
    assert case.classname == "org.x.SumTest"
    assert "cannot find symbol" in case.text
    assert "What went wrong" not in case.text
    kotlin = "e: file:///w/src/test/kotlin/org/x/ATest.kt:3:5 Unresolved reference\n"
    failed = "Execution failed for task ':compileTestKotlin'.\n"
    assert [one.classname for one in read_gradle([], kotlin + failed).cases] == ["org.x.ATest"]
    assert [one.classname for one in read_gradle([], failed).cases] == ["build.gradle"], "no file is named"
    assert read_gradle([], "/w/A.java:1: error: of a program's own\n").cases == ()
    assert exact_outcomes(read_gradle([SUM], "").cases) == exact_outcomes(read_surefire([SUM], "").cases)


@given(st.text())
def test_gradles_output_may_be_anything(text: str) -> None:
    with contextlib.suppress(ResultError):
        read_gradle([text.encode("utf-8", "replace")], f"{text}\nExecution failed for task ':compileJava'\n")
