"""A pod on this machine: the runner and two supervisors as processes, over real sockets and volumes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.attempts import LOCK, Lab
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.records.attempt import LastWords
from trialfleet_ledger.records.grants import Grants
from trialfleet_sandbox import supervise
from trialfleet_sandbox.container import CAPABILITIES, ContainerSandbox
from trialfleet_sandbox.gate import Gate
from trialfleet_sandbox.protocol import Exit, Job, SandboxCapabilities

SCRIPT = Path(supervise.__file__)
GATES = "gate-"  # in /var/tmp, followed by the pid of their test process

OWN_PIDS = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "--")  # root alone may


def supervisor(
    root: Path, role: str, env: Mapping[str, str] | None = None, *, below: tuple[str, ...] = ()
) -> subprocess.Popen[bytes]:
    """As a container starts it; `below` another program."""
    argv = [*below, sys.executable, "-I", "-S", str(SCRIPT), role]
    told = {"PATH": os.environ["PATH"], "TRIALFLEET_ROOT": str(root), **(env or {})}
    return subprocess.Popen(argv, env=told, start_new_session=True)


def inside(supervisor: subprocess.Popen[bytes]) -> bool:
    """Whether it has come in at its gate. From then on it leaves SIGTERM to its runner."""
    lines = Path(f"/proc/{supervisor.pid}/status").read_text(encoding="utf-8").splitlines()
    (ignored,) = (line.split()[1] for line in lines if line.startswith("SigIgn:"))
    return bool(int(ignored, 16) >> (signal.SIGTERM - 1) & 1)


@contextmanager
def gate_in(role: str, above: Path = Path("/var/tmp")) -> Generator[tuple[Path, Gate]]:
    """A root with one open gate, at a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix=f"{GATES}{os.getpid()}-", dir=above) as folder:
        gate = Gate(Path(folder) / f"{role}-gate")
        try:
            yield Path(folder), gate
        finally:
            gate.close()


@dataclass(frozen=True)
class ContainerEach:
    """A container for every job: what a pod has one of. `first`: its supervisor is pid 1, as in a pod. `above`:
    where its gates lie; whoever is killed leaves them there."""

    first: bool = False
    name: str = "container"
    capabilities: SandboxCapabilities = CAPABILITIES
    above: Path = Path("/var/tmp")
    warnings: tuple[str, ...] = ()

    def run(self, job: Job) -> Exit:
        with gate_in("agent", self.above) as (root, gate):
            process = supervisor(root, "agent", below=OWN_PIDS if self.first else ())
            try:
                volume = next((mount.source for mount in job.mounts if mount.writable), root)
                return ContainerSandbox(gate, volume, gone_is_memory=True).run(job)
            finally:
                process.wait(60)


@dataclass(frozen=True)
class PodRun:
    """The three containers of one attempt, running."""

    root: Path
    runner: subprocess.Popen[bytes]
    agent: subprocess.Popen[bytes]
    score: subprocess.Popen[bytes]

    @property
    def containers(self) -> tuple[subprocess.Popen[bytes], ...]:
        return self.runner, self.agent, self.score

    def wait(self, timeout_s: float = 120) -> tuple[int, int, int]:
        """The exit codes of runner, agent and score."""
        runner, agent, score = (process.wait(timeout_s) for process in self.containers)
        return runner, agent, score

    @property
    def said(self) -> LastWords | None:
        """The termination message of the runner."""
        path = self.root / "termination-log"
        data = path.read_bytes() if path.exists() else b""
        assert len(data) <= 1024
        return LastWords.model_validate_json(data) if data else None


@contextmanager
def pod(grants: Grants | str, *, baked: Path, env: Mapping[str, str] | None = None) -> Generator[PodRun]:
    """A pod of one attempt: real processes, real sockets, folders for volumes. `grants` may be a URL."""
    with tempfile.TemporaryDirectory(prefix="pod-", dir="/var/tmp", ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        if isinstance(grants, Grants):
            (root / "grants.json").write_bytes(canonical_json(grants))
            grants = (root / "grants.json").as_uri()
        told = {
            "PATH": os.environ["PATH"],
            "TRIALFLEET_ROOT": str(root),
            "TRIALFLEET_TERMINATION_LOG": str(root / "termination-log"),
            "TRIALFLEET_BAKED": str(baked),
            "TRIALFLEET_GRANTS_URL": grants,
            "TRIALFLEET_POD_UID": "pod-uid",
            "TRIALFLEET_NODE": "node-1",
            "TRIALFLEET_IMAGE": "runner@sha256:0",
            "TRIALFLEET_NETWORK": "enforced",
            **(env or {}),
        }
        argv = [sys.executable, "-m", "trialfleet_runner.pod", "run"]
        running = PodRun(
            root,
            subprocess.Popen(argv, env=told, start_new_session=True),
            supervisor(root, "agent"),
            supervisor(root, "score"),
        )
        try:
            yield running
        finally:
            for process in running.containers:
                process.kill()
                process.wait()


def bake(lab: Lab, folder: Path) -> Path:
    """The lab's environment, baked by the command that images are made with."""
    recipes = folder / "environments.json"
    environment = lab.planned.order.environment.model_dump(mode="json")
    recipes.write_text(json.dumps([{"environment": environment, "lock": LOCK.read_text()}]))
    argv = [sys.executable, "-m", "trialfleet_runner.pod", "bake", str(recipes)]
    subprocess.run(argv, check=True, env={**os.environ, "TRIALFLEET_BAKED": str(folder / "baked")})
    return folder / "baked"
