"""Declared looks: an exact group-sequential test decides at each."""

from __future__ import annotations

from collections.abc import Iterator

from trialfleet_designs.comparison.columns import Columns, Scheme
from trialfleet_designs.comparison.contrast import Contrast
from trialfleet_designs.comparison.declared_effect import refuse_looks
from trialfleet_designs.comparison.judge import RunJudge
from trialfleet_designs.document.drawing import Drawing
from trialfleet_designs.document.figures import points, quantity
from trialfleet_designs.document.tables import ReportSection
from trialfleet_designs.document.trials_taken import trials_taken
from trialfleet_designs.looks.contrasts import allowing_for_looks
from trialfleet_designs.looks.drawing import draw_bounds
from trialfleet_designs.looks.finding import LooksFinding, decided_counts, looks_finding
from trialfleet_designs.looks.margin import looked_equivalence
from trialfleet_designs.looks.robustness import LookedTest
from trialfleet_designs.looks.section import looks_section
from trialfleet_designs.monitoring import design_of, look_result
from trialfleet_designs.power.stops import Stopping, StopsPlan, looks_plan
from trialfleet_designs.protocol import Design, Observed, Reported, SeenAtLook
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import DecisionResult, revised_reps
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plurals import plural
from trialfleet_statistics.comparisons import EquivalenceTest

NAMED = 8  # tasks that a caution names


class LooksDesign(Design[Primary, LooksFinding]):
    """`primary: {stop: {looks: …}}`."""

    allows_for_looks = True
    plans_power = True
    uses = frozenset({"a contrast at declared looks"})

    def decide(self, declared: Primary, seen: SeenAtLook) -> DecisionResult:
        return look_result(declared, seen.reps, seen.earlier, seen.stage)

    def plan_stops(self, stopping: Stopping) -> StopsPlan:
        return {"looks": looks_plan(stopping), "bets": None}

    def refuse_combining(self, declared: Primary) -> OperatorError:
        return refuse_looks()

    def find(self, declared: Primary, observed: Observed) -> LooksFinding | None:
        return looks_finding(observed.scheme, observed.ran, withdrawn=observed.withdrawn)

    def adapt(self, found: LooksFinding, contrast: Contrast, scheme: Scheme, columns: Columns) -> Contrast:
        return allowing_for_looks(contrast, found, scheme, columns)

    def test_margin(self, declared: Primary, scheme: Scheme, margin: float) -> EquivalenceTest:
        plan = design_of(declared, scheme.planned_reps, revised_reps(scheme.decisions))
        seen = decided_counts([one.stage for one in scheme.decisions])[1]
        return looked_equivalence(plan, len(scheme.decisions), seen, margin, declared.alpha)

    def judge_runs(self, found: LooksFinding, scheme: Scheme) -> RunJudge:
        return LookedTest.of(scheme, stagewise=found.stagewise)

    def has_ended(self, found: LooksFinding) -> bool:
        return found.ended is not None and not found.extended

    def goes_on(self, found: LooksFinding) -> bool:
        return found.ended is None

    def explain_stop(self, found: LooksFinding) -> str | None:
        return found.given_up

    def name_last_look(self, found: LooksFinding) -> str:
        if not found.taken:
            return "decided"
        return f"{'decided' if found.ended else 'going on'} at look {found.taken[-1].number}"

    def add_sentences(self, found: LooksFinding, reported: Reported) -> Iterator[str]:
        why = None if found.ended is None else _name_saving(found)
        if why is None:
            return
        taken, fixed_plan = found.trials, plural(found.planned_trials, "trial")
        fixed = ""
        if taken.cost_usd:
            each = taken.cost_usd / (taken.trials - taken.unpriced)
            fixed = f" and {quantity(each * found.planned_trials, 'usd')}"
        took = f"this answer took {trials_taken(taken)}"
        yield f"{why}: {took}; the fixed plan would have taken {fixed_plan}{fixed}."

    def summarise(self, found: LooksFinding, reported: Reported) -> tuple[str, str | None]:
        going = "the campaign was cancelled" if reported.cancelled else "the campaign goes on"
        state = f"decided: {found.ended}" if found.ended else going
        estimate = _name_estimate(found, cancelled=reported.cancelled)
        reps = (
            f"; {plural(found.planned[-1], 'rep')} re-estimated, {found.revised_from} planned"
            if found.revised_from
            else ""
        )
        return f"{len(found.taken)} of {len(found.planned)} taken", f"{state}{estimate}{reps}"

    def section(self, found: LooksFinding, reported: Reported) -> ReportSection:
        return looks_section(found)

    def draw(self, found: LooksFinding, reported: Reported) -> Drawing | None:
        return draw_bounds(found)

    def note_interim(self, found: LooksFinding) -> str | None:
        if not self.has_ended(found):
            return None
        return "A declared look ended the campaign: only the p-values of contrasts on these tasks allow for that."

    def except_when_monitored(self, found: LooksFinding) -> str:
        return " but those that allow for the declared looks"

    def except_when_extended(self, found: LooksFinding) -> str:
        return "; the declared contrast's p and limits are those of the look that decided"

    def note_on_contrasts(self) -> str:
        return (
            " The p-values of contrasts on these tasks allow for the declared looks; those on tasks like these do "
            "not."
        )

    def list_cautions(self, found: LooksFinding, reported: Reported) -> Iterator[str]:
        """Saturated tasks, and what their leaving changes in what is estimated."""
        if not found.dropped:
            return
        names = sorted(found.dropped)
        more = len(names) - NAMED
        rest = f" and {more} more, all in report.json" if more > 0 else ""
        yield (
            f"As declared, {len(names)} of {plural(reported.tasks, 'task')} had no trials after block "
            f"{found.drop_after}, since all or none of their trials had passed over all conditions together: "
            f"{', '.join(names[:NAMED])}{rest}. They stay in every mean with the trials they have. A difference "
            "that only their later trials would have shown counts as 0, so that differences are somewhat smaller "
            "than if every task had all its reps; the exact test keeps its size."
        )

    def describe_changes(self, found: LooksFinding) -> Iterator[str]:
        if found.revised_from is not None:
            yield f"{plural(found.revised_from, 'repetition')} were planned; the declared look after block"
            yield f"{found.reestimate_after} re-estimated them, blinded, as {found.planned[-1]}."
        if found.dropped:
            gone = plural(len(found.dropped), "task")
            yield f"As declared, {gone} had no trials after block {found.drop_after},"
            yield "since all or none of their trials had passed over all conditions together."


def _name_saving(found: LooksFinding) -> str | None:
    """What saved trials: a stop before the last block, or tasks that were left out."""
    last, of = found.taken[-1], found.planned[-1]
    if last.blocks < of:
        return (
            f"Stopped for {found.ended} at look {last.number} of {len(found.planned)}, after {last.blocks} of "
            f"{plural(of, 'block')}"
        )
    if found.dropped:
        return f"Left out after block {found.drop_after}, saturated: {plural(len(found.dropped), 'task')}"
    return None


def _name_estimate(found: LooksFinding, *, cancelled: bool) -> str:
    """Which difference stands in the table above, or the one that allows for looks."""
    if found.taken and not found.stagewise and (found.ended or cancelled):
        early = found.ended != "end" or found.taken[-1].blocks < found.planned[-1]
        return f"; raw difference{', stopped early' if early else ''}"
    median = found.difference.estimate if found.difference is not None and found.unbiased else None
    return "" if median is None else f"; median-unbiased difference {points(median)}"
