"""The formats of results of JavaScript's test runners."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from trialfleet_repository.languages.ecmascript.bun import read_bun
from trialfleet_repository.languages.ecmascript.must_fail import make_javascript_file
from trialfleet_repository.languages.ecmascript.reports import MOCHA_BEGINS, read_jest, read_mocha, read_node
from trialfleet_repository.languages.ecmascript.vitest import read_vitest
from trialfleet_repository.languages.report_format import (
    ReadFile,
    ReportFormat,
    each_once,
    name_unit_by_file,
    units_of,
)
from trialfleet_repository.languages.run_files import RunFiles
from trialfleet_repository.languages.settings_record import SettingsPlugin
from trialfleet_repository.results.exact import ReadResults
from trialfleet_repository.results.limits import ResultError

SUFFIXES = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")


def _mocha(files: RunFiles) -> ReadResults:
    try:
        report = files.read_report()
    except ResultError:
        return _printed_mocha(files)
    return read_mocha(report, files.inside)


def _printed_mocha(files: RunFiles) -> ReadResults:
    """Before its version 9.2 it knows no file, and prints the report after what the tests print."""
    printed = files.read_stream("stdout")
    start = max(printed.rfind(MOCHA_BEGINS), 0)
    found = read_mocha(printed[start:], files.inside)
    return replace(found, output=printed[:start].decode(errors="replace") + found.failures)


def _number_of_failed(failed: int) -> Collection[int]:
    return (min(failed, 255),)


def _give_paths(tests: Sequence[str], _: ReadFile) -> tuple[str, ...]:
    """With a dot: to Bun, a word without it is a part of a path."""
    return each_once(f"./{unit}" for unit in units_of(tests))


def _require_settings(variables: Mapping[str, str], folder: str) -> Mapping[str, str]:
    options = f'{variables.get("NODE_OPTIONS", "")} --require="{folder}/{_SETTINGS[0]}"'.strip()
    return {"NODE_OPTIONS": options}


_SETTINGS = ("node_settings.cjs", "mocha_collected.cjs", "mocha_report.cjs", "vitest_settings.mjs")
_PLUGIN = SettingsPlugin({name: Path(__file__).with_name(name) for name in _SETTINGS}, _require_settings)
FORMATS = (
    ReportFormat(
        "vitest",
        lambda files: files.from_root(read_vitest(files.read_report())),
        SUFFIXES,
        "Vitest",
        must_fail=make_javascript_file,
        plugin=_PLUGIN,
        unit_of=name_unit_by_file,
    ),
    ReportFormat(
        "jest",
        lambda files: read_jest(files.read_report(), files.inside),
        SUFFIXES,
        "Jest",
        must_fail=make_javascript_file,
        plugin=_PLUGIN,
        unit_of=name_unit_by_file,
    ),
    ReportFormat(
        "mocha",
        _mocha,
        SUFFIXES,
        "Mocha",
        exit_codes=_number_of_failed,
        must_fail=make_javascript_file,
        plugin=_PLUGIN,
        unit_of=name_unit_by_file,
    ),
    ReportFormat(
        "node",
        lambda files: read_node(files.read_report(), files.inside),
        SUFFIXES,
        "node:test",
        must_fail=make_javascript_file,
        unit_of=name_unit_by_file,
    ),
    ReportFormat(
        "bun",
        lambda files: files.from_root(read_bun(files.read_report())),
        SUFFIXES,
        "bun test",
        _give_paths,
        unit_of=name_unit_by_file,
    ),
)
