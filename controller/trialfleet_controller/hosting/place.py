"""Where supervisor and dispatchers run: a Ray of this process, a Ray that is joined, or threads here."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from trialfleet_controller.hosting.host import Job
from trialfleet_controller.hosting.leasing import Pool
from trialfleet_controller.hosting.messages import Supervisor

Place = Callable[[str, Pool, Sequence[Job]], AbstractContextManager[Supervisor]]


@contextmanager
def place(*, use_ray: bool, address: str | None, metrics_port: int | None = None) -> Generator[Place]:
    """What hosts a campaign, given how its actors are named, its limits and its jobs. `metrics_port`: where a Ray
    of our own exports. Raises `OperatorError`.

    Enter it before handlers of signals are set: importing Ray sets one for SIGTERM.
    """
    if not use_ray:
        from trialfleet_controller.hosting import threads

        yield lambda _, pool, jobs: threads.hosted(pool, jobs)
        return
    from trialfleet_controller.hosting import on_ray
    from trialfleet_controller.hosting.joined_ray import JoinedRay
    from trialfleet_controller.private_ray import PrivateRay

    ray = PrivateRay(cpus=4, metrics_port=metrics_port) if address is None else JoinedRay(address)
    try:
        yield partial(on_ray.hosted, ray.ray)
    finally:
        ray.close()
