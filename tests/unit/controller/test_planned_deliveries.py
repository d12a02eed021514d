"""What a plan keeps of `trialfleet agents check`: measured, measured otherwise, or not measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.support.plans import make_plan
from trialfleet_agents.agent_check.delivery_matrix import CheckedDelivery, DeliveryMatrix, declared
from trialfleet_agents.agent_check.kept_matrix import keep, plan_deliveries
from trialfleet_agents.protocol import Identity
from trialfleet_deliveries.reach import Reach
from trialfleet_ledger.deliveries import PlannedDeliveries
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_repository.cache import Cache

CODEX = Identity(
    kind="codex", version="0.169.0", digest="1" * 64, reach=Reach(root_file="AGENTS.md", hook_after=True)
)
NOP = Identity(kind="nop", version="1", digest="2" * 64)


def measure(cache: Cache, **changed: bool) -> None:
    reached = {**declared(CODEX.reach), **{CheckedDelivery[name]: reaches for name, reaches in changed.items()}}
    matrix = DeliveryMatrix(
        kind="codex",
        version="0.169.0",
        model=None,
        digest="1" * 64,
        root_files=("AGENTS.md",),
        reached=reached,
        also_differ={CheckedDelivery.SYSTEM: ("adds a frame",)},
        control=(),
    )
    keep(cache, CODEX, matrix)


def planned(cache: Cache) -> PlannedDeliveries:
    (found,) = plan_deliveries([CODEX, NOP], cache).items()
    assert found[0] == CODEX.digest, "by the agent's digest; an agent without a program has none"
    return found[1]


def test_what_was_measured_in_this_version_is_in_the_plan(tmp_path: Path) -> None:
    measure(Cache(tmp_path))
    found = planned(Cache(tmp_path))
    assert found.measured == found.declared
    assert (found.root_files, [*found.doubts()]) == (("AGENTS.md",), [])
    assert found.also_differ == {"system channel": ("adds a frame",)}


@pytest.mark.parametrize(
    ("changed", "reaches", "differs"),
    [
        ({}, True, True),
        ({"model": "other"}, True, False),
        ({"revision": 1}, False, False),
        ({"version": "0.170.0"}, False, False),
        ({"reach": Reach(root_file="AGENTS.md")}, False, False),
    ],
)
def test_a_check_counts_for_its_adapter_and_what_comes_along_for_its_model_alone(
    tmp_path: Path, changed: dict[str, object], reaches: bool, differs: bool
) -> None:
    measure(Cache(tmp_path))
    (found,) = plan_deliveries([CODEX.model_copy(update=changed)], Cache(tmp_path)).values()
    assert (found.measured is not None, bool(found.also_differ)) == (reaches, differs)


def test_what_was_not_measured_is_said_with_the_command_that_measures_it(tmp_path: Path) -> None:
    found = planned(Cache(tmp_path))
    assert (found.measured, found.declared["system channel"]) == (None, False)
    (doubt,) = found.doubts()
    assert doubt.startswith("codex 0.169.0: ")
    assert "was not measured" in doubt
    assert "`trialfleet agents check codex`" in doubt


def test_what_was_measured_otherwise_is_named_in_both_directions(tmp_path: Path) -> None:
    measure(Cache(tmp_path), HOOK_AFTER=False, PARENT=True)
    assert [*planned(Cache(tmp_path)).doubts()] == [
        "codex 0.169.0: hook after a tool: declared to reach the model, measured not to",
        "codex 0.169.0: file in a parent folder: declared not to reach the model, measured to",
    ]


def test_other_names_than_declared_are_no_measurement() -> None:
    with pytest.raises(ValidationError, match="other names"):
        PlannedDeliveries(kind="codex", version="1", declared={"hook": True}, measured={})


def test_a_campaign_is_the_same_after_its_agent_was_measured(tmp_path: Path) -> None:
    ledger = Ledger(DirectoryStore(tmp_path / "store"), "demo")
    cache = Cache(tmp_path / "cache")
    before = make_plan(deliveries={CODEX.digest: planned(cache)})
    ledger.freeze(before)
    measure(cache)
    after = make_plan(deliveries={CODEX.digest: planned(cache)})
    assert ledger.freeze(after) == (before, False)
    with pytest.raises(OperatorError, match="seed"):
        ledger.freeze(after.model_copy(update={"seed": 8}))
