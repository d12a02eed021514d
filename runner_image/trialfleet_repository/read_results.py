"""Reads what a run of tests left, by its format. Everything may have been written by a hostile program."""

from __future__ import annotations

from dataclasses import replace

from trialfleet_ledger.records.task_order import ResultFormat
from trialfleet_repository.languages import format_named
from trialfleet_repository.languages.run_files import RunFiles
from trialfleet_repository.results import junit
from trialfleet_repository.results.exact import ReadResults
from trialfleet_repository.results.limits import ResultError


def read_results(results: ResultFormat, files: RunFiles) -> ReadResults:
    """Raises `ResultError` when there are none. Where the runner prints nothing but its report, the output is what
    that says of failures."""
    try:
        found = format_named(results).read(files)
    except junit.JUnitError as error:
        raise ResultError(f"the JUnit XML cannot be used: {error}") from None
    if found.output is None and found.cases and not files.output.strip():
        return replace(found, output=found.failures)
    return found
