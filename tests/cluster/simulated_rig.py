"""A namespace, a bucket and a simulated node of one's own, on the environment's cluster and store."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.simulated.wire import Api, Refused
from tests.cluster.simulated_campaign import IMAGE_ID
from tests.support.buckets import bucket

ROOT = Path(__file__).parents[2]
MISSING = "needs a cluster in $KUBECONFIG and an S3 server in $S3_ENDPOINT"


@dataclass
class Rig:
    """`store`: the URL of an empty store."""

    name: str
    store: str
    env: dict[str, str]
    kubelet: subprocess.Popen[str] | None = None
    programs: list[subprocess.Popen[str]] = field(default_factory=list[subprocess.Popen[str]])

    @property
    def node(self) -> str:
        return self.name

    @property
    def namespace(self) -> str:
        return self.name

    def start(self, module: str, *argv: str) -> subprocess.Popen[str]:
        """A program of the tests; its standard output is a pipe. It ends with the rig at the latest."""
        program = subprocess.Popen(
            [sys.executable, "-m", module, *argv], cwd=ROOT, env=self.env, stdout=subprocess.PIPE, text=True
        )
        self.programs.append(program)
        return program

    def stop_kubelet(self) -> dict[str, Any]:
        """What it has played."""
        assert self.kubelet is not None
        assert self.kubelet.stdout is not None
        self.kubelet.send_signal(signal.SIGTERM)
        printed, _ = self.kubelet.communicate(timeout=60)
        self.kubelet = None
        return dict(json.loads(printed.splitlines()[-1]))


def there() -> bool:
    """Whether the environment names a cluster and a store."""
    return "KUBECONFIG" in os.environ and "S3_ENDPOINT" in os.environ


@contextmanager
def rig(*behaviour: str) -> Generator[Rig]:
    """`behaviour`: options of the simulated kubelet."""
    name = f"simulated-{secrets.token_hex(4)}"
    env = {**os.environ, "AWS_ENDPOINT_URL_S3": os.environ["S3_ENDPOINT"]}
    api = Api(threads=2)
    with bucket(name), _namespace(api, name):
        made = Rig(name, f"s3://{name}", env)
        try:
            start_kubelet(made, behaviour)
            yield made
        finally:
            for program in made.programs:
                program.kill() if program is not made.kubelet else program.terminate()
                program.wait(timeout=60)


def start_kubelet(made: Rig, behaviour: Sequence[str]) -> None:
    """Returns when its node takes pods."""
    argv = (made.node, "--image-id", IMAGE_ID, *behaviour)
    made.kubelet = made.start("tests.cluster.simulated", *argv)
    assert made.kubelet.stdout is not None
    assert made.kubelet.stdout.readline() == "ready\n", "the simulated kubelet did not come up"


@contextmanager
def _namespace(api: Api, name: str) -> Generator[None]:
    """And its node, which a killed kubelet leaves. Its pods go by force: nobody plays them any more."""
    api.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    at = f"/api/v1/namespaces/{name}"
    try:
        yield
    finally:
        by_force = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        for path, options in ((f"{at}/pods", by_force), (at, None), (f"/api/v1/nodes/{name}", None)):
            with suppress(Refused):
                api.call("DELETE", path, options)
