"""One attempt from claim to commit: the order of things, and what becomes of each failure."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

from trialfleet_deliveries.delivery import may_push
from trialfleet_deliveries.hook_log import FAIL_FAST_LOG, HOOK_LOG
from trialfleet_deliveries.placement import AS_NAMED, FileReading
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.display_text import visible
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.parsed_records import parse_bytes
from trialfleet_ledger.records.agent import longest_attempt_s
from trialfleet_ledger.records.attempt import End, Patch
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.measurements import Delivery
from trialfleet_ledger.records.receipts import RECEIPTS
from trialfleet_ledger.records.verdicts import Loss, LossClass, Scored, Stop, Verdict
from trialfleet_ledger.store import grants as store
from trialfleet_ledger.store.grants import GrantRefused
from trialfleet_ledger.store.protocol import StoreError
from trialfleet_ledger.store.rereading import WrongValue
from trialfleet_repository import shared_runs
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments import environment
from trialfleet_repository.mounts import place_of
from trialfleet_repository.pass_cautions import find_pass_cautions
from trialfleet_repository.patch import PatchError
from trialfleet_runner.attempt import agent_gateway, agent_run, commit, patch_record, preflight_run
from trialfleet_runner.attempt.bundle_builder import Members
from trialfleet_runner.attempt.deadline import Clock, within
from trialfleet_runner.attempt.grant_renewal import Renewal
from trialfleet_runner.attempt.host_room import RoomSample, has_filled_host
from trialfleet_runner.attempt.key_marks import KeyChanged, scored_diff
from trialfleet_runner.attempt.live_log import LIVE_PATIENCE, live_log
from trialfleet_runner.attempt.loss import Lost, from_exception, refuse_full, storable
from trialfleet_runner.attempt.prepared_inputs import Inputs, Ready, lay_out, prepare
from trialfleet_runner.attempt.score_run import Scorer, ScoringRuns, TestsExhausted
from trialfleet_runner.attempt.scoring_order import changes_in
from trialfleet_runner.attempt.scoring_record import describe_left, list_files, scoring_record
from trialfleet_runner.exposure import exposed
from trialfleet_runner.kept_records import keep_patch
from trialfleet_runner.metrics import verdict
from trialfleet_sandbox.protocol import Exit, Sandbox
from trialfleet_sandbox.scratch import Scratch

_NONE: Mapping[str, float | None] = {}
LAST_WORDS_S = 60.0  # of an attempt's time, reserved for the last words if nothing can be stored


@dataclass
class Attempt:
    """The state of one attempt. `sandbox` is the agent's, `scorer` the tests'. `stop` is set by SIGTERM.

    `end`: the result, once it is known; `bundle_stored` and `committed`: what the store has. `unsaved`: the agent
    has ended, and the store refuses its patch; `renewal`: the source of fresh grants; `keeps_here`: a refused
    patch is kept on this machine for the next controller. `stop_explained`: the controller watches this runner,
    knows why it stops, and writes that as the end. `wait_for_isolation` returns once nothing that runs here can
    reach what it must not, and raises `Lost` if that takes too long; None: there is nothing to wait for. `start`,
    `patch`: the SHA-256 of the records that claimed this attempt, and that holds what its agent left.
    """

    grants: Grants
    scratch: Scratch
    sandbox: Sandbox
    scorer: Sandbox
    cache: Cache
    stop: threading.Event
    stop_explained: bool = False
    renewal: Renewal | None = None
    keeps_here: bool = False
    wait_for_isolation: Callable[[], None] | None = None
    clock: Clock = field(default_factory=Clock)
    members: Members = field(default_factory=Members)
    agent_started: bool = False
    patched: bool = False
    unsaved: bool = False
    end: End | None = None
    bundle_stored: bool = False
    committed: bool = False
    start: str | None = None
    patch: str | None = None

    @cached_property
    def inputs(self) -> Inputs:
        return Inputs(self.grants, self.cache)

    def run(self) -> Scored | Loss:
        """Verdict or loss, committed unless the attempt has an end already. Raises `StoreError` if the store does
        not answer: nothing is committed then, and the controller decides."""
        result = self._result()
        self.clock.lap("bundle")
        self.members.add("timing.json", self.clock.json())
        self.members.add_value("loss.json" if isinstance(result, Loss) else "scored.json", result)
        packed = self.members.pack(self.grants, self.sandbox.name)
        self.end = commit.end_of(self.grants, result, packed, start=self.start, patch=self.patch)
        self.bundle_stored = commit.leave_bundle(self.grants, packed)
        self.committed = self.bundle_stored and not self.left and commit.commit(self.grants, self.end)
        return result

    @property
    def left(self) -> bool:
        """Whether the end is left to the controller, which knows why this runner was stopped."""
        loss = None if self.end is None else self.end.loss
        return self.stop_explained and loss is not None and loss.loss is LossClass.TERMINATED

    def _result(self) -> Scored | Loss:
        self.members.warnings += (*self.sandbox.warnings, *self.scorer.warnings)
        self.members.warnings += exposed(self.grants, self.sandbox)
        try:
            return self._measure()
        except StoreError:
            raise
        except Exception as error:
            loss = from_exception(error, agent_started=self.agent_started)
            self._gather_logs()
            return loss.model_copy(update={"patched": self.patched})

    def _measure(self) -> Scored:
        with within(self.grants.limits.setup_timeout_s, self.stop):
            prior = self._earlier_patch()
            chosen = agent_run.identified(self.grants) if prior is None else None
            self.clock.lap("inputs")
            ready = self._ready(AS_NAMED if chosen is None else chosen[1].reach.reading)
            self.members.warnings += [f"left out of the context: {one}" for one in ready.left_out]
            if chosen is not None:
                lay_out(ready, self.scratch)
            if self.wait_for_isolation is not None:  # before anything of agent or repository runs
                self.wait_for_isolation()
        refuse_full(self.scratch.agent, self.grants.limits.disk_bytes)
        self._gather_words(ready)
        if self.grants.prediction is not None:
            self.members.add_value("targets.json", self.grants.prediction)
        if prior is not None:
            patch = _with_delivery(prior, ready)
        else:
            assert chosen is not None
            ready, patch = self._fresh_patch(ready, chosen)
        self.members.add("patch.diff", patch.diff)
        left_out = patch.trajectory_left_out
        self.members.add("trajectory.jsonl", patch.trajectory_jsonl, left_out=left_out)
        return self._scored(ready, patch)

    def _ready(self, reading: FileReading) -> Ready:
        return prepare(self.grants, self.inputs, self.sandbox, reading)

    def _earlier_patch(self) -> Patch | None:
        """The patch of a lost attempt whose agent had ended. Only scoring runs: the agent does not run again and
        need not be installed."""
        if self.grants.prior_patch is None:
            return None
        self.agent_started = self.patched = True
        try:
            return store.read_settled(self.grants.prior_patch, _patch_of)
        except WrongValue as error:
            raise Lost(LossClass.STORE, f"the patch of the earlier attempt: {error}") from error

    def _fresh_patch(self, ready: Ready, chosen: agent_run.Chosen) -> tuple[Ready, Patch]:
        """What the agent leaves, in the store; with an environment that is as it was built."""
        place = place_of(
            self.scratch, ready.environment, self.sandbox, hook=may_push(ready.composed, self.grants.condition)
        )
        fix = self.inputs.get(self.grants.task.fix) if self.grants.agent.kind == "oracle" else None
        self.clock.lap("workspace")
        log, keys, secrets = self.scratch.record / "stdout", self.members.keys, self.members.secrets
        before = RoomSample.of(self.scratch.agent)
        with live_log(log, self._send_live, interval_s=self.grants.limits.live_interval_s, secrets=secrets):
            run = agent_run.run_agent(
                self.grants,
                ready,
                place,
                chosen=chosen,
                fix=fix,
                stop=self.stop,
                keys=keys,
                secrets=secrets,
                begun=self._begun,
            )
        self.clock.lap("agent", _given(self.sandbox, run.exit))
        if run.look is not None:
            ready = replace(ready, composed=run.composed)
            self._gather_words(ready)
            self.members.add("preflight/prompt.txt", run.look.prompt)
            self.members.add("preflight/answer.txt", run.look.parsed.answer or "")
            self.members.add("preflight/result.json", canonical_json(asdict(run.look.preflight)))
        filled = run.stop is not Stop.DISK and has_filled_host(self.scratch.agent, before, self.grants.limits)
        if filled:
            run = replace(run, stop=Stop.DISK)
        if run.stop is Stop.DISK:  # a volume that stays full has its pod evicted
            self.scratch.free(keep=("workspace", "home"))
        self._gather_logs()
        self.members.warnings += run.cautions
        if run.receipts is not None:
            self.members.add_value(RECEIPTS, run.receipts)
        patch = self._patch_of(ready, run, before)
        if filled:  # its changes would fill it again
            self.members.warnings.append("the agent filled the host's disk; its changes are left behind")
            patch = patch.model_copy(update={"diff": "", "key_marks": (), "diff_sha256": None})
        patch = patch.model_copy(update={"metrics": patch.metrics.model_copy(update=self._own_costs())})
        self._save(patch)
        ready = self._with_whole_environment(ready)
        if run.stop is Stop.DISK:  # scoring needs the room
            self.scratch.free()
        self.clock.lap("patch")
        return ready, patch

    def _patch_of(self, ready: Ready, run: agent_run.AgentRun, before: RoomSample) -> Patch:
        """What breaks us here is what the agent left: an empty patch then, never another run of it, unless others
        have filled the disk."""
        try:
            return patch_record.patch_of(
                self.grants,
                ready,
                self.scratch,
                run,
                keys=self.members.keys,
                secrets=self.members.secrets,
                warnings=self.members.warnings,
            )
        except Lost:
            raise
        except Exception as error:
            has_filled_host(self.scratch.agent, before, self.grants.limits)
            what = f"what the agent left could not be read: {type(error).__name__}: {error}"
            self.members.warnings.append(storable(what)[:500])
            return patch_record.empty_patch(self.grants, ready, run)

    def _with_whole_environment(self, ready: Ready) -> Ready:
        """With a new environment if the agent changed its own. Only after the patch is stored: a build may fail,
        and an ended agent must not run again for that."""
        protected = self.sandbox.capabilities.protects_environment
        if protected or environment.unchanged(ready.environment):
            return ready
        self.members.warnings.append("the agent changed its environment, which was thrown away")
        environment.retire(ready.environment)
        return replace(ready, environment=self._ready(AS_NAMED).environment)

    def _save(self, patch: Patch) -> None:
        """Store the agent's patch. If the grants are refused, keep it until fresh grants arrive. Raises
        `GrantRefused` if none arrive within the attempt's time."""
        while not self.patched:
            try:
                self.patch = commit.leave_patch(self.grants, patch)
            except GrantRefused as refused:
                self.unsaved = True
                print(
                    f"trialfleet runner: keeping the patch, {visible(str(refused))}", file=sys.stderr, flush=True
                )
                if self.keeps_here:
                    keep_patch(patch)
                if (fresh := self._fresh_grants()) is None:
                    raise
                self.grants = fresh
            else:
                self.unsaved, self.patched = False, True

    def _fresh_grants(self) -> Grants | None:
        if self.renewal is None:
            return None
        return self.renewal.of(self.grants, left_s=self._left_s, stop=self.stop)

    def _left_s(self) -> float:
        """Of the attempt's time, without what its last words take."""
        return longest_attempt_s(self.grants.agent, self.grants.limits) - LAST_WORDS_S - self.clock.wall_s()

    def _scored(self, ready: Ready, patch: Patch) -> Scored:
        scorer = Scorer(self.grants, ready, self.scratch, self.scorer, self.stop)
        try:
            scoring = scorer.score(self._whole_diff(patch))
        except PatchError as error:  # what the agent left decides its own trial, never those of others
            self.members.warnings.append(patch_record.without(self.members.secrets, storable(str(error))))
            return self._verdict(patch, passed=False)
        except TestsExhausted as died:
            self.members.warnings.append(f"the tests gave no result too often with this patch: {died}")
            return self._verdict(patch, passed=False, tests_exhausted=True)
        core_s = [given for ended in scoring.exits if (given := _given(self.scorer, ended)) is not None]
        self.clock.lap("tests", sum(core_s) if core_s else None)
        self._gather_tests(scoring)
        cause = scoring.cause
        scored = self._verdict(
            patch,
            passed=cause.passed,
            tests_timed_out=scoring.deciding.timed_out,
            tests_exhausted=scoring.deciding.exhausted,
            forged=scoring.forged,
            tests=scoring.costs,
        )
        needed = self._named(scoring.split.others) if cause.needs_others and not scoring.is_refuted else ()
        cautions = self._cautions(patch, scoring) if scored.verdict is Verdict.PASSED else ()
        return scored.model_copy(update={"needed": needed, "unsteady": cause.unsteady, "cautions": cautions})

    def _cautions(self, patch: Patch, scoring: ScoringRuns) -> tuple[str, ...]:
        changes = changes_in(scoring.cause.decided_by, scoring.split)
        cautions = (*scoring.silent_controls, *find_pass_cautions(patch.diff, changes.keys()))
        return tuple(patch_record.without(self.members.secrets, storable(each)) for each in cautions)

    def _named(self, paths: Iterable[str]) -> tuple[str, ...]:
        return tuple(patch_record.without(self.members.secrets, path) for path in list_files(paths))

    def _whole_diff(self, patch: Patch) -> str:
        """What is scored: with the provider's keys where the agent had them. Raises `Lost(scoring)` if this runner
        has other keys than the one that stored the patch."""
        keys = self.members.keys
        try:
            if patch.key_marks and not keys:
                from trialfleet_runner.model_access import key_names, upstream  # scoring seldom needs the gateway

                keys |= key_names(self.grants.agent, upstream(self.grants.agent))
                self.members.secrets |= {*keys.values()}
            return scored_diff(patch, keys)
        except (KeyChanged, OperatorError) as error:
            raise Lost(LossClass.SCORING, str(error)) from error

    def _verdict(
        self,
        patch: Patch,
        *,
        passed: bool,
        tests_timed_out: bool = False,
        tests_exhausted: bool = False,
        forged: bool = False,
        tests: Mapping[str, float | None] = _NONE,
    ) -> Scored:
        earlier = None if self.grants.prior_patch is None else patch
        return Scored(
            verdict=verdict(
                patch.stop,
                passed=passed,
                tests_timed_out=tests_timed_out,
                tests_exhausted=tests_exhausted,
                forged=forged,
            ),
            stop=patch.stop,
            tests_passed=passed,
            metrics=patch.metrics.model_copy(update={**tests, **self._own_costs(earlier)}),
            delivery=patch.delivery,
            diff_sha256=patch.diff_sha256,
        )

    def _own_costs(self, earlier: Patch | None = None) -> dict[str, float]:
        """Wall clock and the harness's core time so far, with those of the attempt that left the patch."""
        before = earlier.metrics if earlier else None
        return {
            "wall_s": round(self.clock.wall_s() + ((before and before.wall_s) or 0.0), 3),
            "overhead_core_s": round(self.clock.own_core_s() + ((before and before.overhead_core_s) or 0.0), 3),
        }

    def _begun(self, started: bool) -> None:
        self.agent_started = started

    def _send_live(self, data: bytes) -> None:
        store.overwrite(self.grants.live, data, patience=LIVE_PATIENCE)

    def _gather_words(self, ready: Ready) -> None:
        self.members.add("prompt.txt", ready.composed.prompt)
        self.members.add("system.txt", ready.composed.system or "")
        self.members.add("context/stripped.diff", ready.composed.stripped)

    def _gather_logs(self) -> None:
        record = self.scratch.record
        for name, path in (
            ("preflight/stdout.log", record / preflight_run.FOLDER / "stdout"),
            ("preflight/stderr.log", record / preflight_run.FOLDER / "stderr"),
            ("agent/stdout.log", record / "stdout"),
            ("agent/stderr.log", record / "stderr"),
            ("gateway/model.jsonl", record / "model.jsonl"),
            ("gateway/answers.jsonl", record / "answers.jsonl"),
            ("gateway/report.json", record / agent_gateway.REPORT),
            ("hook.jsonl", self.scratch.home / HOOK_LOG),
            ("fail_fast.jsonl", self.scratch.home / FAIL_FAST_LOG),
        ):
            self.members.add_file(name, path)

    def _gather_tests(self, scoring: ScoringRuns) -> None:
        deciding = scoring.deciding
        self.members.add("tests/output.log", deciding.run.output, left_out=deciding.run.left_out)
        if deciding.report is not None:
            self.members.add("tests/junit.xml", deciding.report.data, left_out=deciding.report.left_out)
        self.members.add_value("tests/results.json", [one.model_dump(mode="json") for one in deciding.results])
        self.members.add("tests/scoring.json", canonical_json(scoring_record(scoring)))
        if scoring.is_refuted:
            self.members.add("tests/must_fail.log", scoring.controls[-1].run.run.output)
            self.members.warnings.append(f"{shared_runs.PASSED}: the pass is forged")
        if scoring.split.left:
            self.members.warnings.append(describe_left(self._named(scoring.split.left), len(scoring.split.left)))


def _patch_of(raw: bytes | None) -> Patch:
    if raw is None:
        raise WrongValue("it is not in the store")
    return parse_bytes(raw, Patch)


def _with_delivery(patch: Patch, ready: Ready) -> Patch:
    """The controller's patch of an exhausted agent lacks what was delivered: as planned then, without claims."""
    planned = ready.composed.delivery
    return patch.model_copy(update={"delivery": planned}) if patch.delivery == Delivery() else patch


def _given(sandbox: Sandbox, ended: Exit | None) -> float | None:
    """Core seconds of a program that ended below us; those of another container are not in our account."""
    return None if ended is None or sandbox.capabilities.separate_container else ended.core_s
