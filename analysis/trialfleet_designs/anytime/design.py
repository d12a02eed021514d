"""A campaign without a fixed end: bets on pairs decide after any block."""

from __future__ import annotations

from collections.abc import Iterator

from trialfleet_designs.anytime.drawing import draw_wealth
from trialfleet_designs.anytime.finding import AnytimeFinding, anytime_finding, at_any_look
from trialfleet_designs.anytime.section import blocks_section
from trialfleet_designs.comparison.columns import Columns, Scheme
from trialfleet_designs.comparison.contrast import Contrast, side
from trialfleet_designs.comparison.pair_evidence import PairEvidence
from trialfleet_designs.document.drawing import Drawing
from trialfleet_designs.document.tables import ReportSection
from trialfleet_designs.document.trials_taken import trials_taken
from trialfleet_designs.monitoring import look_result
from trialfleet_designs.power.stops import Stopping, StopsPlan, bets_plan
from trialfleet_designs.protocol import Design, Observed, Reported, SeenAtLook
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import DecisionResult
from trialfleet_ledger.plurals import plural


class AnytimeDesign(Design[Primary, AnytimeFinding]):
    """`primary: {stop: {anytime: …}}`."""

    allows_for_looks = True
    uses = frozenset({"a contrast without a fixed end"})

    def decide(self, declared: Primary, seen: SeenAtLook) -> DecisionResult:
        return look_result(declared, seen.reps, seen.earlier, seen.stage)

    def plan_stops(self, stopping: Stopping) -> StopsPlan:
        return {"looks": None, "bets": bets_plan(stopping)}

    def multiply(self, found: AnytimeFinding) -> PairEvidence:
        last = found.taken[-1]
        return PairEvidence(
            tasks=len(found.tasks),
            blocks=last.blocks,
            won=last.won,
            lost=last.lost,
            equal=last.equal,
            broken=found.broken,
            side=side(last.margin),
            halted=found.halted,
            log_evidence=last.log_evidence,
            p_value=found.p_value,
            difference=found.difference,
            ended=found.ended,
        )

    def find(self, declared: Primary, observed: Observed) -> AnytimeFinding | None:
        return anytime_finding(observed.scheme, observed.ran)

    def adapt(self, found: AnytimeFinding, contrast: Contrast, scheme: Scheme, columns: Columns) -> Contrast:
        return at_any_look(contrast, found, scheme, columns)

    def is_fixed_on(self, estimand: str) -> bool:
        return estimand != "these_tasks"

    def has_ended(self, found: AnytimeFinding) -> bool:
        return found.ended is not None

    def goes_on(self, found: AnytimeFinding) -> bool:
        return found.ended is None

    def name_last_look(self, found: AnytimeFinding) -> str:
        if not found.taken:
            return "decided"
        return f"{'decided' if found.ended else 'going on'} after block {found.taken[-1].blocks}"

    def add_sentences(self, found: AnytimeFinding, reported: Reported) -> Iterator[str]:
        if found.ended is not None:
            after = plural(found.taken[-1].blocks, "block")
            yield f"Stopped for {found.ended} after {after}: this answer took {trials_taken(found.trials)}."

    def summarise(self, found: AnytimeFinding, reported: Reported) -> tuple[str, str | None]:
        state = f"decided: {found.ended}" if found.ended else "may go on"
        blocks = "each block" if len(found.taken) == 1 else f"each of {plural(len(found.taken), 'block')}"
        return f"after {blocks}", state

    def section(self, found: AnytimeFinding, reported: Reported) -> ReportSection:
        return blocks_section(found, reported)

    def draw(self, found: AnytimeFinding, reported: Reported) -> Drawing | None:
        return draw_wealth(found, reported.alpha)

    def note_interim(self, found: AnytimeFinding) -> str | None:
        if found.ended is None:
            return None
        return "A block's bets ended the campaign: only the p-values of contrasts on these tasks allow for that."

    def except_when_monitored(self, found: AnytimeFinding) -> str:
        return " but those of contrasts on these tasks"

    def except_when_extended(self, found: AnytimeFinding) -> str:
        return ", except for those of contrasts on these tasks, which hold at any look"

    def note_on_contrasts(self) -> str:
        return (
            " The p-values and limits of contrasts on these tasks hold at any look; those on tasks like these do "
            "not."
        )

    def note_on_power(self) -> str:
        return (
            " All of this is for one test at a fixed end. On these tasks this campaign bets instead, which needs "
            "about half as many reps again for the same power."
        )
