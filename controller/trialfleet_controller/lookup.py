"""Finding one trial of a campaign: by the beginning of its id, or as TASK/CONDITION/REP."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from trialfleet_ledger import keys
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.store.protocol import Store


def trial_id(store: Store, campaign: str, wanted: str) -> str:
    """The id of TASK/CONDITION/REP, or of the one trial with attempts whose id begins so. Raises `OperatorError`
    when there is none, or several."""
    return _named(store, campaign, wanted) if "/" in wanted else _beginning(store, campaign, wanted)


def _named(store: Store, campaign: str, wanted: str) -> str:
    from trialfleet_ledger.ledger import Ledger
    from trialfleet_ledger.trial_order import trials

    task, condition, rep = (*wanted.split("/"), "", "")[:3]
    ledger = Ledger(store, campaign)
    plan = ledger.plan()
    for trial in trials(plan, ledger.directives.planned_reps(plan).most):
        if (trial.task, trial.condition, str(trial.rep)) == (task, condition, rep):
            return trial.id
    raise OperatorError(f"no trial {wanted!r}", where="TRIAL", hint="write TASK/CONDITION/REP; reps count from 0")


def _beginning(store: Store, campaign: str, beginning: str) -> str:
    if not re.fullmatch(r"[a-z2-7]{1,26}", beginning):
        raise OperatorError(
            f"{beginning!r} is not the beginning of a trial's id",
            where="TRIAL",
            hint="ids are in `trialfleet plan --all` and in the report; TASK/CONDITION/REP will do too",
        )
    started = _started(store, campaign, beginning)
    first, second = next(started, None), next(started, None)
    if first is None:
        raise OperatorError(
            f"no trial that begins with {beginning!r} has been started",
            where=f"{store.url}/{campaign}",
            hint="`trialfleet plan --all` lists every trial",
        )
    if second is not None:
        raise OperatorError(
            f"several begin with {beginning!r}: {first}, {second}…", where="TRIAL", hint="type more of it"
        )
    return first


def _started(store: Store, campaign: str, beginning: str) -> Iterator[str]:
    """Ids of trials with attempts, each once."""
    parsed = (keys.parse_attempt(campaign, entry.key) for entry in store.list(keys.attempts(campaign) + beginning))
    for trial, _ in groupby(key.trial for key in parsed if key is not None):
        yield trial
