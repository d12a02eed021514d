"""Slim records out of raw JSON, whatever it lacks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.raw_pods import raw_pod, status
from trialfleet_controller.backends.kube.pods import Doing, Pod, PodPhase, parse

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
FIELDS = ("labels", "annotations", "creationTimestamp", "deletionTimestamp", "resourceVersion")
STATUS = ("phase", "reason", "message", "conditions", "containerStatuses", "startTime")


def test_what_a_kubelet_reports() -> None:
    pod = parse(
        raw_pod(
            phase="Failed",
            reason="Evicted",
            startTime="2026-11-21T10:00:00Z",
            containers=[status("runner", terminated={"exitCode": 143, "reason": "Error", "message": "{}"})],
            conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}],
            metadata={
                "labels": {"trialfleet.dev/trial": "abc", "other": "x"},
                "deletionTimestamp": "2026-11-21T10:05:00Z",
                "deletionGracePeriodSeconds": 30,
            },
        )
    )
    assert (pod.phase, pod.reason, pod.node, pod.terminal) == (PodPhase.FAILED, "Evicted", "node-1", True)
    runner = pod.container("runner")
    assert (runner.doing, runner.exit_code, runner.reason, runner.message) == (
        Doing.TERMINATED,
        143,
        "Error",
        "{}",
    )
    assert pod.container("agent").doing is Doing.WAITING, "not reported yet"
    assert pod.label("trialfleet.dev/trial") == "abc"
    assert pod.label("other") == "", "not kept: a campaign has thousands of pods"
    assert pod.deleted_at is not None
    assert pod.started_at is not None
    assert pod.deleted_at - pod.started_at == 300
    condition = pod.condition("DisruptionTarget")
    assert condition is not None
    assert (condition.true, condition.reason) == (True, "PreemptionByScheduler")


def test_a_pod_that_was_only_just_created() -> None:
    assert parse({"metadata": {"name": "p", "uid": "u"}}) == Pod("u", "p")


@given(
    head=st.dictionaries(st.sampled_from(FIELDS), JSON),
    told=st.dictionaries(st.sampled_from(STATUS), JSON),
    spec=JSON,
)
def test_no_odd_field_breaks_it(head: dict[str, Any], told: dict[str, Any], spec: Any) -> None:
    pod = parse({"metadata": {**head, "name": "p", "uid": "u"}, "spec": spec, "status": told})
    assert pod.uid == "u"


def test_without_a_uid_it_is_no_pod() -> None:
    with pytest.raises(KeyError):
        parse({"metadata": {"name": "p"}})
