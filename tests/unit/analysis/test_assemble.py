from __future__ import annotations

from pathlib import Path

from tests.unit.analysis.ledger_fixture import lifelike, lifelike_plan, write

from trialfleet_analysis.evidence import read_evidence
from trialfleet_analysis.ledger import read_ledger
from trialfleet_analysis.report.assemble import assemble
from trialfleet_analysis.report.document import to_json


def test_try(tmp_path: Path) -> None:
    store = write(tmp_path / "store", lifelike_plan(), lifelike())
    ledger = read_ledger(store, "preamble-vs-pull")
    report = assemble(ledger, read_evidence(store, ledger, verify=True), verified=True, versions={})
    print(to_json(report, trials=False)[:6000])
    print(report.answer, report.cautions)
