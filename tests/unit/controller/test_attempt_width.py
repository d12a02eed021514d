"""How many attempts run at once, and the field that is named for it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.plans import kube_plan, make_plan, planned_task
from trialfleet_controller.backends.local.capacity import UNBOUNDED, MachineSize, slots
from trialfleet_controller.dispatch.attempt_width import WidthBound, width_bound
from trialfleet_controller.dispatch.queue import Queue
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import AnytimeRule, StopDeclaration, StopRule
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.agent import Limits
from trialfleet_ledger.trial_order import trials

TWO_CORES = MachineSize(cpus=2, memory_bytes=8 * 2**30)


def plan(*, tasks: int = 1, on_kubernetes: bool = True, **fields: Any) -> Plan:
    """Of two conditions, each block has twice as many trials as there are tasks."""
    made = make_plan([planned_task(f"task-{n}") for n in range(tasks)], ("none", "flat_llm"), **fields)
    return made.model_copy(update={"kubernetes": kube_plan().kubernetes}) if on_kubernetes else made


def test_blocks_ahead_holds_back_what_parallel_asks_for() -> None:
    bound = width_bound(plan(reps=30, parallel=40, blocks_ahead=4))
    assert bound.attempts == 10
    assert bound.reason == (
        "limits.blocks_ahead: 4 lets the 5 oldest open blocks run, of 2 trials each; 40 with "
        "limits.blocks_ahead: 19"
    )


@pytest.mark.parametrize(
    ("fields", "attempts", "reason"),
    [
        ({"reps": 30, "parallel": 4, "blocks_ahead": 4}, 4, "limits.parallel: 4"),
        ({"reps": 3, "parallel": 40, "blocks_ahead": 4}, 6, "all trials of the campaign"),
        (
            {"reps": 3000, "parallel": UNBOUNDED, "blocks_ahead": 4000},
            2500,
            "limits.parallel is not given: 2500 in each namespace",
        ),
        (
            {"reps": 9, "parallel": UNBOUNDED, "blocks_ahead": 0},
            2,
            "limits.blocks_ahead: 0 lets the oldest open block run, of 2 trials each; 18 with "
            "limits.blocks_ahead: 8",
        ),
    ],
)
def test_what_bounds_a_campaign_on_a_cluster(fields: dict[str, Any], attempts: int, reason: str) -> None:
    bound = width_bound(plan(**fields))
    assert (bound.attempts, bound.reason) == (attempts, reason)


def looked_at(reps: int, stop: StopDeclaration | None, *, halve: bool = False) -> WidthBound:
    primary = Primary(treatment="flat_llm", control="none", stop=stop, halve=halve)
    return width_bound(plan(reps=reps, parallel=40, blocks_ahead=99, primary=primary))


@pytest.mark.parametrize(
    ("reps", "stop", "attempts", "reason"),
    [
        (60, StopRule(looks=5), 24, "at most 12 blocks between two looks; 40 with primary.stop: {looks: 3}"),
        (25, StopRule(looks=5), 10, "at most 5 blocks between two looks; more with fewer looks"),
        (60, StopRule(looks=(4, 60)), 40, "limits.parallel: 40"),
        (60, AnytimeRule(anytime="mixture"), 40, "limits.parallel: 40"),
        (60, None, 40, "limits.parallel: 40"),
    ],
)
def test_looks_hold_back_the_blocks_after_them(
    reps: int, stop: StopDeclaration | None, attempts: int, reason: str
) -> None:
    """A larger blocks_ahead would not help there, and is not proposed."""
    bound = looked_at(reps, stop)
    assert (bound.attempts, bound.reason.removeprefix("primary.stop: ")) == (attempts, reason)


def test_a_value_is_named_with_what_the_next_bound_allows() -> None:
    limits = Limits(cpu=1, memory_bytes=4 * 2**30)
    machine = MachineSize(cpus=2, memory_bytes=16 * 2**30)
    made = plan(on_kubernetes=False, reps=60, parallel=40, blocks_ahead=30, limits=limits)
    assert width_bound(made, machine=machine).remedy == "4 with limits.cpu: 0.5"
    stopped = Primary(treatment="flat_llm", control="none", stop=StopRule(looks=5))
    looked = width_bound(plan(reps=60, parallel=40, blocks_ahead=13, primary=stopped))
    assert looked.remedy == "28 with primary.stop: {looks: 4}"


def test_two_fields_that_bound_alike_are_named_together() -> None:
    limits = Limits(cpu=1, memory_bytes=4 * 2**30)
    made = plan(on_kubernetes=False, reps=60, parallel=8, blocks_ahead=30, limits=limits)
    bound = width_bound(made, machine=MachineSize(cpus=2, memory_bytes=8 * 2**30))
    assert bound.remedy == "8 with limits.cpu: 0.25 and limits.memory: 1Gi"
    made = plan(on_kubernetes=False, reps=60, parallel=2, blocks_ahead=30, limits=limits)
    assert width_bound(made, machine=MachineSize(cpus=2, memory_bytes=8 * 2**30)).remedy is None


@given(st.integers(1, 128), st.integers(2, 400))
def test_as_many_run_with_the_named_cpu_as_is_said(cpus: int, parallel: int) -> None:
    machine = MachineSize(cpus, 2**50)
    made = plan(on_kubernetes=False, reps=300, blocks_ahead=299, parallel=parallel, limits=Limits(cpu=1))
    if (remedy := width_bound(made, machine=machine).remedy) is not None:
        number, _, cpu = remedy.partition(" with limits.cpu: ")
        assert int(cpus / float(cpu)) >= int(number) == parallel


def test_halving_holds_back_the_blocks_after_it() -> None:
    bound = looked_at(20, None, halve=True)
    assert (bound.attempts, bound.reason) == (24, "primary.halve: at most 12 blocks at once; more without it")


@given(st.integers(2, 300), st.integers(2, 25))
def test_with_the_named_number_of_looks_all_run(reps: int, looks: int) -> None:
    bound = looked_at(reps, StopRule(looks=looks))
    if (named := re.search(r"(\d+) with primary.stop: {looks: (\d+)}", bound.reason)) is not None:
        fewer = looked_at(reps, StopRule(looks=int(named[2])))
        assert fewer.attempts == int(named[1]) > bound.attempts


@pytest.mark.parametrize(
    ("limits", "parallel", "attempts", "reason"),
    [
        ({"cpu": 1}, UNBOUNDED, 2, "limits.cpu: 1 on this machine's 2 CPUs"),
        (
            {"cpu": 1, "memory_bytes": 2**28},
            8,
            2,
            "limits.cpu: 1 on this machine's 2 CPUs; 8 with limits.cpu: 0.25",
        ),
        (
            {"cpu": 0.1, "memory_bytes": 4 * 2**30},
            8,
            2,
            "limits.memory: 4Gi of this machine's 8.0 GiB; 8 with limits.memory: 1Gi",
        ),
        ({"cpu": 0.1, "memory_bytes": 2**28}, 8, 8, "limits.parallel: 8"),
    ],
)
def test_what_bounds_a_campaign_on_this_machine(
    limits: dict[str, Any], parallel: int, attempts: int, reason: str
) -> None:
    made = plan(on_kubernetes=False, reps=30, parallel=parallel, blocks_ahead=4, limits=Limits(**limits))
    bound = width_bound(made, machine=TWO_CORES)
    assert (bound.attempts, bound.reason) == (attempts, reason)


@given(st.integers(1, 4), st.integers(1, 12), st.integers(0, 12), st.integers(1, 60))
def test_a_queue_lets_as_many_start_as_is_said(tasks: int, reps: int, ahead: int, parallel: int) -> None:
    """The dispatcher's own queue, of which nothing ends; and the named value lets all start."""
    made = plan(tasks=tasks, reps=reps, blocks_ahead=ahead, parallel=parallel)

    def started(blocks_ahead: int) -> int:
        queue = Queue(list(trials(made)), blocks_ahead)
        return sum(queue.take() is not None for _ in range(parallel))

    bound = width_bound(made)
    assert bound.attempts == started(ahead)
    if bound.remedy is not None:
        assert started(int(bound.remedy.rpartition(" ")[2])) == min(parallel, 2 * tasks * reps) > bound.attempts


@given(st.integers(1, 64), st.floats(0.05, 8), st.integers(1, 64), st.integers(2**24, 2**34))
def test_a_machine_takes_as_many_as_is_said(cpus: int, cpu: float, parallel: int, memory: int) -> None:
    machine = MachineSize(cpus, 16 * 2**30)
    limits = Limits(cpu=cpu, memory_bytes=memory)
    made = plan(on_kubernetes=False, reps=100, blocks_ahead=99, parallel=parallel, limits=limits)
    try:
        fit = slots(limits, cpus=cpus, memory_bytes=machine.memory_bytes)
    except OperatorError:
        return  # not even one fits: refused before this
    assert width_bound(made, machine=machine).attempts == min(fit, parallel)
