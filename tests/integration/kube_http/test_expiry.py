"""What a campaign has in a namespace expires, unless its controller moves the deadline. Pods that ended go."""

from __future__ import annotations

import math
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.integration.kube_http.pods import TRIALS, Open, exited, running
from tests.support.plans import kube_plan
from tests.support.scripted_api import Api, refuse
from tests.support.waiting import wait_until
from trialfleet_controller.backends.attempt_times import grants_expire_s
from trialfleet_controller.backends.kube import names, pod_cleaner
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.backends.kube.owner import CampaignOwner, Expiry
from trialfleet_ledger.errors import OperatorError

PLAN = kube_plan(namespaces=("trials",))
JOB = names.expiry(PLAN.uid)


def deadline_s(api: Api) -> int:
    return int(api.jobs[JOB]["spec"]["activeDeadlineSeconds"])


def test_pods_outlive_their_controller_for_as_long_as_their_grants_hold(api: Api, opened: Open) -> None:
    opened()
    assert grants_expire_s(PLAN) < deadline_s(api) < 1.5 * grants_expire_s(PLAN)
    (owner,) = api.config_maps[names.config_map(PLAN.uid)]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Job", JOB, "cm-1")


def test_the_deadline_moves_by_the_servers_clock_while_the_campaign_is_driven(api: Api, opened: Open) -> None:
    backend = opened(outlives_s=4)
    assert deadline_s(api) == 5
    an_hour_ago = datetime.now(UTC) - timedelta(hours=1)
    api.jobs[JOB]["metadata"]["creationTimestamp"] = an_hour_ago.isoformat()
    api.faults["patch"].append(refuse(500))  # done again
    wait_until(lambda: backend.poll(0.1) == [] and deadline_s(api) >= 3605)
    assert deadline_s(api) < 3700


def test_another_controller_moves_it_too(api: Api, client: Client) -> None:
    began = time.monotonic()
    Expiry(client, "trials", PLAN, 10).ensure()
    Expiry(client, "trials", PLAN, 100).ensure()
    oldest_s = math.ceil(time.monotonic() - began) + 1  # of the Job: both of its times are in whole seconds
    assert 125 <= deadline_s(api) <= 125 + oldest_s


def test_a_config_map_whose_job_has_expired_is_waited_for_until_it_is_gone(api: Api, client: Client) -> None:
    CampaignOwner(client, "trials", PLAN, "s3://b/p").ensure()
    del api.jobs[JOB]
    gone = threading.Timer(1.0, api.config_maps.clear)
    gone.start()
    told: list[str] = []
    CampaignOwner(client, "trials", PLAN, "s3://b/p").ensure(tell=told.append)
    assert JOB in api.jobs
    assert "has expired and is being deleted" in told[0]
    del api.jobs[JOB]
    with pytest.raises(OperatorError, match="has expired and is being deleted"):
        CampaignOwner(client, "trials", PLAN, "s3://b/p").ensure(patience_s=0.5)


def ended_before(api: Api, n: int, containers: list[dict[str, Any]], phase: str = "Failed") -> str:
    """A pod of this campaign that an earlier controller made."""
    name = names.pod(PLAN.uid, TRIALS[n], 1)
    api.create({"metadata": {"name": name, "labels": names.labels(PLAN.uid, TRIALS[n], 1)}})
    api.report(name, phase, *containers)
    return name


def test_pods_that_ended_while_no_controller_lived_go(
    api: Api, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_cleaner, "SETTLE_S", 1.0)
    over = [ended_before(api, n, exited(n), "Failed" if n else "Succeeded") for n in range(3)]
    runs = ended_before(api, 3, running(), "Running")
    backend = opened(keep_failed=1)
    wait_until(lambda: backend.poll(0.1) == [] and len(api.pods) == 2)
    assert runs in api.pods
    assert over[0] not in api.pods, "it succeeded"
