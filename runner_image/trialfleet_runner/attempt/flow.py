"""One attempt from claim to commit: the order of things, and what becomes of each failure."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

from trialfleet_runner import environment
from trialfleet_runner import grants as store
from trialfleet_runner.attempt import agent_run, commit, patching, score_run
from trialfleet_runner.attempt.inputs import Inputs
from trialfleet_runner.attempt.live import LiveLog
from trialfleet_runner.attempt.loss import from_exception
from trialfleet_runner.attempt.members import Members
from trialfleet_runner.attempt.places import place_of
from trialfleet_runner.attempt.ready import Ready, lay_out, prepare
from trialfleet_runner.attempt.score_run import ScoreRun
from trialfleet_runner.attempt.scratch import Scratch
from trialfleet_runner.attempt.usage import Clock
from trialfleet_runner.cache import Cache, discard
from trialfleet_runner.contract import Grants, Loss, Patch, Scored
from trialfleet_runner.sandbox.protocol import Sandbox
from trialfleet_runner.scoring import all_passed, verdict
from trialfleet_runner.store.protocol import StoreError


@dataclass
class Attempt:
    """The state of one attempt. `stop` is set by SIGTERM."""

    grants: Grants
    scratch: Scratch
    sandbox: Sandbox
    cache: Cache
    clock: Clock = field(default_factory=Clock)
    stop: threading.Event = field(default_factory=threading.Event)
    members: Members = field(default_factory=Members)
    agent_started: bool = False
    patched: bool = False

    def run(self) -> Scored | Loss:
        """Verdict or loss, committed. Raises `StoreError` when the store does not answer: nothing is
        committed then, and the controller decides."""
        result = self._result()
        self.clock.lap("bundle")
        self.members.add("timing.json", self.clock.json())
        if isinstance(result, Loss):
            self.members.add_value("loss.json", result)
        packed = self.members.pack(self.grants, self.sandbox.name)
        commit.commit(self.grants, result, packed)
        return result

    def _result(self) -> Scored | Loss:
        self.members.warnings += self.sandbox.warnings
        try:
            return self._measure()
        except StoreError:
            raise
        except Exception as error:
            loss = from_exception(error, agent_started=self.agent_started)
            self._gather_logs()
            return loss.model_copy(update={"patched": self.patched})

    def _measure(self) -> Scored:
        inputs = Inputs(self.grants, self.cache)
        chosen = agent_run.identified(self.grants)
        self.clock.lap("inputs")
        ready = prepare(self.grants, inputs, for_other_uid=self.sandbox.name == "uid")
        self.members.add("prompt.txt", ready.composed.prompt)
        self.members.add("system.txt", ready.composed.system or "")
        self.members.add("context/stripped.diff", ready.composed.stripped)
        patch = self._earlier_patch() or self._fresh_patch(ready, inputs, chosen)
        self.members.add("patch.diff", patch.diff)
        self.members.add("trajectory.jsonl", patch.trajectory_jsonl)
        return self._scored(ready, patch)

    def _earlier_patch(self) -> Patch | None:
        """The patch of a lost attempt whose agent had ended: it is scored, and the agent is not asked again."""
        if self.grants.prior_patch is None:
            return None
        self.agent_started = self.patched = True
        return Patch.model_validate_json(store.read(self.grants.prior_patch))

    def _fresh_patch(self, ready: Ready, inputs: Inputs, chosen: agent_run.Chosen) -> Patch:
        lay_out(ready, self.scratch)
        place = place_of(self.scratch, ready.environment, self.sandbox, hook=bool(ready.composed.hook_nodes))
        fix = inputs.get(self.grants.task.fix) if self.grants.agent.kind == "oracle" else None
        self.clock.lap("workspace")
        log, secrets = self.scratch.record / "stdout", self.members.secrets
        with LiveLog(log, self._send_live, interval_s=self.grants.limits.live_interval_s, secrets=secrets):
            self.agent_started = True
            run = agent_run.run_agent(
                self.grants, ready, place, chosen=chosen, fix=fix, stop=self.stop, secrets=secrets
            )
        self.clock.lap("agent", run.exit.core_s if run.exit else 0.0)
        self._gather_logs()
        if run.gateway is not None:
            self.members.add_value("gateway/report.json", run.gateway)
        if not environment.unchanged(ready.environment):
            self.members.warnings.append("the agent changed its environment, which was thrown away")
            discard(ready.environment)
            ready = replace(ready, environment=prepare(self.grants, inputs, for_other_uid=False).environment)
        patch = patching.patch_of(self.grants, ready, self.scratch, run)
        commit.leave_patch(self.grants, patch)
        self.patched = True
        self.clock.lap("patch")
        return patch

    def _scored(self, ready: Ready, patch: Patch) -> Scored:
        folder = self.scratch.root / "score"
        folder.mkdir(mode=0o711)
        scored = score_run.score(self.grants, ready, patch.diff, folder, self.sandbox, stop=self.stop)
        self.clock.lap("tests", scored.run.exit.core_s or 0.0)
        self._gather_tests(scored, folder)
        passed = all_passed(scored.results)
        return Scored(
            verdict=verdict(patch.stop, passed=passed, tests_timed_out=scored.timed_out),
            stop=patch.stop,
            tests_passed=passed,
            metrics=patch.metrics.model_copy(
                update={
                    "tests_s": round(scored.run.exit.wall_s, 3),
                    "tests_core_s": scored.run.exit.core_s,
                    "wall_s": round(self.clock.wall_s(), 3),
                    "overhead_core_s": round(self.clock.own_core_s(), 3),
                }
            ),
            delivery=patch.delivery,
        )

    def _send_live(self, data: bytes) -> None:
        store.overwrite(self.grants.live, data)

    def _gather_logs(self) -> None:
        record = self.scratch.record
        for name, path in (
            ("agent/stdout.log", record / "stdout"),
            ("agent/stderr.log", record / "stderr"),
            ("gateway/model.jsonl", record / "model.jsonl"),
            ("gateway/answers.jsonl", record / "answers.jsonl"),
            ("hook.jsonl", self.scratch.home / agent_run.HOOK_LOG),
        ):
            self.members.add_file(name, path)

    def _gather_tests(self, scored: ScoreRun, folder: Path) -> None:
        self.members.add("tests/output.log", scored.run.output)
        self.members.add_file("tests/junit.xml", folder / "home" / "junit.xml")
        self.members.add_value("tests/results.json", [result.model_dump(mode="json") for result in scored.results])
