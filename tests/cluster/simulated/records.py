"""What a runner leaves in the store, as the contract has it: start, patch, bundle, end. Values in, bytes out."""

from __future__ import annotations

import time
from dataclasses import dataclass

from trialfleet_runner.bundle import described, pack
from trialfleet_runner.canonical import canonical_json, sha256
from trialfleet_runner.contract import (
    Delivery,
    End,
    Grants,
    LastWords,
    Loss,
    LossClass,
    Manifest,
    Metrics,
    Patch,
    Scored,
    Start,
    Stop,
    Verdict,
)

_METRICS = Metrics(turns=3, tool_calls=5, wall_s=1.0, agent_s=0.5, tests_s=0.2)


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
        start = Start(
            trial=self.grants.trial.id,
            attempt=self.grants.attempt,
            nonce=self.grants.intent_nonce,
            at=self.at,
            host=self.node,
            boot_id="simulated",
            pid=self.pid,
            scratch="/trialfleet/runner",
            isolation="container",
            pod=self.pod,
            node=self.node,
        )
        return canonical_json(start)

    def patch(self) -> bytes:
        patch = Patch(
            trial=self.grants.trial.id,
            attempt=self.grants.attempt,
            nonce=self.grants.intent_nonce,
            at=time.time(),
            diff="--- a/module.py\n+++ b/module.py\n@@ -1 +1 @@\n-VALUE = 0\n+VALUE = 1\n",
            stop=Stop.FINISHED,
            metrics=_METRICS,
            delivery=Delivery(),
        )
        return canonical_json(patch)

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
            files=described(files),
        )
        return pack(manifest, files)

    def scored(self, bundle: bytes) -> End:
        """An even seed passes: whoever audits the campaign knows what to expect."""
        passed = self.grants.trial.seed % 2 == 0
        scored = Scored(
            verdict=Verdict.PASSED if passed else Verdict.FAILED,
            stop=Stop.FINISHED,
            tests_passed=passed,
            metrics=_METRICS,
            delivery=Delivery(),
        )
        return self._end(scored=scored, bundle=sha256(bundle), bundle_bytes=len(bundle))

    def lost(self, loss: LossClass, *, agent_started: bool, patched: bool = False) -> End:
        return self._end(loss=Loss(loss=loss, message="simulated", agent_started=agent_started, patched=patched))

    def _end(self, **fields: object) -> End:
        return End.model_validate(
            {
                "trial": self.grants.trial.id,
                "attempt": self.grants.attempt,
                "nonce": self.grants.intent_nonce,
                "at": time.time(),
                "by": "runner",
                **fields,
            }
        )


def last_words(end: End) -> str:
    """The termination message of a runner whose end the store refused; its bundle is there."""
    words = LastWords(state="refused", end=end)
    return words.model_dump_json(exclude_none=True)
