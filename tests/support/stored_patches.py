"""A patch record as a runner with certain keys stores it."""

from __future__ import annotations

from collections.abc import Mapping

from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.records.attempt import Patch
from trialfleet_ledger.records.measurements import Delivery, Metrics
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_runner.attempt.key_marks import mask_keys


def stored_patch(left: str, keys: Mapping[str, str]) -> Patch:
    """Of a diff as the agent left it."""
    diff, marks = mask_keys(left, keys)
    return Patch(
        trial="t",
        attempt=1,
        nonce="n",
        at=0.0,
        diff=diff,
        key_marks=marks,
        diff_sha256=sha256(left.encode()),
        stop=Stop.FINISHED,
        metrics=Metrics(),
        delivery=Delivery(),
    )
