"""Looks at the workspace while the agent works: at every request for its model, when all tools of the turns so far
have ended; without a model, whenever a file changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from trialfleet_ledger.records.base import LARGEST_COUNT
from trialfleet_ledger.trajectory import MAX_STEPS, WorkspaceChange
from trialfleet_ledger.untrusted import json_object, plain
from trialfleet_repository.ignore_rules import IgnoreRules
from trialfleet_repository.workspace_watch import ChangedFile, WatchLost, WorkspaceWatch
from trialfleet_runner.attempt.observed_edits import ObservedEdits, describe_failure
from trialfleet_runner.attempt.prepared_inputs import Ready
from trialfleet_sandbox.scratch import Scratch

_WAIT_S = 0.25  # for a change, until the agent's end is noticed
_PAUSE_S = 0.02  # from a change to the look at it, when the file has been written and the step printed
_COMPARE_S = 2.0  # the same where inotify cannot be had
_TAIL_BYTES = 2**16  # of what the agent printed, in which its last step is


class EditWatch:
    """From just before the agent starts. `turns_before`, `seconds_before`: of a pre-flight. Thread-safe. Raises
    nothing: whatever fails here, the edits are not known, and nothing else of the trial is different."""

    def __init__(
        self, ready: Ready, scratch: Scratch, *, turns_before: int = 0, seconds_before: float = 0.0
    ) -> None:
        self._turns_before, self._seconds_before = turns_before, seconds_before
        self._stdout = scratch.record / "stdout"
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._changes: list[tuple[str, WorkspaceChange]] = []  # with the path as it is
        self._lost = ""  # why there is no watch any more
        self._watch: WorkspaceWatch | None = None
        self._follower: threading.Thread | None = None
        with self._guarded():
            rules = IgnoreRules(ready.given, scratch.runner / "ignore-rules")
            self._watch = WorkspaceWatch(
                scratch.workspace, ready.given.manifest, is_edited=ready.exclusions.counts_as_edit, rules=rules
            )
        self._began = self._last = time.time()
        self._printed: int | None = None

    def look_at_request(self, turns: int) -> Callable[[], None]:
        """Look, if that takes long while the model answers: the result waits for its end."""
        watch = self._watch
        if watch is None or watch.events is not None:
            self._look_after(turns)
            return lambda: None
        with self._guarded():
            look = threading.Thread(target=self._look_after, args=(turns,), daemon=True)
            look.start()
            return look.join
        return lambda: None

    def _look_after(self, turns: int) -> None:
        """What has changed is of the last of these turns. What the program changes before its model has answered
        is its own doing, and no edit."""
        with self._guarded(), self._lock:
            for one in self._look():
                if turns > self._turns_before:
                    self._note(one, turns)
            self._last = time.time()

    def follow(self) -> None:
        """Look whenever something changes, until `finish`: for agents whose turns no gateway counts."""
        with self._guarded():
            follower = threading.Thread(target=self._follow, daemon=True)
            follower.start()
            self._follower = follower

    def finish(self, turns: int | None) -> ObservedEdits:
        """After the agent's end. `turns`: counted by its gateway; None: it has none."""
        self.close()
        if turns is not None:
            self._look_after(turns)
        else:
            self._look_at_output()
        with self._guarded(), self._lock:
            if self._watch is not None:
                ignored = self._watch.find_ignored(path for path, _ in self._changes)
                changes = tuple(change for path, change in self._changes if path not in ignored)
                return ObservedEdits(changes, find_unseen=self._watch.find_unseen)
        return ObservedEdits(None, self._lost)

    def close(self) -> None:
        """Stop following; idempotent."""
        self._ended.set()
        if self._follower is not None:
            self._follower.join()

    def __enter__(self) -> EditWatch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._lose("the agent has ended")

    @contextmanager
    def _guarded(self) -> Generator[None]:
        try:
            yield
        except Exception as error:
            self._lose(describe_failure(error))

    def _lose(self, why: str) -> None:
        """For good: what a later look found would be a part of the changes."""
        with self._lock, suppress(Exception):
            watch, self._watch, self._lost = self._watch, None, self._lost or why
            if watch is not None:
                watch.close()

    def _look(self) -> list[ChangedFile]:
        if self._watch is None:
            return []
        if len(self._changes) > MAX_STEPS:
            raise WatchLost(f"more than {MAX_STEPS} changes")
        return self._watch.look()

    def _note(self, one: ChangedFile, turn: int | None) -> None:
        """Clocks of file systems may be coarse or odd: a change was between two looks."""
        at = min(max(one.at, self._last), time.time())
        at_s = max(0.0, at - self._began) + self._seconds_before
        change = WorkspaceChange(path=plain(one.path), how=one.how, turn=turn, at_s=round(at_s, 3))
        self._changes.append((one.path, change))

    def _follow(self) -> None:
        while not self._ended.is_set() and (watch := self._watch) is not None:
            with self._guarded():
                if watch.events is None:
                    self._ended.wait(_COMPARE_S)
                    self._look_at_output()
                elif watch.events.wait(_WAIT_S):
                    self._ended.wait(_PAUSE_S)
                    self._look_at_output()

    def _look_at_output(self) -> None:
        """A change is of the turn that the agent printed last, unless that may have changed meanwhile."""
        with self._guarded(), self._lock:
            is_prompt = self._watch is not None and self._watch.events is not None
            before, self._printed = self._printed, find_printed_turn(self._stdout) or self._printed
            known = is_prompt or before == self._printed
            turn = self._printed + self._turns_before if known and self._printed is not None else None
            for one in self._look():
                self._note(one, turn)
            self._last = time.time()


def find_printed_turn(stdout: Path) -> int | None:
    """The turn of the last step that an agent has printed as a line of JSON; None: it has printed none."""
    with suppress(OSError), stdout.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - _TAIL_BYTES))
        for line in reversed(file.read(_TAIL_BYTES).split(b"\n")[:-1]):
            turn = json_object(line).get("turn") if b'"turn"' in line else None
            if type(turn) is int and 1 <= turn <= LARGEST_COUNT:
                return turn
    return None
