"""Reads what a run of tests left, by its format. Everything may have been written by a hostile program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from posixpath import join, normpath

from trialfleet_ledger.records.task_order import ResultFormat
from trialfleet_ledger.untrusted import regular_file
from trialfleet_repository.languages.ecmascript.bun import read_bun
from trialfleet_repository.languages.ecmascript.reports import MOCHA_BEGINS, read_jest, read_mocha, read_node
from trialfleet_repository.languages.ecmascript.vitest import read_vitest
from trialfleet_repository.languages.go.results import read_go
from trialfleet_repository.languages.jvm.surefire import read_gradle, read_surefire
from trialfleet_repository.languages.rust.libtest import read_libtest
from trialfleet_repository.results import junit
from trialfleet_repository.results.exact import ReadResults
from trialfleet_repository.results.generic import read_junit
from trialfleet_repository.results.limits import ResultError

_SUREFIRE, _GRADLE = "target/surefire-reports/TEST-*.xml", "build/test-results/*/TEST-*.xml"
MAX_REPORTS = 5000


@dataclass(frozen=True)
class RunFiles:
    """`report`: the file that `{junit}` named. `record`: folder with the files `stdout` and `stderr`. `inside`:
    the workspace as the tests saw it. `output`: the end of what they printed. `directory`: folder of the workspace
    that they were called in."""

    report: Path
    record: Path
    workspace: Path
    inside: str
    output: str
    directory: str = "."


def read_results(results: ResultFormat, files: RunFiles) -> ReadResults:
    """Raises `ResultError` when there are none. Where the runner prints nothing but its report, the output is what
    that says of failures."""
    found = _read(results, files)
    if found.output is None and found.cases and not files.output.strip():
        return replace(found, output=_failures(found))
    return found


def _failures(found: ReadResults) -> str:
    failed = [case for case in found.cases if case.outcome in ("failed", "error")]
    words = [f"FAILED {case.classname} {case.name}\n{case.message}\n{case.text}".strip() for case in failed]
    return "\n\n".join(words) + "\n"


def _read(results: ResultFormat, files: RunFiles) -> ReadResults:
    try:
        match results:
            case "pytest":
                return ReadResults(junit.parse(_content(files.report)))
            case "junit":
                return read_junit(_content(files.report))
            case "go":
                return read_go(_content(files.record / "stdout") + _content(files.record / "stderr"))
            case "libtest":
                return read_libtest(_content(files.record / "stdout"), files.inside)
            case "jest":
                return read_jest(_content(files.report), files.inside)
            case "mocha":
                return _mocha(files)
            case "vitest" | "bun":
                read = {"vitest": read_vitest, "bun": read_bun}[results]
                return _from_root(read(_content(files.report)), files.directory)
            case "node":
                return read_node(_content(files.report), files.inside)
            case "surefire":
                return read_surefire(_reports(files.workspace, _SUREFIRE), files.output)
            case "gradle":
                return read_gradle(_reports(files.workspace, _GRADLE), files.output)
    except junit.JUnitError as error:
        raise ResultError(f"the JUnit XML cannot be used: {error}") from None


def _mocha(files: RunFiles) -> ReadResults:
    try:
        report = _content(files.report)
    except ResultError:
        return _printed_mocha(files)
    return read_mocha(report, files.inside)


def _printed_mocha(files: RunFiles) -> ReadResults:
    """Before its version 9.2 it knows no file, and prints the report after what the tests print."""
    printed = _content(files.record / "stdout")
    start = max(printed.rfind(MOCHA_BEGINS), 0)
    found = read_mocha(printed[start:], files.inside)
    return replace(found, output=printed[:start].decode(errors="replace") + _failures(found))


def _from_root(found: ReadResults, directory: str) -> ReadResults:
    """With units that start at the repository's root, where the runner's start at the folder it was called in."""
    cases = (replace(case, classname=normpath(join(directory, case.classname))) for case in found.cases)
    return found if directory == "." else replace(found, cases=tuple(cases))


def _content(path: Path) -> bytes:
    """The tests could have put anything in the report's place: only a regular file is read."""
    file = regular_file(path)
    if file is None:
        raise ResultError("no JUnit XML" if path.suffix == ".xml" else "no output")
    with file:
        return file.read(junit.MAX_BYTES + 1)


def _reports(workspace: Path, pattern: str) -> Iterator[bytes]:
    """Of every module. No link is followed, and the sum of sizes is limited."""
    left = junit.MAX_BYTES
    for number, path in enumerate(sorted(workspace.rglob(pattern))):
        if number >= MAX_REPORTS or path.resolve().is_relative_to(workspace.resolve()) is False:
            break
        data = _content(path)
        left -= len(data)
        if left < 0:
            break
        yield data
