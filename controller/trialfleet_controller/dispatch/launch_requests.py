"""Builds the grants of an attempt, which say what its runner may access, from plan, trial and intent."""

from __future__ import annotations

from collections.abc import Iterator

from trialfleet_controller.backends import attempt_times
from trialfleet_ledger import keys
from trialfleet_ledger.canonical import digest
from trialfleet_ledger.objects import object_key
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.attempt import Intent
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.task_order import TaskOrder
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.trial_order import Planned


class Granter:
    """Builds the grants of every attempt of one plan. Raises `OperatorError` if the credentials expire before the
    grants would."""

    def __init__(self, plan: Plan, store: Store) -> None:
        self._plan = plan
        self._store = store
        self._expires_s = attempt_times.grants_expire_s(plan)
        self.url(keys.plan(plan.campaign))  # raises before anything starts if nothing can be signed
        self._texts = digest(plan.texts)
        self._tasks = {task.order.id: task.order for task in plan.tasks}
        self._predictions = {task.order.id: task.prediction for task in plan.tasks}
        self._conditions = {(cell.task, cell.condition.name): cell.condition for cell in plan.cells}

    def grants(self, trial: Planned, intent: Intent, score_from: int | None, *, tests_died: int = 0) -> Grants:
        task = self._tasks[trial.task]
        condition = self._conditions[trial.task, trial.condition]
        n, campaign, agent = intent.attempt, self._plan.campaign, self._plan.agents[trial.condition]

        def key(name: keys.AttemptFile) -> str:
            return keys.attempt_file(campaign, trial.id, n, name)

        store, expires_s = self._store, self._expires_s
        return Grants(
            plan=intent.plan,
            campaign=campaign,
            trial=trial.record(),
            attempt=n,
            intent_nonce=intent.nonce,
            agent=agent.spec,
            agent_digest=agent.digest,
            texts=self._texts,
            task=task,
            condition=condition,
            prediction=self._predictions[trial.task],
            limits=self._plan.limits,
            objects={
                digest: store.grant_get(object_key(digest), expires_s=expires_s)
                for digest in _objects(task, condition, with_fix=agent.spec.kind == "oracle")
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
            tests_died=tests_died,
        )

    def url(self, key: str) -> str:
        """Where a runner on another machine reads its grants."""
        return self._store.grant_get(key, expires_s=self._expires_s).url


def _objects(task: TaskOrder, condition: ConditionOrder, *, with_fix: bool) -> Iterator[str]:
    """Digests that this attempt may read; only the oracle may read the fix."""
    yield from (task.environment.source, task.workspace, task.pristine, task.prompt)
    yield from filter(None, (task.classes, task.must_fail))
    if with_fix:
        yield task.fix
    yield from condition.objects
