"""Clocks that run, stop and go on: the tracker is told the time."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.controller.kube.lab import GRACES, IMAGE_ID, TRIAL, raw_pod, status
from trialfleet_controller.backend import AttemptId
from trialfleet_controller.kube.cache import Change, Kind
from trialfleet_controller.kube.pods import Pod, parse
from trialfleet_controller.kube.signals import Event, Gone, Stuck
from trialfleet_controller.kube.tracker import Look, Tracker

ATTEMPT = AttemptId(TRIAL, 1)
NAME = "t-a-a1"


def tracker(*, launched_at: float = 0.0) -> Tracker:
    """With one attempt, whose pod the server has just taken."""
    made = Tracker(graces=GRACES, image_id=IMAGE_ID)
    made.expect(ATTEMPT, NAME)
    made.created(NAME, parse(raw_pod(NAME)), now=launched_at)
    return made


def saw(one: Tracker, raw: dict[str, Any], now: float, kind: Kind = Kind.MODIFIED) -> None:
    one.apply([Change(kind, parse(raw))], now=now)


def waiting(reason: str) -> dict[str, Any]:
    return raw_pod(NAME, phase="Pending", containers=[status("runner", waiting={"reason": reason})])


def nothing(look: Look) -> bool:
    return not (look.found or look.unseen or look.puzzling)


def test_an_alternating_reason_is_one_trouble() -> None:
    one = tracker()
    for second in range(0, int(GRACES.image_pull_s), 10):
        saw(one, waiting(("ErrImagePull", "ImagePullBackOff")[second // 10 % 2]), float(second))
    assert not one.look(GRACES.image_pull_s).found
    (found,) = one.look(GRACES.image_pull_s + 1).found
    assert isinstance(found.finding, Stuck)


def test_a_trouble_that_passes_starts_its_clock_anew() -> None:
    one = tracker()
    saw(one, waiting("ErrImagePull"), 0)
    saw(one, waiting("ContainerCreating"), GRACES.image_pull_s - 1)
    saw(one, waiting("ErrImagePull"), GRACES.image_pull_s)
    assert not one.look(GRACES.image_pull_s + 10).found


def test_a_running_pod_is_not_looked_at_again_until_it_changes() -> None:
    one = tracker()
    assert (one.pending, one.working) == (1, 0)
    saw(one, raw_pod(NAME), 1)
    assert nothing(one.look(1))
    assert (one.pending, one.working) == (0, 1)
    assert nothing(one.look(1e9))
    saw(one, raw_pod(NAME, phase="Failed", containers=[]), 1e9)
    (found,) = one.look(1e9).found
    assert isinstance(found.finding, Gone)


def test_a_pod_that_a_queue_holds_back_is_pending_and_its_patience_begins_when_it_is_let_go() -> None:
    one = tracker()
    held = raw_pod(NAME, phase="Pending", containers=[])
    gate = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    saw(one, {**held, "status": {**held["status"], "conditions": [gate]}}, 0)
    assert not one.look(1e6).found
    assert (one.pending, one.working) == (1, 0)
    saw(one, held, 1e6)
    assert not one.look(1e6 + GRACES.pending_s).found
    assert one.look(1e6 + GRACES.pending_s + 1).found


def test_created_and_in_no_listing() -> None:
    one = tracker(launched_at=5)
    assert not one.look(5 + GRACES.unseen_s).unseen
    assert [late.name for late in one.look(5 + GRACES.unseen_s + 1).unseen] == [NAME]
    saw(one, raw_pod(NAME), 100)
    assert not one.look(1000).unseen


def test_events_are_asked_for_when_a_pod_stays_creating_and_not_at_every_look() -> None:
    one = tracker()
    saw(one, waiting("ContainerCreating"), 0)
    assert nothing(one.look(GRACES.config_error_s))
    late = GRACES.config_error_s + 1
    assert [puzzle.name for puzzle in one.look(late).puzzling] == [NAME]
    one.explain(NAME, (), now=late)
    assert nothing(one.look(late + 10))
    assert one.look(2 * late + 1).puzzling
    one.explain(NAME, (Event("FailedCreatePodSandBox", "no network"),), now=2 * late)
    (found,) = one.look(2 * late + 2).found
    named = found.finding.departure.named
    assert named is not None
    assert "no network" in named.message


def test_a_deletion_that_comes_before_the_answer_of_the_create() -> None:
    one = Tracker(graces=GRACES, image_id=IMAGE_ID)
    one.expect(ATTEMPT, NAME)
    pod = raw_pod(NAME)
    saw(one, pod, 0, Kind.ADDED)
    saw(one, pod, 0, Kind.DELETED)
    one.created(NAME, parse(pod), now=0)
    (found,) = one.look(0).found
    assert isinstance(found.finding, Gone)


def test_an_older_pod_of_the_name_does_not_speak_for_the_new_one() -> None:
    one = Tracker(graces=GRACES, image_id=IMAGE_ID)
    one.expect(ATTEMPT, NAME)
    saw(one, raw_pod(NAME, uid="old", phase="Failed", containers=[]), 0, Kind.ADDED)
    one.created(NAME, parse(raw_pod(NAME, uid="new")), now=0)
    saw(one, raw_pod(NAME, uid="old"), 0, Kind.DELETED)
    assert nothing(one.look(1))
    saw(one, raw_pod(NAME, uid="new"), 1, Kind.ADDED)
    assert nothing(one.look(2))


STATES = [
    raw_pod(NAME, phase="Pending", containers=[]),
    waiting("ContainerCreating"),
    raw_pod(NAME),
    raw_pod(NAME, phase="Succeeded", containers=[status("runner", terminated={"exitCode": 0})]),
]


@given(steps=st.lists(st.tuples(st.sampled_from([*STATES, None]), st.floats(0, 30)), max_size=20))
def test_whatever_happens_counts_agree_and_an_attempt_is_found_only_when_over(
    steps: list[tuple[dict[str, Any] | None, float]],
) -> None:
    one, now = tracker(), 0.0
    last: Pod | None = None
    for raw, passed in steps:
        now += passed
        if raw is None and last is not None:
            one.apply([Change(Kind.DELETED, last)], now=now)
        elif raw is not None:
            last = parse(raw)
            saw(one, raw, now)
        assert one.pending + one.working == 1
        over = last is not None and (raw is None or last.terminal)
        found = one.look(now).found
        assert bool(found) == over
        if found:
            return
