"""A namespace of one's own under the Roles of k8s/base, and a kubeconfig that may do no more than they say."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import yaml
from botocore.config import Config

from tests.cluster.cluster import kubectl as asked
from trialfleet_controller.kube import names

ROOT = Path(__file__).parents[2]
BASE = ROOT / "k8s" / "base"
TASK = ROOT / "tasks" / "quickstart" / "tasks" / "sqlparse.yaml"  # its environment is in the image for tests
GATED: dict[str, Any] = {  # an agent that runs until `Minimal.let_go`
    "kind": "command",
    "options": {"argv": ["/bin/sh", "-c", "touch /tmp/begun; until [ -e /tmp/go ]; do sleep 0.1; done"]},
    "timeout_s": 400,
}


def kubectl(*args: str, given: str | None = None) -> str:
    """As the cluster's administrator."""
    ran = subprocess.run(["kubectl", *args], input=given, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, f"kubectl {args}: {ran.stderr}"
    return ran.stdout


@dataclass
class Ran:
    code: int
    out: str
    err: str


@dataclass
class Minimal:
    """`bucket`: an empty one. `kubeconfig`: of an account with the Roles named. `inside`: a command that runs the
    program where it is to run."""

    namespace: str
    bucket: str
    folder: Path
    kubeconfig: Path
    env: dict[str, str] = field(default_factory=dict[str, str])
    inside: tuple[str, ...] = ()

    def campaign(self, **changed: Any) -> Path:
        """A campaign file of one quick-start task; `kubernetes` and `store` are merged, the rest is replaced."""
        spec: dict[str, Any] = {
            "campaign": "looked-at",
            "seed": 1,
            "tasks": [str(TASK)],
            "conditions": ["none"],
            "reps": 1,
            "agent": {"kind": "nop"},
            "limits": {"cpu": 0.5, "memory": "512Mi", "disk": "512Mi", "parallel": 2},
            "store": store(self.bucket),
            "backend": "kubernetes",
            "kubernetes": {
                "image": os.environ["TRIALFLEET_TEST_IMAGE"],
                "namespaces": [self.namespace],
                "allow_unenforced_network": True,
            },
        }
        for key, value in changed.items():
            spec[key] = {**spec[key], **value} if key in ("kubernetes", "store") else value
        path = self.folder / "campaign.yaml"
        path.write_text(yaml.safe_dump(spec))
        return path

    def trialfleet(self, *args: str, env: Mapping[str, str] | None = None, timeout_s: float = 280) -> Ran:
        ran = subprocess.run(
            [*self.inside, sys.executable, "-m", "trialfleet_runner.cli", *args],
            cwd=self.folder,
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig), **self.env, **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    @contextmanager
    def controller(self, *args: str, env: Mapping[str, str] | None = None) -> Generator[subprocess.Popen[str]]:
        """`trialfleet` beside the test, as it drives a campaign: its output is read at its end."""
        program = subprocess.Popen(
            [sys.executable, "-m", "trialfleet_runner.cli", *args, "--no-ray", "--no-report"],
            cwd=ROOT,
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig), **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield program
        finally:
            if program.poll() is None:
                program.kill()
                program.communicate()

    def inside_agent(self, pod: str, *argv: str) -> bool:
        """Whether the command ended well in the agent's container of this pod."""
        return asked("exec", pod, "-n", self.namespace, "-c", names.AGENT, "--", *argv).returncode == 0

    def begun(self, pod: str) -> bool:
        """Whether its `GATED` agent runs."""
        return self.inside_agent(pod, "test", "-e", "/tmp/begun")

    def let_go(self, pod: str) -> None:
        """Its `GATED` agent ends, and may take along the process that told it so: its exit code says nothing."""
        self.inside_agent(pod, "touch", "/tmp/go")


def store(bucket: str) -> dict[str, str]:
    """As a campaign file says it."""
    ends = {"endpoint": os.environ["S3_ENDPOINT"], "pod_endpoint": os.environ.get("S3_ENDPOINT_PODS", "")}
    return {"url": f"s3://{bucket}/runs", **{name: value for name, value in ends.items() if value}}


def client(endpoint: str | None = None) -> Any:
    """Of the test's store, as this machine reaches it, unless told otherwise."""
    config = Config(s3={"addressing_style": "path"}, request_checksum_calculation="when_required")
    return boto3.client(
        "s3", endpoint_url=endpoint or os.environ["S3_ENDPOINT"], region_name="us-east-1", config=config
    )


@contextmanager
def minimal(folder: Path, *, roles: tuple[str, ...] = ("trialfleet-controller",)) -> Generator[Minimal]:
    name = f"operate-{secrets.token_hex(4)}"
    with _bucket(name), _namespace(name):
        for file in ("accounts.yaml", "roles.yaml"):
            kubectl("apply", "--server-side", "-n", name, "-f", str(BASE / file))
        kubectl("create", "serviceaccount", "operator", "-n", name)
        for role in roles:
            kubectl(
                "create", "rolebinding", f"{role}-too", "-n", name,
                f"--role={role}", f"--serviceaccount={name}:operator",
            )  # fmt: skip
        config = folder / "kubeconfig"
        config.write_text(json.dumps(_kubeconfig(kubectl("create", "token", "operator", "-n", name).strip())))
        yield Minimal(name, name, folder, config)


def _kubeconfig(token: str) -> dict[str, Any]:
    """The administrator's, with a token in place of the administrator."""
    now = json.loads(kubectl("config", "view", "--raw", "--minify", "-o", "json"))
    now["users"] = [{"name": "minimal", "user": {"token": token}}]
    now["contexts"][0]["context"]["user"] = "minimal"
    return dict(now)


@contextmanager
def _bucket(name: str) -> Generator[None]:
    s3 = client()
    s3.create_bucket(Bucket=name)
    try:
        yield
    finally:
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=name):
            there = [{"Key": item["Key"]} for item in page.get("Contents", ())]  # a page and a request: 1,000
            if there:
                s3.delete_objects(Bucket=name, Delete={"Objects": there, "Quiet": True})
        s3.delete_bucket(Bucket=name)


@contextmanager
def _namespace(name: str) -> Generator[None]:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    kubectl("apply", "-f", "-", given=json.dumps(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    ))  # fmt: skip
    try:
        yield
    finally:
        kubectl("delete", "namespace", name, "--wait=false")
