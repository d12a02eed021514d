"""Where a campaign stands, read from the store alone and fast: JSON is taken as it is, nothing slow imported."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic_core import from_json

from trialfleet_controller import keys
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.protocol import Store


@dataclass
class Condition:
    """Counts of one condition. `interim_*`: within the longest prefix of complete blocks alone, because early
    finishers would bias a rate over everything that has ended."""

    planned: int = 0
    measured: int = 0
    abandoned: int = 0
    running: int = 0
    lost_attempts: int = 0
    interim_passed: int = 0
    interim_measured: int = 0

    @property
    def interim_rate(self) -> float | None:
        return self.interim_passed / self.interim_measured if self.interim_measured else None


@dataclass
class Standing:
    """`running`: attempts with a start (or an intent) and no end; somebody may run them."""

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
    banner: str | None = None

    @property
    def planned(self) -> int:
        return sum(c.planned for c in self.conditions.values())

    @property
    def terminal(self) -> int:
        return sum(c.measured + c.abandoned for c in self.conditions.values())

    def as_json(self) -> dict[str, Any]:
        plain = asdict(self)
        for name, condition in self.conditions.items():
            plain["conditions"][name]["interim_rate"] = condition.interim_rate
        return {**plain, "planned": self.planned, "terminal": self.terminal}


def read_standing(store: Store, campaign: str) -> Standing:
    """Raises `OperatorError` when there is no such campaign."""
    raw = store.get(keys.plan(campaign))
    if raw is None:
        raise OperatorError(f"no campaign {campaign!r}", where=store.url, hint="start it with `trialfleet run`")
    plan: dict[str, Any] = json.loads(raw)
    amendments = _all(store, keys.folder(campaign, "amendments"))
    reps = max([plan["reps"], *(a["reps"] for a in amendments if a["reps"] is not None)])
    names = [cell["condition"]["name"] for cell in plan["cells"]]
    conditions = {name: Condition(planned=count * reps) for name, count in Counter(names).items()}
    outcomes = _outcomes(store, campaign)
    complete = complete_blocks([outcome["trial"]["block"] for outcome in outcomes], len(names))
    losses: Counter[str] = Counter()
    for outcome in outcomes:
        _count(conditions[outcome["trial"]["condition"]], outcome, complete, losses)
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
    standing.halts = _halts(store, campaign, amendments)
    standing.cancelled = _cancelled(store, campaign)
    standing.quarantined = sum(1 for _ in store.list(f"{campaign}/quarantine/"))
    standing.losses = dict(losses.most_common())
    standing.state = _state(standing, store)
    return standing


def complete_blocks(blocks: list[int], cells: int) -> int:
    """How many blocks from the first on are terminal in every cell.

    >>> complete_blocks([0, 0, 1, 2, 2], cells=2)
    1
    """
    counts = Counter(blocks)
    complete = 0
    while counts[complete] >= cells:
        complete += 1
    return complete


def _outcomes(store: Store, campaign: str) -> list[dict[str, Any]]:
    found = [entry.key for entry in store.list(keys.outcomes(campaign))]
    return [from_json(raw) for _, raw in store.get_many(found) if raw is not None]


def _count(counts: Condition, outcome: dict[str, Any], complete: int, losses: Counter[str]) -> None:
    losses.update(outcome["losses"])
    counts.lost_attempts += len(outcome["losses"])
    if outcome["scored"] is None:
        counts.abandoned += 1
        return
    counts.measured += 1
    if outcome["trial"]["block"] < complete:
        counts.interim_measured += 1
        counts.interim_passed += outcome["scored"]["verdict"] == "passed"


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


def _halts(store: Store, campaign: str, amendments: list[dict[str, Any]]) -> list[str]:
    lifted = {number for amendment in amendments for number in amendment["lifts"]}
    return [
        f"{halt['task'] or 'the campaign'}: {halt['reason']}"
        for halt in _all(store, keys.folder(campaign, "halts"))
        if halt["number"] not in lifted
    ]


def _cancelled(store: Store, campaign: str) -> str | None:
    raw = store.get(keys.cancel(campaign, now=True)) or store.get(keys.cancel(campaign))
    return json.loads(raw)["by"] if raw is not None else None


def _state(standing: Standing, store: Store) -> str:
    if standing.terminal >= standing.planned:
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
