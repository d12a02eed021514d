"""What a reader must know before relying on the result, most important first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trialfleet_analysis.analysis_plan.cutoff import CutoffSplit
from trialfleet_analysis.evidence import CUT
from trialfleet_analysis.report.campaign_report import BelowPlan, CampaignProgress, Report
from trialfleet_analysis.report.causes import cause_cautions, code_cautions
from trialfleet_analysis.report.crashes import find_halted_sides
from trialfleet_analysis.report.declared_result import (
    DeclaredResult,
    could_tell,
    declared_result,
    outcome_of,
    report_context,
)
from trialfleet_analysis.report.equal_requests import note_other_equal_arms
from trialfleet_analysis.report.provenance import LEFT_OUT, MEASURED_OTHERWISE, NOT_GIVEN
from trialfleet_analysis.tables.rows import Use
from trialfleet_designs.comparison.contrast import Contrast, OnTheseTasks
from trialfleet_designs.document.figures import (
    ESTIMANDS,
    bare_p,
    limit_points,
    name_these,
    p_value,
    percent,
    point_limits,
)
from trialfleet_ledger.designs.looks import PEEKING
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.stored_journal import explain_absence
from trialfleet_statistics.estimates import Interval, cannot_reject

SUSPICIOUS = (
    0.01  # p of a diagnostic below which the reader is warned: with five checks, one in twenty clean campaigns
)

CELLS_NAMED = 4
WIDE = 1.2  # ratio of the interval's width to that of the tasks' own rates from which the reader is warned
NEAR_ZERO = 0.01  # of an interval's width: a limit nearer than that implies p <= 1.1 alpha
CLEARLY_ABOVE = 1.2  # times alpha
FEW_INFORMATIVE = 3  # informative tasks up to which the interval and the exact test part often


def cautions(report: Report) -> tuple[str, ...]:
    """Most important first."""
    result = declared_result(report)
    return (
        *_tampered(report),
        *_not_pulled(report),
        *_interim(report),
        *(_only_these(result) if result else ()),
        *(_confounded(result.contrast) if result else ()),
        *_quarantine(report),
        *_withdrawn(report),
        *cause_cautions(report),
        *code_cautions(report),
        *_impossible(report),
        *(_reach(result) if result else ()),
        *_tasks(report),
        *_cutoff(report.cutoff),
        *_losses(report),
        *(_of_contrast(result) if result else ()),
        *_drift(report),
        *note_other_equal_arms(report),
        *_delivery(report),
        *_isolation(report),
    )


def _of_contrast(result: DeclaredResult) -> Iterator[str]:
    on_these = result.contrast.these_tasks
    by_bets = not result.design.is_fixed_on("these_tasks")
    yield from _conflict(on_these, by_bets=by_bets)
    yield from _wide(on_these)
    if not result.design.allows_for_looks:
        yield from _single_task(on_these, result.declared.alpha)
    yield from _disagreement(on_these, by_bets=by_bets)
    if result.estimand == "tasks_like_these":
        yield from _few_tasks(result.contrast)


def _only_these(result: DeclaredResult) -> Iterator[str]:
    """A difference on these tasks that tasks like them need not have."""
    if result.estimand != "these_tasks" or outcome_of(result) not in ("more", "less"):
        return
    if result.monitored or result.extended:  # nothing holds yet
        return
    like = result.contrast.tasks_like_these.difference
    shown = point_limits(like)
    if shown is not None and like.low is not None and like.high is not None and like.low <= 0 <= like.high:
        yield (
            f"This holds for {name_these(result.contrast.tasks)}. Other tasks like them may show no difference, "
            f"or the opposite one: for them the interval is {shown} points. More tasks would tell."
        )


def _interim(report: Report) -> Iterator[str]:
    progress = report.progress
    design, found = report.design, report.analysis.found
    if report.state == "decided" and (note := design.note_interim(found)):
        yield note
    elif progress.interim:
        are = "is" if progress.terminal == 1 else "are"
        over = f"{progress.terminal:,} of {plural(progress.planned, 'trial')} {are} over"
        counted = f"Interim. {_unfinished(progress)}: {over}."
        yield f"{counted} {_waiting(report) if report.analysis.monitored else _only_halted(report)}"
        yield from _below(report)
    if _is_between_looks(report):
        others = "contrasts on tasks like these" if design.allows_for_looks else "contrasts"
        yield (
            f"The declared result is as of the look after block {progress.looked_blocks}. The conditions' rates, "
            f"and {others}, count all {plural(progress.complete_blocks, 'complete block')}."
        )
    if progress.extended_after_look and not progress.ended_by_look:
        only = design.except_when_extended(found)
        yield f"Reps were added after a look at results: p-values and intervals do not account for that{only}."


def _is_between_looks(report: Report) -> bool:
    """Whether trials came after the look that the declared result is of."""
    looked = report.progress.looked_blocks
    return looked is not None and looked < report.progress.complete_blocks and not find_halted_sides(report)


def _unfinished(progress: CampaignProgress) -> str:
    if progress.cancelled:
        return "The campaign was cancelled"
    return "The campaign's wall-clock limit is reached" if progress.out_of_time else "The campaign is not finished"


def _below(report: Report) -> Iterator[str]:
    found = report.below_plan
    if not found:
        return
    more = len(found) - CELLS_NAMED
    rest = f" and {plural(more, 'more cell')}, all in report.json" if more > 0 else ""
    least = "is" if len(found) == 1 else "are"
    yield (
        f"{len(found):,} of {plural(len(report.cells), 'cell')} {least} below the plan (trials over, of trials "
        f"planned): {emptiest(found)}{rest}."
    )


def emptiest(below: Sequence[BelowPlan]) -> str:
    """Some cells by name, with what they have."""
    return ", ".join(
        f"{one.task} × {one.condition} ({one.terminal} of {one.planned})" for one in below[:CELLS_NAMED]
    )


def _waiting(report: Report) -> str:
    progress = report.progress
    later = f"; {plural(progress.beyond, 'later trial')} left out" if progress.beyond else ""
    numbers = "All other numbers" if _is_between_looks(report) else "All numbers"
    made = f"{numbers} are made of the {_first(progress.complete_blocks)} of {progress.blocks} only{later}"
    none_yet = f"No block of {progress.blocks} is complete yet, and numbers are made of complete ones only{later}"
    but = report.design.except_when_monitored(report.analysis.found)
    return (
        f"{made if progress.complete_blocks else none_yet}: early finishers would bias them. "
        f"This look is recorded, and no p-value{but} is valid under monitoring: "
        f"looking again and again finds something by chance: {PEEKING}."
    )


def _first(blocks: int) -> str:
    return "first complete block" if blocks == 1 else f"first {plural(blocks, 'complete block')}"


def _only_halted(report: Report) -> str:
    return (
        f"All {plural(report.progress.blocks, 'block')} of the tasks and conditions that are not halted are "
        "complete: what is still open changes no number here."
    )


def _confounded(headline: Contrast) -> Iterator[str]:
    if not headline.composition.confounded:
        return
    yield (
        f"The declared contrast compares packages: {headline.name} differ in {_changes(headline)}. The "
        "difference cannot be attributed to one of them."
        + (
            f" A condition {' and one '.join(headline.composition.missing)} would separate them."
            if headline.composition.missing
            else ""
        )
    )


def _changes(contrast: Contrast) -> str:
    parts = [f"{change.delivery} ({change.change})" for change in contrast.composition.changes]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _tampered(report: Report) -> Iterator[str]:
    named, trials = report.tampered[:CELLS_NAMED], [one for one in report.quarantined if one.tampered]
    more = f"; and {len(report.tampered) - CELLS_NAMED} more" if len(report.tampered) > CELLS_NAMED else ""
    copied = explain_absence([*report.tampered, *(one.reason for one in trials)])
    if named:
        restore = "Restore what was written, or do not rely on this answer."
        yield f"Tampered: {'; '.join(named)}{more}. {restore}{copied}"
    if trials:
        first = trials[0]
        yield (
            f"Tampered: {plural(len(trials), 'trial')} left out as missing data, because records or bundles are "
            "not what was written (listed under “Would losses change it?”). For example "
            f"{first.task} × {first.condition}, trial {first.trial}: {first.reason}.{'' if named else copied}"
        )


def _not_pulled(report: Report) -> Iterator[str]:
    if report.not_pulled:
        yield (
            f"Bundles were not pulled (`pull --no-bundles`): {plural(report.not_pulled, 'verdict')} not checked "
            "against them. `trialfleet pull` without --no-bundles adds the bundles."
        )


def _quarantine(report: Report) -> Iterator[str]:
    damaged = [one for one in report.quarantined if not one.tampered]
    if damaged:
        yield (
            f"Left out as missing data: {plural(len(damaged), 'trial')} whose bundle is not what its end says "
            "(listed under “Would losses change it?”)."
        )
    if not report.verified and not report.not_pulled:
        yield "Bundles were not verified (as with --no-verify): only their existence was checked."
    if not report.journaled:
        yield (
            "The version of trialfleet that ran this campaign keeps no journal: records that were edited to agree "
            "with each other, or deleted, are not noticed."
        )
    if report.unplanned:
        yield f"Left out: {plural(len(report.unplanned), 'outcome')} that the plan has no place for."


def _withdrawn(report: Report) -> Iterator[str]:
    """What a look counted and the answer does not."""
    if report.analysis.withdrawn:
        trials = plural(report.analysis.withdrawn, "trial")
        count = "counts" if report.analysis.withdrawn == 1 else "count"
        yield (
            f"Looks counted {trials} that no longer {count}: bundles were quarantined, records are not what was "
            "written, or a task was halted. The decisions stay in the record; the answer is computed without them."
        )


def _impossible(report: Report) -> Iterator[str]:
    for line in report.manifest:
        if line.group == LEFT_OUT:
            yield f"Metric {line.name} is left out where it cannot be: {line.value}."


def _reach(result: DeclaredResult) -> Iterator[str]:
    """Why the test of the declared contrast could not have rejected for any difference, in both estimands."""
    headline, declared = result.contrast, result.declared
    if not headline.tasks:
        return
    these, like = headline.these_tasks, headline.tasks_like_these
    parts = {ESTIMANDS["these_tasks"]: these.test, ESTIMANDS["tasks_like_these"]: like.test}
    least = {
        name: bare_p(test.attainable_p) for name, test in parts.items() if cannot_reject(test, declared.alpha)
    }
    if least:
        yield (
            f"No result on {' or '.join(least)} could have reached p ≤ {declared.alpha:g}: given the tasks’ "
            f"totals the least possible p is {_each(least)}.{_saturated(headline)}"
        )
    paired = like.test.p_value is not None and not like.repositories
    if paired and like.moved == 1 and headline.tasks > 1 and not cannot_reject(like.test, declared.alpha):
        yield (
            f"The conditions’ rates differ on one task alone: for tasks like these t is then 1 or −1 and "
            f"{p_value(like.test.p_value)}, however large that difference is."
        )


def _each(of: Mapping[str, str]) -> str:
    """Values by estimand: the value alone where it is of one."""
    if len(of) == 1:
        return next(iter(of.values()))
    return " and ".join(f"{value} on {name}" for name, value in of.items())


def _saturated(contrast: Contrast) -> str:
    few = could_tell(contrast)
    return "" if few is None else f" {few[0].upper()}{few[1:]}."


def _tasks(report: Report) -> Iterator[str]:
    for row in report.tasks:
        if row.use is Use.HALTED:
            yield f"Task {row.task} is halted in all conditions and left out: {row.reason}"
    design = report.design
    yield from design.list_cautions(report.analysis.found, report_context(report))
    for one in report.conditions:
        if 0 < one.tasks < len(report.compared):
            gone = plural(len(report.compared) - one.tasks, "task")
            other = "task" if one.tasks == 1 else plural(one.tasks, "task")
            yield (
                f"Condition {one.condition} has no valid trial of {gone}: its rate is over the "
                f"other {other}, and does not compare with rates over all of them."
            )
    for left in report.left_out:
        yield f"Task {left.task} is left out of every condition’s mean: {left.reason}."
    for name in dict.fromkeys(one.treatment for one in report.analysis.contrasts if one.role == "ceiling"):
        yield f"Condition {name} gives the agent knowledge of the fix: a ceiling, corrected in a separate family."
    apart: dict[str, list[str]] = {}
    for row in report.tasks:
        if row.use is Use.NO_ORACLE:
            apart.setdefault(row.reason or "no reason kept", []).append(row.task)
    for reason, names in apart.items():
        yield f"Reported apart, in no condition’s rate: {', '.join(names)} ({reason})."


def _cutoff(found: CutoffSplit | None) -> Iterator[str]:
    """What the model may have been trained on, and what cannot be told."""
    if found is None:
        return
    dated = len(found.before) + len(found.since)
    if not dated:
        yield (
            f"No compared task has a known date of its fix: nothing can be said about the cut-off {found.cutoff}. "
            "`committed` in the task file gives it; `trialfleet tasks mine` writes it."
        )
    elif not found.since:
        all_of = "Every task with a known date" if found.undated else "Every compared task"
        yield (
            f"{all_of} was fixed before the training cut-off {found.cutoff}: the model may have seen the fixes, "
            "and no task tells how it does on code that it has not seen."
        )
    elif found.before:
        were = "was" if len(found.before) == 1 else "were"
        yield (
            f"{len(found.before)} of {plural(dated, 'task')} {were} fixed before the training cut-off "
            f"{found.cutoff}: the model may have seen these fixes. Rates and effect are given for both groups."
        )
    if dated and found.undated:
        yield f"Compared tasks without a known date of their fix, in neither group: {len(found.undated)}."


def _losses(report: Report) -> Iterator[str]:
    missing = sum(result.first_runs_missing for result in report.conditions)
    if missing:
        yield (
            f"In {plural(missing, 'trial')} the first run that started was lost, or there is no verdict. "
            "The bounds next to each rate show how far that could move it."
        )
    stops = report.operator_stops
    if stops.test.p_value is not None and stops.test.p_value < SUSPICIOUS:
        shares = ", ".join(
            f"{name} {stopped} of {trials}"
            for name, stopped, trials in zip(stops.conditions, stops.stopped, stops.trials, strict=True)
        )
        yield (
            f"You interrupted trials of some conditions more often than of others ({p_value(stops.test.p_value)}: "
            f"{shares}): that may favour one of them."
        )


def _conflict(found: OnTheseTasks, *, by_bets: bool) -> Iterator[str]:
    if found.conflict and by_bets:
        yield (
            "On these tasks the test by bets and the mean difference point in opposite directions: the "
            "bets count what they had won when they had won most, the mean counts every valid trial. State no "
            "direction."
        )
    elif found.conflict:
        yield (
            "On these tasks the exact test and the mean difference point in opposite directions: tasks differ so "
            "much in their numbers of valid trials that the test’s whole-number weights follow the mean only "
            "roughly. State no direction."
        )


def _wide(found: OnTheseTasks) -> Iterator[str]:
    if found.over_width is None or found.over_width < WIDE:
        return
    constant = found.strata - found.informative
    if 2 * constant >= found.strata:
        yield (
            f"{constant} of {plural(found.strata, 'task')} always passed or always failed, under both conditions. "
            "The interval on these tasks gives each of them the variance of the mean difference: it is "
            f"{found.over_width:.1f} times as wide as the tasks’ own rates would make it, and holds the "
            "difference more often than its level says."
        )


def _single_task(found: OnTheseTasks, alpha: float) -> Iterator[str]:
    if found.largest_size is not None and found.largest_size > alpha:
        yield (
            f"With one task the mid-p test rejects in up to {percent(found.largest_size)} of campaigns of this "
            f"size in which nothing is there; it was asked for {percent(alpha)}."
        )


def _disagreement(part: OnTheseTasks, *, by_bets: bool) -> Iterator[str]:
    if part.agrees is None:
        return
    if by_bets:  # its interval is by the same bets, with no approximation
        if not part.agrees:
            yield "On these tasks the test by bets and its interval decide differently. The p-value decides."
    elif 0 < part.informative <= FEW_INFORMATIVE:
        does = "does" if part.informative == 1 else "do"
        decides = "" if part.agrees else f"; it {_leaves_out(part.difference)}, and the exact test disagrees"
        yield (
            "The interval on these tasks rests on a normal approximation that "
            f"{plural(part.informative, 'informative task')} {does} not support{decides}. The p-value decides."
        )
    elif not part.agrees:
        yield (
            "On these tasks the exact test and the interval decide differently, as happens near the border: the "
            "interval inverts another test. The p-value decides."
        )
    elif (near := _ends_near_zero(part)) is not None:
        yield (
            f"The interval on these tasks ends at {limit_points(near)} points, nearer to 0 than "
            f"{p_value(part.test.p_value)} suggests: it inverts another test. The p-value decides."
        )


def _ends_near_zero(part: OnTheseTasks) -> float | None:
    """The limit of an interval that all but excludes 0, beside a p that is well above its alpha."""
    low, high, p = part.difference.low, part.difference.high, part.test.p_value
    if low is None or high is None or p is None or p < CLEARLY_ABOVE * (1 - part.difference.level):
        return None
    near = min(low, high, key=abs)
    return near if 0 < abs(near) < NEAR_ZERO * (high - low) else None


def _leaves_out(difference: Interval) -> str:
    outside = difference.low is not None and difference.high is not None and difference.low * difference.high > 0
    return "excludes 0" if outside else "includes 0"


def _few_tasks(headline: Contrast) -> Iterator[str]:
    part = headline.tasks_like_these
    if part.caveat is not None and part.test.p_value is not None:
        share = (
            f": {part.largest_task} alone makes {percent(part.largest_share)} of it" if part.largest_task else ""
        )
        yield f"With {plural(headline.tasks, 'task')}, the claim about tasks like these {part.caveat}{share}."


def _drift(report: Report) -> Iterator[str]:
    for check in report.analysis.drift:
        if check.contiguous:
            yield (
                f"Ran alone in one period: {', '.join(check.contiguous)}. The effect of time cannot be separated "
                "from that of the condition."
            )
        elif check.test.p_value is not None and check.test.p_value < SUSPICIOUS:
            yield (
                f"{check.question} Probably so ({p_value(check.test.p_value)}): trust the comparison within "
                "task × block above the one within tasks."
            )


def _delivery(report: Report) -> Iterator[str]:
    for line in report.manifest:
        if line.group == NOT_GIVEN:
            yield f"{line.name}: its agent cannot be given {line.value}; left out (delivery: best_effort)."
        if line.group == MEASURED_OTHERWISE:
            yield f"{line.name}, checked before the campaign was planned: {line.value}."
    for channel in report.channels:
        if channel.declared and channel.not_reached:
            yield (
                f"{channel.condition}: the {channel.channel} delivery was not seen to reach the model in "
                f"{plural(channel.not_reached, 'trial')}."
            )
        if not channel.declared and channel.reached:
            yield f"{channel.condition}: undeclared {channel.channel} reached the model."
    for inline in report.inline:
        if inline.none:
            yield (
                f"{inline.condition}: the inline text had nothing to say in {plural(inline.none, 'trial')} "
                "(no covering node): there its prompt equals that of the condition without inline text."
            )


def _isolation(report: Report) -> Iterator[str]:
    warnings = [line for line in report.manifest if line.group == "Warnings of the bundles"]
    for line in warnings:
        if line.name.endswith(CUT):
            yield f"{line.name} ({line.value}): `trialfleet show` says how much of it is missing."
        else:
            yield f"Isolation: {line.name} ({line.value})."
