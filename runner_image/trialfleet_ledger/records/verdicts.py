"""How an attempt ended: a verdict, or a loss and its class."""

from __future__ import annotations

from enum import StrEnum

from trialfleet_ledger.records.base import Frozen, Sha256
from trialfleet_ledger.records.measurements import Delivery, Metrics

MESSAGE_CHARS = 2000  # of a loss's message


class Verdict(StrEnum):
    """How a finished attempt ended. Only PASSED counts as a pass."""

    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"  # the agent's time budget
    EXHAUSTED = "exhausted"  # the agent's memory or disk
    TESTS_TIMED_OUT = "tests_timed_out"
    TESTS_EXHAUSTED = "tests_exhausted"  # the tests' memory or disk, by the agent's changes
    FORGED = "forged"  # the tests pass by files outside of the product, or with any product: a failure


class Stop(StrEnum):
    """Why the agent stopped."""

    FINISHED = "finished"
    MAX_TURNS = "max_turns"
    TIMEOUT = "timeout"
    COST = "cost"
    ERROR = "error"  # its program ended with an error, after it had begun to work
    CRASHED = "crashed"  # it never began to work: counts as failed
    MEMORY = "memory"
    DISK = "disk"


class LossClass(StrEnum):
    """Why an attempt ended without a verdict: missing data, never a zero."""

    EVICTED = "evicted"  # the cluster or its queue took the place away
    NODE_LOST = "node_lost"
    OVERUSE = "overuse"  # ended by kubelet or kernel: the node lacks memory or disk, or a container used too much
    IMAGE_PULL = "image_pull"
    UNSCHEDULABLE = "unschedulable"
    SETUP = "setup"  # workspace, environment or sandbox could not be prepared
    STORE = "store"
    UNSAVED = "unsaved"  # the agent had ended, and the store refused its patch until its time was over
    PROVIDER = "provider"  # model provider: 429/5xx exhausted, bad credentials or credit
    CONTAMINATED = "contaminated"  # something undeclared reached the model
    TERMINATED = "terminated"  # the runner was told to stop, or killed
    RUNNER = "runner"  # the runner ended without a record, or broke
    SCORING = "scoring"  # the tests could not be run as tests (harness, not agent)
    HOST_FULL = "host_full"  # the host's disk, not the agent's
    INTERRUPTED = "interrupted"  # the operator stopped the controller, which stopped the runner
    CANCELLED = "cancelled"  # the operator's `cancel --now`
    QUARANTINED = "quarantined"  # the bundle is not what the end says

    @property
    def by_operator(self) -> bool:
        """Whether the operator decided it: no infrastructure loss, and never an agent's doing."""
        return self in (LossClass.INTERRUPTED, LossClass.CANCELLED)

    @property
    def words(self) -> str:
        """For people.

        >>> LossClass.INTERRUPTED.words, LossClass.NODE_LOST.words
        ('interrupted by you', 'node lost')
        """
        return f"{self.value} by you" if self.by_operator else self.value.replace("_", " ")


class HaltScope(StrEnum):
    """What a loss stops in addition to its own trial."""

    NONE = "none"
    TASK = "task"
    CAMPAIGN = "campaign"


class Loss(Frozen):
    """Why there is no verdict. `agent_started` and `patched` decide the retry budget; `message` names the cause.

    `patched`: a patch.json to score was there when the loss was committed, so only scoring may be repeated.
    A patch that a zombie writes after the controller's loss is ignored: the end decides.
    `by_patch`: the tests' container died, or they changed the environment that they ran in, which what was scored
    may itself have caused: it says nothing of harness or task, and the third such loss of a patch may be a
    verdict.
    """

    loss: LossClass
    message: str
    agent_started: bool
    patched: bool = False
    halt: HaltScope = HaltScope.NONE
    by_patch: bool = False


class Scored(Frozen):
    """A verdict with all that supports it. `diff_sha256`: of the diff that was scored, keys included; the bundle's
    patch.diff has other bytes where it masks a secret. `needed`: changed files apart from the product's without
    which the tests do not pass. `unsteady`: the tests also passed without any change. `cautions`: of a
    pass, where its added lines do what code does that recognises or ends its tests, and what tests that must fail
    reported if they confirm nothing."""

    verdict: Verdict
    stop: Stop
    tests_passed: bool
    metrics: Metrics
    delivery: Delivery
    diff_sha256: Sha256 | None = None
    needed: tuple[str, ...] = ()
    unsteady: bool = False
    cautions: tuple[str, ...] = ()
