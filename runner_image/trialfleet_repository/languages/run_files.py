"""The files that a run of tests left, as readers of results get them. A hostile program may have written them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from posixpath import join, normpath

from trialfleet_ledger.untrusted import regular_file
from trialfleet_repository.results import junit
from trialfleet_repository.results.exact import ReadResults
from trialfleet_repository.results.limits import ResultError
from trialfleet_repository.trees import ROOT

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
    directory: str = ROOT

    def read_report(self) -> bytes:
        """Raises `ResultError` when there is none."""
        return _content(self.report)

    def read_stream(self, name: str) -> bytes:
        """`name`: stdout or stderr. Raises `ResultError` when there is none."""
        return _content(self.record / name)

    def read_reports(self, pattern: str) -> Iterator[bytes]:
        """Reports of every module of the workspace. No link is followed, and the sum of sizes is limited."""
        left = junit.MAX_BYTES
        for number, path in enumerate(sorted(self.workspace.rglob(pattern))):
            if number >= MAX_REPORTS or path.resolve().is_relative_to(self.workspace.resolve()) is False:
                break
            data = _content(path)
            left -= len(data)
            if left < 0:
                break
            yield data

    def from_root(self, found: ReadResults) -> ReadResults:
        """With units that start at the repository's root, where the runner's start at the folder it was called
        in."""
        cases = (replace(each, classname=normpath(join(self.directory, each.classname))) for each in found.cases)
        return found if self.directory == ROOT else replace(found, cases=tuple(cases))


def _content(path: Path) -> bytes:
    """The tests could have put anything in the report's place: only a regular file is read."""
    file = regular_file(path)
    if file is None:
        raise ResultError("no JUnit XML" if path.suffix == ".xml" else "no output")
    with file:
        return file.read(junit.MAX_BYTES + 1)
