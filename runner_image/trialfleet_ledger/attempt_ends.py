"""What an event that ends an attempt means: a loss, or nothing that changes the verdict. Pure.

From the start of the agent on, the default is a verdict. A loss needs a witness outside of the attempt; what an
agent can make by itself (bytes of its output, its exit code, the requests that it chooses) is none. Runner and
pods read this table, and docs/reference/ledger.md shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from trialfleet_ledger.records.verdicts import LossClass


class EndEvent(StrEnum):
    """What happened, as the witness says it."""

    PREEMPTED = "preempted, evicted through the API, drained"
    NODE_GONE = "node gone, not ready or shutting down"
    NODE_PRESSURE = "node short of memory, disk, inodes or process ids; evicted by the kubelet"
    MACHINE_MEMORY = "the kernel kills the program for memory that its machine lacks"
    OVER_LIMIT = "evicted for more than its own limit"
    TESTS_DIED = "the tests' container dies, or is evicted for more than its limit"
    TESTS_CHANGED = "the environment of the tests is another after they ran, where no sandbox protects it"
    HOST_FULL = "disk or inodes of the host are full"
    OUTAGE = "the provider does not answer the planned model"
    REFUSED_BY_PROVIDER = "the provider refuses key, account or planned model"
    RUNNER_BROKE = "the runner breaks on what the agent left"
    STOP_SIGNAL = "the runner gets a stop signal while the agent runs"
    OPERATOR_STOP = "the operator stops the controller"
    NO_REQUEST = "the agent needs a model and sent no request"
    OTHER_TEXT = "text of another condition was in a request"


@dataclass(frozen=True)
class EndRule:
    """`loss`: None: a verdict. `within_limits`: a loss only if the attempt's own measured share is within its
    limits; else the agent, or its tests, are exhausted. `causes`: how the agent's program must have ended."""

    witness: str
    loss: LossClass | None
    within_limits: bool = False
    causes: tuple[str, ...] = ("itself", "timeout", "memory", "disk", "stopped")


END_RULES: dict[EndEvent, EndRule] = {
    EndEvent.PREEMPTED: EndRule("API server", LossClass.EVICTED),
    EndEvent.NODE_GONE: EndRule("API server", LossClass.NODE_LOST),
    EndEvent.NODE_PRESSURE: EndRule("kubelet and the runner's samples", LossClass.OVERUSE, within_limits=True),
    EndEvent.MACHINE_MEMORY: EndRule("the program's cgroup", LossClass.OVERUSE, within_limits=True),
    EndEvent.OVER_LIMIT: EndRule("kubelet", LossClass.OVERUSE, within_limits=True),
    EndEvent.TESTS_DIED: EndRule("kubelet or supervisor", LossClass.SCORING, within_limits=True),
    EndEvent.TESTS_CHANGED: EndRule("the runner, by its seal", LossClass.SCORING, within_limits=True),
    EndEvent.HOST_FULL: EndRule("file system, measured by the runner", LossClass.HOST_FULL, within_limits=True),
    EndEvent.OUTAGE: EndRule(
        "the runner's repetitions of the last request", LossClass.PROVIDER, causes=("itself",)
    ),
    EndEvent.REFUSED_BY_PROVIDER: EndRule(
        "the runner's own minimal request", LossClass.PROVIDER, causes=("itself", "timeout")
    ),
    EndEvent.RUNNER_BROKE: EndRule("none", None),
    EndEvent.STOP_SIGNAL: EndRule("the runner", LossClass.TERMINATED, causes=("stopped",)),
    EndEvent.OPERATOR_STOP: EndRule("controller", LossClass.INTERRUPTED),
    EndEvent.NO_REQUEST: EndRule("gateway", None),
    EndEvent.OTHER_TEXT: EndRule("gateway", LossClass.CONTAMINATED),
}

Cause = Literal["itself", "timeout", "memory", "disk", "stopped"]

TESTS_DEATHS = 3  # of one patch: what ends its tests without a result so often is neither node nor another attempt
FIX_SHARE = 0.5  # of the memory limit, which the fix's own run may take: a task that needs more says nothing


def loss_of_event(event: EndEvent, *, cause: Cause = "itself", within_limits: bool = True) -> LossClass | None:
    """The loss that a witnessed event is; None: the attempt has a verdict. `cause`: how the agent's program ended.

    >>> loss_of_event(EndEvent.OUTAGE).value, loss_of_event(EndEvent.OUTAGE, cause="memory")
    ('provider', None)
    >>> loss_of_event(EndEvent.HOST_FULL, within_limits=False) is None
    True
    """
    rule = END_RULES[event]
    if cause not in rule.causes or (rule.within_limits and not within_limits):
        return None
    return rule.loss


def are_tests_within(deaths: int, *, fix_bytes: int | None, limit_bytes: int) -> bool:
    """Whether nothing shows that it is the scored patch which takes its tests beyond their limits. It is shown if
    their container died `TESTS_DEATHS` times with the patch, and the tests took at most half of the limit with the
    fix when the task was validated. `fix_bytes`: the memory that they took; None: not known.

    >>> [are_tests_within(deaths, fix_bytes=2**20, limit_bytes=2**30) for deaths in (2, 3)]
    [True, False]
    >>> [are_tests_within(3, fix_bytes=fix, limit_bytes=2**30) for fix in (2**29, 2**29 + 1, None)]
    [False, True, True]
    """
    return deaths < TESTS_DEATHS or fix_bytes is None or fix_bytes > FIX_SHARE * limit_bytes
