"""Where a campaign stands, read from the store alone and fast: JSON is taken as it is, nothing slow imported."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic_core import from_json

from trialfleet_controller import keys
from trialfleet_runner.blocks import CellName, Ended, complete_blocks
from trialfleet_runner.contract import LossClass
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.protocol import Store


@dataclass
class Condition:
    """Counts of one condition. `interim_*`: within the longest prefix of complete blocks alone, because early
    finishers would bias a rate over everything that has ended. The rate is the mean of the rates of the compared
    tasks' cells, not the quotient of the two counts: losses are not spread evenly over tasks."""

    planned: int = 0
    measured: int = 0
    abandoned: int = 0
    running: int = 0
    lost_attempts: int = 0
    interim_passed: int = 0
    interim_measured: int = 0
    interim_rate: float | None = None


@dataclass
class Standing:
    """`running`: attempts with a start (or an intent) and no end; somebody may run them. `bundles`: what the
    counts rest on, for a quick look reads none of them."""

    campaign: str
    state: str
    reps: int
    blocks: int
    complete_blocks: int
    conditions: dict[str, Condition]
    losses: dict[str, int]
    halts: list[str] = field(default_factory=list[str])
    amendments: int = 0
    after_look: bool = False
    cancelled: str | None = None
    quarantined: int = 0
    bundles: str = "verified by the controller when it kept them; `trialfleet report` reads every one again"
    banner: str | None = None

    @property
    def planned(self) -> int:
        return sum(c.planned for c in self.conditions.values())

    @property
    def terminal(self) -> int:
        return sum(c.measured + c.abandoned for c in self.conditions.values())

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "planned": self.planned, "terminal": self.terminal}


def read_standing(store: Store, campaign: str) -> Standing:
    """Raises `OperatorError` when there is no such campaign."""
    raw = store.get(keys.plan(campaign))
    if raw is None:
        raise OperatorError(f"no campaign {campaign!r}", where=store.url, hint="start it with `trialfleet run`")
    plan: dict[str, Any] = json.loads(raw)
    amendments = _all(store, keys.folder(campaign, "amendments"))
    reps = max([plan["reps"], *(a["reps"] for a in amendments if a["reps"] is not None)])
    cells = [(cell["task"], cell["condition"]["name"]) for cell in plan["cells"]]
    conditions = {name: Condition(planned=count * reps) for name, count in Counter(c for _, c in cells).items()}
    quarantined = _quarantined(store, campaign)
    outcomes = [_missing(outcome, quarantined) for outcome in _outcomes(store, campaign)]
    halts = _halts(store, campaign, amendments)
    halted = {halt["task"] for halt in halts if halt["task"] is not None}
    complete = complete_blocks(cells, map(_ended, outcomes), reps, halted=halted)
    losses: Counter[str] = Counter()
    for outcome in outcomes:
        _count(conditions[outcome["trial"]["condition"]], outcome, losses)
    primary = {task["order"]["id"] for task in plan["tasks"] if task["primary"]} - halted
    _rate(conditions, primary, [outcome for outcome in outcomes if outcome["trial"]["block"] < complete])
    standing = Standing(
        campaign=campaign,
        state="",
        reps=reps,
        blocks=reps,
        complete_blocks=complete,
        conditions=conditions,
        losses=losses,
        amendments=len(amendments),
        after_look=any(a["after_look"] for a in amendments),
        banner=plan["banner"],
    )
    if standing.terminal < standing.planned:
        _count_open(store, plan, reps, {outcome["trial"]["id"] for outcome in outcomes}, standing, losses)
    standing.halts = [f"{halt['task'] or 'the campaign'}: {halt['reason']}" for halt in halts]
    standing.cancelled = _cancelled(store, campaign)
    standing.quarantined = len(quarantined)
    standing.losses = dict(losses.most_common())
    standing.state = _state(standing, store)
    return standing


def _outcomes(store: Store, campaign: str) -> list[dict[str, Any]]:
    found = [entry.key for entry in store.list(keys.outcomes(campaign))]
    return [from_json(raw) for _, raw in store.get_many(found) if raw is not None]


def _quarantined(store: Store, campaign: str) -> set[tuple[str, str]]:
    """(trial, attempt) of every bundle that did not match its end."""
    listed = (entry.key.split("/") for entry in store.list(f"{campaign}/quarantine/"))
    return {(trial, name.removesuffix(".json")) for *_, trial, name in listed}


def _missing(outcome: dict[str, Any], quarantined: set[tuple[str, str]]) -> dict[str, Any]:
    """A measurement whose bundle was quarantined, when ever that was, is none: as the report has it."""
    if outcome["scored"] is None or (outcome["trial"]["id"], str(outcome["attempts"])) not in quarantined:
        return outcome
    lost = LossClass.QUARANTINED.value
    return {**outcome, "scored": None, "abandoned": lost, "losses": [*outcome["losses"], lost]}


def _count(counts: Condition, outcome: dict[str, Any], losses: Counter[str]) -> None:
    losses.update(outcome["losses"])
    counts.lost_attempts += len(outcome["losses"])
    if outcome["scored"] is None:
        counts.abandoned += 1
    else:
        counts.measured += 1


def _ended(outcome: dict[str, Any]) -> Ended:
    trial = outcome["trial"]
    return trial["task"], trial["condition"], trial["block"], outcome["abandoned"]


def _rate(conditions: dict[str, Condition], primary: set[str], outcomes: list[dict[str, Any]]) -> None:
    """Sets the rates as the report makes them: the mean of a condition's cells over the `primary` tasks that were
    measured in every condition which measured anything. `outcomes`: of complete blocks."""
    passed: Counter[CellName] = Counter()
    measured: Counter[CellName] = Counter()
    for outcome in outcomes:
        cell = outcome["trial"]["task"], outcome["trial"]["condition"]
        if outcome["scored"] is not None and cell[0] in primary:
            measured[cell] += 1
            passed[cell] += outcome["scored"]["verdict"] == "passed"
    alive = {condition for _, condition in measured}
    compared = [task for task in primary if all(measured[task, name] for name in alive)]
    for name in alive if compared else ():
        condition = conditions[name]
        condition.interim_passed = sum(passed[task, name] for task in compared)
        condition.interim_measured = sum(measured[task, name] for task in compared)
        condition.interim_rate = sum(passed[task, name] / measured[task, name] for task in compared) / len(
            compared
        )


def _count_open(
    store: Store, plan: dict[str, Any], reps: int, done: set[str], standing: Standing, losses: Counter[str]
) -> None:
    """Running attempts, and losses of trials that are not over yet."""
    from trialfleet_controller.plan import trials
    from trialfleet_runner.campaign import Plan

    campaign = standing.campaign
    condition_of = {trial.id: trial.condition for trial in trials(Plan.model_validate(plan), reps)}
    begun: dict[tuple[str, int], set[str]] = {}
    for entry in store.list(keys.attempts(campaign)):
        key = keys.parse_attempt(campaign, entry.key)
        if key is not None and key.trial not in done and key.trial in condition_of:
            begun.setdefault((key.trial, key.attempt), set()).add(key.name)
    ended: list[str] = []
    for (trial, n), names in begun.items():
        if "end.json" in names:
            ended.append(keys.attempt_file(campaign, trial, n, "end.json"))
        elif "intent.json" in names:
            standing.conditions[condition_of[trial]].running += 1
    for end, raw in store.get_many(ended):
        loss = json.loads(raw)["loss"] if raw is not None else None
        if loss is not None:
            losses[loss["loss"]] += 1
            standing.conditions[condition_of[end.split("/")[-3]]].lost_attempts += 1


def _all(store: Store, prefix: str) -> list[dict[str, Any]]:
    found = [entry.key for entry in store.list(prefix)]
    return [json.loads(raw) for _, raw in store.get_many(found) if raw is not None]


def _halts(store: Store, campaign: str, amendments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those in force."""
    lifted = {number for amendment in amendments for number in amendment["lifts"]}
    return [halt for halt in _all(store, keys.folder(campaign, "halts")) if halt["number"] not in lifted]


def _cancelled(store: Store, campaign: str) -> str | None:
    raw = store.get(keys.cancel(campaign, now=True)) or store.get(keys.cancel(campaign))
    return json.loads(raw)["by"] if raw is not None else None


def _state(standing: Standing, store: Store) -> str:
    cut = standing.cancelled and LossClass.CANCELLED in standing.losses
    if standing.terminal >= standing.planned and not cut:
        return "complete"
    if standing.cancelled:
        return "cancelled"
    beats = [
        entry.key for entry in store.list(keys.folder(standing.campaign, "epochs")) if entry.key.endswith(".beat")
    ]
    raw = store.get(max(beats, key=keys.number_of)) if beats else None
    if raw is not None and json.loads(raw)["state"] == "driving":
        return "driven (or its controller died: `trialfleet resume` tells)"
    return "halted" if standing.halts else "stopped: `trialfleet resume` goes on"
