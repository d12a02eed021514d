"""What one attempt's runner is told and may touch: grants from a plan, a trial and an intent."""

from __future__ import annotations

from collections.abc import Iterator

from trialfleet_controller import keys
from trialfleet_controller.plan import Planned
from trialfleet_runner.campaign import Graces, Plan
from trialfleet_runner.contract import ConditionOrder, Grants, Intent, TaskOrder
from trialfleet_runner.objects import object_key
from trialfleet_runner.store.protocol import Store

SLACK_S = 300.0  # uploads, process starts and a loaded machine
AFTER_S = 1800.0  # beyond an attempt's own time


def attempt_deadline_s(plan: Plan) -> float:
    """No attempt takes longer: set-up, the agent's time and as much again for a throttling provider, the tests
    twice, every grace."""
    limits = plan.limits
    return (
        limits.setup_timeout_s
        + 2 * plan.agent.timeout_s
        + 2 * limits.tests_timeout_s
        + 3 * limits.stop_grace_s
        + SLACK_S
    )


def grants_expire_s(plan: Plan) -> float:
    """How long a runner's signatures hold: they are made at the launch, and a pod may be pending for long."""
    pending_s = 0.0 if plan.kubernetes is None else _longest_pending_s(plan.kubernetes.graces)
    return pending_s + attempt_deadline_s(plan) + AFTER_S


def _longest_pending_s(graces: Graces) -> float:
    return max(graces.pending_s, graces.unschedulable_s, graces.image_pull_s, graces.config_error_s)


class Granter:
    """Builds the grants of every attempt of one plan. Raises `OperatorError` when the credentials end before the
    grants would."""

    def __init__(self, plan: Plan, store: Store) -> None:
        self._plan = plan
        self._store = store
        self._expires_s = grants_expire_s(plan)
        self.url(keys.plan(plan.campaign))  # signs, or says why not, before anything starts
        self._tasks = {task.order.id: task.order for task in plan.tasks}
        self._predictions = {task.order.id: task.prediction for task in plan.tasks}
        self._conditions = {(cell.task, cell.condition.name): cell.condition for cell in plan.cells}

    def grants(self, trial: Planned, intent: Intent, score_from: int | None) -> Grants:
        task = self._tasks[trial.task]
        condition = self._conditions[trial.task, trial.condition]
        n, campaign = intent.attempt, self._plan.campaign

        def key(name: keys.AttemptFile) -> str:
            return keys.attempt_file(campaign, trial.id, n, name)

        store, expires_s = self._store, self._expires_s
        return Grants(
            campaign=campaign,
            trial=trial.record(),
            attempt=n,
            intent_nonce=intent.nonce,
            agent=self._plan.agent,
            agent_digest=self._plan.agent_digest,
            task=task,
            condition=condition,
            prediction=self._predictions[trial.task],
            limits=self._plan.limits,
            objects={
                digest: store.grant_get(object_key(digest), expires_s=expires_s)
                for digest in _objects(task, condition, with_fix=self._plan.agent.kind == "oracle")
            },
            start=store.grant_put(key("start.json"), expires_s=expires_s),
            live=store.grant_put(key("live.log.zst"), conditional=False, expires_s=expires_s),
            patch=store.grant_put(key("patch.json"), expires_s=expires_s),
            bundle=store.grant_put(key("bundle.tar.zst"), expires_s=expires_s),
            end=store.grant_put(key("end.json"), expires_s=expires_s),
            prior_patch=None
            if score_from is None
            else store.grant_get(
                keys.attempt_file(campaign, trial.id, score_from, "patch.json"), expires_s=expires_s
            ),
        )

    def url(self, key: str) -> str:
        """Where a runner elsewhere reads its grants."""
        return self._store.grant_get(key, expires_s=self._expires_s).url


def _objects(task: TaskOrder, condition: ConditionOrder, *, with_fix: bool) -> Iterator[str]:
    """Digests that this attempt may read; the fix is for the oracle alone."""
    yield from (task.environment.lock, task.workspace, task.pristine, task.prompt)
    if with_fix:
        yield task.fix
    named = (condition.files, condition.context, condition.text)
    yield from (digest for digest in named if digest is not None)
