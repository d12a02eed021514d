"""What keeps a controller from driving, said so that it can be mended."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tests.unit.analysis.ledger_fixture import plan
from trialfleet_controller.disk import disk_room
from trialfleet_controller.driving import check_drift
from trialfleet_runner.agents.registry import agent
from trialfleet_runner.contract import AgentSpec
from trialfleet_runner.errors import OperatorError

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
    assert same.agent_digest in str(raised.value)
    with pytest.raises(OperatorError, match=f"planned 0.0.1, this machine has {found.version}"):
        check_drift(plan(agent=NOP.model_copy(update={"version": "0.0.1"})))
    assert check_drift(same.model_copy(update={"agent_digest": found.digest})) == found
