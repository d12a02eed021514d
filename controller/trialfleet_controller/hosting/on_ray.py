"""Supervisor and dispatchers as actors of Ray: spread over its nodes, restarted by it, rebuilt from the ledger.

The command line owns them all, so they end with it, and none with another.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from trialfleet_controller.hosting.host import Host, Job
from trialfleet_controller.hosting.leasing import Pool
from trialfleet_controller.hosting.messages import Reply, Said, Summary, Supervisor, Unanswered
from trialfleet_controller.hosting.metrics import Meter
from trialfleet_controller.hosting.supervisor import Campaign
from trialfleet_controller.shards import Report
from trialfleet_runner.errors import OperatorError

NAMESPACE = "trialfleet"  # of the actors' names, in Ray
CPUS = 0.1  # of each actor: without any, Ray places at random instead of spreading
ANSWER_S = 15.0
HEALTH = "health"  # the concurrency group that answers while another call is under way

T = TypeVar("T")


class ActorSupervisor:
    """The supervisor's actor, as the others call it. `begun`: of each actor, an answer that it gives once it has
    begun."""

    def __init__(self, actor: Any, begun: Sequence[Any] = ()) -> None:
        self._actor, self._begun = actor, list(begun)

    def exchange(self, said: Said) -> Reply:
        return _answer(Reply, lambda: self._actor.exchange.remote(said))

    def summary(self, interrupts: int) -> Summary:
        """Raises `OperatorError` when an actor cannot begin at all."""
        self._begun = _not_begun(self._begun)
        summary = self._actor.summary.options(concurrency_group=HEALTH)
        return _answer(Summary, lambda: summary.remote(interrupts))


class ShardDispatcher:
    """The actor of one shard. Ray runs its constructor anew when its process dies: the ledger says the rest.
    `supervisor`: its name; a handle would lie in the object store of one node, and could be lost with it."""

    def __init__(self, job: Job, supervisor: str) -> None:
        meter = Meter(job.campaign, job.shard)
        actor = ActorSupervisor(_ray().get_actor(supervisor, namespace=NAMESPACE))
        self._host = Host(job, actor.exchange, note=meter.note, watch=meter.report)
        self._host.start()

    def report(self) -> Report:
        return self._host.report()


@contextmanager
def hosted(ray: Any, name: str, pool: Pool, jobs: Sequence[Job]) -> Generator[Supervisor]:
    """The supervisor's actor, while those of its dispatchers live. `ray`: the module, connected; `name`: how the
    names of the actors begin."""
    supervisor = _actor(ray, Campaign, f"{name}-campaign").remote(pool, len(jobs))
    actors = [supervisor]
    try:
        for job in jobs:
            dispatcher = _actor(ray, ShardDispatcher, f"{name}-dispatcher-{job.shard.index}")
            actors.append(dispatcher.remote(job, f"{name}-campaign"))
        yield ActorSupervisor(supervisor, [actor.__ray_ready__.remote() for actor in actors])
    finally:
        for actor in actors:
            ray.kill(actor)


def _actor(ray: Any, kind: type[object], name: str) -> Any:
    """A lost answer is asked for again by who asked; a method that Ray repeats by itself might run twice."""
    return ray.remote(concurrency_groups={HEALTH: 2})(kind).options(
        name=name,
        namespace=NAMESPACE,
        num_cpus=CPUS,
        max_restarts=-1,
        max_task_retries=0,
        scheduling_strategy="SPREAD",
    )


def _answer(kind: type[T], call: Callable[[], Any]) -> T:
    """Raises `Unanswered` while the actor is restarted or its node cannot be reached; also when a long answer,
    which stays on that node until it is fetched, went down with it."""
    from ray.exceptions import GetTimeoutError, ObjectLostError, RayActorError

    try:
        answer = _ray().get(call(), timeout=ANSWER_S)
    except (RayActorError, GetTimeoutError, ObjectLostError) as error:
        raise Unanswered(type(error).__name__) from error
    assert isinstance(answer, kind)
    return answer


def _not_begun(answers: list[Any]) -> list[Any]:
    """Those that are still waited for. An actor whose constructor raises is not restarted."""
    from ray.exceptions import RayActorError

    ray = _ray()
    ready: list[Any]
    waiting: list[Any]
    ready, waiting = ray.wait(answers, num_returns=len(answers), timeout=0) if answers else ([], [])
    for answer in ready:
        try:
            ray.get(answer)
        except RayActorError as error:
            if error.actor_init_failed:
                raise OperatorError(
                    f"the controller's actors cannot begin: {str(error).strip().splitlines()[-1]}",
                    where="Ray",
                    hint="Ray's nodes must have this version of trialfleet: run them from the controller image",
                ) from error
    return waiting


def _ray() -> Any:
    import ray

    return ray
