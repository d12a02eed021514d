"""Four treatments, of which two go on after 40% of the blocks."""

from __future__ import annotations

from collections.abc import Iterator

from trialfleet_designs.document.tables import ReportSection
from trialfleet_designs.halving.answer import halving_sentences
from trialfleet_designs.halving.finding import HalvingFinding, halving_finding
from trialfleet_designs.halving.section import halving_section
from trialfleet_designs.protocol import Design, Observed, Reported, SeenAtLook
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.halving import halved
from trialfleet_ledger.designs.looks import DecisionResult
from trialfleet_ledger.errors import OperatorError


class HalvingDesign(Design[Primary, HalvingFinding]):
    """`primary: {halve: true}`."""

    uses = frozenset({"treatments that are halved"})

    def decide(self, declared: Primary, seen: SeenAtLook) -> DecisionResult:
        tasks = {one.task for one in seen.stage}
        compared = [one for one in seen.outcomes if one.trial.task in tasks]
        return halved(compared, seen.conditions, treatment=declared.treatment, control=declared.control)

    def refuse_combining(self, declared: Primary) -> OperatorError:
        return OperatorError(
            "the campaign halved its treatments (primary.halve): no test over several such campaigns is specified",
            hint="leave it out, and read its own report",
        )

    def find(self, declared: Primary, observed: Observed) -> HalvingFinding | None:
        return halving_finding(observed.scheme, observed.ran)

    def may_end_early(self, found: HalvingFinding) -> bool:
        return not found.left_out

    def add_sentences(self, found: HalvingFinding, reported: Reported) -> Iterator[str]:
        return halving_sentences(found, reported)

    def section(self, found: HalvingFinding, reported: Reported) -> ReportSection:
        return halving_section(found, reported.control)

    def list_cautions(self, found: HalvingFinding, reported: Reported) -> Iterator[str]:
        if not found.left_out:
            coming = f"As declared, treatments are left out after block {found.after}."
            yield coming if found.never is None else f"Not as declared: {found.never}."
            return
        yield (
            f"As declared, {' and '.join(found.left_out)} had no trials after block {found.after}, left out for "
            "their pass rates: their rates, times and costs are of those blocks alone, lower than the truth on "
            "average, and in no test. The control's later blocks have no counterpart in them. "
            f"{found.chosen} was chosen for its rate, so that its difference is somewhat larger than the truth on "
            "average; its test allows for that."
        )

    def describe_changes(self, found: HalvingFinding) -> Iterator[str]:
        if found.left_out:
            yield f"As declared, {' and '.join(found.left_out)} had no trials after block {found.after}:"
            yield f"of the four treatments {found.chosen} went on with the declared one, having the highest mean"
            yield "pass rate of the three others."

    def describe_alpha(self, found: HalvingFinding) -> str:
        return f" (a quarter of {found.alpha:g}, as of each of four treatments that is left)"
