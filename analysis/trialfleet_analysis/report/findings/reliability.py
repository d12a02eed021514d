"""What was lost, what order and time did, and what more trials would show."""

from __future__ import annotations

from collections.abc import Sequence

from trialfleet_analysis.analysis_plan.power_summary import DeclaredPower, Detectable, More, PowerSummary
from trialfleet_analysis.analysis_plan.sensitivity import (
    DriftCheck,
    LossTestFinding,
    RobustnessFinding,
    ScenarioName,
    Sensitivity,
    SensitivityName,
)
from trialfleet_analysis.losses import UNASSIGNED, OperatorStops
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.summary import made_by
from trialfleet_designs.document.figures import (
    ESTIMANDS,
    NOTHING,
    bare_p,
    bare_points,
    decimals,
    p_value,
    percent,
    quantity,
    unsigned_points,
)
from trialfleet_designs.document.tables import (
    ReportSection,
    ReportTable,
    Value,
    crossed,
    difference,
    difference_limits,
    failures,
    number,
    or_reason,
    p_of,
    sampled_p,
    section,
    table,
    text,
)
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.stage_reached import Stage

SCENARIOS: dict[ScenarioName, str] = {
    "as_measured": "as measured, retries counted",
    "complete_case": "lost runs left out",
    "lost_as_failed": "lost runs failed",
    "worst": "worst case for the treatment",
    "best": "best case for the treatment",
}
SENSITIVITIES: dict[SensitivityName, str] = {
    "own_memory_as_lost": "the agent’s own out-of-memory as lost",
    "per_protocol": "without trials whose delivery was not seen",
}
SAME = "No first run of the primary contrast was lost: under every assumption it is what was measured."
GOING_ON = "the campaign would have gone on"
STAGES = {
    Stage.BEFORE_AGENT: "before the agent started: ignorable",
    Stage.MID_RUN: "while the agent ran: informative",
    Stage.AFTER_PATCH: "after the agent had left its patch",
    Stage.UNKNOWN: "unknown: its end cannot be read",
}


def losses(report: Report) -> ReportSection:
    analysis = report.analysis
    nothing = "" if report.losses else "No attempt was lost. "
    tested = [one for one in analysis.robustness if one.missing_treatment + one.missing_control]
    same = "" if tested or not analysis.robustness else f" {SAME}"
    return section(
        "losses",
        "Would losses change it?",
        f"{nothing}An attempt without a verdict is missing data, never a failure. Losses while the agent ran are "
        "informative, since longer runs are lost more often and failures run longer; a retry does not undo that. "
        "So the test is repeated on first runs, with the lost ones resolved in either direction."
        f"{same}",
        _scenarios(tested),
        _tipping(tested),
        _sensitivities(analysis.sensitivities),
        _first_runs(analysis.loss_test),
        _operator_stops(report.operator_stops),
        _stopped_cells(report.operator_stops),
        _rates(report),
        _classes(report),
        _messages(report),
        _quarantined(report),
        table("Outcomes that the plan has no place for", report.unplanned, text("Trial", str)),
    )


def _scenarios(found: Sequence[RobustnessFinding]) -> ReportTable:
    return table(
        "The primary contrast on first runs",
        ((each, one) for each in found for one in each.scenarios),
        text("If…", lambda row: SCENARIOS[row[1].name]),
        text("Estimand", lambda row: ESTIMANDS[row[0].estimand]),
        number("Difference, points", lambda row: bare_points(row[1].difference)),
        number("p", lambda row: bare_p(row[1].p_value)),
        text(
            "Decision",
            lambda row: GOING_ON if row[1].goes_on else decision(row[1].rejects, row[1].sign),
        ),
    )


def decision(rejects: bool, sign: int) -> str:
    if not rejects:
        return "no difference found"
    return "treatment passes more" if sign > 0 else "treatment passes less"


def _tipping(found: Sequence[RobustnessFinding]) -> ReportTable:
    return table(
        "How many lost runs could change the decision",
        found,
        text("Estimand", lambda one: ESTIMANDS[one.estimand]),
        number("First runs lost, treatment", lambda one: one.missing_treatment),
        number("First runs lost, control", lambda one: one.missing_control),
        text("Robust", lambda one: Value(_robust(one), alarm=not one.robust)),
        number("Tipping point", _tipping_point),
        lead="Tipping point: the fewest lost first runs whose adverse resolution changes the complete case’s "
        "decision.",
    )


def _robust(one: RobustnessFinding) -> str:
    if not one.robust:
        return "no"
    return "yes" if one.tipping_exhaustive else "no change found"


def _tipping_point(one: RobustnessFinding) -> Value:
    if one.tipping_point is None:
        return Value(NOTHING, "no number of them changes it" if one.tipping_exhaustive else "none found")
    return Value(("" if one.tipping_exhaustive else "at most ") + f"{one.tipping_point:,}")


def _sensitivities(found: Sequence[Sensitivity]) -> ReportTable:
    return table(
        "Sensitivity, these tasks",
        found,
        text("On other trials", lambda one: SENSITIVITIES[one.name]),
        number("Out, treatment", lambda one: one.excluded_treatment),
        number("Out, control", lambda one: one.excluded_control),
        number("Difference, points", lambda one: difference(one.difference)),
        number("Interval", lambda one: difference_limits(one.difference)),
        number("p", lambda one: p_of(one.test)),
        folded=True,
    )


def _first_runs(found: LossTestFinding) -> ReportTable:
    error = "" if found.monte_carlo_se is None else f" ± {decimals(found.monte_carlo_se, 4)} (sampled)"
    shown = found.test.reason if found.test.p_value is None else f"{p_value(found.test.p_value)}{error}"
    return table(
        "First runs lost, by condition",
        zip(found.conditions, found.lost, found.trials, strict=True),
        text("Condition", lambda row: row[0]),
        number("Lost", lambda row: row[1]),
        number("Trials", lambda row: row[2]),
        number("Rate", lambda row: percent(row[1] / row[2]) if row[2] else NOTHING),
        lead=f"Did conditions lose first runs unequally often? {shown}. A small p is a warning; a large one is no "
        "comfort: equal rates may hide unequal reasons.",
    )


def _operator_stops(found: OperatorStops) -> ReportTable:
    error = "" if found.monte_carlo_se is None else f" ± {decimals(found.monte_carlo_se, 4)} (sampled)"
    shown = found.test.reason if found.test.p_value is None else f"{p_value(found.test.p_value)}{error}"
    rows = zip(found.conditions, found.stopped, found.trials, strict=True) if any(found.stopped) else ()
    return table(
        "Interrupted by you, by condition",
        rows,
        text("Condition", lambda row: row[0]),
        number("Trials interrupted", lambda row: row[1]),
        number("Trials", lambda row: row[2]),
        number("Rate", lambda row: percent(row[1] / row[2]) if row[2] else NOTHING),
        lead=f"Did Ctrl-C or cancel --now stop running agents of some conditions more often? {shown}. Such a stop "
        "is no infrastructure loss. Who watches a campaign could repeat the trials that look bad: at most two "
        "interrupted runs of a trial are repeated.",
    )


def _stopped_cells(found: OperatorStops) -> ReportTable:
    return table(
        "Interrupted by you, by cell",
        found.cells,
        text("Cell", lambda row: f"{row[0]} × {row[1]}"),
        number("Trials interrupted", lambda row: row[2]),
        folded=True,
    )


def _rates(report: Report) -> ReportTable:
    return table(
        "Attempts lost, by condition",
        report.loss_rates,
        text("Condition", lambda one: one.condition),
        number("Lost while running", lambda one: one.informative),
        number("Interrupted by you", lambda one: one.interrupted),
        number("Started runs", lambda one: one.started),
        number("Rate", lambda one: percent(one.rate)),
        number("Median time to loss", lambda one: quantity(one.elapsed_s, "s")),
        number("Lost before the agent", lambda one: one.ignorable),
        number("Abandoned trials", lambda one: failures(one.abandoned)),
    )


def _classes(report: Report) -> ReportTable:
    names = list(report.condition_names)
    if any(entry.condition == UNASSIGNED for entry in report.losses):
        names.append(UNASSIGNED)
    counts = {(entry.condition, (entry.loss, entry.stage)): entry.attempts for entry in report.losses}
    kinds = sorted({(entry.loss, entry.stage) for entry in report.losses})
    heads = {kind: f"{kind[0].words}, {STAGES[kind[1]]}" for kind in kinds}
    return crossed(
        "Lost attempts by class", "Condition", names, heads, lambda name, kind: counts.get((name, kind), 0)
    )


def _messages(report: Report) -> ReportTable:
    return table(
        "Messages of the losses",
        report.loss_messages,
        text("Class", lambda one: one.loss.words),
        number("Attempts", lambda one: one.attempts),
        text("Message", lambda one: one.message or NOTHING),
        text("For example, trial", lambda one: one.example),
        folded=True,
    )


def _quarantined(report: Report) -> ReportTable:
    return table(
        "Quarantined",
        report.quarantined,
        text("Trial", lambda one: one.trial),
        text("Cell", lambda one: f"{one.task} × {one.condition}"),
        number("Attempt", lambda one: one.attempt),
        text("Why its bundle was refused", lambda one: one.reason),
    )


def order(report: Report) -> ReportSection:
    return section(
        "order",
        "Did it change over time?",
        "Every block holds each cell once, in random order. A trend over blocks means that time mattered; it "
        "cannot favour a condition, but it weakens the test that does not know of it.",
        _drift(report.analysis.drift),
        table(
            "Blocks in numbers",
            report.blocks,
            text("Block", lambda one: f"Block {one.block}"),
            number("Passed/valid", lambda one: f"{one.passes:,}/{one.valid:,}"),
            number("Lost", lambda one: one.lost),
            number("Rate", lambda one: percent(one.passes / one.valid) if one.valid else NOTHING),
            folded=True,
        ),
    )


def _drift(found: Sequence[DriftCheck]) -> ReportTable:
    return table(
        "Drift",
        found,
        text("Question", lambda one: one.question),
        number("p", lambda one: sampled_p(one.test, one.monte_carlo_se)),
        number("Second half less first, points", lambda one: bare_points(one.difference)),
        text("Blinded", lambda one: "yes" if one.blinded else "no"),
        text("Ran alone", lambda one: Value(", ".join(one.contiguous), alarm=True) if one.contiguous else NOTHING),
    )


def power(report: Report) -> ReportSection:
    found = report.analysis.outlook
    return section(
        "outlook",
        "Would more reps or more tasks help?",
        f"Detectable: the least true difference that a design finds with {_goal(found)} power. {_based_on(found)}"
        " Power at the observed effect is never shown: it only repeats the p-value."
        f"{report.design.note_on_power()}",
        _detectable(found.detectable),
        _larger(found.more),
        _equal(found),
        _declared(found.declared),
    )


def _goal(found: PowerSummary) -> str:
    return f"{100 * found.detectable[0].power:g}%" if found.detectable else "the wanted"


def _based_on(found: PowerSummary) -> str:
    if found.mean is None:
        return "Nothing is known yet of rates and their spread."
    icc, sigma = found.icc, found.sigma_int
    like = f"an ICC of {decimals(icc.estimate)}" if icc.estimate is not None else f"an unknown ICC ({icc.reason})"
    spread = "an unknown SD of" if sigma is None else f"an SD of {100 * sigma:.1f} points of"
    return (
        "For these tasks it is simulated from each task's own rate, both arms together. For tasks like these it "
        f"rests on a mean rate of {percent(found.mean)}, {like} between tasks, and {spread} the effect between "
        "tasks."
    )


def _detectable(found: Sequence[Detectable]) -> ReportTable:
    return table(
        "What this campaign could have detected",
        found,
        text("Estimand", lambda one: ESTIMANDS[one.estimand]),
        number("Tasks", lambda one: one.tasks),
        number("Reps per cell", lambda one: one.reps),
        number("Power", lambda one: f"{100 * one.power:g}%"),
        number("Alpha", lambda one: f"{one.alpha:g}"),
        number("Detectable, points", lambda one: or_reason(unsigned_points(one.mde), one.reason)),
        text("Made by", made_by),
    )


def _larger(found: Sequence[More]) -> ReportTable:
    return table(
        "What more reps or more tasks would detect",
        found,
        text("Design", design),
        text("Against what was run", lambda one: against(one, found[0])),
        number("Trials per condition", lambda one: one.trials_per_arm),
        number("These tasks: detectable, points", lambda one: unsigned_points(one.mde_these_tasks)),
        number("Tasks like these: detectable, points", lambda one: unsigned_points(one.mde_tasks_like_these)),
        lead="For tasks like these, more tasks help more than more reps at every equal total; for these tasks "
        "only the total counts: the simulated effect shrinks with the square root of the trials. Approximations, "
        "for choosing between designs; plan with trialfleet power.",
    )


def _equal(found: PowerSummary) -> ReportTable:
    balance = "No spread of effects between tasks was seen beyond chance."
    if found.sigma_int is None:
        balance = "How far effects differ between tasks is not known."
    elif found.balance_reps is not None:
        balance = (
            f"Noise within tasks equals the spread of effects between them at {found.balance_reps:.1f} reps; more "
            "reps than that add little."
        )
    return table(
        "Tasks before reps: the same trials as more or fewer tasks",
        found.equal,
        text("Design", design),
        number("Trials per condition", lambda one: one.trials_per_arm),
        number("These tasks: detectable, points", lambda one: unsigned_points(one.mde_these_tasks)),
        number("Tasks like these: detectable, points", lambda one: unsigned_points(one.mde_tasks_like_these)),
        lead=f"{balance} For tasks like these more tasks are better at every total.",
    )


def design(one: More) -> str:
    return f"{plural(one.tasks, 'task')} × {plural(one.reps, 'rep')}"


def against(one: More, run: More) -> str:
    parts = [
        f"{name} ×{more / less:g}"
        for name, more, less in (("tasks", one.tasks, run.tasks), ("reps", one.reps, run.reps))
        if more != less
    ]
    return ", ".join(parts) or "as it was run"


def _declared(found: Sequence[DeclaredPower]) -> ReportTable:
    return table(
        "Power at the declared effect",
        found,
        text("Estimand", lambda one: ESTIMANDS[one.estimand]),
        number("Declared effect, points", lambda one: bare_points(one.effect)),
        number("Power", lambda one: or_reason(percent(one.power), one.reason)),
        number(
            "Monte Carlo error",
            lambda one: NOTHING if one.monte_carlo_se is None else f"±{percent(one.monte_carlo_se)}",
        ),
        number("Simulated campaigns", lambda one: one.simulations),
    )
