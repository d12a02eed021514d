"""The controller's Job: restricted, without secrets, one per campaign."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from trialfleet_controller.operate.job import RAY_SECRET, SPEC, Submission, job
from trialfleet_controller.operate.submit import environment
from trialfleet_ledger.errors import OperatorError

ASKED = Submission(
    campaign="s3://bucket/runs/demo",
    uid="ab" * 16,
    namespace="trialfleet",
    image="controller:1",
    endpoint="http://s3:1",
)


def changed(**fields: object) -> Submission:
    return Submission(**{**ASKED.__dict__, **fields})  # type: ignore[arg-type]


def test_it_resumes_the_campaign_by_its_place_in_the_store() -> None:
    made = job(changed(ray_address="ray://head:10001", env={"KUBERNETES_SERVICE_HOST": "10.0.0.1"}))
    (container,) = made["spec"]["template"]["spec"]["containers"]
    assert container["command"][1:3] == ["resume", "s3://bucket/runs/demo"]
    assert "--in-cluster" in container["command"]
    assert container["command"][-2:] == ["--ray-address", "ray://head:10001"]
    values = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert values["AWS_ENDPOINT_URL_S3"] == "http://s3:1"
    assert values["KUBERNETES_SERVICE_HOST"] == "10.0.0.1"
    assert "TRIALFLEET_S3_PATH_STYLE" not in values


def test_pod_security_restricted_and_never_two_controllers() -> None:
    made = job(ASKED)
    spec = made["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert made["spec"]["podReplacementPolicy"] == "Failed"
    assert spec["restartPolicy"] == "OnFailure"
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in spec["volumes"]}


def test_a_job_that_has_finished_goes_after_three_days() -> None:
    assert job(ASKED)["spec"]["ttlSecondsAfterFinished"] == 259_200


def test_its_pod_is_no_attempt() -> None:
    """The controller must not track itself: a campaign's attempts are found by `trialfleet.dev/campaign`."""
    labels = job(ASKED)["spec"]["template"]["metadata"]["labels"]
    assert "trialfleet.dev/campaign" not in labels
    assert labels["trialfleet.dev/role"] == "controller"


def test_credentials_are_named_and_never_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush-hush")
    text = json.dumps(job(changed(store_secret="mine")))
    assert "hush-hush" not in text
    env = {entry["name"]: entry for entry in json.loads(text)["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert env["AWS_SECRET_ACCESS_KEY"]["valueFrom"]["secretKeyRef"] == {
        "name": "mine", "key": "AWS_SECRET_ACCESS_KEY", "optional": False,
    }  # fmt: skip
    assert env["AWS_SESSION_TOKEN"]["valueFrom"]["secretKeyRef"]["optional"] is True
    unnamed = job(ASKED)["spec"]["template"]["spec"]["containers"][0]["env"]
    refs = [entry["valueFrom"]["secretKeyRef"] for entry in unnamed if "valueFrom" in entry]
    assert all(ref["optional"] and ref["name"] == "trialfleet-store" for ref in refs)


def test_the_same_submission_is_the_same_job_and_another_is_seen() -> None:
    assert job(ASKED) == job(changed())
    other = job(changed(image="controller:2"))
    assert other["metadata"]["name"] == job(ASKED)["metadata"]["name"]
    assert other["metadata"]["annotations"][SPEC] != job(ASKED)["metadata"]["annotations"][SPEC]


def test_failed_pods_are_kept_by_the_controller_in_the_job() -> None:
    def command(asked: Submission) -> list[str]:
        words: list[str] = job(asked)["spec"]["template"]["spec"]["containers"][0]["command"]
        return words

    assert command(changed(keep_failed=3))[-2:] == ["--keep-failed", "3"]
    assert "--keep-failed" not in command(changed())


def test_metrics_are_served_where_prometheus_looks() -> None:
    template = job(changed(metrics_port=9400))["spec"]["template"]
    (container,) = template["spec"]["containers"]
    assert container["command"][-2:] == ["--metrics-port", "9400"]
    assert container["ports"] == [{"name": "metrics", "containerPort": 9400}]
    annotations = template["metadata"]["annotations"]
    assert (annotations["prometheus.io/scrape"], annotations["prometheus.io/port"]) == ("true", "9400")
    without = job(ASKED)["spec"]["template"]
    assert not [key for key in without["metadata"]["annotations"] if key.startswith("prometheus.io/")]
    assert "ports" not in without["spec"]["containers"][0]


def test_rays_token_comes_from_its_secret_and_only_to_a_joined_cluster() -> None:
    def tokens(asked: Submission) -> list[object]:
        (container,) = job(asked)["spec"]["template"]["spec"]["containers"]
        return [entry for entry in container["env"] if entry["name"] == "RAY_AUTH_TOKEN"]

    reference = {"name": "trialfleet-ray", "key": "RAY_AUTH_TOKEN", "optional": True}
    assert tokens(changed(ray_address="head:6379")) == [
        {"name": "RAY_AUTH_TOKEN", "valueFrom": {"secretKeyRef": reference}}
    ]
    assert tokens(ASKED) == []


def test_rays_own_nodes_take_the_token_from_the_same_secret() -> None:
    root = Path(__file__).parents[4]
    (cluster,) = yaml.safe_load_all((root / "k8s/kuberay/raycluster.yaml").read_text())
    spec = cluster["spec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        template = group["template"]
        (container,) = template["spec"]["containers"]
        for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN"):  # the operator copies no `envFrom` to its init container
            key = {"name": RAY_SECRET, "key": name, "optional": True}
            assert {"name": name, "valueFrom": {"secretKeyRef": key}} in container["env"]
        assert {"name": "RAY_USAGE_STATS_ENABLED", "value": "0"} in container["env"]
        port = group["rayStartParams"]["metrics-export-port"]
        assert template["metadata"]["annotations"]["prometheus.io/port"] == port
        assert {"name": "metrics", "containerPort": int(port)} in container["ports"]


@pytest.mark.parametrize(
    "word", ["NAME", "=x", "A B=x", "ANTHROPIC_API_KEY=sk", "AWS_SESSION_TOKEN=x", "db_password=x"]
)
def test_environment_refuses_what_is_none_or_secret(word: str) -> None:
    with pytest.raises(OperatorError):
        environment((word,))
