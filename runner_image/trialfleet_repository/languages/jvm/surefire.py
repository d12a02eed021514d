"""Reports of Maven Surefire (`target/surefire-reports/TEST-*.xml`) and of Gradle
(`build/test-results/*/TEST-*.xml`), and the compiler's words in their outputs."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator

from trialfleet_repository.languages.jvm.classes import java_class
from trialfleet_repository.results import junit
from trialfleet_repository.results.exact import ReadResults
from trialfleet_repository.results.junit import MAX_BYTES, JunitCase, JUnitError
from trialfleet_repository.results.limits import BoundedText, CaseList, ResultError, check_count

_NOT_BUILT = re.compile(
    r"\[ERROR\] (?:COMPILATION ERROR|The build could not read |Failed to execute goal .*: Compilation failure)"
)
_SOURCE = re.compile(r"\[ERROR\] (?:file://)?(/[^:]+\.(?:java|kt|groovy|scala)):")
_GRADLE_NOT_BUILT = re.compile(r"Execution failed for task '[\w:.-]*:compile\w*'")
_GRADLE_SOURCE = re.compile(r"(?:e: )?(?:file://)?(/[^:]+\.(?:java|kt|groovy|scala)):.*(?:error|e: |\d+:\d+)")
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def read_surefire(files: Iterable[bytes], output: str) -> ReadResults:
    """The results of `mvn test`. The unit is the class, the name as Surefire writes it.

    A test that throws is an <error> in Surefire: it has failed. A test that passes when it is repeated has passed,
    as Maven counts it. A report that is no XML is left out. Each source file that does not compile is a collection
    failure of its class. Raises `ResultError`.
    """
    return _read(files, _not_compiled(output))


def read_gradle(files: Iterable[bytes], output: str) -> ReadResults:
    """The results of Gradle's test tasks, as those of Surefire. Raises `ResultError`."""
    return _read(files, _not_compiled_by_gradle(output))


def _read(files: Iterable[bytes], not_compiled: Iterable[tuple[str, str]]) -> ReadResults:
    found = CaseList()
    for unit, text in not_compiled:
        found.not_loaded(unit, text)
    for case in _cases(files):
        text = case.text or case.message
        if case.name and case.name not in (case.classname, case.classname.rpartition(".")[2]):
            outcome = "failed" if case.outcome == "error" else case.outcome
            found.add(case.classname, case.name, outcome, text)
        elif case.outcome in ("failed", "error"):
            found.outside_tests(case.classname, text)
    return ReadResults(tuple(found.cases))


def _cases(files: Iterable[bytes]) -> Iterator[JunitCase]:
    room = MAX_BYTES
    for data in files:
        room -= len(data)
        if room < 0:
            raise ResultError(f"larger than {MAX_BYTES} bytes together")
        try:
            cases = junit.parse(data)
        except JUnitError:
            continue
        yield from cases


def _not_compiled(output: str) -> Iterator[tuple[str, str]]:
    """(class, the compiler's words) of every source file with an error; ("pom.xml", words) when none is named."""
    texts: dict[str, BoundedText] = {}
    everything = BoundedText()
    text: BoundedText | None = None
    for line in map(_plain, io.StringIO(output)):
        if _NOT_BUILT.match(line):
            if texts:  # Maven repeats them all at its end
                break
            everything.add(line)
        elif everything and line.startswith("[INFO]"):
            text = None
        elif everything:
            everything.add(line)
            source = _SOURCE.match(line)
            if source:
                check_count(len(texts))
                text = texts.setdefault(java_class(source[1]), BoundedText())
            if text is not None:
                text.add(line)
    for unit, words in texts.items():
        yield unit, str(words)
    if everything and not texts:
        yield "pom.xml", str(everything)


def _not_compiled_by_gradle(output: str) -> Iterator[tuple[str, str]]:
    """(class, the compiler's words) of every source file with an error, where a task that compiles failed."""
    if not _GRADLE_NOT_BUILT.search(output):
        return
    texts: dict[str, BoundedText] = {}
    text: BoundedText | None = None
    for line in map(_plain, io.StringIO(output)):
        source = _GRADLE_SOURCE.match(line)
        if source:
            check_count(len(texts))
            text = texts.setdefault(java_class(source[1]), BoundedText())
        elif line.startswith(("> Task", ":", "FAILURE:", "* ")):
            text = None
        if text is not None:
            text.add(line)
    for unit, words in texts.items():
        yield unit, str(words)
    if not texts:
        yield "build.gradle", output[-4000:]


def _plain(line: str) -> str:
    return _ESCAPES.sub("", line)
