"""From the ledger and the evidence to a Report: pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from trialfleet_analysis.evidence import Evidence
from trialfleet_analysis.ledger import Ledger
from trialfleet_analysis.losses import loss_counts, loss_messages, loss_rates
from trialfleet_analysis.process import (
    block_results,
    channels,
    core_seconds,
    inline_texts,
    stop_counts,
    typical,
    verdict_counts,
)
from trialfleet_analysis.rates import (
    cell_results,
    compared_tasks,
    condition_results,
    contrast,
)
from trialfleet_analysis.report.document import Progress, Refused, Report
from trialfleet_analysis.report.provenance import manifest_lines
from trialfleet_analysis.report.words import answer, cautions
from trialfleet_analysis.tables import (
    TrialRow,
    quarantined,
    task_rows,
    trial_rows,
    unplanned,
    usable_blocks,
)


def assemble(
    ledger: Ledger, evidence: Mapping[str, Evidence], *, verified: bool, versions: Mapping[str, str]
) -> Report:
    """Every number of the report. `versions`: of the programs that make it, for the manifest."""
    tasks = task_rows(ledger)
    blocks = usable_blocks(ledger, tasks)
    rows = trial_rows(ledger, evidence, blocks)
    names = ledger.conditions
    composed = {name: ledger.plan.conditions[name] for name in names}
    cells = cell_results([(c.task, c.condition.name) for c in ledger.plan.cells], tasks, rows)
    compared, left_out = compared_tasks(tasks, cells)
    results = condition_results(names, compared, cells, rows)
    used = [row for row in rows if row.in_blocks and row.task in set(compared)]
    lost = (*ledger.lost, *quarantined(ledger, evidence))
    primary = ledger.plan.primary
    bare = Report(
        schema_version=1,
        campaign=ledger.plan.campaign,
        banner=ledger.plan.banner,
        verified=verified,
        progress=_progress(ledger, rows, blocks),
        answer=(),
        cautions=(),
        primary=contrast(primary.treatment, primary.control, primary.estimand, {r.condition: r for r in results})
        if primary
        else None,
        tasks=tasks,
        compared=compared,
        left_out=left_out,
        conditions=results,
        cells=cells,
        verdicts=verdict_counts(names, used),
        stops=stop_counts(names, used),
        losses=loss_counts(names, lost, {row.trial: row.condition for row in rows}),
        loss_rates=loss_rates(names, rows, lost),
        loss_messages=loss_messages(lost),
        metrics=typical(names, used),
        core_seconds=core_seconds(rows),
        blocks=block_results(used),
        channels=channels(composed, used),
        inline=inline_texts(composed, used),
        quarantined=_refused(ledger, evidence),
        unplanned=unplanned(ledger),
        manifest=manifest_lines(ledger, evidence, versions),
        trials=rows,
    )
    return dataclasses.replace(bare, answer=answer(bare), cautions=cautions(bare))


def _progress(ledger: Ledger, rows: Sequence[TrialRow], blocks: int) -> Progress:
    measured = sum(row.verdict is not None for row in rows)
    return Progress(
        interim=ledger.interim,
        planned=ledger.planned,
        terminal=len(rows),
        measured=measured,
        missing=len(rows) - measured,
        blocks=ledger.reps,
        complete_blocks=blocks,
        beyond=sum(not row.in_blocks for row in rows),
        cancelled=ledger.cancel is not None,
        looks=len(ledger.looks),
        reps_in_plan=ledger.plan.reps,
        extended_after_look=any(a.reps is not None and a.after_look for a in ledger.amendments),
    )


def _refused(ledger: Ledger, evidence: Mapping[str, Evidence]) -> tuple[Refused, ...]:
    return tuple(
        Refused(
            outcome.trial.id,
            outcome.trial.task,
            outcome.trial.condition,
            outcome.attempts,
            found.key,
            found.fault,
        )
        for outcome in ledger.outcomes
        if (found := evidence.get(outcome.trial.id)) is not None and found.fault is not None
    )
