"""All that a runner is given for one attempt."""

from __future__ import annotations

from pydantic import Field

from trialfleet_ledger.records.agent import AgentSpec, Limits
from trialfleet_ledger.records.base import BoundRecord, Count, Frozen, Name, Ordinal, Sha256
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_ledger.records.task_order import Prediction, TaskOrder
from trialfleet_ledger.records.trial import Trial

GRANTS_URL = "TRIALFLEET_GRANTS_URL"  # variable of a pod's runner: the address of its grants, a secret


class GetGrant(Frozen):
    """Where to read one input: `url` is file:// or http(s)://."""

    url: str


class PutGrant(Frozen):
    """Where to write one fixed key. `headers` must be sent as they are: they are signed."""

    url: str
    headers: dict[str, str] = Field(default_factory=dict)
    conditional: bool = True  # create-if-absent; only `live` may be overwritten
    readback: GetGrant | None = None  # of the same key: tells an unanswered try of ours from another's write


class Grants(BoundRecord):
    """All that a runner is given for one attempt: its order and where it may read and write."""

    campaign: Name
    trial: Trial
    attempt: Ordinal
    intent_nonce: str
    agent: AgentSpec
    agent_digest: Sha256 | None = None  # of the plan: another program or model than planned halts the campaign
    texts: Sha256  # `context.texts.digest()` of the plan: other texts than planned halt the campaign
    task: TaskOrder
    condition: ConditionOrder
    prediction: Prediction | None = (
        None  # of the task, where the campaign has one: for the bundle, under any condition
    )
    limits: Limits
    objects: dict[Sha256, GetGrant]  # every object named above that this attempt may read
    start: PutGrant
    live: PutGrant
    patch: PutGrant
    bundle: PutGrant
    end: PutGrant
    prior_patch: GetGrant | None = None  # set: score this patch and nothing else
    tests_died: Count = 0  # how often that has ended its tests without a result: `Loss.by_patch`
