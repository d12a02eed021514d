"""A campaign submitted to the cluster: its controller is a Job that may do what k8s/base lists, and no more."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.cluster.cluster import on_cluster, read_pods
from tests.cluster.minimal import GATED, Minimal, api_server, kubectl, minimal, store_secret
from tests.support.waiting import wait_until
from trialfleet_controller.backends.kube import names

pytestmark = on_cluster("controller-image")

ENDS_S = 240
TRIAL = "sqlparse-aligned-case-without-end/none/0"


def submit(place: Minimal, *options: str, **changed: Any) -> tuple[int, str]:
    """`changed`: of the campaign file."""
    env = [word for name, value in api_server().items() for word in ("--env", f"{name}={value}")]
    ran = place.trialfleet(
        "submit",
        str(place.campaign(campaign="submitted", **changed)),
        "--controller-image",
        os.environ["TRIALFLEET_TEST_CONTROLLER_IMAGE"],
        *env,
        *options,
    )
    return ran.code, ran.out + ran.err


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
    listed = [pod["metadata"]["name"] for pod in read_pods(place.namespace, names.TRIAL)]
    return next((pod for pod in listed if place.begun(pod)), None)


def test_a_job_runs_the_campaign_and_everybody_reads_the_store(tmp_path: Path) -> None:
    with minimal(tmp_path) as place:
        store_secret(place)
        code, said = submit(place, agent=GATED)
        assert code == 0, said
        assert ": submitted" in said
        assert "is running on" in said
        code, said = submit(place, agent=GATED)  # the same again is the same Job
        assert code == 0, said
        assert ": there already" in said
        of_controllers = ("-l", "app.kubernetes.io/name=trialfleet-controller")
        jobs = kubectl("get", "jobs", "-n", place.namespace, *of_controllers, "-o", "name").split()
        assert len(jobs) == 1
        place.let_go(wait_until(lambda: at_work(place), within_s=ENDS_S))

        def complete() -> dict[str, Any] | None:
            found: dict[str, Any] = json.loads(by_url(place, "status", "--json"))
            return found if found["state"] == "complete" else None

        standing = wait_until(complete, lambda: controller_said(place), within_s=ENDS_S, every_s=2)
        assert standing is not None
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
    with minimal(tmp_path) as place:
        code, said = submit(place, "--store-secret", "no-such-secret")
        assert code == 2
        assert "no-such-secret" in said
        code, said = submit(place)
        assert code == 2
        assert "was submitted with other settings" in said
        assert "kubectl -n" in said


def test_who_may_not_create_jobs_is_told_before_anything_is_frozen(tmp_path: Path) -> None:
    with minimal(tmp_path, roles=()) as place:
        code, said = submit(place)
        assert code == 2
        assert "create jobs.batch (to submit the controller" in said
        missing = place.trialfleet("status", str(place.campaign(campaign="submitted")))
        assert missing.code == 2
