"""Supervisor and dispatchers as threads of this process: the same as on Ray, without Ray."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from trialfleet_controller.hosting.host import Host, Job
from trialfleet_controller.hosting.leasing import Pool
from trialfleet_controller.hosting.messages import Supervisor
from trialfleet_controller.hosting.supervisor import Campaign


@contextmanager
def hosted(pool: Pool, jobs: Sequence[Job]) -> Generator[Supervisor]:
    """The supervisor, while its dispatchers run; at the end none of them does."""
    campaign = Campaign(pool, len(jobs))
    hosts = [Host(job, campaign.exchange) for job in jobs]
    try:
        for host in hosts:
            host.start()
        yield campaign
    finally:
        for host in hosts:
            host.close()
