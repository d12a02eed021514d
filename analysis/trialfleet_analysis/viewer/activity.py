"""What a campaign does now: attempts that run, the newest ends, and how long the rest will take. From the store
alone, and without a rate of passes: those are made of complete blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic_core import from_json

from trialfleet_ledger import keys
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.live_output import inflated, last_lines
from trialfleet_ledger.store.protocol import ListedKey, Store
from trialfleet_ledger.trial_order import Planned
from trialfleet_ledger.untrusted import finite

SHOWN = 8  # running attempts with their output
NEWEST = 8  # ends
TAIL = 12  # lines of output
PACE = 50  # ends that the rate is made of


@dataclass(frozen=True)
class RunningAttempt:
    """`since`: when its runner began, seconds since the epoch. `tail`: the end of the output that has reached the
    store; empty: none has."""

    trial: str
    attempt: int
    planned: Planned | None
    since: float | None
    tail: str


@dataclass(frozen=True)
class EndedAttempt:
    """`said`: the verdict, or the loss. `at`: when the end was written."""

    trial: str
    attempt: int
    planned: Planned | None
    at: float | None
    said: str
    lost: bool


@dataclass(frozen=True)
class CampaignActivity:
    """`losses`: lost attempts, by class. `cost_usd`: of `costed` measured trials; None: none has a known cost.
    `per_hour`: trials that end, by the newest `PACE`; `left_s`: what the open ones take at that rate. Both are
    None where nothing more starts."""

    now: float
    planned: int
    terminal: int
    running: tuple[RunningAttempt, ...]
    more_running: int
    waiting: int
    newest: tuple[EndedAttempt, ...]
    losses: Mapping[str, int]
    cost_usd: float | None
    costed: int
    per_hour: float | None
    left_s: float | None


@dataclass
class ActivityReader:
    """Reads it again and again. Records that never change are read once."""

    store: Store
    campaign: str
    _read: dict[str, dict[str, Any]] = field(default_factory=dict[str, "dict[str, Any]"])
    _tails: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    def read(self, trials: Mapping[str, Planned], planned: int) -> CampaignActivity:
        """`trials`: of the plan with its amendments, by id; `planned`: as many of them as run in the end. Raises
        `StoreError`."""
        now = self.store.now()
        listed = self.store.list(keys.outcomes(self.campaign))
        by_id = {entry.key.rpartition("/")[2].removesuffix(".json"): entry for entry in listed}
        outcomes = {one: entry for one, entry in by_id.items() if one in trials}
        attempts = self._attempts()
        ended = {one: files["end.json"] for one, files in attempts.items() if "end.json" in files}
        open_ = {one: files for one, files in attempts.items() if "end.json" not in files}
        running = sorted((one for one, files in open_.items() if "start.json" in files), reverse=True)
        done = self._records([entry.key for entry in outcomes.values()])
        over = {one for one, entry in outcomes.items() if entry.key in done}
        newest = sorted(ended, key=lambda one: ended[one].at or 0, reverse=True)[:NEWEST]
        unfinished = [one for one in ended if one[0] in trials and one[0] not in over]
        ends = self._records([ended[one].key for one in {*newest, *unfinished}])
        costs = [cost for one in done.values() if (cost := _cost(one)) is not None]
        rest = [trial for one, trial in trials.items() if one not in outcomes]
        per_hour = _per_hour([entry.at for entry in outcomes.values()], now) if self._goes_on(rest) else None
        return CampaignActivity(
            now=now,
            planned=planned,
            terminal=len(trials) - len(rest),
            running=tuple(self._running(one, open_[one], trials) for one in running[:SHOWN]),
            more_running=max(0, len(running) - SHOWN),
            waiting=sum("start.json" not in files for files in open_.values()),
            newest=tuple(_ended(one, ended[one], ends, trials) for one in newest if ended[one].key in ends),
            losses=_losses(done.values(), [ends[ended[one].key] for one in unfinished if ended[one].key in ends]),
            cost_usd=sum(costs) if costs else None,
            costed=len(costs),
            per_hour=per_hour,
            left_s=None if per_hour is None else (planned - len(trials) + len(rest)) / per_hour * 3600,
        )

    def _goes_on(self, rest: Sequence[Planned]) -> bool:
        """Whether more trials start, as far as records say: a controller that was killed has written none."""
        newest = max((keys.number_of(entry.key) for entry in self._epochs()), default=0)
        raw = self.store.get(keys.beat(self.campaign, newest)) if newest else None
        with suppress(ValueError, OperatorError):
            beat = from_json(raw, allow_inf_nan=False) if raw is not None else None
            if isinstance(beat, dict) and cast("dict[str, Any]", beat).get("state") == "ended":
                return False
            return not Ledger(self.store, self.campaign).directives.nothing_starts(rest)
        return False

    def _epochs(self) -> Iterator[ListedKey]:
        found = self.store.list(keys.folder(self.campaign, "epochs"))
        return (entry for entry in found if entry.key.endswith(".json"))

    def _attempts(self) -> dict[tuple[str, int], dict[str, ListedKey]]:
        """The files of every attempt."""
        found: dict[tuple[str, int], dict[str, ListedKey]] = {}
        for entry in self.store.list(keys.attempts(self.campaign)):
            key = keys.parse_attempt(self.campaign, entry.key)
            if key is not None:
                found.setdefault((key.trial, key.attempt), {})[key.name] = entry
        return found

    def _records(self, wanted: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Plain JSON by key; without what cannot be read."""
        for key, raw in self.store.get_many([key for key in wanted if key not in self._read]):
            try:
                found = from_json(raw, allow_inf_nan=False) if raw is not None else None
            except ValueError:
                found = None
            if isinstance(found, dict):
                self._read[key] = found
        return {key: self._read[key] for key in wanted if key in self._read}

    def _running(
        self, one: tuple[str, int], files: Mapping[str, ListedKey], trials: Mapping[str, Planned]
    ) -> RunningAttempt:
        log = files.get("live.log.zst")
        tail = self._tail(log) if log else ""
        return RunningAttempt(*one, trials.get(one[0]), files["start.json"].at, tail)

    def _tail(self, log: ListedKey) -> str:
        tag, tail = self._tails.get(log.key, ("", ""))
        if not log.tag or tag != log.tag:
            raw = self.store.get(log.key)
            tail = last_lines(inflated(raw), TAIL) if raw else ""
            self._tails[log.key] = log.tag, tail
        return tail


def _ended(
    one: tuple[str, int], entry: ListedKey, ends: Mapping[str, dict[str, Any]], trials: Mapping[str, Planned]
) -> EndedAttempt:
    loss: Any = ends[entry.key].get("loss")
    part, word = (loss, "loss") if loss else (ends[entry.key].get("scored"), "verdict")
    said: Any = cast("dict[str, Any]", part).get(word) if isinstance(part, dict) else None
    return EndedAttempt(*one, trials.get(one[0]), entry.at, str(said or "unreadable"), lost=bool(loss))


def _cost(outcome: Mapping[str, Any]) -> float | None:
    try:
        cost = outcome["scored"]["metrics"]["cost_usd"]
    except (KeyError, TypeError):
        return None
    return finite(cost)


def _losses(outcomes: Any, ends: Any) -> dict[str, int]:  # Any: plain JSON
    found: dict[str, int] = {}
    lost = [loss for outcome in outcomes for loss in outcome.get("losses") or ()]
    lost += [end["loss"].get("loss") for end in ends if isinstance(end.get("loss"), dict)]
    for loss in map(str, lost):
        found[loss] = found.get(loss, 0) + 1
    return dict(sorted(found.items(), key=lambda one: -one[1]))


def _per_hour(ends: Sequence[float | None], now: float) -> float | None:
    """Of the newest ends until now; None below two.

    >>> _per_hour([0.0, 1800.0, 3600.0], now=7200.0)
    1.0
    """
    known = sorted(at for at in ends if at is not None)[-PACE:]
    elapsed = now - known[0] if known else 0
    return (len(known) - 1) / elapsed * 3600 if len(known) > 1 and elapsed > 0 else None
