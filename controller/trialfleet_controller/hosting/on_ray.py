"""Supervisor and dispatchers as actors of Ray: spread over its nodes, restarted by it, rebuilt from the ledger.

The command line owns all actors: they end with it, and the death of one ends no other.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

from ray.exceptions import GetTimeoutError, ObjectLostError, RayActorError

from trialfleet_controller.dispatch.shards import DispatcherStatus
from trialfleet_controller.hosting.leasing import Pool
from trialfleet_controller.hosting.messages import ShardReport, Summary, Supervisor, SupervisorReply, Unanswered
from trialfleet_controller.hosting.metrics import Meter
from trialfleet_controller.hosting.shard_host import DispatcherJob, ShardHost
from trialfleet_controller.hosting.supervisor import CampaignSupervisor
from trialfleet_ledger.errors import OperatorError

NAMESPACE = "trialfleet"  # of the actors' names, in Ray
CPUS = 0.1  # of each actor: without any, Ray places at random instead of spreading
ANSWER_S = 15.0
HEALTH = "health"  # the concurrency group that answers while another call is under way

T = TypeVar("T")


class ActorSupervisor:
    """A client of the supervisor's actor. `begun`: for each actor, a result that is ready once it has started;
    `cut_off`: whether this process has lost its Ray cluster for good."""

    def __init__(
        self, actor: Any, begun: Sequence[Any] = (), *, cut_off: Callable[[], bool] = lambda: False
    ) -> None:
        self._actor, self._begun, self._cut_off = actor, list(begun), cut_off

    def exchange(self, said: ShardReport) -> SupervisorReply:
        return _answer(SupervisorReply, lambda: self._actor.exchange.remote(said))

    def summary(self, interrupts: int) -> Summary:
        """Raises `OperatorError` if an actor cannot start, or the cluster is gone."""
        if self._cut_off():
            raise OperatorError(
                "the Ray cluster is gone: its head does not respond",
                where="--ray-address",
                hint="pods continue; when there is a head again, `trialfleet resume` takes them up",
            )
        self._begun = _not_begun(self._begun)
        summary = self._actor.summary.options(concurrency_group=HEALTH)
        return _answer(Summary, lambda: summary.remote(interrupts))


class ShardDispatcher:
    """The actor of one shard. Ray runs its constructor again when its process dies; the state is in the ledger.
    `supervisor`: its name, because a handle would lie in the object store of one node and could be lost with
    it."""

    def __init__(self, job: DispatcherJob, supervisor: str) -> None:
        meter = Meter(job.campaign, job.shard)
        actor = ActorSupervisor(import_module("ray").get_actor(supervisor, namespace=NAMESPACE))
        self._host = ShardHost(job, actor.exchange, note=meter.note, watch=meter.report)
        self._host.start()

    def report(self) -> DispatcherStatus:
        return self._host.report()


@contextmanager
def hosted(
    ray: Any, name: str, pool: Pool, jobs: Sequence[DispatcherJob], *, cut_off: Callable[[], bool] = lambda: False
) -> Generator[Supervisor]:
    """The supervisor's actor; the actors of the dispatchers live inside the block. `ray`: the module, connected;
    `name`: prefix of the actors' names; `cut_off`: see `ActorSupervisor`."""
    supervisor = _actor(ray, CampaignSupervisor, f"{name}-campaign").remote(pool, len(jobs))
    actors = [supervisor]
    try:
        for job in jobs:
            dispatcher = _actor(ray, ShardDispatcher, f"{name}-dispatcher-{job.shard.index}")
            actors.append(dispatcher.remote(job, f"{name}-campaign"))
        begun = [actor.__ray_ready__.remote() for actor in actors]
        yield ActorSupervisor(supervisor, begun, cut_off=cut_off)
    finally:
        for actor in () if cut_off() else actors:
            ray.kill(actor)


def _actor(ray: Any, kind: type[object], name: str) -> Any:
    """No task retries: callers repeat a lost call, and a method that Ray repeats might run twice."""
    return ray.remote(concurrency_groups={HEALTH: 2})(kind).options(
        name=name,
        namespace=NAMESPACE,
        num_cpus=CPUS,
        max_restarts=-1,
        max_task_retries=0,
        scheduling_strategy="SPREAD",
    )


def _answer(kind: type[T], call: Callable[[], Any]) -> T:
    """Raises `Unanswered` while the actor restarts or its node cannot be reached, and if a long answer was lost
    with the node that held it."""
    try:
        answer = import_module("ray").get(call(), timeout=ANSWER_S)
    except (RayActorError, GetTimeoutError, ObjectLostError) as error:
        raise Unanswered(type(error).__name__) from error
    assert isinstance(answer, kind)
    return answer


def _not_begun(answers: list[Any]) -> list[Any]:
    """The answers that are not ready. An actor whose constructor raises is not restarted."""
    ray = import_module("ray")
    ready: list[Any]
    waiting: list[Any]
    ready, waiting = ray.wait(answers, num_returns=len(answers), timeout=0) if answers else ([], [])
    for answer in ready:
        try:
            ray.get(answer)
        except RayActorError as error:
            if error.actor_init_failed:
                raise OperatorError(
                    f"the controller's actors cannot start: {str(error).strip().splitlines()[-1]}",
                    where="Ray",
                    hint="run Ray's nodes from the controller image: they must have this version of trialfleet",
                ) from error
    return waiting
