"""Campaigns on a simulated node, for faults: started, killed, started again, and audited at the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.cluster import allow, apply_roles, kubeconfig
from tests.cluster.simulated.life import DOUBLED, TROUBLE
from tests.cluster.simulated_campaign import simulated_plan
from tests.cluster.simulated_rig import ROOT, Rig, rig
from tests.support.audit import audit, ending, records
from tests.support.waiting import wait_until
from trialfleet_ledger.kill_points import VARIABLE
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.store.open import open_store
from trialfleet_ledger.store.protocol import Store

CAMPAIGN = "simulated"
CONTROLLER = "trialfleet-controller"  # an account, and the Role that it works by
CONDITIONS = 5  # of a simulated campaign


def inflict(*fault: str) -> None:
    """`$TRIALFLEET_FAULT NAME [SECONDS]`: kills a server, which is back when this returns; or `compact`."""
    command = [*os.environ["TRIALFLEET_FAULT"].split(), *fault]
    subprocess.run(command, check=True, capture_output=True, timeout=240)


@contextmanager
def during(server: str, seconds: int) -> Generator[None]:
    """The server is down when the block begins, for `seconds`; at its end it is back."""
    command = [*os.environ["TRIALFLEET_FAULT"].split(), server, str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as fault:
        assert fault.stdout is not None
        assert fault.stdout.readline() == "down\n", f"{server} was not killed"
        yield
        assert fault.wait() == 0


@dataclass
class Victim:
    """One campaign of `tasks` × 5 × `reps` trials. `store`: as it is, whatever stands in front of it."""

    rig: Rig
    tasks: int
    reps: int
    width: int
    kubeconfig: Path  # the controllers'

    @property
    def store(self) -> Store:
        return open_store(self.rig.store, endpoint=os.environ["S3_ENDPOINT"])

    @property
    def plan(self) -> Plan:
        """Equal to the one that the controller made, as far as trials go."""
        size = {"tasks": self.tasks, "reps": self.reps, "width": self.width}
        return simulated_plan(node=self.rig.node, namespace=self.rig.namespace, name=CAMPAIGN, **size)

    @property
    def trials(self) -> int:
        return self.tasks * CONDITIONS * self.reps

    def controller(
        self, *options: str, crash: str = "", under: tuple[str, ...] = (), env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """`crash`: the checkpoint at which it kills itself. `under`: a command in front of its own."""
        size = ("--tasks", str(self.tasks), "--reps", str(self.reps), "--width", str(self.width))
        made = self.rig
        argv = (sys.executable, "-m", "tests.cluster.simulated_campaign", made.store, made.node, made.namespace)
        process = subprocess.Popen(
            [*under, *argv, *size, *options],
            cwd=ROOT,
            env={**made.env, "KUBECONFIG": str(self.kubeconfig), VARIABLE: crash, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        made.programs.append(process)
        return process

    def outcomes(self) -> int:
        return sum(1 for _ in self.store.list(f"{CAMPAIGN}/outcomes/"))

    def under_way(self, controller: subprocess.Popen[str], *, share: float = 0.25) -> dict[str, bytes]:
        """Waits until this share of the trials is over; the records of that moment."""

        def there() -> bool:
            assert controller.poll() is None, f"it ended early: {controller.communicate()[0]}"
            return self.outcomes() >= share * self.trials

        wait_until(there)
        assert self.outcomes() < self.trials, "too late to test anything"
        return records(self.store, CAMPAIGN)

    def complete(self, controller: subprocess.Popen[str], *, within_s: float = 240) -> None:
        printed, _ = controller.communicate(timeout=within_s)
        assert controller.returncode == 0, printed
        keys = [found.key for found in self.store.list(f"{CAMPAIGN}/outcomes/")]
        outcomes = (Outcome.model_validate_json(raw or b"") for _, raw in self.store.get_many(keys))
        assert json.loads(printed.splitlines()[-1])["ending"] == ending(outcomes), printed

    def audited(self, before: dict[str, bytes] | None = None) -> tuple[list[Outcome], Counter[str]]:
        """Every outcome, each once and right; and what the node has played."""
        played: Counter[str] = Counter(self.rig.stop_kubelet()["counts"])
        assert played[DOUBLED] == 0, "a runner's record was written twice"
        assert played[TROUBLE] == 0, "the simulated node failed: its standard error says how"
        outcomes = audit(self.store, self.plan, before=before)
        assert len(outcomes) == self.trials
        return outcomes, played


@contextmanager
def victim(*behaviour: str, tasks: int = 1, reps: int = 8, width: int = 10) -> Generator[Victim]:
    """`behaviour`: options of the simulated kubelet."""
    with rig(*behaviour) as made, tempfile.TemporaryDirectory() as folder:
        apply_roles(made.namespace)
        allow(made.namespace, CONTROLLER, CONTROLLER)
        config = kubeconfig(made.namespace, CONTROLLER, Path(folder) / "kubeconfig")
        yield Victim(made, tasks, reps, width, config)


@contextmanager
def standing_still(process: subprocess.Popen[str]) -> Generator[None]:
    """Stopped for the length of the block, as a machine that swaps or a VM that moves."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)
