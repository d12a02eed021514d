"""The `runner` container: one attempt, by grants that it fetches from the one address in its environment."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.display_text import visible
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.exit_codes import RunnerExit
from trialfleet_ledger.records.attempt import End, LastWords
from trialfleet_ledger.records.grants import GRANTS_URL, Grants
from trialfleet_ledger.records.verdicts import HaltScope, Loss, LossClass
from trialfleet_ledger.store.grants import GrantRefused
from trialfleet_ledger.store.protocol import StoreError
from trialfleet_repository.cache import Cache
from trialfleet_runner.attempt import commit
from trialfleet_runner.attempt.deadline import within
from trialfleet_runner.attempt.grant_renewal import Renewal, read_grants
from trialfleet_runner.attempt.loss import Lost, storable
from trialfleet_runner.attempt.pipeline import Attempt
from trialfleet_runner.pod import words
from trialfleet_runner.pod.isolation import IsolationProbe
from trialfleet_sandbox.choose import NO_FILTER
from trialfleet_sandbox.container import ContainerSandbox
from trialfleet_sandbox.gate import Gate
from trialfleet_sandbox.scratch import Scratch
from trialfleet_sandbox.syscall_filter import usable_program


@dataclass(frozen=True)
class Volumes:
    """Folders below one root. `agent` and its gate are mounted in the agent's container, `score` and its gate in
    the scoring one, all of them in the runner's; a gate is read-only but for the runner."""

    root: Path

    @classmethod
    def here(cls) -> Volumes:
        """`$TRIALFLEET_ROOT`, or /trialfleet."""
        return cls(Path(os.environ.get("TRIALFLEET_ROOT", "/trialfleet")))

    def gate(self, role: str) -> Path:
        return self.root / f"{role}-gate"

    @property
    def renewed(self) -> Path:
        """The file in which the kubelet shows the address of fresh grants, which is an annotation of the pod."""
        return self.root / "renewed" / "grants"

    @property
    def cache(self) -> Cache:
        return Cache(self.root / "runner" / "cache")

    @property
    def places(self) -> Scratch:
        """The attempt's folders, which need not exist."""
        return Scratch(
            runner=self.root / "runner",
            agent=self.root / "agent",
            shown=self.gate("agent"),
            scorer=self.root / "score",
        )

    def scratch(self) -> Scratch:
        """The attempt's own: a pod runs one, so that everything is new."""
        scratch = self.places
        for folder in (scratch.runner, scratch.agent, scratch.shown, scratch.scorer):
            folder.mkdir(mode=0o711, exist_ok=True)
        scratch.record.mkdir(mode=0o700)
        return scratch


FETCH_S = 330.0  # for the grants: longer than the retries of a read
STOP_S = 45.0  # from SIGTERM to the last words, also during a request; $TRIALFLEET_STOP_S overrides it
State = Literal["committed", "refused", "another", "unanswered", "misconfigured", "stopped"]
UNENFORCED = (
    "the network was not cut: this cluster enforces no NetworkPolicy, so that agent and tests could reach "
    "whatever its nodes reach"
)


@dataclass
class Runner:
    """One pod's attempt. `stop` is set by SIGTERM; `attempt` is there once it is claimed. `isolation` starts the
    probe of the pod's network, after the claim: the store was reached then, so that a network which is not there
    yet is no policy. None: no policy is asked for. `running`: the last words while it lives, if a program ran."""

    volumes: Volumes
    agent: Gate
    score: Gate
    stop: threading.Event = field(default_factory=threading.Event)
    attempt: Attempt | None = None
    running: LastWords | None = None
    isolation: Callable[[], IsolationProbe | None] = IsolationProbe.of_environment

    def run(self) -> tuple[RunnerExit, LastWords]:
        """The exit code and what is said of it."""
        try:
            grants = self._grants()
            if grants is None:
                return RunnerExit.STOPPED, LastWords(state="stopped", message="told to stop before the claim")
            return self._claimed(grants)
        except GrantRefused as error:
            return self._unwritten(), self._words("refused", error)
        except StoreError as error:
            return self._unwritten(), self._words("unanswered", error)
        except OperatorError as error:
            return RunnerExit.REFUSED, self._words("misconfigured", error)

    def last_resort(self) -> LastWords:
        """What can be said when there is no more time."""
        return self._words("stopped", "told to stop, and out of time")

    def _grants(self) -> Grants | None:
        """None: told to stop."""
        url = os.environ.pop(GRANTS_URL, None)  # programs that we call inherit the rest
        if url is None:
            raise OperatorError("no grants", where=f"${GRANTS_URL}", hint="pods are made by `trialfleet run`")
        try:
            with within(FETCH_S, self.stop):
                return read_grants(url, parse)
        except Lost as lost:
            if lost.loss is LossClass.TERMINATED:
                return None
            raise StoreError(lost.message) from lost

    def _attempt(self, grants: Grants, scratch: Scratch, start: str) -> Attempt:
        isolation = self.isolation()
        warnings = _warnings()
        return Attempt(
            grants,
            scratch,
            ContainerSandbox(
                self.agent,
                scratch.agent,
                gone_is_memory=True,
                warnings=warnings,
                report=partial(self._note, "agent"),
            ),
            ContainerSandbox(
                self.score,
                scratch.scorer,
                gone_is_memory=False,
                warnings=warnings,
                report=partial(self._note, "tests"),
            ),
            self.volumes.cache,
            self.stop,
            stop_explained=True,
            renewal=Renewal(self.volumes.renewed, parse),
            wait_for_isolation=None if isolation is None else isolation.wait,
            start=start,
        )

    def _claimed(self, grants: Grants) -> tuple[RunnerExit, LastWords]:
        scratch = self.volumes.scratch()
        start = commit.claim(grants, scratch=scratch.runner, isolation="container")
        if start is None:
            return RunnerExit.ANOTHERS, LastWords(state="another", message="the attempt is another runner's")
        self.attempt = self._attempt(grants, scratch, start)
        self.attempt.run()
        code = RunnerExit.STOPPED if self.stop.is_set() else RunnerExit.COMMITTED
        if self.attempt.left and self.attempt.bundle_stored:
            return code, self._words("stopped", "told to stop")
        if self.attempt.committed and self.attempt.end is not None:
            digest = sha256(canonical_json(self.attempt.end))
            return code, LastWords(state="committed", end_sha256=digest)
        return code, LastWords(state="another", message="somebody else ended the attempt first")

    def _unwritten(self) -> RunnerExit:
        return RunnerExit.STOPPED if self.stop.is_set() else RunnerExit.UNANSWERED

    def _words(self, state: State, why: object) -> LastWords:
        """With the end that the store does not have, once the attempt is ours to end."""
        end = None if self.attempt is None else unwritten(self.attempt, str(why), state)
        words = LastWords(state=state, end=end, message=storable(str(why)))
        if self.running is None:
            return words
        return words.model_copy(update={"program": self.running.program, "over_limits": self.running.over_limits})

    def _note(self, program: Literal["agent", "tests"], over_limits: bool) -> None:
        """Leave what the last sample says of the attempt's program, once its agent has started: a kubelet that
        evicts the pod gives no time for it."""
        if self.attempt is not None and self.attempt.agent_started:
            self.running = LastWords(state="running", program=program, over_limits=over_limits)
            words.leave(self.running, words.termination_log())


def _warnings() -> tuple[str, ...]:
    """What does not isolate the containers of this pod."""
    enforced = os.environ.get("TRIALFLEET_NETWORK") != "unenforced"
    return (*(() if enforced else (UNENFORCED,)), *(() if usable_program() else (NO_FILTER,)))


def parse(raw: bytes) -> Grants:
    """Raises `OperatorError`, which says where and never what: the values are signed addresses."""
    try:
        return Grants.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise OperatorError(
            f"no grants that this image can read: {first['type']}",
            where=".".join(map(str, first["loc"])),
            hint="the image and the controller are of different versions of trialfleet: build the image again",
        ) from None


def unwritten(attempt: Attempt, why: str, state: State) -> End:
    """The end of an attempt that the store does not have. A verdict without its bundle would be a number that
    nothing supports: as its patch is in the store, that is scored again instead."""
    end = attempt.end
    if end is not None and attempt.bundle_stored:
        return end
    if end is not None and end.loss is not None:
        return commit.end_of(attempt.grants, end.loss, None, start=attempt.start, patch=attempt.patch)
    permanent = state == "misconfigured"
    kind = LossClass.TERMINATED if attempt.stop.is_set() else LossClass.STORE
    if attempt.unsaved:
        kind, why = LossClass.UNSAVED, f"the agent had ended, and its patch could not be stored: {why}"
    loss = Loss(
        loss=LossClass.SETUP if permanent else kind,
        message=storable(why),
        agent_started=attempt.agent_started,
        patched=attempt.patched,
        halt=HaltScope.CAMPAIGN if permanent else HaltScope.NONE,
    )
    return commit.end_of(attempt.grants, loss, None, start=attempt.start, patch=attempt.patch)


def _when_time_is_up(runner: Runner) -> None:
    """A thread that writes the last words and ends the process in time, if the main thread waits for a store that
    does not answer when SIGTERM arrives. Agent and tests end with the runner."""
    runner.stop.wait()
    print("trialfleet runner: told to stop", file=sys.stderr, flush=True)  # `kubectl logs` shows when
    time.sleep(float(os.environ.get("TRIALFLEET_STOP_S", STOP_S)))
    words.leave(runner.last_resort(), words.termination_log())
    os._exit(RunnerExit.STOPPED)


def main() -> int:
    """Run the pod's attempt and leave the last words. Exit codes: `RunnerExit`."""
    volumes = Volumes.here()
    with ExitStack() as stack:
        agent, score = (stack.enter_context(closing(Gate(volumes.gate(role)))) for role in ("agent", "score"))
        runner = Runner(volumes, agent, score)

        def told_to_stop(*_: object) -> None:
            runner.stop.set()

        signal.signal(signal.SIGTERM, told_to_stop)
        threading.Thread(target=_when_time_is_up, args=(runner,), daemon=True).start()
        code, said = runner.run()
        words.leave(said, words.termination_log())
    if said.message:
        print(f"trialfleet runner: {visible(said.message)}", file=sys.stderr)
    return code
