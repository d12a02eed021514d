"""Looks at a workspace by turn: through a gateway's requests, and by what an agent prints."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from trialfleet_agents.context_files import is_context_file
from trialfleet_repository.excluded_paths import Exclusions
from trialfleet_repository.folder_events import EventsUnavailable, FolderEvents
from trialfleet_repository.trees import TreeEntry
from trialfleet_repository.workspace import build_template, clone
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
