"""Attempts that no node takes: the sentence, its value, and when it is news."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.raw_pods import raw_pod
from trialfleet_controller.backends.kube import signals
from trialfleet_controller.backends.kube.pods import parse
from trialfleet_controller.backends.protocol import SHORTAGES, Wait
from trialfleet_controller.dispatch.unplaced_attempts import STEADY_S, PlacementNotice, unplaced_message
from trialfleet_ledger.quantities import parse_bytes
from trialfleet_ledger.records.agent import Limits

LIMITS = Limits(cpu=1, memory_bytes=4 * 2**30, disk_bytes=8 * 2**30)
TAINT = "1 node(s) had untolerated taint(s)"


def test_too_little_cpu_names_the_field_and_a_value() -> None:
    assert unplaced_message({Wait.NO_CPU: 3}, 1, LIMITS) == (
        "3 attempts wait because no node has the CPU: each requests limits.cpu: 1, and 0.02 for runner and tests. "
        "Where 1 has a place, up to 4 would with limits.cpu: 0.23, in a campaign of another name; for this one, "
        "add nodes, or run fewer at once: end this controller, then `trialfleet resume --parallel 1 CAMPAIGN`"
    )


def test_attempts_that_pull_or_start_have_a_place_and_those_in_a_queue_have_none() -> None:
    pending = {Wait.NO_CPU: 10, Wait.IMAGE_PULL: 4, Wait.STARTING: 3, Wait.QUEUED: 5}
    message = str(unplaced_message(pending, 3, LIMITS))
    assert "Where 10 have a place, up to 20 would with limits.cpu: 0.49," in message
    assert "--parallel 10 " in message


def test_two_shortages_are_two_causes_and_no_single_value() -> None:
    assert unplaced_message({Wait.NO_CPU: 3, Wait.NO_MEMORY: 1}, 2, LIMITS) == (
        "3 attempts wait because no node has the CPU; 1 attempt waits because no node has the memory. `trialfleet "
        "doctor` names what each node lacks, or run fewer at once: end this controller, then `trialfleet resume "
        "--parallel 2 CAMPAIGN`"
    )


@pytest.mark.parametrize(
    ("wait", "placed", "said"),
    [
        (Wait.NO_MEMORY, 2, "Where 2 have a place, up to 4 would with limits.memory: 1984Mi, in a campaign"),
        (Wait.NO_DISK, 2, "Where 2 have a place, up to 4 would with limits.disk: 4064Mi, in a campaign"),
        (Wait.NO_CPU, 0, "`trialfleet doctor` names what each node has: lower limits.cpu in a campaign of"),
        (Wait.NO_POD, 3, "no node may have more pods: add nodes, or raise the kubelet's maxPods, or run fewer at"),
        (Wait.UNSCHEDULABLE, 1, "(kubernetes.node_selector, kubernetes.tolerations)"),
    ],
)
def test_each_shortage_names_its_own_way_out(wait: Wait, placed: int, said: str) -> None:
    message = unplaced_message({wait: 2}, placed, LIMITS)
    assert message is not None
    assert message.startswith(f"2 attempts wait because {wait.words}: ")
    assert said in message


def test_one_attempt_waits() -> None:
    assert str(unplaced_message({Wait.NO_CPU: 1}, 0, LIMITS)).startswith("1 attempt waits because")


@pytest.mark.parametrize(
    "pending", [{}, {Wait.QUEUED: 3}, {Wait.IMAGE_PULL: 1, Wait.STARTING: 4}, {Wait.NO_CPU: 0}]
)
def test_nothing_is_said_of_other_waits(pending: dict[Wait, int]) -> None:
    assert unplaced_message(pending, 1, LIMITS) is None


@given(st.integers(1, 50), st.integers(1, 50), st.sampled_from([Wait.NO_CPU, Wait.NO_MEMORY, Wait.NO_DISK]))
def test_with_the_value_all_request_no_more_than_those_that_run(placed: int, waiting: int, wait: Wait) -> None:
    message = str(unplaced_message({wait: waiting}, placed, LIMITS))
    value = re.search(r"would with limits\.\w+: ([^,]+),", message)
    if value is None:
        return
    limit, fixed = {
        Wait.NO_CPU: (1.0, 0.02),
        Wait.NO_MEMORY: (4 * 2**30, 128 * 2**20),
        Wait.NO_DISK: (8 * 2**30, 64 * 2**20),
    }[wait]
    lowered = float(value[1]) if wait is Wait.NO_CPU else parse_bytes(value[1])
    assert (lowered + fixed) * (placed + waiting) <= (limit + fixed) * placed + 1e-9


@pytest.mark.parametrize(
    ("message", "wait"),
    [
        (f"0/3 nodes are available: {TAINT}, 2 Insufficient cpu. preemption: 0/3 nodes are …", Wait.NO_CPU),
        ("0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient memory.", Wait.NO_MEMORY),
        ("0/1 nodes are available: 1 Insufficient ephemeral-storage.", Wait.NO_DISK),
        ("0/1 nodes are available: 1 Too many pods.", Wait.NO_POD),
        ("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.", Wait.UNSCHEDULABLE),
        ("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", Wait.UNSCHEDULABLE),
        ("", Wait.UNSCHEDULABLE),
    ],
)
def test_what_the_scheduler_found_too_little_of(message: str, wait: Wait) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    assert signals.shortage(parse(raw_pod("Pending", conditions=[condition]))) is wait


def test_it_is_news_once_it_has_held_and_when_it_changes() -> None:
    notice = PlacementNotice(LIMITS)
    assert notice.news({Wait.NO_CPU: 3}, 1, 100) is None
    assert notice.news({Wait.NO_CPU: 3}, 1, 100 + STEADY_S / 2) is None
    assert str(notice.news({Wait.NO_CPU: 2}, 2, 100 + STEADY_S)).startswith("2 attempts wait")
    assert notice.news({Wait.NO_CPU: 3}, 1, 200) is None, "the same reason"
    assert notice.news({Wait.NO_MEMORY: 3}, 1, 201) is None
    assert "limits.memory" in str(notice.news({Wait.NO_MEMORY: 3}, 1, 201 + STEADY_S))
    assert notice.news({}, 4, 300) is None
    assert notice.news({}, 4, 300 + STEADY_S) == "no launched attempt waits for a node any more"


def test_a_short_wait_is_no_news() -> None:
    notice = PlacementNotice(LIMITS)
    for second in range(0, 100, 8):
        assert notice.news({Wait.NO_CPU: 1} if second % 16 else {}, 1, second) is None


def test_every_shortage_has_words() -> None:
    assert {wait for wait in Wait if unplaced_message({wait: 1}, 1, LIMITS)} == set(SHORTAGES)
