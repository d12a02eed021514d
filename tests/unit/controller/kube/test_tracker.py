"""Clocks that run, stop and go on: the tracker is told the time."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.plans import GRACES, IMAGE_ID
from tests.support.raw_pods import TRIAL, raw_pod, status
from trialfleet_controller.backends.attempt_times import FOREVER, Validity
from trialfleet_controller.backends.kube.pod_cache import ChangeKind, PodChange
from trialfleet_controller.backends.kube.pods import Pod, parse
from trialfleet_controller.backends.kube.signals import PodEvent, PodFinding
from trialfleet_controller.backends.kube.tracker import PollResult, Tracker
from trialfleet_controller.backends.protocol import AttemptId, Wait
from trialfleet_controller.backends.runner_termination import RunnerTermination

ATTEMPT = AttemptId(TRIAL, 1)
NAME = "t-a-a1"
SHORT = Validity(queued_s=100, expires_s=1000)


def expecting(validity: Validity = FOREVER) -> Tracker:
    """With one attempt."""
    made = Tracker(graces=GRACES, image_id=IMAGE_ID, validity=validity)
    made.expect(ATTEMPT, NAME)
    return made


def tracker(*, launched_at: float = 0.0) -> Tracker:
    """With one attempt, whose pod the server has just taken."""
    made = expecting()
    made.created(NAME, parse(raw_pod(NAME)), now=launched_at)
    return made


def saw(one: Tracker, raw: dict[str, Any], now: float, kind: ChangeKind = ChangeKind.MODIFIED) -> None:
    one.apply([PodChange(kind, parse(raw))], now=now)


def waiting(reason: str) -> dict[str, Any]:
    return raw_pod(NAME, phase="Pending", containers=[status("runner", waiting={"reason": reason})])


def unplaced(reason: str, version: str = "1") -> dict[str, Any]:
    why = {"type": "PodScheduled", "status": "False", "reason": reason}
    made = raw_pod(NAME, version=version, phase="Pending", containers=[], conditions=[why])
    del made["spec"]["nodeName"]
    return made


queued = partial(unplaced, "SchedulingGated")


def nothing(look: PollResult) -> bool:
    return not (look.ended or look.unlisted or look.unexplained)


def test_an_alternating_reason_is_one_trouble() -> None:
    one = tracker()
    for second in range(0, int(GRACES.image_pull_s), 10):
        saw(one, waiting(("ErrImagePull", "ImagePullBackOff")[second // 10 % 2]), float(second))
    assert not one.look(GRACES.image_pull_s).ended
    ((_, found),) = one.look(GRACES.image_pull_s + 1).ended
    assert found.stuck


def test_a_trouble_that_passes_starts_its_clock_anew() -> None:
    one = tracker()
    saw(one, waiting("ErrImagePull"), 0)
    saw(one, waiting("ContainerCreating"), GRACES.image_pull_s - 1)
    saw(one, waiting("ErrImagePull"), GRACES.image_pull_s)
    assert not one.look(GRACES.image_pull_s + 10).ended


def test_a_running_pod_is_not_looked_at_again_until_it_changes() -> None:
    one = tracker()
    assert (one.pending, one.working) == (1, 0)
    saw(one, raw_pod(NAME), 1)
    assert nothing(one.look(1))
    assert (one.pending, one.working) == (0, 1)
    assert nothing(one.look(1e9))
    saw(one, raw_pod(NAME, phase="Failed", containers=[]), 1e9)
    ((_, found),) = one.look(1e9).ended
    assert not found.stuck


def test_a_pod_that_a_queue_holds_back_is_pending_and_its_patience_begins_when_it_is_let_go() -> None:
    one = tracker()
    saw(one, unplaced("SchedulingGated"), 0)
    assert not one.look(1e6).ended
    assert (one.pending, one.working) == (1, 0)
    saw(one, raw_pod(NAME, phase="Pending", containers=[]), 1e6)
    assert not one.look(1e6 + GRACES.pending_s).ended
    assert one.look(1e6 + GRACES.pending_s + 1).ended


def test_created_and_in_no_listing() -> None:
    one = tracker(launched_at=5)
    assert not one.look(5 + GRACES.unseen_s).unlisted
    assert [late.name for late in one.look(5 + GRACES.unseen_s + 1).unlisted] == [NAME]
    saw(one, raw_pod(NAME), 100)
    assert not one.look(1000).unlisted


def test_events_are_asked_for_when_a_pod_stays_creating_and_not_at_every_look() -> None:
    one = tracker()
    saw(one, waiting("ContainerCreating"), 0)
    assert nothing(one.look(GRACES.config_error_s))
    late = GRACES.config_error_s + 1
    assert [puzzle.name for puzzle in one.look(late).unexplained] == [NAME]
    one.explain(NAME, (), now=late)
    assert nothing(one.look(late + 10))
    assert one.look(2 * late + 1).unexplained
    one.explain(NAME, (PodEvent("FailedCreatePodSandBox", "no network"),), now=2 * late)
    ((_, found),) = one.look(2 * late + 2).ended
    named = found.termination.named
    assert named is not None
    assert "no network" in named.message


def test_a_deletion_that_comes_before_the_answer_of_the_create() -> None:
    one = expecting()
    pod = raw_pod(NAME)
    saw(one, pod, 0, ChangeKind.ADDED)
    saw(one, pod, 0, ChangeKind.DELETED)
    one.created(NAME, parse(pod), now=0)
    ((_, found),) = one.look(0).ended
    assert not found.stuck


def test_an_older_pod_of_the_name_does_not_speak_for_the_new_one() -> None:
    one = expecting()
    saw(one, raw_pod(NAME, uid="old", phase="Failed", containers=[]), 0, ChangeKind.ADDED)
    one.created(NAME, parse(raw_pod(NAME, uid="new")), now=0)
    saw(one, raw_pod(NAME, uid="old"), 0, ChangeKind.DELETED)
    assert nothing(one.look(1))
    saw(one, raw_pod(NAME, uid="new"), 1, ChangeKind.ADDED)
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
            one.apply([PodChange(ChangeKind.DELETED, last)], now=now)
        elif raw is not None:
            last = parse(raw)
            saw(one, raw, now)
        assert one.pending + one.working == 1
        over = last is not None and (raw is None or last.terminal)
        found = one.look(now).ended
        assert bool(found) == over
        if found:
            return


def behind_a_gate() -> Tracker:
    """For 100 s, of which its grants allow no more."""
    one = expecting(SHORT)
    saw(one, queued(), 0)
    one.created(NAME, parse(queued()), now=0)
    return one


def test_a_gated_pod_is_given_back_before_its_grants_end_and_its_attempt_is_launched_again() -> None:
    one = behind_a_gate()
    assert one.waiting() == {ATTEMPT: Wait.QUEUED}
    assert nothing(one.look(100))
    assert not one.look(100).stale
    (stale,) = one.look(102).stale
    stale.requeue_at = 102.0
    assert not one.look(104).stale, "asked a moment ago"
    assert one.look(110).stale, "it did not go"
    saw(one, queued("2"), 111, ChangeKind.DELETED)
    ((_, found),) = one.look(111).ended
    assert found == PodFinding(RunnerTermination(requeued=True))


def test_one_that_somebody_else_deletes_is_lost() -> None:
    one = behind_a_gate()
    saw(one, queued("2"), 50, ChangeKind.DELETED)
    ((_, found),) = one.look(50).ended
    assert not found.termination.requeued


def test_one_that_leaves_the_queue_in_time_keeps_its_pod() -> None:
    one = behind_a_gate()
    saw(one, raw_pod(NAME), 99)
    assert nothing(one.look(1e6))
    assert not one.look(1e6).stale
    assert one.waiting() == {}


def test_the_age_of_a_pod_that_is_adopted_counts() -> None:
    one = Tracker(graces=GRACES, image_id=IMAGE_ID, validity=SHORT)
    saw(one, queued(), 0)
    one.expect(ATTEMPT, NAME)
    one.created(NAME, parse(queued()), now=1, age_s=150)
    assert one.look(2).stale


def test_a_runner_that_started_after_its_grants_had_ended_is_no_loss() -> None:
    """Its pod left the queue while no controller lived."""

    def ended(code: int, started: str) -> dict[str, Any]:
        state = {"exitCode": code, "startedAt": started, "message": ""}
        head = {"creationTimestamp": "2026-11-21T10:00:00Z"}
        containers = [status(name, terminated=state) for name in ("runner", "agent", "score")]
        return raw_pod(NAME, phase="Failed", containers=containers, metadata=head)

    for code, started, stale in [
        (75, "2026-11-21T10:16:40Z", True),
        (75, "2026-11-21T10:16:30Z", False),
        (1, "2026-11-21T11:00:00Z", False),
    ]:
        one = behind_a_gate()
        saw(one, ended(code, started), 500)
        look = one.look(500)
        assert bool(look.stale) is stale
        assert bool(look.ended) is not stale


@pytest.mark.parametrize(
    ("raw", "wait"),
    [
        (waiting("ErrImagePull"), Wait.IMAGE_PULL),
        (waiting("ContainerCreating"), Wait.STARTING),
        (unplaced("Unschedulable"), Wait.UNSCHEDULABLE),
        (queued(), Wait.QUEUED),
    ],
)
def test_what_a_pending_attempt_waits_for(raw: dict[str, Any], wait: Wait) -> None:
    one = tracker()
    saw(one, raw, 1)
    assert one.waiting() == {ATTEMPT: wait}
