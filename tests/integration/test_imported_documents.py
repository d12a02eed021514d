"""A document that a condition's instructions import, and that every arm's workspace may have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.attempts import Lab, shell
from trialfleet_ledger.conditions import Condition
from trialfleet_runner.attempt.prepared_inputs import Inputs, prepare
from trialfleet_sandbox.choose import choose

pytestmark = pytest.mark.needs("bwrap")


def test_a_change_of_it_counts_in_every_arm_alike(tmp_path: Path) -> None:
    own = {"CLAUDE.md": "See @README.md and @docs/new.md.\n", "README.md": "new\n", "docs/new.md": "new\n"}
    lab = Lab(tmp_path, files={"README.md": "old\n"}, contexts={"own": own})
    agent = shell("true")
    arms = [
        prepare(grants, Inputs(grants, lab.cache), choose())
        for grants in (lab.grants(agent), lab.grants(agent, "own", composed=Condition(files="own")))
    ]
    assert [arm.given.manifest.keys() >= own.keys() for arm in arms] == [False, True]
    for path, excluded in {"README.md": False, "docs/new.md": False, "CLAUDE.md": True}.items():
        assert [arm.exclusions.excludes(path) for arm in arms] == [excluded] * 2
        assert [arm.exclusions.counts_as_edit(path) for arm in arms] == [not excluded] * 2
