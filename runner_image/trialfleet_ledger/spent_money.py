"""What a campaign's trials have cost in US dollars, as its cost cap counts it: here alone they are priced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from trialfleet_ledger import keys
from trialfleet_ledger.amendments import effective_cost
from trialfleet_ledger.fold import Chain, StoredAttempt
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.attempt import End, Intent
from trialfleet_ledger.records.directives import Amendment
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.store.rereading import WHILE_READING_S
from trialfleet_ledger.stored_records import read_listed
from trialfleet_ledger.trial_order import trials
from trialfleet_ledger.untrusted import finite


class EndedTrial(NamedTuple):
    """What an outcome says of money, whether or not its measurement counts. `cost_usd`: of the last run; None: not
    known."""

    id: str
    attempts: int
    scored: bool
    cost_usd: float | None


def price_runs(agent_runs: int, cost_usd: float | None, most: float) -> float:
    """The cost of one trial: the last run as measured, each other run at the most that it may cost, because a lost
    attempt reports no cost."""
    if agent_runs == 0:
        return 0.0
    return agent_runs * most if cost_usd is None else cost_usd + (agent_runs - 1) * most


def price_chain(chain: Chain, most: float) -> float:
    """The cost of one trial's ended attempts. It depends on their ends alone, so every reader gets the same."""
    ended = [(attempt, attempt.end) for attempt in chain if attempt.end is not None]
    runs = sum(
        not attempt.intent.score_only and (end.loss is None or end.loss.agent_started) for attempt, end in ended
    )
    scored = ended[-1][1].scored if ended else None
    return price_runs(runs, None if scored is None else finite(scored.metrics.cost_usd), most)


def is_out_of_money(
    store: Store,
    plan: Plan,
    amendments: Sequence[Amendment],
    reps: int,
    ended: Iterable[EndedTrial],
    gone: Collection[str],
    attempts: Iterable[str],
) -> bool:
    """Whether the cost cap allows no other trial. `reps`: with amendments; `gone`: trials without an outcome that
    never run again; `attempts`: the keys of attempts, as listed, read only where there is a cap."""
    cap, most = effective_cost(plan, amendments), plan.limits.cost_usd
    if cap is None or most is None:
        return False
    metered = {name for name, agent in plan.agents.items() if agent.spec.model is not None}
    ours = {one.id for one in trials(plan, reps) if one.condition in metered}
    single = {one.id: price_runs(1, one.cost_usd, most) for one in ended if one.attempts == 1 and one.scored}
    single |= dict.fromkeys(gone, price_runs(1, None, most))
    chains = _ended_attempts(store, plan.campaign, ours - single.keys(), attempts)
    spent = sum(single[one] for one in ours & single.keys()) + sum(price_chain(one, most) for one in chains)
    return spent + most > cap + 1e-9


def _ended_attempts(store: Store, campaign: str, of: Collection[str], listed: Iterable[str]) -> Iterator[Chain]:
    """Of each of these trials that has any, in order."""
    files: defaultdict[tuple[str, int], dict[str, str]] = defaultdict(dict)
    for key in listed:
        parsed = keys.parse_attempt(campaign, key)
        if parsed is not None and parsed.trial in of:
            files[parsed.trial, parsed.attempt][parsed.name] = key
    ended = {one: own for one, own in sorted(files.items()) if own.keys() >= {"intent.json", "end.json"}}
    of_intents, of_ends = ([own[name] for own in ended.values()] for name in ("intent.json", "end.json"))
    intents = dict(read_listed(store, of_intents, Intent, over_s=WHILE_READING_S))
    ends = dict(read_listed(store, of_ends, End, over_s=WHILE_READING_S))
    found: defaultdict[str, list[StoredAttempt]] = defaultdict(list)
    for (trial, _), own in ended.items():
        if own["intent.json"] in intents and own["end.json"] in ends:
            found[trial].append(StoredAttempt(intents[own["intent.json"]], end=ends[own["end.json"]]))
    yield from found.values()
