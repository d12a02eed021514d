"""What a runner leaves in the store, as the contract has it: start, patch, bundle, end. Values in, bytes out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from tests.support import records
from trialfleet_ledger.bundle import described, pack
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.records.attempt import End, LastWords
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.manifest import Manifest
from trialfleet_ledger.records.measurements import Metrics
from trialfleet_ledger.records.verdicts import Loss, LossClass, Scored, Verdict

_METRICS = Metrics(turns=3, tool_calls=5, wall_s=1.0, agent_s=0.5, tests_s=0.2)
_DIFF = "--- a/module.py\n+++ b/module.py\n@@ -1 +1 @@\n-VALUE = 0\n+VALUE = 1\n"


@dataclass(frozen=True)
class Runner:
    """One attempt's runner, in the pod `pod` (uid) on `node`, begun at `at`: one that is begun again with the same
    values writes the same start, and knows it."""

    grants: Grants
    pod: str
    node: str
    at: float
    pid: int = 1

    def start(self) -> bytes:
        where = {"host": self.node, "boot_id": "simulated", "scratch": "/trialfleet/runner", "node": self.node}
        start = records.start(**self._identity() | where | {"at": self.at, "pid": self.pid, "pod": self.pod})
        return canonical_json(start)

    def patch(self) -> bytes:
        return canonical_json(records.patch(**self._identity(), diff=_DIFF, metrics=_METRICS))

    def _identity(self) -> dict[str, Any]:
        grants = self.grants
        return {
            "trial": grants.trial.id,
            "attempt": grants.attempt,
            "nonce": grants.intent_nonce,
            "at": time.time(),
        }

    def bundle(self) -> bytes:
        grants = self.grants
        files = {"agent.log": b"simulated\n" * 20, "timing.json": b"{}"}
        manifest = Manifest(
            campaign=grants.campaign,
            trial=grants.trial,
            attempt=grants.attempt,
            task=grants.task.digest,
            condition=grants.condition.digest,
            agent=grants.agent,
            limits=grants.limits,
            isolation="container",
            versions={"trialfleet": "simulated"},
            texts=grants.texts,
            files=described(files),
        )
        return pack(manifest, files)

    def scored(self, bundle: bytes) -> End:
        """An even seed passes: whoever audits the campaign knows what to expect."""
        verdict = Verdict.PASSED if self.grants.trial.seed % 2 == 0 else Verdict.FAILED
        scored = records.scored(verdict, metrics=_METRICS)
        return self._end(scored, bundle=sha256(bundle), bundle_bytes=len(bundle))

    def lost(self, loss: LossClass, *, agent_started: bool, patched: bool = False) -> End:
        return self._end(Loss(loss=loss, message="simulated", agent_started=agent_started, patched=patched))

    def _end(self, result: Scored | Loss, **fields: Any) -> End:
        return records.end(result, **self._identity(), **fields)


def last_words(end: End) -> str:
    """The termination message of a runner whose end the store refused; its bundle is there."""
    words = LastWords(state="refused", end=end)
    return words.model_dump_json(exclude_none=True)
