"""A campaign submitted to the cluster: its controller is a Job that may do what k8s/base lists, and no more."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.faults import until
from tests.cluster.minimal import GATED, Minimal, kubectl, minimal
from trialfleet_controller.kube import names

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.needs("cluster", "s3", "image", "controller-image"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
]

ENDS_S = 240
TRIAL = "sqlparse-aligned-case-without-end/none/0"


def submit(place: Minimal, *options: str, **changed: Any) -> tuple[int, str]:
    """`changed`: of the campaign file."""
    env = [word for pair in _cluster_env() for word in ("--env", pair)]
    ran = place.trialfleet(
        "submit",
        str(place.campaign(campaign="submitted", **changed)),
        "--controller-image",
        os.environ["TRIALFLEET_TEST_CONTROLLER_IMAGE"],
        *env,
        *options,
    )
    return ran.code, ran.out + ran.err


def _cluster_env() -> list[str]:
    """Where a cluster has no Service network, its pods are told where the API server is."""
    gateway = os.environ.get("TRIALFLEET_TEST_API_SERVER")
    return [f"KUBERNETES_SERVICE_HOST={gateway}", "KUBERNETES_SERVICE_PORT=6443"] if gateway else []


def store_secret(place: Minimal) -> None:
    keys = [f"--from-literal={name}={os.environ[name]}" for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")]
    kubectl("create", "secret", "generic", "trialfleet-store", "-n", place.namespace, *keys)


def by_url(place: Minimal, command: str, *options: str) -> str:
    """From anywhere: the store's address and nothing of the cluster."""
    env = {"KUBECONFIG": "/no/such/file", "AWS_ENDPOINT_URL_S3": os.environ["S3_ENDPOINT"]}
    ran = place.trialfleet(command, f"s3://{place.bucket}/runs/submitted", *options, env=env)
    assert ran.code == 0, ran.err
    return ran.out


def controller_said(place: Minimal) -> str:
    selector = "app.kubernetes.io/name=trialfleet-controller"
    return kubectl("logs", "-n", place.namespace, "-l", selector, "--tail=60", "--all-containers")


def at_work(place: Minimal) -> str | None:
    """The only trial's pod, once its agent runs."""
    listed = kubectl("get", "pods", "-n", place.namespace, "-l", names.TRIAL, "-o", "name").split()
    return next((pod for pod in listed if place.begun(pod)), None)


def test_a_job_runs_the_campaign_and_everybody_reads_the_store(tmp_path: Path) -> None:
    with minimal(tmp_path, roles=("trialfleet-controller", "trialfleet-submitter")) as place:
        store_secret(place)
        code, said = submit(place, agent=GATED)
        assert code == 0, said
        assert ": submitted" in said
        assert "is running on" in said
        code, said = submit(place, agent=GATED)  # the same again is the same Job
        assert code == 0, said
        assert ": there already" in said
        jobs = kubectl("get", "jobs", "-n", place.namespace, "-o", "name").split()
        assert len(jobs) == 1
        place.let_go(until(lambda: at_work(place), within_s=ENDS_S))

        end = time.monotonic() + ENDS_S
        while (standing := json.loads(by_url(place, "status", "--json")))["state"] != "complete":
            assert time.monotonic() < end, f"{standing}\n{controller_said(place)}"
            time.sleep(2)
        assert standing["terminal"] == standing["planned"] == 1
        assert standing["losses"] == {}

        kubectl("wait", "-n", place.namespace, "--for=condition=complete", *jobs, "--timeout=90s")
        spec = kubectl("get", "-n", place.namespace, *jobs, "-o", "json")
        assert os.environ["AWS_SECRET_ACCESS_KEY"] not in spec
        code, said = submit(place, agent=GATED)  # it has ended, and says what to do about it
        assert code == 2
        assert "has ended: Complete" in said
        by_url(place, "report", "--out", str(tmp_path / "report"))
        assert (tmp_path / "report" / "report.html").is_file()
        assert "failed" in by_url(place, "show", TRIAL, "--part", "attempts")  # the agent mends nothing
        by_url(place, "logs", TRIAL)
        pulled = tmp_path / "pulled"
        by_url(place, "pull", str(pulled))
        assert len(list(pulled.rglob("end.json"))) == len(list(pulled.rglob("bundle.tar.zst"))) == 1
        assert not list(pulled.rglob("grants"))
        offline = place.trialfleet("show", str(pulled / "submitted"), TRIAL, env={"AWS_ENDPOINT_URL_S3": ""})
        assert offline.code == 0, offline.err
        for options in ((), ("--now",)):
            assert "submitted is cancelled" in by_url(place, "cancel", *options)


def test_another_submission_under_the_same_name_is_refused(tmp_path: Path) -> None:
    with minimal(tmp_path, roles=("trialfleet-controller", "trialfleet-submitter")) as place:
        code, said = submit(place, "--store-secret", "no-such-secret")
        assert code == 2
        assert "no-such-secret" in said
        code, said = submit(place)
        assert code == 2
        assert "was submitted with other settings" in said
        assert "kubectl -n" in said


def test_who_may_not_create_jobs_is_told_before_anything_is_frozen(tmp_path: Path) -> None:
    with minimal(tmp_path) as place:
        code, said = submit(place)
        assert code == 2
        assert "not allowed: create jobs.batch (to submit the controller)" in said
        missing = place.trialfleet("status", str(place.campaign(campaign="submitted")))
        assert missing.code == 2
