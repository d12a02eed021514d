"""Which trials, in which order: the same everywhere, and a prefix when reps grow."""

from __future__ import annotations

import base64
from collections import Counter
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import plans
from tests.support.plans import planned_task, task_order
from trialfleet_ledger.canonical import digest
from trialfleet_ledger.plan import Cell
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_ledger.trial_order import agent_seed, base32, trials

CONDITIONS = ("none", "flat_llm", "intent_layer")


make_plan = partial(plans.make_plan, 4, CONDITIONS, reps=5, seed=11)


def test_every_cell_stands_once_in_every_block() -> None:
    every = trials(make_plan())
    assert len(every) == 4 * 3 * 5
    cells = Counter((trial.block, trial.task, trial.condition) for trial in every)
    assert set(cells.values()) == {1}
    assert [trial.position for trial in every] == [i % 12 for i in range(60)]
    assert all(trial.block == trial.rep for trial in every)


def test_25_reps_are_a_prefix_of_50() -> None:
    plan = make_plan()
    assert trials(plan, 50)[: 25 * 12] == trials(plan, 25)


def test_blocks_are_ordered_differently_and_by_the_seed_alone() -> None:
    def orders(seed: int) -> list[list[tuple[str, str]]]:
        every = trials(make_plan(seed=seed))
        return [[(t.task, t.condition) for t in every if t.block == block] for block in range(5)]

    assert orders(1) == orders(1)
    assert orders(1) != orders(2)
    assert len({tuple(order) for order in orders(1)}) == 5


def test_order_does_not_align_with_a_condition() -> None:
    """Mean position of each condition over many blocks: close to the middle."""
    every = trials(make_plan(reps=300))
    for condition in CONDITIONS:
        places = [trial.position for trial in every if trial.condition == condition]
        assert sum(places) / len(places) == pytest.approx(5.5, abs=0.4)


def test_ids_are_unique_and_follow_the_inputs_not_the_campaigns_seed() -> None:
    ids = [trial.id for trial in trials(make_plan())]
    assert len(set(ids)) == len(ids)
    assert set(ids) == {trial.id for trial in trials(make_plan(seed=99))}
    changed = [planned_task(f"task-{i}", order=task_order(f"task-{i}", digest=digest(i))) for i in range(4)]
    for other in (make_plan(agent=AgentSpec(kind="oracle")), plans.make_plan(changed, CONDITIONS, reps=5)):
        assert not set(ids) & {trial.id for trial in trials(other)}


def test_ids_are_stable_across_machines_and_versions() -> None:
    """A change here orphans every campaign that exists: raise the schema version instead."""
    names = [f"task-{i}" for i in range(4)]
    tasks = [planned_task(name, order=task_order(name, digest=digest([i, ""]))) for i, name in enumerate(names)]
    orders = [ConditionOrder(name=condition, digest=digest(condition)) for condition in CONDITIONS]
    cells = tuple(Cell(task=name, condition=order) for name in names for order in orders)
    frozen = plans.make_plan(tasks, CONDITIONS, seed=11, agent_digest=digest("nop"), cells=cells)
    first = trials(frozen)[0]
    assert first == ("hw5gljdxo7hsbjvtisorullaxh", "task-2", "none", 0, 685057788432256732, 0, 0)
    assert agent_seed(11, "task-2", "none", 0) == first.seed


@given(st.binary(min_size=32, max_size=32))
def test_base32_is_the_standards(raw: bytes) -> None:
    assert base32(raw) == base64.b32encode(raw)[:26].decode().lower()


def test_the_agents_seed_includes_the_condition_and_the_rep() -> None:
    seeds = {agent_seed(1, "t", condition, rep) for condition in CONDITIONS for rep in range(5)}
    assert len(seeds) == 15
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_a_planned_trial_makes_a_valid_record() -> None:
    trial = trials(make_plan())[7]
    assert trial.record().model_dump() == trial._asdict()
