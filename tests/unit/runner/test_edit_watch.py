"""Looks at a workspace by turn: through a gateway's requests, and by what an agent prints."""

from __future__ import annotations

import errno
import inspect
import shutil
import threading
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from tests.support.waiting import wait_until
from trialfleet_agents.context_files import is_context_file
from trialfleet_repository import ignore_rules, workspace_watch
from trialfleet_repository.excluded_paths import Exclusions
from trialfleet_repository.folder_events import EventsUnavailable, FolderEvents
from trialfleet_repository.ignore_rules import IgnoreRules
from trialfleet_repository.trees import TreeEntry
from trialfleet_repository.workspace import build_template, clone
from trialfleet_repository.workspace_watch import WorkspaceWatch
from trialfleet_runner.attempt import edit_watch
from trialfleet_runner.attempt.edit_watch import EditWatch
from trialfleet_runner.attempt.observed_edits import ObservedEdits
from trialfleet_runner.attempt.prepared_inputs import Ready
from trialfleet_sandbox.scratch import Scratch


@pytest.fixture(params=["inotify", "status"])
def scratch(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scratch:
    def refuse(_: FolderEvents) -> None:
        raise EventsUnavailable("no space left")

    if request.param == "status":
        monkeypatch.setattr(FolderEvents, "__init__", refuse)
    folder = Scratch.below(tmp_path / "scratch")
    folder.record.mkdir(parents=True)
    return folder


@pytest.fixture
def ready(tmp_path: Path, scratch: Scratch) -> Ready:
    tree = {"a.py": TreeEntry(b"x = 1\n"), ".gitignore": TreeEntry(b"ignored.py\n")}
    template = build_template(tmp_path / "template", tree)
    clone(template, scratch.workspace)
    exclusions = Exclusions(template.manifest, (), is_context=is_context_file)
    return cast("Ready", SimpleNamespace(given=template, exclusions=exclusions))


@pytest.fixture
def watch(ready: Ready, scratch: Scratch) -> Iterator[EditWatch]:
    with EditWatch(ready, scratch, turns_before=2, seconds_before=100.0) as watch:
        yield watch


def told(edits: ObservedEdits) -> list[tuple[str, str, int | None]]:
    assert edits.changes is not None, edits.lost
    return [(one.path, one.how, one.turn) for one in edits.changes]


def test_changes_are_of_the_last_turn_before_the_request(watch: EditWatch, scratch: Scratch) -> None:
    """After a pre-flight of two turns and 100 s."""
    (scratch.workspace / "settings.py").write_text("of the program itself")
    watch.look_at_request(2)()
    (scratch.workspace / "a.py").write_text("x = 2\n")
    (scratch.workspace / "ignored.py").write_text("x")
    watch.look_at_request(3)()
    watch.look_at_request(3)()  # a retry, or a title
    (scratch.workspace / "a.py").write_text("x = 1\n")
    watch.look_at_request(5)()  # two sub-agents
    (scratch.workspace / "b.py").write_text("")
    edits = watch.finish(6)
    assert told(edits) == [("a.py", "changed", 3), ("a.py", "changed", 5), ("b.py", "added", 6)]
    times = [one.at_s for one in edits.changes or ()]
    assert times == sorted(times)
    assert 100 <= times[0] <= times[-1] < 110
    assert edits.confirm(["b.py", "settings.py", "ignored.py"]).changes == edits.changes
    assert edits.confirm(["c.py"]).changes is None


def test_requests_at_once_see_each_change_once(watch: EditWatch, scratch: Scratch) -> None:
    def work(number: int) -> None:
        (scratch.workspace / f"{number}.py").write_text("")
        watch.look_at_request(3)()

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(told(watch.finish(3))) == [(f"{number}.py", "added", 3) for number in range(8)]


def test_a_workspace_that_is_gone_is_not_known(watch: EditWatch, scratch: Scratch, ready: Ready) -> None:
    scratch.workspace.rename(scratch.workspace.parent / "elsewhere")
    watch.finish(3)
    with EditWatch(ready, scratch) as late:
        edits = late.finish(3)
    assert (edits.changes, "the workspace cannot be read" in edits.lost) == (None, True)


WATCHES = (WorkspaceWatch, FolderEvents, IgnoreRules, EditWatch, workspace_watch, ignore_rules, edit_watch)
INNER = {"_look", "_note"}  # of EditWatch: its other functions are what catches errors
ERRORS = (OSError(errno.ENOSPC, "No space left on device"), TypeError("a NoneType"), RuntimeError())


class FailingCall:
    """A function that counts its calls, and raises at one of them."""

    def __init__(self, real: Callable[..., Any]) -> None:
        self.real, self.calls, self.fails_at = real, 0, 0
        self.error: Exception = RuntimeError()

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.calls += 1
        if self.calls == self.fails_at:
            raise type(self.error)(*self.error.args)
        return self.real(*args, **options)


def break_functions(monkeypatch: pytest.MonkeyPatch) -> dict[str, FailingCall]:
    """All of the watch."""
    made = dict[str, FailingCall]()
    for owner in WATCHES:
        for name, value in list(vars(owner).items()):
            if owner is EditWatch and name not in INNER:
                continue
            real: Any = value.func if isinstance(value, cached_property) else value
            if not inspect.isfunction(real) or (
                isinstance(owner, ModuleType) and real.__module__ != owner.__name__
            ):
                continue
            failing = made[f"{owner.__name__}.{name}"] = FailingCall(real)

            def call(*args: Any, failing: FailingCall = failing, **options: Any) -> Any:
                return failing(*args, **options)

            monkeypatch.setattr(owner, name, property(call) if isinstance(value, cached_property) else call)
    return made


def run_session(ready: Ready, scratch: Scratch) -> tuple[int, dict[str, str], ObservedEdits]:
    """Requests that were answered, what the agent left, and its edits."""
    (scratch.workspace / "a.py").write_text("x = 1\n")
    shutil.rmtree(scratch.workspace / "new", ignore_errors=True)
    answered = 0
    with EditWatch(ready, scratch) as watch:
        for turn in (1, 2):
            (scratch.workspace / "a.py").write_text(f"x = {turn + 1}\n")
            watch.look_at_request(turn)()
            answered += 1
        (scratch.workspace / "new").mkdir()
        (scratch.workspace / "new" / "b.py").write_text("y\n")
        edits = watch.finish(3)
    left = {path: (scratch.workspace / path).read_text() for path in ("a.py", "new/b.py")}
    return answered, left, edits.confirm([*left, "ignored.py"])


def test_a_watch_that_fails_anywhere_leaves_the_trial_as_it_is(
    ready: Ready, scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions = break_functions(monkeypatch)
    answered, left, edits = run_session(ready, scratch)
    assert (answered, len(edits.changes or ())) == (2, 3), edits.lost
    called = {name: one.calls for name, one in functions.items() if one.calls}
    failed = 0
    for name, calls in called.items():
        for error, at in zip(ERRORS, (1, (calls + 1) // 2, calls), strict=True):
            functions[name].calls, functions[name].fails_at, functions[name].error = 0, at, error
            found = run_session(ready, scratch)
            assert found[:2] == (answered, left), (name, at, error)
            known = found[2].changes is not None
            has_failed = (
                functions[name].calls >= at
            )  # without inotify, how many files are read depends on the time
            assert known == (name.endswith(".close") or not has_failed), (name, at, error)
            assert known != bool(found[2].lost)
            failed += has_failed
        functions[name].fails_at = 0
    assert failed > 90


def test_a_follower_that_fails_knows_nothing(
    ready: Ready, scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions = break_functions(monkeypatch)
    monkeypatch.setattr(edit_watch, "_COMPARE_S", 0.01)
    with EditWatch(ready, scratch) as watch:
        waits = functions["FolderEvents.wait" if functions["FolderEvents.watch"].calls else "WorkspaceWatch.look"]
        waits.fails_at, waits.error = 1, TypeError("no")
        watch.follow()
        wait_until(lambda: waits.calls > 0)
        (scratch.workspace / "a.py").write_text("x = 2\n")
        edits = watch.finish(None)
    assert (edits.changes, edits.lost) == (None, "TypeError: no")


def test_a_machine_without_threads_knows_nothing(
    ready: Ready, scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with EditWatch(ready, scratch) as watch:
        watch.follow()
        watch.look_at_request(1)()
        assert watch.finish(1).lost == "RuntimeError: can't start new thread"


def test_a_request_after_the_end_is_not_looked_at(
    ready: Ready, scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EditWatch(ready, scratch) as watch:
        edits = watch.finish(3)
    functions = break_functions(monkeypatch)
    (scratch.workspace / "a.py").write_text("x = 2\n")
    watch.look_at_request(4)()
    assert not any(one.calls for name, one in functions.items() if name.startswith("WorkspaceWatch."))
    assert edits.changes == ()
    assert edits.confirm(["a.py"]).changes is None
