"""An attempt whose pre-flight ran and whose agent then could not be started has spent: it is no free try."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from tests.support.attempts import LIMITS, Lab, Told
from trialfleet_ledger.owned_folder import claim_folder
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.verdicts import Loss, LossClass
from trialfleet_runner.attempt.pipeline import Attempt
from trialfleet_sandbox.choose import choose
from trialfleet_sandbox.protocol import Exit, Job, MachineMemoryLow, Sandbox, SandboxCapabilities, SandboxError
from trialfleet_sandbox.scratch import folder_name, locked

NOTHING = AgentSpec(kind="command", timeout_s=60, options={"argv": ["/bin/true"]})


@dataclass
class Breaks:
    """A sandbox that fails once it has run `after` jobs."""

    inner: Sandbox
    after: int
    error: SandboxError = field(default_factory=lambda: SandboxError("no more"))
    ran: int = field(default=0)

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def capabilities(self) -> SandboxCapabilities:
        return self.inner.capabilities

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.inner.warnings

    def run(self, job: Job) -> Exit:
        if self.ran == self.after:
            raise self.error
        self.ran += 1
        return self.inner.run(job)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("turns"))


@pytest.mark.parametrize("jobs", [0, 1])
def test_a_sandbox_that_breaks_after_the_look_loses_a_run(lab: Lab, jobs: int) -> None:
    told = Told(targets=("shop/pricing/rules.py",))
    grants = lab.grants(NOTHING, "preflight", attempt=jobs + 1, limits=LIMITS, told=told)
    sandbox = Breaks(choose(), after=jobs)
    with locked(claim_folder(lab.scratch, "scratch"), folder_name(grants)) as scratch:
        result = Attempt(grants, scratch, sandbox, choose(), lab.cache, threading.Event()).run()
    assert isinstance(result, Loss)
    assert (result.loss, result.agent_started, sandbox.ran) == (LossClass.SETUP, jobs == 1, jobs)


def test_a_kill_for_memory_that_the_machine_lacks_loses_a_run(lab: Lab) -> None:
    sandbox = Breaks(choose(), after=0, error=MachineMemoryLow("the kernel killed the program"))
    grants = lab.grants(NOTHING, attempt=3, limits=LIMITS)
    with locked(claim_folder(lab.scratch, "scratch"), folder_name(grants)) as scratch:
        result = Attempt(grants, scratch, sandbox, choose(), lab.cache, threading.Event()).run()
    assert isinstance(result, Loss)
    assert (result.loss, result.agent_started, result.message) == (
        LossClass.OVERUSE,
        True,
        "the kernel killed the program",
    )
