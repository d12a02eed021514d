"""Records of the ledger with defaults. A test passes only the fields that it is about."""

from __future__ import annotations

from typing import Any

from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.records.attempt import End, Intent, Patch, Start
from trialfleet_ledger.records.measurements import Delivery, Metrics
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Loss, LossClass, Scored, Stop, Verdict

TRIAL_ID = "a" * 26
BUNDLE = sha256(b"bundle")


def trial(**fields: Any) -> Trial:
    """The first trial of a campaign, of task `t` under condition `none`."""
    defaults = {"id": TRIAL_ID, "task": "t", "condition": "none", "rep": 0, "seed": 1, "block": 0, "position": 0}
    return Trial(**defaults | fields)


def intent(**fields: Any) -> Intent:
    return Intent(**_identity() | {"epoch": 1} | fields)


def start(**fields: Any) -> Start:
    """A runner in a container."""
    place = {"host": "node", "boot_id": "boot", "pid": 1, "scratch": "/scratch", "isolation": "container"}
    return Start(**_identity() | place | fields)


def patch(**fields: Any) -> Patch:
    """An agent that finished without an edit."""
    work = {"diff": "", "stop": Stop.FINISHED, "metrics": Metrics(), "delivery": Delivery()}
    return Patch(**_identity() | work | fields)


def scored(verdict: Verdict = Verdict.PASSED, **fields: Any) -> Scored:
    """An agent that finished by itself; its tests pass if the verdict is `passed`."""
    passed = verdict is Verdict.PASSED
    work = {"stop": Stop.FINISHED, "tests_passed": passed, "metrics": Metrics(), "delivery": Delivery()}
    return Scored(**{"verdict": verdict} | work | fields)


def loss(lost: LossClass = LossClass.EVICTED, **fields: Any) -> Loss:
    """A loss after the agent started."""
    return Loss(**{"loss": lost, "message": "", "agent_started": True} | fields)


def end(result: Scored | Loss, **fields: Any) -> End:
    """By the runner. A verdict has a bundle; a loss has none."""
    how = {"scored": result, "bundle": BUNDLE} if isinstance(result, Scored) else {"loss": result}
    return End(**_identity() | {"by": "runner"} | how | fields)


def outcome(of: Trial, verdict: Verdict | None, *losses: LossClass) -> Outcome:
    """`verdict` None: abandoned after `losses`."""
    if verdict is None:
        return Outcome(trial=of, attempts=len(losses), abandoned=losses[-1], losses=losses)
    return Outcome(trial=of, attempts=1 + len(losses), scored=scored(verdict), losses=losses)


def _identity() -> dict[str, Any]:
    return {"trial": TRIAL_ID, "attempt": 1, "nonce": "n", "at": 0.0}
