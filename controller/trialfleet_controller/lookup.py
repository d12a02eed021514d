"""Finding one trial of a campaign by the beginning of its id."""

from __future__ import annotations

import re

from trialfleet_controller import keys
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.protocol import Store


def trial_id(store: Store, campaign: str, beginning: str) -> str:
    """The one trial with attempts whose id begins so. Raises `OperatorError` when none or several do."""
    if not re.fullmatch(r"[a-z2-7]{1,26}", beginning):
        raise OperatorError(
            f"{beginning!r} is not the beginning of a trial's id",
            where="TRIAL",
            hint="ids are in `trialfleet plan --all` and in the report",
        )
    found: dict[str, None] = {}
    for entry in store.list(keys.attempts(campaign) + beginning):
        key = keys.parse_attempt(campaign, entry.key)
        if key is not None:
            found.setdefault(key.trial)
            if len(found) > 1:
                first, second = found
                raise OperatorError(
                    f"several begin with {beginning!r}: {first}, {second}…",
                    where="TRIAL",
                    hint="type more of it",
                )
    if not found:
        raise OperatorError(
            f"no trial that begins with {beginning!r} has been started",
            where=f"{store.url}/{campaign}",
            hint="`trialfleet plan --all` lists every trial",
        )
    return next(iter(found))
