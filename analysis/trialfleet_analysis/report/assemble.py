"""From a campaign's tables to a Report: pure."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date

import numpy as np

from trialfleet_analysis.analysis_plan.analyse import analyse
from trialfleet_analysis.analysis_plan.cutoff import split
from trialfleet_analysis.analysis_plan.reading import columns_of, scheme_of
from trialfleet_analysis.kept_answer import CampaignAnswer
from trialfleet_analysis.losses import (
    AttemptLoss,
    loss_counts,
    loss_messages,
    loss_rates,
    lost_attempts,
    operator_stops,
)
from trialfleet_analysis.process import (
    block_results,
    cautioned_passes,
    channels,
    core_seconds,
    crash_counts,
    inline_texts,
    provider_end_counts,
    stop_counts,
    typical,
    uncaused_passes,
    verdict_counts,
)
from trialfleet_analysis.rates import bounds, cell_results, condition_results, list_left_out
from trialfleet_analysis.report.answer import answer
from trialfleet_analysis.report.campaign_report import BelowPlan, CampaignProgress, RefusedBundle, Report
from trialfleet_analysis.report.declared_result import decided
from trialfleet_analysis.report.equal_requests import compare_first_requests
from trialfleet_analysis.report.next_step import suggest_next_step
from trialfleet_analysis.report.provenance import manifest_lines
from trialfleet_analysis.report.summary import summary
from trialfleet_analysis.report.warnings import cautions
from trialfleet_analysis.tables.columns import among, codes, integers, known, numbers, some, texts, truths
from trialfleet_analysis.tables.read import CampaignTables
from trialfleet_analysis.tables.rows import Use
from trialfleet_analysis.tables.table import Table
from trialfleet_designs.comparison.columns import TrialsRun, counted, per_cell
from trialfleet_ledger.amendments import select_halted_cells
from trialfleet_ledger.designs.looks import Decision, halving_of, stopped
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.stage_reached import Stage


def assemble(
    campaign: CampaignTables,
    *,
    versions: Mapping[str, str],
    requested: Sequence[tuple[str, str]] = (),
    cutoff: date | None = None,
) -> Report:
    """Every number of the report. `versions`: of the programs that make it, for the manifest. `requested`:
    contrasts beyond the plan's, (treatment, control). `cutoff`: the day that tasks are split at."""
    frame, tasks, trials = campaign.frame, campaign.tasks, campaign.trials
    names, composed = frame.conditions, {name: frame.plan.conditions[name] for name in frame.conditions}
    cells = cell_results([(c.task, c.condition.name) for c in frame.plan.cells], tasks, trials)
    primary = [row.task for row in tasks if row.use is Use.PRIMARY]
    scheme = scheme_of(frame, tasks, primary, monitored=campaign.monitored, cutoff=cutoff)
    every = columns_of(trials, scheme)
    lost = lost_attempts(campaign.attempts)
    analysis = analyse(
        scheme,
        every,
        lost_attempts=_lost_runs(names, lost, trials),
        requested=requested,
        ran=_ran(campaign),
    )
    compared = analysis.compared.mask_among(scheme.tasks)
    columns = every.of_tasks(compared)
    counts = counted(columns, scheme)
    used = some(trials, truths(trials, "in_blocks") & among(trials, "task", analysis.compared.tasks))
    bare = Report(
        dry_run=frame.plan.dry_run,
        schema_version=2,
        title=frame.plan.title,
        campaign=frame.plan.campaign,
        banner=frame.plan.banner,
        verified=campaign.verified,
        not_pulled=campaign.not_pulled,
        progress=_progress(campaign),
        answer=(),
        cautions=(),
        decision=None,
        summary=(),
        analysis=analysis,
        tasks=tasks,
        compared=analysis.compared.tasks,
        left_out=list_left_out(analysis.compared, cells),
        conditions=condition_results(
            scheme, counts, per_cell(columns, scheme, ~columns.valid), bounds(names, tasks, trials)
        ),
        cells=cells,
        verdicts=verdict_counts(names, used),
        stops=stop_counts(names, used),
        losses=loss_counts(names, lost),
        loss_rates=loss_rates(names, trials, lost),
        operator_stops=operator_stops(names, trials, seed=scheme.seed_of("operator's stops")),
        loss_messages=loss_messages(lost),
        metrics=typical(scheme, columns),
        core_seconds=core_seconds(trials),
        blocks=block_results(used),
        channels=channels(composed, used),
        inline=inline_texts(composed, used),
        quarantined=_refused(campaign),
        tampered=frame.tampered,
        journaled=not frame.journal.absent,
        unplanned=campaign.unplanned,
        below_plan=below_plan(campaign) if campaign.interim else (),
        manifest=manifest_lines(campaign, versions),
        crashes=crash_counts(names, trials),
        uncaused=uncaused_passes(trials),
        cautioned=cautioned_passes(trials),
        provider_ends=provider_end_counts(names, trials),
        equal_arms=compare_first_requests(frame.plan, trials),
        halted_conditions=frame.halted_conditions,
        cutoff=split(scheme, counts, {row.task: row.committed for row in tasks}, cutoff) if cutoff else None,
    )
    return worded(bare)


def answer_of(report: Report) -> CampaignAnswer:
    """What is kept of it, to be shown at once."""
    return CampaignAnswer(
        banner=report.banner, sentences=report.answer, cautions=report.cautions, next_step=report.next_step
    )


def worded(bare: Report) -> Report:
    """With the sentences and the first table that are made of its numbers."""
    said = dataclasses.replace(
        bare, answer=answer(bare), cautions=cautions(bare), decision=decided(bare), summary=summary(bare)
    )
    return dataclasses.replace(said, next_step=suggest_next_step(said))


def _ran(campaign: CampaignTables) -> TrialsRun:
    """Halted tasks and conditions too; not the tasks that are reported apart."""
    own = [task.order.id for task in campaign.frame.plan.tasks if task.primary]
    used = some(campaign.trials, among(campaign.trials, "task", own))
    return TrialsRun(integers(used, "block"), numbers(used, "cost_usd"), len(own))


def _lost_runs(names: Sequence[str], lost: Sequence[AttemptLoss], trials: Table) -> list[int]:
    """The agent's runs, of each condition, whose cost is in no record. What was lost after the patch ran no agent
    of its own where a later attempt scored that patch: the verdict's metrics hold what the run cost."""
    patched = {item.trial: item.condition for item in lost if item.stage is Stage.AFTER_PATCH}
    scored = set(texts(some(trials, among(trials, "verdict", list(Verdict))), "trial")) if patched else set[str]()
    unscored = Counter(condition for trial, condition in patched.items() if trial not in scored)
    running = Counter(item.condition for item in lost if item.stage in (Stage.MID_RUN, Stage.UNKNOWN))
    return [running[name] + unscored[name] for name in names]


def below_plan(campaign: CampaignTables) -> tuple[BelowPlan, ...]:
    """Cells that are not halted with fewer trials over than the plan has reps, fewest first."""
    trials, frame = campaign.trials, campaign.frame
    halted = select_halted_cells(frame.plan.cell_names, frame.halts)
    cells, planned = [cell for cell in frame.plan.cell_names if cell not in halted], frame.planned_reps
    tasks = list(dict.fromkeys(task for task, _ in cells))
    task, condition = codes(trials, "task", tasks), codes(trials, "condition", frame.conditions)
    counts = Counter(zip(task.tolist(), condition.tolist(), strict=True))
    place = {name: n for n, name in enumerate(tasks)}, {name: n for n, name in enumerate(frame.conditions)}
    found = [BelowPlan(t, c, counts[place[0][t], place[1][c]], planned.of((t, c))) for t, c in cells]
    return tuple(sorted((one for one in found if one.terminal < one.planned), key=lambda one: one.terminal))


def _progress(campaign: CampaignTables) -> CampaignProgress:
    frame, trials = campaign.frame, campaign.trials
    measured = int(among(trials, "verdict", list(Verdict)).sum())
    end, ended = stopped(frame.decisions), frame.ended
    return CampaignProgress(
        interim=campaign.interim,
        planned=frame.planned,
        terminal=trials.num_rows,
        measured=measured,
        missing=trials.num_rows - measured,
        blocks=frame.reps,
        complete_blocks=campaign.blocks,
        beyond=int(
            np.sum(~truths(trials, "in_blocks") & ~among(trials, "condition", list(frame.halted_conditions)))
        ),
        cancelled=frame.cancel is not None,
        out_of_time=frame.out_of_time,
        looks=len(frame.looks),
        reps_in_plan=frame.plan.reps,
        extended_after_look=any(a.reps is not None and a.after_look for a in frame.amendments),
        way_on=campaign.way_on if campaign.interim else "",
        halted=any(halt.of_campaign for halt in frame.halts),
        looked_blocks=None if ended is not None or halving_of(frame.decisions) else _last_look(frame.decisions),
        ended_by_look=ended is not None,
        after_decision=0 if end is None else int(np.sum(integers(trials, "block") >= end.blocks)),
    )


def _last_look(decisions: Sequence[Decision]) -> int | None:
    """The blocks that it counted."""
    return decisions[-1].blocks if decisions else None


def _refused(campaign: CampaignTables) -> tuple[RefusedBundle, ...]:
    refused = some(campaign.trials, known(campaign.trials, "fault"))
    return tuple(
        RefusedBundle(
            row["trial"],
            row["task"],
            row["condition"],
            row["attempts"],
            row["bundle"] or "",
            row["fault"],
            row["tampered"],
        )
        for row in refused.select(
            ["trial", "task", "condition", "attempts", "bundle", "fault", "tampered"]
        ).to_pylist()
    )
