"""The Ray of a campaign starts while the campaign is prepared."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.waiting import wait_until
from trialfleet_controller.hosting.place import Hosts, early_ray
from trialfleet_controller.hosting.private_ray import RAY_FOLDER, RAY_PARENT
from trialfleet_controller.hosting.ray_reaper import members
from trialfleet_ledger.campaign_spec import CampaignSpec, LimitSpec
from trialfleet_ledger.records.agent import AgentSpec

SPEC = CampaignSpec(
    campaign="demo",
    seed=1,
    tasks=("task.yaml",),
    conditions=("none", "flat_llm"),
    reps=10,
    agent=AgentSpec(kind="nop"),
    limits=LimitSpec(memory=2**26, parallel=1),
    store="out",
)


def folders() -> list[Path]:
    return list(RAY_PARENT.glob(f"{RAY_FOLDER}{os.getpid()}-*"))


@pytest.mark.parametrize(
    ("hosts", "tasks"), [(Hosts(), 9), (Hosts(ray=False), 10), (Hosts(ray_address="a:1"), 10)]
)
def test_where_no_ray_of_our_own_is_needed_none_starts(hosts: Hosts, tasks: int) -> None:
    before = folders()
    with early_ray(hosts, SPEC, tasks) as same:
        assert same is hosts
        assert folders() == before


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_it_starts_before_anybody_asks_for_it_and_ends_with_the_block() -> None:
    with early_ray(Hosts(), SPEC, 10) as hosts:
        assert hosts.private is not None, "two hundred trials are worth a Ray"
        (folder,) = folders()

        def raylet() -> bytes | None:
            """After all other daemons of a head."""
            programs = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in members(str(folder))]
            return next((program for program in programs if b"raylet_socket_name" in program), None)

        program: bytes = wait_until(raylet, (folder / "head.log").read_text, within_s=300, every_s=0.2)
        assert b" --minimal" in program, "without a port for metrics, its agent serves nothing"
    assert folders() == []
    assert members(str(folder)) == []
