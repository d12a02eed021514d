"""The `runner` container: one attempt, by grants that it fetches from the one address in its environment."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Literal

from pydantic import ValidationError

from trialfleet_runner import grants as store
from trialfleet_runner.attempt import commit
from trialfleet_runner.attempt.__main__ import ANOTHERS, COMMITTED, STOPPED, UNANSWERED
from trialfleet_runner.attempt.deadline import within
from trialfleet_runner.attempt.flow import Attempt
from trialfleet_runner.attempt.loss import Lost, storable
from trialfleet_runner.canonical import canonical_json, sha256
from trialfleet_runner.contract import End, GetGrant, Grants, LastWords, Loss, LossClass
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.grants import GrantRefused
from trialfleet_runner.pod import words
from trialfleet_runner.pod.places import Volumes
from trialfleet_runner.sandbox.container import ContainerSandbox
from trialfleet_runner.sandbox.gate import Gate
from trialfleet_runner.store.protocol import StoreError

GRANTS_URL = "TRIALFLEET_GRANTS_URL"
FETCH_S = 330.0  # for the grants: longer than a read's own patience
STOP_S = 45.0  # from SIGTERM to the last words, whatever is under way; $TRIALFLEET_STOP_S says otherwise
State = Literal["committed", "refused", "another", "unanswered", "stopped"]
UNENFORCED = (
    "the network was not cut: this cluster enforces no NetworkPolicy, so that agent and tests could reach "
    "whatever its nodes reach"
)


@dataclass
class Runner:
    """One pod's attempt. `stop` is set by SIGTERM; `attempt` is there once it is claimed."""

    volumes: Volumes
    agent: Gate
    score: Gate
    stop: threading.Event = field(default_factory=threading.Event)
    attempt: Attempt | None = None

    def run(self) -> tuple[int, LastWords]:
        """The exit code and what is said of it."""
        try:
            grants = self._grants()
            if grants is None:
                return STOPPED, LastWords(state="stopped", message="told to stop before the claim")
            return self._claimed(grants)
        except GrantRefused as error:
            return self._unwritten(), self._words("refused", error)
        except (StoreError, OperatorError) as error:
            return self._unwritten(), self._words("unanswered", error)

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
                return parse(store.read(GetGrant(url=url)))
        except Lost as lost:
            if lost.loss is LossClass.TERMINATED:
                return None
            raise StoreError(lost.message) from lost

    def _claimed(self, grants: Grants) -> tuple[int, LastWords]:
        scratch = self.volumes.scratch()
        if not commit.claim(grants, scratch=scratch.runner, isolation="container"):
            return ANOTHERS, LastWords(state="another", message="the attempt is another runner's")
        warnings = (UNENFORCED,) if os.environ.get("TRIALFLEET_NETWORK") == "unenforced" else ()
        agent = ContainerSandbox(self.agent, scratch.agent, gone_is_memory=True, warnings=warnings)
        scorer = ContainerSandbox(self.score, scratch.scorer, gone_is_memory=False, warnings=warnings)
        self.attempt = Attempt(grants, scratch, agent, scorer, self.volumes.cache, self.stop)
        self.attempt.run()
        code = STOPPED if self.stop.is_set() else COMMITTED
        if self.attempt.committed and self.attempt.end is not None:
            digest = sha256(canonical_json(self.attempt.end))
            return code, LastWords(state="committed", end_sha256=digest)
        return code, LastWords(state="another", message="somebody else ended the attempt first")

    def _unwritten(self) -> int:
        return STOPPED if self.stop.is_set() else UNANSWERED

    def _words(self, state: State, why: object) -> LastWords:
        """With the end that the store does not have, once the attempt is ours to end."""
        end = None if self.attempt is None else unwritten(self.attempt, str(why))
        return LastWords(state=state, end=end, message=storable(str(why)))


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


def unwritten(attempt: Attempt, why: str) -> End:
    """The end of an attempt that the store does not have. A verdict without its bundle would be a number that
    nothing supports: as its patch is in the store, that is scored again instead."""
    end = attempt.end
    if end is not None and attempt.bundle_stored:
        return end
    if end is not None and end.loss is not None:
        return commit.end_of(attempt.grants, end.loss, None)
    loss = Loss(
        loss=LossClass.TERMINATED if attempt.stop.is_set() else LossClass.STORE,
        message=storable(why),
        agent_started=attempt.agent_started,
        patched=attempt.patched,
    )
    return commit.end_of(attempt.grants, loss, None)


def _when_time_is_up(runner: Runner) -> None:
    """A thread that ends the process in time to be heard, when SIGTERM finds the main one waiting for a store that
    does not answer. Agent and tests end with us."""
    runner.stop.wait()
    print("trialfleet runner: told to stop", file=sys.stderr, flush=True)  # `kubectl logs` shows when
    time.sleep(float(os.environ.get("TRIALFLEET_STOP_S", STOP_S)))
    words.leave(runner.last_resort(), words.termination_log())
    os._exit(STOPPED)


def main() -> int:
    """Run the pod's attempt and leave the last words. Exit codes as those of `trialfleet_runner.attempt`."""
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
        print(f"trialfleet runner: {said.message}", file=sys.stderr)
    return code
