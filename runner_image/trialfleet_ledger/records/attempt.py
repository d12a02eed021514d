"""The records of one attempt, in the order in which controller and runner write them."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from trialfleet_ledger.records.base import BoundRecord, Count, Frozen, Moment, Ordinal, ProcessId, Record, Sha256
from trialfleet_ledger.records.measurements import Delivery, Metrics
from trialfleet_ledger.records.verdicts import Loss, Scored, Stop


class AttemptRecord(BoundRecord):
    """Base of what is stored of one attempt. `nonce`: its intent's."""

    trial: str
    attempt: Ordinal
    nonce: str
    at: Moment


class Intent(AttemptRecord):
    """1. Controller, before anything starts. `previous_end` is the SHA-256 of end n-1's bytes; `cluster_id`: the
    identity of the cluster that its pod belongs in; None: no pod, or not known."""

    epoch: Count
    cluster_id: Sha256 | None = None
    previous_end: Sha256 | None = None
    score_only: bool = False

    @model_validator(mode="after")
    def _chained(self) -> Intent:
        if (self.attempt == 1) != (self.previous_end is None):
            raise ValueError("attempt 1 has no previous end; every later attempt has one")
        return self


class Start(AttemptRecord):
    """2. Runner, before anything runs: its identity and place. A runner that finds another runner's start
    exits."""

    host: str
    boot_id: str
    pid: ProcessId
    scratch: str
    isolation: str  # "bubblewrap" | "uid" | "subreaper" | "container"
    image: str | None = None
    pod: str | None = None  # uid of the pod
    node: str | None = None
    machine: str | None = None  # `machine_id`; None: it has none


class KeyMark(Frozen):
    """A provider's key stood in a diff. `place`: characters of the stored diff before its `[redacted]`."""

    name: str  # of the key, never its value
    place: Count


class Patch(AttemptRecord):
    """3. What the agent left, before scoring: from here on only scoring may be repeated.

    `diff` is as the agent left it but for the provider's keys: each of `key_marks` is put back before scoring, and
    `diff_sha256` is of the UTF-8 bytes that are then scored.
    """

    diff: str  # unified diff against the workspace, excluded files left out
    key_marks: tuple[KeyMark, ...] = ()  # in the order of the diff
    diff_sha256: Sha256 | None = None
    excluded: tuple[str, ...] = ()  # paths whose changes did not travel
    stop: Stop
    throttled_s: Moment = 0.0
    metrics: Metrics
    delivery: Delivery
    trajectory: Sha256 | None = None  # of `trajectory` below
    trajectory_jsonl: str = ""
    trajectory_left_out: Count = 0  # bytes of further steps


class End(AttemptRecord):
    """4. The only commit of an attempt: a verdict or a loss. `start`, `patch`: the SHA-256 of those records'
    bytes; None: the writer of the end knew of none, and one that appears later says nothing."""

    by: Literal["runner", "controller"]
    start: Sha256 | None = None
    patch: Sha256 | None = None
    scored: Scored | None = None
    loss: Loss | None = None
    bundle: Sha256 | None = None
    bundle_bytes: Count | None = None

    @model_validator(mode="after")
    def _one_of(self) -> End:
        if (self.scored is None) == (self.loss is None):
            raise ValueError("an end is a verdict or a loss, exactly one of them")
        if self.scored is not None and self.bundle is None:
            raise ValueError("a verdict names its bundle")
        return self


KUBELET_BYTES = 4096  # of a termination message: what a kubelet keeps of one container


class LastWords(Record):
    """A runner's termination message, at most 1 KiB: diagnosis, and the end itself where the store refused it.

    `end` counts only as long as the ledger has none; its metrics are cut down until it fits. It is a verdict only
    when its bundle is in the store: without, it is a loss after the patch, and the patch is scored again.

    `running`: written while the runner lives, for a runner that is killed at once. `program`: what began last, the
    agent or the tests; `over_limits`: the runner's last sample of it was beyond its limits.
    """

    state: Literal["running", "committed", "refused", "another", "unanswered", "misconfigured", "stopped"]
    end_sha256: Sha256 | None = None
    end: End | None = None
    message: str = ""
    program: Literal["agent", "tests"] | None = None
    over_limits: bool = False


class Quarantine(BoundRecord):
    """`quarantine/<trial>/<n>.json`."""

    trial: str
    attempt: Ordinal
    at: Moment
    expected: Sha256
    found: Sha256 | None
    reason: str
