"""A namespace of one's own under the Roles of k8s/base, and a kubeconfig that may do no more than they say."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.cluster import (
    CHECKOUT,
    allow,
    apply_roles,
    done,
    kubeconfig,
    read_pod,
    removed_at_the_end,
    restricted_namespace,
)
from tests.cluster.cluster import kubectl as asked
from tests.support.buckets import bucket
from tests.support.command_forks import run_command
from trialfleet_controller.backends.kube import names
from trialfleet_controller.backends.kube.errors import NotFound

PROGRAM = ("trialfleet_runner.cli",)
TASK = CHECKOUT / "tasks" / "quickstart" / "tasks" / "sqlparse.yaml"  # its environment is in the image for tests
GATED: dict[str, Any] = {  # an agent that runs until `Minimal.let_go`
    "kind": "command",
    "options": {"argv": ["/bin/sh", "-c", "touch /tmp/begun; until [ -e /tmp/go ]; do sleep 0.1; done"]},
    "timeout_s": 400,
}


def kubectl(*args: str, stdin: Any = None) -> str:
    """As the cluster's administrator."""
    return done(asked(*args, stdin=stdin))


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
        environ = {"KUBECONFIG": str(self.kubeconfig), **self.env, **(env or {})}
        if self.inside:
            ran = subprocess.run(
                [*self.inside, sys.executable, "-m", *PROGRAM, *args],
                cwd=self.folder,
                env={**os.environ, **environ},
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        else:
            ran = run_command(*args, cwd=self.folder, env=environ, module=PROGRAM[0], timeout_s=timeout_s)
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    def start(
        self, *args: str, env: Mapping[str, str] | None = None, module: Sequence[str] = PROGRAM
    ) -> subprocess.Popen[str]:
        """`trialfleet` beside the test, as it drives a campaign: its output is read at its end."""
        return subprocess.Popen(
            [sys.executable, "-m", *module, *args, "--no-ray", "--no-report"],
            cwd=CHECKOUT,
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig), **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @contextmanager
    def controller(self, *args: str, **how: Any) -> Generator[subprocess.Popen[str]]:
        """`start`, and killed at the end of the block at the latest."""
        program = self.start(*args, **how)
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
        """Whether its `GATED` agent runs. A pod without containers that run needs no process to know it."""
        with suppress(NotFound):
            is_running = read_pod(self.namespace, pod)["status"]["phase"] == "Running"
            return is_running and self.inside_agent(pod, "test", "-e", "/tmp/begun")
        return False

    def let_go(self, pod: str) -> None:
        """Its `GATED` agent ends, and may take along the process that told it so: its exit code says nothing."""
        self.inside_agent(pod, "touch", "/tmp/go")


def store(bucket: str) -> dict[str, str]:
    """As a campaign file says it."""
    ends = {"endpoint": os.environ["S3_ENDPOINT"], "pod_endpoint": os.environ.get("S3_ENDPOINT_PODS", "")}
    return {"url": f"s3://{bucket}/runs", **{name: value for name, value in ends.items() if value}}


@contextmanager
def minimal(folder: Path, *, roles: tuple[str, ...] = ("trialfleet-controller",)) -> Generator[Minimal]:
    name = f"operate-{secrets.token_hex(4)}"
    with bucket(name), removed_at_the_end(name):
        restricted_namespace(name)
        apply_roles(name)
        kubectl("create", "serviceaccount", "operator", "-n", name)
        allow(name, "operator", *roles)
        yield Minimal(name, name, folder, kubeconfig(name, "operator", folder / "kubeconfig"))


def store_secret(place: Minimal) -> None:
    keys = [f"--from-literal={name}={os.environ[name]}" for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")]
    kubectl("create", "secret", "generic", "trialfleet-store", "-n", place.namespace, *keys)


def api_server() -> dict[str, str]:
    """Where a cluster has no Service network, its pods are told where the API server is."""
    gateway = os.environ.get("TRIALFLEET_TEST_API_SERVER")
    return {"KUBERNETES_SERVICE_HOST": gateway, "KUBERNETES_SERVICE_PORT": "6443"} if gateway else {}
