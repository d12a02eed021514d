"""The ledger: every step of a campaign as a conditional create in a store. Effects only; decisions are elsewhere.

Each step may be repeated after a crash at any point: each contended key has one winner, and
the others read and obey what it wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from trialfleet_ledger import keys
from trialfleet_ledger.attempts import Attempts
from trialfleet_ledger.campaign_directives import Directives
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.parsed_records import parse_record
from trialfleet_ledger.plan import KubernetesPlan, Plan
from trialfleet_ledger.store.rereading import is_listed
from trialfleet_ledger.stored_records import RecordStore

# What may differ between two plans that measure the same: when and where they were made, how wide to run, and
# the bytes of files whose meaning (orders, conditions, limits) is compared itself.
_INCIDENTAL = {"uid", "created", "versions", "parallel", "inputs", "deliveries"}
# Of `kubernetes`: which way to the cluster and how fast, nothing that a pod's spec says.
_TRANSPORT = {"context", "max_pending", "creates_per_s", "creates_burst", "forbidden_addresses"}

NO_CAMPAIGN = "check its name and the store's address; `trialfleet run` starts a campaign"
ANOTHER_NAME = "give the campaign another name, or restore the inputs it was planned from"


@dataclass(frozen=True)
class LedgerListing:
    """What one pass over the listings says. `open`: trials that were granted an attempt and have no outcome."""

    done: frozenset[str]
    open: tuple[str, ...]


class Ledger(RecordStore):
    """One campaign's records: its plan here, `attempts` and `directives` as parts."""

    @cached_property
    def attempts(self) -> Attempts:
        return Attempts(self)

    @cached_property
    def directives(self) -> Directives:
        return Directives(self)

    def freeze(self, plan: Plan) -> tuple[Plan, bool]:
        """Write the plan; or, when the campaign exists, return its plan and False.

        Raises `OperatorError` when the name is taken by a campaign that measures something else.
        """
        if self.create("plan", keys.plan(self.campaign), plan):
            return plan, True
        stored = self.plan()
        differing = _differences(stored, plan)
        if differing:
            raise OperatorError(
                f"a different campaign of this name is in the store; they differ in: {', '.join(differing)}",
                where=f"{self.store.url}/{keys.plan(self.campaign)}",
                hint=self._way_on(stored, plan) if differing == ["reps"] else ANOTHER_NAME,
            )
        return stored, False

    def _way_on(self, stored: Plan, wanted: Plan) -> str:
        """Of a file that differs in its reps alone."""
        at = f"{self.store.url}/{self.campaign}"
        now = self.directives.planned_reps(stored).most
        if wanted.reps > now:
            return f"more reps are an amendment: `trialfleet resume --reps {wanted.reps} {at}`"
        return f"reps only grow: write reps: {stored.reps} again; `trialfleet resume {at}` continues with {now}"

    def plan(self) -> Plan:
        """The frozen plan. Raises `OperatorError` when there is none."""
        key = keys.plan(self.campaign)
        raw = self.store.get(key)
        listed = raw is None and is_listed(self.store, key)
        plan = parse_record(self.store, key, raw, Plan, listed=listed)
        if plan is None:
            raise OperatorError(f"no campaign {self.campaign!r}", where=self.store.url, hint=NO_CAMPAIGN)
        return plan

    def exists(self) -> bool:
        return is_listed(self.store, keys.plan(self.campaign))

    def survey(self) -> LedgerListing:
        """Two listings, grants first: a trial that somebody concludes in between is done, not open.

        Of grants there is one key per attempt, of attempts six. A trial whose grants are missing (its controller
        was killed before it wrote them, or they were cleared away) has a chain that is read when its intent is
        refused.
        """
        granted = (keys.trial_of_grants(entry.key) for entry in self.store.list(keys.all_grants(self.campaign)))
        begun = list(dict.fromkeys(granted))
        done = frozenset(self.attempts.outcome_ids())
        return LedgerListing(done, tuple(trial for trial in begun if trial not in done))


def _differences(stored: Plan, wanted: Plan) -> list[str]:
    return [
        name
        for name in Plan.model_fields
        if name not in _INCIDENTAL and _meaning(stored, name) != _meaning(wanted, name)
    ]


def _meaning(plan: Plan, name: str) -> object:
    """A field of the plan, without what does not change what is measured."""
    value = getattr(plan, name)
    return value.model_dump(exclude=_TRANSPORT) if isinstance(value, KubernetesPlan) else value
