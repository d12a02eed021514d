"""What keeps a controller from driving, said so that it can be mended."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tests.support.ledgers import plan
from trialfleet_agents.registry import agent
from trialfleet_controller.backends.local.capacity import disk_room
from trialfleet_controller.hosting.local_drive import check_drift, check_texts
from trialfleet_controller.hosting.place import Hosts
from trialfleet_controller.hosting.private_ray import PrivateRay
from trialfleet_deliveries import texts
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec

NOP = AgentSpec(kind="nop")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_the_operators(tmp_path: Path, number: int) -> None:
    for file, where in ((tmp_path / "x", str(tmp_path / "x")), (None, "scratch or store")):
        with pytest.raises(OperatorError) as raised, disk_room("scratch or store"):
            raise OSError(number, "full", file)
        assert raised.value.where == where
        assert raised.value.hint


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(OSError, match="odd"), disk_room(""):
        raise OSError(errno.EIO, "odd")


def test_drift_names_what_differs() -> None:
    found = agent("nop").identify(NOP)
    same = plan(agent=NOP.model_copy(update={"version": found.version}))
    with pytest.raises(OperatorError) as raised:
        check_drift(same)  # the fixture's digest is made up
    assert "both are" in str(raised.value)
    assert found.digest in str(raised.value)
    assert same.agents["none"].digest in str(raised.value)
    with pytest.raises(OperatorError, match=f"planned 0.0.1, this machine has {found.version}"):
        check_drift(plan(agent=NOP.model_copy(update={"version": "0.0.1"})))
    found_there = {name: own.model_copy(update={"digest": found.digest}) for name, own in same.agents.items()}
    check_drift(same.model_copy(update={"agents": found_there}))


def test_texts_that_changed_since_the_plan_are_named() -> None:
    planned = plan().model_copy(update={"texts": texts.digests()})
    check_texts(planned)
    here = planned.texts
    for changed in (
        here | {"fail_fast": "1" * 64},
        {name: digest for name, digest in here.items() if name != "fail_fast"},
    ):
        with pytest.raises(
            OperatorError, match="have changed since the campaign was planned: fail_fast"
        ) as raised:
            check_texts(planned.model_copy(update={"texts": changed}))
        assert raised.value.where == str(texts.FOLDER)


@pytest.mark.parametrize(
    ("ray", "local", "trials", "through"),
    [
        (None, True, 199, False),
        (None, True, 200, True),
        (None, False, 2, True),
        (True, True, 2, True),
        (False, True, 500, False),
        (False, False, 500, False),
    ],
)
def test_ray_hosts_what_is_worth_its_start(ray: bool | None, local: bool, trials: int, through: bool) -> None:
    assert Hosts(ray).through_ray(local=local, trials=trials) is through


@pytest.mark.ray
@pytest.mark.slow
def test_a_ray_that_does_not_start_names_the_option_that_does_without() -> None:
    private = PrivateRay(cpus=-1)
    with pytest.raises(OperatorError, match="Ray did not start") as refused:
        _ = private.ray
    private.close()
    assert "--no-ray" in (refused.value.hint or "")
