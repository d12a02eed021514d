"""What was lost, and whether it could have made the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialfleet_analysis.losses import UNASSIGNED
from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.document.missing import (
    LossTest,
    Robustness,
    ScenarioName,
    Sensitivity,
    SensitivityName,
)
from trialfleet_analysis.report.figures import (
    ESTIMANDS,
    NOTHING,
    bare_p,
    bare_points,
    decimals,
    p_value,
    percent,
    quantity,
)
from trialfleet_analysis.report.numbers.table import (
    Cell,
    Section,
    Table,
    Value,
    Words,
    counted,
    full,
    gap,
    gap_limits,
    p_of,
    spaced,
    table,
)
from trialfleet_runner.stages import Stage

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
STAGES = {
    Stage.BEFORE_AGENT: "before the agent started: ignorable",
    Stage.MID_RUN: "while the agent ran: informative",
    Stage.AFTER_PATCH: "after the agent had left its patch",
    Stage.UNKNOWN: "unknown: its end cannot be read",
}


def losses(report: Report) -> Section:
    analysis = report.analysis
    nothing = "" if report.losses else "No attempt was lost. "
    return Section(
        "losses",
        "Losses",
        f"{nothing}An attempt without a verdict is missing data, never a failure. Losses while the agent ran are "
        "informative, since longer runs are lost more often and failures run longer; a retry does not undo that. "
        "So the result is put to the test on first runs, with what they lost resolved one way and the other.",
        full(
            _scenarios(analysis.robustness),
            _tipping(analysis.robustness),
            _sensitivities(analysis.sensitivities),
            _first_runs(analysis.loss_test),
            _rates(report),
            _classes(report) if report.losses else None,
            _messages(report),
            _quarantined(report),
            _unplanned(report),
        ),
    )


def _scenarios(found: Sequence[Robustness]) -> Table:
    columns = (
        "If…",
        Words("Estimand"),
        "Difference, points",
        "p",
        Words("Decision"),
    )
    rows = (
        (
            SCENARIOS[one.name],
            ESTIMANDS[each.estimand],
            bare_points(one.difference),
            bare_p(one.p_value),
            decision(one.rejects, one.sign),
        )
        for each in found
        for one in each.scenarios
    )
    return table("The primary contrast on first runs", columns, rows)


def decision(rejects: bool, sign: int) -> str:
    if not rejects:
        return "no difference found"
    return "treatment passes more" if sign > 0 else "treatment passes less"


def _tipping(found: Sequence[Robustness]) -> Table:
    columns = (
        "Estimand",
        "First runs lost, treatment",
        "First runs lost, control",
        Words("Robust"),
        "Tipping point",
    )
    rows = (
        (
            ESTIMANDS[one.estimand],
            one.missing_treatment,
            one.missing_control,
            Value("yes" if one.robust else "no", alarm=not one.robust),
            _point(one),
        )
        for one in found
    )
    lead = "Tipping point: the fewest lost first runs whose adverse resolution changes the decision."
    return table("How many lost runs could change the decision", columns, rows, lead=lead)


def _point(one: Robustness) -> Value:
    if one.tipping_point is None:
        return Value(NOTHING, "no number of them changes it")
    return Value(("" if one.tipping_exhaustive else "at most ") + f"{one.tipping_point:,}")


def _sensitivities(found: Sequence[Sensitivity]) -> Table:
    rows = (
        (
            SENSITIVITIES[one.name],
            one.excluded_treatment,
            one.excluded_control,
            gap(one.difference),
            gap_limits(one.difference),
            p_of(one.test),
        )
        for one in found
    )
    columns = ("On other trials", "Out, treatment", "Out, control", "Difference, points", "Interval", "p")
    return table("Sensitivity, these tasks", columns, rows, folded=True)


def _first_runs(found: LossTest) -> Table:
    rows = (
        (name, lost, of, percent(lost / of) if of else NOTHING)
        for name, lost, of in zip(found.conditions, found.lost, found.trials, strict=True)
    )
    error = "" if found.monte_carlo_se is None else f" ± {decimals(found.monte_carlo_se, 4)} (sampled)"
    said = found.test.reason if found.test.p_value is None else f"{p_value(found.test.p_value)}{error}"
    lead = (
        f"Did conditions lose first runs unequally often? {said}. A small p is a warning; a large one is no "
        "comfort: equal rates may hide unequal reasons."
    )
    return table("First runs lost, by condition", ("Condition", "Lost", "Trials", "Rate"), rows, lead=lead)


def _rates(report: Report) -> Table:
    columns = (
        "Condition",
        "Lost while running",
        "Started runs",
        "Rate",
        "Median time to loss",
        "Lost before the agent",
        "Abandoned trials",
    )
    rows = (
        (
            one.condition,
            one.informative,
            one.started,
            percent(one.rate),
            quantity(one.elapsed_s, "s"),
            one.ignorable,
            counted(one.abandoned),
        )
        for one in report.loss_rates
    )
    return table("Attempts lost, by condition", columns, rows)


def _classes(report: Report) -> Table:
    names = list(report.condition_names)
    if any(entry.condition == UNASSIGNED for entry in report.losses):
        names.append(UNASSIGNED)
    counts = {(entry.loss, entry.stage, entry.condition): entry.attempts for entry in report.losses}
    kinds = sorted({(entry.loss, entry.stage) for entry in report.losses})
    head = [f"{spaced(loss.value)}, {STAGES[stage]}" for loss, stage in kinds]
    rows: list[Sequence[Cell]] = [
        (name, *(counts.get((loss, stage, name), 0) for loss, stage in kinds)) for name in names
    ]
    return table("Lost attempts by class", ("Condition", *head), rows)


def _messages(report: Report) -> Table:
    rows = (
        (spaced(one.loss.value), one.attempts, one.message or NOTHING, one.example) for one in report.loss_messages
    )
    columns = ("Class", "Attempts", Words("Message"), Words("For example, trial"))
    return table("What losses said", columns, rows, folded=True)


def _quarantined(report: Report) -> Table:
    rows = ((one.trial, f"{one.task} × {one.condition}", one.attempt, one.reason) for one in report.quarantined)
    columns = ("Trial", Words("Cell"), "Attempt", Words("Why its bundle was refused"))
    return table("Quarantined", columns, rows)


def _unplanned(report: Report) -> Table:
    return table("Outcomes that the plan has no place for", ("Trial",), _names(report.unplanned))


def _names(names: Sequence[str]) -> Iterator[Sequence[Cell]]:
    return ((name,) for name in names)
