"""The status of a campaign, read from the store alone. Fast: it parses plain JSON and imports nothing slow."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, cast

from trialfleet_controller.backends.local import machine
from trialfleet_controller.backends.protocol import Liveness, Wait
from trialfleet_controller.cost_estimate import so_far_and_projected
from trialfleet_controller.dispatch.attempt_width import FROZEN, width_bound
from trialfleet_controller.dispatch.epochs import Heartbeat, HeartbeatConfig
from trialfleet_controller.dispatch.unplaced_attempts import unplaced_message
from trialfleet_controller.status.outcomes import (
    list_equal_arms,
    quarantined_attempts,
    read_outcomes,
    settle_json,
    without_quarantined,
    without_tampered,
)
from trialfleet_ledger import keys
from trialfleet_ledger.amendments import (
    ending_look,
    ends_at,
    explain_void,
    in_force,
    planned_reps,
    select_halted_cells,
)
from trialfleet_ledger.blocks import CellName, Ended, PlannedReps, complete_blocks
from trialfleet_ledger.compared_tasks import select_compared
from trialfleet_ledger.designs.looks import Decision, stopped
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.parsed_records import R, parse_record
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.directives import Amendment, Cancel, Epoch, Halt
from trialfleet_ledger.records.verdicts import LossClass, Stop, Verdict
from trialfleet_ledger.spent_money import EndedTrial, is_out_of_money
from trialfleet_ledger.store.clock import NEAR_S
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.store.rereading import WHILE_READING_S
from trialfleet_ledger.stored_journal import (
    by_trial,
    check_reads,
    of_campaign,
    read_begun,
    read_journal,
    stand_in_outcomes,
)
from trialfleet_ledger.stored_records import readable
from trialfleet_ledger.untrusted import finite

# A second controller waits as long before it takes over; the clocks of store and machine may differ.
SILENT_S = HeartbeatConfig().takeover_s + NEAR_S


class State(StrEnum):
    """Every value of `state` in `trialfleet status --json`."""

    PLANNED = "planned"  # frozen, never driven
    RUNNING = "running"  # its controller is alive
    STALLED = "stalled"  # its controller died before the end
    HALTED = "halted"  # a halt is in force, and no controller drives the rest
    CANCELLED = "cancelled"
    INCOMPLETE = "incomplete"  # trials are not measured: interrupted, out of money, or abandoned
    DECIDED = "decided"  # a declared look has ended it
    COMPLETE = "complete"  # every planned trial is measured


@dataclass(frozen=True)
class Controller:
    """Who claimed the campaign last. `host`, `pid`: None if its record cannot be read. `ended`: its heartbeat says
    so. `heartbeat_age_s`: by the store's clock; None: not known."""

    epoch: int
    host: str | None
    pid: int | None
    ended: bool
    heartbeat_age_s: float | None
    alive: bool


def _lives(epoch: Epoch | None, age_s: float | None) -> bool:
    """A process of this machine is looked up; for another machine, only the heartbeat tells."""
    here = Liveness.UNKNOWN if epoch is None else machine.whereabouts(epoch)
    if epoch is not None and here is Liveness.ALIVE:
        return machine.process_lives(epoch.pid, before=epoch.at)
    return here is Liveness.UNKNOWN and age_s is not None and age_s <= SILENT_S


@dataclass
class ConditionStatus:
    """Counts of one condition. `interrupted`: attempts that the operator stopped, by Ctrl-C or `cancel --now`;
    `lost_attempts`: all other lost ones. `crashed`: measured trials whose agent never began to work; `forged`:
    those with that verdict. `interim_*`: within the longest prefix of complete blocks alone, because early
    finishers would bias a rate over everything that has ended. The rate is the mean of the rates of the compared
    tasks' cells, not the quotient of the two counts: losses are not spread evenly over tasks."""

    planned: int = 0
    measured: int = 0
    abandoned: int = 0
    running: int = 0
    pending: int = 0
    lost_attempts: int = 0
    interrupted: int = 0
    crashed: int = 0
    forged: int = 0
    interim_passed: int = 0
    interim_measured: int = 0
    interim_rate: float | None = None


@dataclass
class CampaignStatus:
    """`losses`: lost attempts by class, without those that the operator stopped, which are `stops`. `running`:
    attempts with a start and no end; `pending`: with an intent and no start, and what keeps them,
    from their controller's last heartbeat. `controller`: who claimed the campaign last; None: nobody.
    `out_of_time`: trials are open, and the wall-clock limit has passed. `unreadable`: records of halts, amendments
    and epochs that cannot be read. `bundles`: what the counts rest on, because no bundle is read here.
    `cost_usd`: of the measured trials so far; None: none has a known cost. `projected_cost_usd`: with the open
    trials, at what those of complete blocks cost; None before the first. Neither counts lost attempts."""

    campaign: str
    dry_run: bool
    title: str  # the campaign's name; of a dry run, with that label
    state: State
    reps: int
    blocks: int
    complete_blocks: int
    conditions: dict[str, ConditionStatus]
    losses: dict[str, int]
    stops: dict[str, int] = field(default_factory=dict[str, int])
    controller: Controller | None = None
    pending: dict[Wait, int] = field(default_factory=dict[Wait, int])
    halts: list[str] = field(default_factory=list[str])
    unreadable: list[str] = field(default_factory=list[str])
    amendments: int = 0
    after_look: bool = False
    cancelled: str | None = None
    looks_planned: int = 0
    looks_taken: int = 0
    look_bounds: dict[int, float] = field(default_factory=dict[int, float])  # by block: the p that decides
    dropped: dict[str, int] = field(default_factory=dict[str, int])  # tasks left out, after how many blocks
    halving_after: int = 0  # blocks after which two of four treatments are left out; 0: none are
    halved: list[str] | None = None  # these two; None: not yet
    to_halve: int = 0  # trials of the conditions that the halving will leave out, whichever it chooses
    no_look: str | None = None  # why none of the looks that are left is taken
    revised_from: int | None = None  # the planned reps, once a look has re-estimated them
    anytime: bool = False  # it is looked at after every block, and has no fixed end
    decided: str | None = None  # "benefit", "harm" or "futility": a declared look has ended it
    extended: bool = False  # reps were added after that
    out_of_time: bool = False
    quarantined: int = 0
    tampered: list[str] = field(default_factory=list[str])  # records that are not as they were written
    left_out: int = 0  # trials without an outcome that never run again, because of such records
    unplanned: int = 0  # outcomes that the plan has no place for
    refused: str | None = None  # why `resume` starts nothing
    out_of_money: bool = False  # trials are open, and the cost cap allows none of them
    bundles: str = (
        "verified by the controller when it stored the outcomes; `trialfleet report` verifies each again"
    )
    banner: str | None = None
    deliveries: list[str] = field(default_factory=list[str])  # measured otherwise than declared, or not at all
    cost_usd: float | None = None
    projected_cost_usd: float | None = None
    width: str | None = None  # why fewer attempts run at once than the campaign asks for
    unplaced: str | None = None  # why launched attempts find no place
    equal_arms: list[str] = field(default_factory=list[str])  # conditions with the same first requests

    @property
    def planned(self) -> int:
        return sum(c.planned for c in self.conditions.values()) - self.to_halve

    @property
    def terminal(self) -> int:
        return sum(c.measured + c.abandoned for c in self.conditions.values())

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "planned": self.planned, "terminal": self.terminal}


def read_status(store: Store, campaign: str) -> CampaignStatus:
    """Raises `OperatorError` when there is no such campaign."""
    journal = read_journal(store, campaign)  # before the records that it names
    reads = check_reads(store, campaign, journal)
    whole, store = store, cast("Store", reads)
    plan = Ledger(store, campaign).plan()
    amended, halts = readable(store, campaign, "amendments", Amendment), readable(store, campaign, "halts", Halt)
    decisions = readable(store, campaign, "decisions", Decision)
    holding = in_force(halts.records, amended.records)
    cells, planned = plan.cell_names, planned_reps(plan, amended.records, decisions.records, holding)
    reps, conditions = planned.most, _conditions(cells, planned)
    quarantined = quarantined_attempts(store, campaign)
    every, own = read_outcomes(store, campaign), frozenset(cells)
    stored = [one for one in every if _cell(one) in own and _includes(planned, one)]
    done = {outcome["trial"]["id"] for outcome in stored}
    if len(done) < planned.trials(cells):
        read_begun(reads, journal, done)
    refusal = journal.refusal(reads.read.get(keys.plan(campaign)) or "")
    faults, store = {**reads.find_faults(), **refusal}, whole
    tampered = done if keys.PLAN in faults else by_trial(faults).keys()
    unplanned = len(every) - len(stored)
    stand_ins = stand_in_outcomes(plan, planned.most, by_trial(faults).keys() - done)
    left_out = [
        one for one in stand_ins if planned.includes((one.trial.task, one.trial.condition), one.trial.block)
    ]
    gone, stored = {one.trial.id for one in left_out}, [*stored, *(o.model_dump(mode="json") for o in left_out)]
    outcomes = [without_quarantined(outcome, quarantined) for outcome in without_tampered(stored, tampered)]
    halted = select_halted_cells(cells, holding)
    complete = complete_blocks(cells, map(_ended, outcomes), planned, halted=halted)
    losses: Counter[LossClass] = Counter()
    for outcome in outcomes:
        _count(conditions[outcome["trial"]["condition"]], outcome, losses)
    counted = [o for o in outcomes if o["trial"]["block"] < complete and _cell(o) not in halted]
    _rate(conditions, plan, counted)
    status = CampaignStatus(
        campaign=campaign,
        dry_run=plan.dry_run,
        title=plan.title,
        state=State.PLANNED,
        reps=reps,
        blocks=reps,
        complete_blocks=complete,
        conditions=conditions,
        losses={},
        amendments=len(amended.records),
        after_look=any(amendment.after_look for amendment in amended.records),
        banner=plan.banner,
        tampered=[*of_campaign(faults), *by_trial(faults).values()],
        left_out=len(left_out),
        unplanned=unplanned,
        refused=next(iter(refusal.values()), None),
        deliveries=[doubt for one in plan.deliveries.values() for doubt in one.doubts()],
        unreadable=[*amended.unreadable, *halts.unreadable, *decisions.unreadable],
        equal_arms=list_equal_arms(plan, counted),
    )
    status.to_halve = planned.left_out(cells)
    _count_looks(plan, decisions.records, amended.records, holding, status)
    status.cost_usd, status.projected_cost_usd = so_far_and_projected(outcomes, cells, planned, complete)
    if status.terminal < status.planned:
        attempts, ended = [entry.key for entry in store.list(keys.attempts(campaign))], map(_priced, stored)
        _count_open(store, plan, reps, done | gone, attempts, status, losses)
        status.out_of_money = is_out_of_money(store, plan, amended.records, reps, ended, gone, attempts)
    status.halts = [f"{halt.scope}: {halt.reason}" for halt in holding]
    status.cancelled = _cancelled(store, status)
    status.quarantined = len(quarantined)
    status.losses, status.stops = (_named(losses, by_operator=operator) for operator in (False, True))
    claims = readable(store, campaign, "epochs", Epoch)
    status.unreadable += claims.unreadable
    status.controller = _controller(store, status, claims.records)
    if status.terminal < status.planned:
        end = ends_at(plan, amended.records, _first_at(claims.records))
        status.out_of_time = end is not None and store.now() >= end
    status.state = _state(status)
    if status.state is State.RUNNING:
        _explain_width(plan, status)
    return status


def _includes(planned: PlannedReps, outcome: dict[str, Any]) -> bool:
    return planned.includes(_cell(outcome), outcome["trial"]["block"])


def _named(losses: Counter[LossClass], *, by_operator: bool) -> dict[str, int]:
    return {loss.value: count for loss, count in losses.most_common() if loss.by_operator is by_operator}


def _first_at(epochs: Iterable[Epoch]) -> float | None:
    """When the first controller took the campaign."""
    return next((epoch.at for epoch in epochs if epoch.number == 1), None)


def _priced(outcome: dict[str, Any]) -> EndedTrial:
    scored = outcome["scored"]
    cost_usd = None if scored is None else finite(scored["metrics"]["cost_usd"])
    return EndedTrial(outcome["trial"]["id"], outcome["attempts"], scored is not None, cost_usd)


def _explain_width(plan: Plan, status: CampaignStatus) -> None:
    bound = width_bound(plan, reps=status.reps)
    if bound.remedy is not None:
        status.width = f"at most {plural(bound.attempts, 'attempt')} at once: {bound.reason} ({FROZEN})"
    running = sum(condition.running for condition in status.conditions.values())
    status.unplaced = unplaced_message(status.pending, running, plan.limits)


def _conditions(cells: Sequence[CellName], planned: PlannedReps) -> dict[str, ConditionStatus]:
    found: dict[str, ConditionStatus] = {}
    for cell in cells:
        found.setdefault(cell[1], ConditionStatus()).planned += planned.of(cell)
    return found


def _count_looks(
    plan: Plan,
    taken: Sequence[Decision],
    amendments: Sequence[Amendment],
    halts: Collection[Halt],
    status: CampaignStatus,
) -> None:
    """Declared looks, or the halving: how many there are, and what they have decided."""
    schedule = plan.schedule
    if schedule is None:
        return
    for name, value in vars(schedule.count_looks(plan.reps, status.reps, taken)).items():
        setattr(status, name, value)  # its fields are named alike
    status.extended = stopped(taken) is not None and ending_look(taken, amendments) is None
    status.no_look = explain_void(plan, status.reps, taken, halts)


def _count(counts: ConditionStatus, outcome: dict[str, Any], losses: Counter[LossClass]) -> None:
    for loss in outcome["losses"]:
        _count_loss(counts, LossClass(loss), losses)
    if outcome["scored"] is None:
        counts.abandoned += 1
    else:
        counts.measured += 1
        counts.crashed += outcome["scored"]["stop"] == Stop.CRASHED
        counts.forged += outcome["scored"]["verdict"] == Verdict.FORGED


def _cell(outcome: dict[str, Any]) -> CellName:
    return outcome["trial"]["task"], outcome["trial"]["condition"]


def _count_loss(counts: ConditionStatus, loss: LossClass, losses: Counter[LossClass]) -> None:
    losses[loss] += 1
    counts.interrupted += loss.by_operator
    counts.lost_attempts += not loss.by_operator


def _ended(outcome: dict[str, Any]) -> Ended:
    trial = outcome["trial"]
    return trial["task"], trial["condition"], trial["block"], outcome["abandoned"]


def _rate(conditions: dict[str, ConditionStatus], plan: Plan, outcomes: list[dict[str, Any]]) -> None:
    """Set the rates as the report computes them: the mean of a condition's cells over the tasks of the declared
    contrast, else over those that all conditions share which measured anything. `outcomes`: of complete blocks."""
    primary = [task.order.id for task in plan.tasks if task.primary]
    passed: Counter[CellName] = Counter()
    measured: Counter[CellName] = Counter()
    ran = Counter(map(_cell, outcomes))
    for outcome in outcomes:
        cell = _cell(outcome)
        if outcome["scored"] is not None and cell[0] in primary:
            measured[cell] += 1
            passed[cell] += outcome["scored"]["verdict"] == "passed"
    alive = {condition for _, condition in measured}
    declared = plan.declared
    pair = set(declared.sides.values()) if declared else alive
    compared = select_compared(
        primary,
        pair if pair <= alive else alive,
        lambda task, name: measured[task, name],
        lambda task, name: ran[task, name],
        keep_thin=plan.schedule is not None and plan.schedule.compares_by_stage,
    )
    for name in alive:
        condition = conditions[name]
        rates = [passed[task, name] / measured[task, name] for task in compared if measured[task, name]]
        if rates:
            condition.interim_passed = sum(passed[task, name] for task in compared)
            condition.interim_measured = sum(measured[task, name] for task in compared)
            condition.interim_rate = sum(rates) / len(rates)


def _begun(campaign: str, attempts: Iterable[str], of: Set[str]) -> dict[tuple[str, int], set[str]]:
    """The files of every attempt at these trials, by trial and attempt. `attempts`: keys."""
    found: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    for listed in attempts:
        key = keys.parse_attempt(campaign, listed)
        if key is not None and key.trial in of:
            found[key.trial, key.attempt].add(key.name)
    return found


def _count_open(
    store: Store,
    plan: Plan,
    reps: int,
    done: set[str],
    attempts: Sequence[str],
    status: CampaignStatus,
    losses: Counter[LossClass],
) -> None:
    """Count running attempts, and losses of trials that are not over. `attempts`: keys."""
    from trialfleet_ledger.trial_order import trials

    campaign = status.campaign
    condition_of = {trial.id: trial.condition for trial in trials(plan, reps)}
    open_trials = condition_of.keys() - done
    ended: dict[str, str] = {}
    for (trial, n), names in _begun(campaign, attempts, open_trials).items():
        if "end.json" in names:
            ended[keys.attempt_file(campaign, trial, n, "end.json")] = trial
        elif "start.json" in names:
            status.conditions[condition_of[trial]].running += 1
        elif "intent.json" in names:
            status.conditions[condition_of[trial]].pending += 1
    for end, raw in store.get_many(list(ended)):
        ending = settle_json(store, end, raw)
        loss = None if ending is None else ending["loss"]
        if loss is not None:
            _count_loss(status.conditions[condition_of[ended[end]]], LossClass(loss["loss"]), losses)


def _cancelled(store: Store, status: CampaignStatus) -> str | None:
    """Who cancelled it. A record that cannot be read is named in `unreadable`."""
    for key in (keys.cancel(status.campaign, now=True), keys.cancel(status.campaign)):
        found = _read_record(store, key, Cancel, status)
        if found is not None:
            return found.by
    return None


def _controller(store: Store, status: CampaignStatus, claims: Sequence[Epoch]) -> Controller | None:
    """Of the newest epoch. Epochs count up, and a heartbeat lies next to its epoch's record."""
    campaign = status.campaign
    written = {entry.key: entry.at for entry in store.list(keys.folder(campaign, "epochs"))}
    number = max(map(keys.number_of, written), default=0)
    if not number:
        return None
    key = keys.beat(campaign, number)
    beat = _read_record(store, key, Heartbeat, status)
    if beat is not None and beat.state == "driving":
        status.pending = dict(beat.pending)
    at = written.get(key, written.get(keys.numbered(campaign, "epochs", number)))
    age_s = None if at is None else max(0.0, store.now() - at)
    epoch = next((epoch for epoch in claims if epoch.number == number), None)
    ended = beat is not None and beat.state == "ended"
    host, pid = (None, None) if epoch is None else (epoch.host, epoch.pid)
    return Controller(number, host, pid, ended, age_s, alive=not ended and _lives(epoch, age_s))


def _read_record(store: Store, key: str, model: type[R], status: CampaignStatus) -> R | None:
    try:
        return parse_record(store, key, store.get(key), model, over_s=WHILE_READING_S)
    except OperatorError as error:
        status.unreadable.append(f"{error.where}: {error.message}")
        return None


def _state(status: CampaignStatus) -> State:
    """The first that holds. `cancel --now` ends trials that ran, so a campaign that it cut is not complete."""
    last, cancelled = status.controller, status.cancelled is not None
    measured = sum(c.measured for c in status.conditions.values())
    if measured >= status.planned and not (cancelled and LossClass.CANCELLED in status.stops):
        return State.COMPLETE
    if cancelled:
        return State.CANCELLED
    if status.decided is not None and not status.extended:
        return State.DECIDED
    if status.terminal >= status.planned:
        return State.INCOMPLETE
    if last is not None and last.alive:
        return State.RUNNING
    if last is not None and not last.ended:
        return State.STALLED
    if status.halts:
        return State.HALTED
    return State.PLANNED if last is None and status.terminal == 0 else State.INCOMPLETE
