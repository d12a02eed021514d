"""What a design is to those that drive a campaign, analyse it and report it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from trialfleet_designs.comparison.columns import CellCounts, Columns, Scheme, TrialsRun
from trialfleet_designs.comparison.compared import ComparedTasks
from trialfleet_designs.comparison.contrast import Contrast
from trialfleet_designs.comparison.declared_effect import DeclaredEffect
from trialfleet_designs.comparison.judge import RunJudge
from trialfleet_designs.comparison.outcome import Outcome
from trialfleet_designs.comparison.pair_evidence import PairEvidence
from trialfleet_designs.document.drawing import Drawing
from trialfleet_designs.document.effects import DrawnEffect
from trialfleet_designs.document.tables import ReportSection, ReportTable
from trialfleet_designs.power.effort import Effort
from trialfleet_designs.power.own_plan import OwnPlan
from trialfleet_designs.power.stops import Stopping, StopsPlan
from trialfleet_ledger.designs.declaration import Declaration
from trialfleet_ledger.designs.looks import Decision, DecisionResult, StageCounts
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.outcome import Outcome as TrialOutcome
from trialfleet_statistics.comparisons import EquivalenceTest
from trialfleet_statistics.comparisons.repositories import UNKNOWN, TaskRepositories
from trialfleet_statistics.estimates import Interval
from trialfleet_statistics.power import TaskRates

D = TypeVar("D", bound=Declaration)
F = TypeVar("F")


WITHDRAWN = "it was decided on data since withdrawn"
FRAGILE = "lost runs could change it"


def name_doubts(*, robust: bool, withdrawn: bool) -> tuple[str, ...]:
    """As `Design.list_doubts` has them."""
    return (*((WITHDRAWN,) if withdrawn else ()), *(() if robust else (FRAGILE,)))


@dataclass(frozen=True)
class SeenAtLook:
    """`reps`: of the plan; `earlier`: looks that were taken; `stage`: counts of the blocks since the last of them;
    `outcomes`: of these blocks; `conditions`: those that are not halted, in the order of the campaign file;
    `seed`: the plan's."""

    reps: int
    earlier: Sequence[Decision]
    stage: Sequence[StageCounts]
    outcomes: Sequence[TrialOutcome]
    conditions: tuple[str, ...]
    seed: int = 0


@dataclass(frozen=True, eq=False)
class PowerQuestion:
    """What `power` asks of a design. `rates`: of the tasks, its control being the condition that is expected to
    pass least; `population`: what they are, in words; `reps`: several designs; `effect`: None: not named; `cv`: a
    metric's coefficient of variation within a task and condition, None: not stated; `pilot`: that of each metric
    as a pilot has it; `pilot_of_means`: the same for differences of means; `repositories`: of the
    tasks."""

    campaign: str
    rates: TaskRates
    population: str
    reps: tuple[int, ...]
    effect: float | None
    effort: Effort
    cv: float | None = None
    pilot: Mapping[str, float] = field(default_factory=dict[str, float])
    pilot_of_means: Mapping[str, float] = field(default_factory=dict[str, float])
    repositories: TaskRepositories = UNKNOWN


@dataclass(frozen=True, eq=False)
class Observed:
    """What a finding is made of. `ran`: all trials that were run for the answer; `withdrawn`: data that a look
    counted no longer count."""

    scheme: Scheme
    columns: Columns
    counts: CellCounts
    ran: TrialsRun
    withdrawn: bool = False

    @property
    def verdicts(self) -> dict[str, list[bool]]:
        """Of each condition, whether each valid trial passed."""
        columns = self.columns
        return {
            name: columns.passed[columns.valid & (columns.condition == place)].tolist()
            for place, name in enumerate(self.scheme.conditions)
        }


@dataclass(frozen=True)
class Reported:
    """What a report has besides the finding. `rates`: of each condition, on these tasks; `monitored`: the campaign
    is not over; `extended`: reps were added after results were seen; `after_decision`: trials of blocks that the
    look which ended the campaign did not count; `tasks`: of the plan."""

    contrasts: tuple[Contrast, ...]
    rates: Mapping[str, Interval]
    alpha: float
    control: str
    monitored: bool
    cancelled: bool
    extended: bool
    after_decision: int
    tasks: int


class Design(Generic[D, F]):
    """One design: all that depends on which one a campaign declares. What a design does not have is empty here.

    `allows_for_looks`: p and limits of contrasts on these tasks hold at the looks that it takes. `plans_power`:
    its power is that of the plan with its looks. `plans_variation`: its power depends on how far a metric varies
    within a task. `uses`: of the report's methods, those of this design alone.
    """

    allows_for_looks = False
    plans_power = False
    plans_variation = False
    uses: frozenset[str] = frozenset()

    # --- while a campaign runs

    def decide(self, declared: D, seen: SeenAtLook) -> DecisionResult:
        """What the next look says."""
        raise NotImplementedError("this design takes no looks")

    # --- what is planned

    def plan_power(self, declared: D, question: PowerQuestion) -> OwnPlan | None:
        """Of a test in place of a contrast, None: it is not known."""
        return None

    def plan_stops(self, stopping: Stopping) -> StopsPlan:
        """What its looks are expected to find and to take."""
        return {"looks": None, "bets": None}

    # --- what is combined

    def refuse_combining(self, declared: D) -> OperatorError | None:
        """Why campaigns of this design are not combined with others; None: they are."""
        return None

    def bring_effect(self, declared: D, found: F, observed: Observed) -> DeclaredEffect | None:
        """Of a question or a metric, which are combined as such; None: a contrast is declared."""
        return None

    def multiply(self, found: F) -> PairEvidence | None:
        """Evidence that multiplies with other campaigns'; None: their trials add up in one test."""
        return None

    # --- what is found

    def find(self, declared: D, observed: Observed) -> F | None:
        """The finding of the declared test, beyond the contrasts that every report has."""
        return None

    def adapt(self, found: F, contrast: Contrast, scheme: Scheme, columns: Columns) -> Contrast:
        """A contrast, with p and limits that hold under this design."""
        return contrast

    def choose_tasks(self, found: F) -> ComparedTasks | None:
        """What the declared test is made of; None: of the declared contrast's tasks."""
        return None

    def test_margin(self, declared: D, scheme: Scheme, margin: float) -> EquivalenceTest | None:
        """Equivalence on these tasks; None: tested as with a fixed end."""
        return None

    def judge_runs(self, found: F, scheme: Scheme) -> RunJudge | None:
        """By what lost runs are judged on these tasks; None: by the test of a fixed end."""
        return None

    def is_fixed_on(self, estimand: str) -> bool:
        """Whether tests that suppose a fixed end hold for an estimand."""
        return True

    def has_ended(self, found: F) -> bool:
        """Whether a look has ended the campaign."""
        return False

    # --- what is said

    def answer(self, found: F, reported: Reported) -> tuple[str, ...] | None:
        """The first screen's sentences; None: those of the declared contrast."""
        return None

    def tell_outcome(self, found: F) -> Outcome | None:
        """None: that of the declared contrast."""
        return None

    def name_outcome(self, found: F) -> str | None:
        """Its outcome in a word or two, where that is none of a contrast's."""
        return None

    def list_doubts(self, found: F) -> tuple[str, ...]:
        """Why its own answer is not one to rely on, as clauses."""
        return ()

    def goes_on(self, found: F) -> bool:
        """Whether a later look may still decide."""
        return False

    def may_end_early(self, found: F) -> bool:
        """Whether some of the planned trials may not be run."""
        return self.goes_on(found)

    def explain_stop(self, found: F) -> str | None:
        """Why a look gave the campaign up, as a clause; None: it did not."""
        return None

    def name_last_look(self, found: F) -> str:
        """When results were seen that no longer hold, as a clause."""
        return "decided"

    def add_sentences(self, found: F, reported: Reported) -> Iterator[str]:
        """After the declared contrast's own."""
        return iter(())

    def summarise(self, found: F, reported: Reported) -> tuple[str, str | None] | None:
        """Of the first table, the cell on looks with its note."""
        return None

    def first_table(self, found: F, reported: Reported) -> ReportTable | None:
        """In the place of the declared contrast's table."""
        return None

    def lead_section(self, found: F, reported: Reported) -> ReportSection | None:
        """Before the contrasts."""
        return None

    def section(self, found: F, reported: Reported) -> ReportSection | None:
        """After the contrasts."""
        return None

    def list_effects(self, found: F) -> tuple[DrawnEffect, ...]:
        """What stands beside its answer, drawn; none: the declared contrast."""
        return ()

    def draw(self, found: F, reported: Reported) -> Drawing | None:
        """What stands above the tables of its section."""
        return None

    def note_interim(self, found: F) -> str | None:
        """A caution that replaces the one of an unfinished campaign."""
        return None

    def except_when_monitored(self, found: F) -> str:
        """Which p-values are valid while the campaign runs, after "no p-value"."""
        return ""

    def except_when_extended(self, found: F) -> str:
        """What is valid although reps were added after results were seen, at a sentence's end."""
        return ""

    def note_on_contrasts(self) -> str | None:
        """Which p-values of a running campaign's contrasts hold; None: none does."""
        return None

    def note_on_power(self) -> str:
        """Added to what the report says of power at a fixed end."""
        return ""

    def list_cautions(self, found: F, reported: Reported) -> Iterator[str]:
        """What its changes of the plan mean for the numbers."""
        return iter(())

    def describe_changes(self, found: F) -> Iterator[str]:
        """What looks changed in the plan, in sentences for a paper."""
        return iter(())

    def describe_alpha(self, found: F) -> str:
        """Added to the alpha of the declared contrast."""
        return ""
