"""`trialfleet compare`: real repositories, the file that it writes, and what it refuses."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from trialfleet_controller.commands import compare as command
from trialfleet_controller.planning.campaign_file import load_campaign
from trialfleet_controller.planning.comparison import parse_range
from trialfleet_controller.planning.own_contexts import of_source
from trialfleet_ledger.errors import OperatorError
from trialfleet_repository.trees import read_files

pytestmark = pytest.mark.needs("git")

LIKE = """
campaign: shop-context
seed: 7
tasks: [tasks/mined.yaml]
conditions: {none: null, own: {files: own}}
primary: {treatment: own, control: none, estimand: these_tasks, alpha: 0.1}
reps: 3
agent: {kind: search}
store: runs
"""


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    return subprocess.run(
        ("git", *who, *words), cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`main` has no context file, `mine` has one, and the working tree another text of it."""
    folder = tmp_path / "shop"
    (folder / "trialfleet/tasks").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "code.py").write_text("x = 1\n")
    git(folder, "add", "code.py")
    git(folder, "commit", "-q", "-m", "one")
    git(folder, "checkout", "-q", "-b", "mine")
    (folder / "CLAUDE.md").write_text("committed\n")
    git(folder, "add", "CLAUDE.md")
    git(folder, "commit", "-q", "-m", "two")
    (folder / "CLAUDE.md").write_text("edited\n")
    (folder / "trialfleet/campaign.yaml").write_text(LIKE)
    (folder / "trialfleet/tasks/mined.yaml").write_text("[]")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(command, "_power", lambda path: None)  # of another package, which need not be installed
    return folder


def call(*words: str) -> str:
    ran = CliRunner().invoke(command.compare, words, catch_exceptions=False, standalone_mode=False)
    path, after = ran.output.splitlines()
    assert after == f"Next: trialfleet run {path}"
    return path


def sides(path: Path) -> dict[str, dict[str, bytes]]:
    file = load_campaign(path)
    return {name: read_files(of_source(source, file.folder)) for name, source in file.spec.contexts.items()}


def test_a_commit_and_the_working_tree(repository: Path) -> None:
    path = Path(call("HEAD.."))
    assert path.parent == Path("trialfleet")
    made = load_campaign(path).spec
    assert sides(path) == {"before": {"CLAUDE.md": b"committed\n"}, "after": {"CLAUDE.md": b"edited\n"}}
    assert made.contexts["before"].ref == git(repository, "rev-parse", "HEAD"), "a branch would move"
    assert made.primary is not None
    assert (made.primary.treatment, made.primary.control, made.primary.alpha) == ("after", "before", 0.1)
    assert (made.seed, made.reps, made.agent.kind, made.campaign) == (7, 3, "search", path.stem)


def test_a_side_without_context_files_is_the_condition_without_any(repository: Path) -> None:
    path = Path(call("main..HEAD", "--reps", "9", "--out", "trialfleet/mine.yaml"))
    assert sides(path) == {"after": {"CLAUDE.md": b"committed\n"}}
    made = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert (made["conditions"], made["reps"]) == ({"before": {}, "after": {"files": "after"}}, 9)


def test_the_name_follows_the_contents_and_nothing_is_overwritten(repository: Path) -> None:
    first = call("main..HEAD")
    with pytest.raises(OperatorError, match="not overwritten"):
        call("main..mine")
    assert call("main..") != first


def test_equal_sides_are_refused(repository: Path) -> None:
    git(repository, "commit", "-q", "--allow-empty", "-m", "three")
    with pytest.raises(OperatorError, match="the same context file: there is nothing to compare"):
        call("HEAD~1..HEAD")
    with pytest.raises(OperatorError, match="no context files"):
        call("main..main")


def test_what_is_wrong_is_named_and_leaves_no_file(repository: Path) -> None:
    before = sorted(Path("trialfleet").iterdir())
    for words, message in (
        (("nowhere..HEAD",), "nowhere"),
        (("main..HEAD", "--like", "absent.yaml"), "no such file"),
        (("main..HEAD", "--tasks", "absent/*.yaml"), "absent"),
        (("main..HEAD", "--out", "here.yaml"), "must be"),
    ):
        with pytest.raises(OperatorError, match=message):
            call(*words)
    assert sorted(Path("trialfleet").iterdir()) == before


@pytest.mark.parametrize("text", ["main", "..HEAD", "a...b", "a..b..c", ""])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(OperatorError, match="does not name two revisions"):
        parse_range(text)


def test_task_files_of_elsewhere(repository: Path) -> None:
    (repository / "own.yaml").write_text("[]")
    path = Path(call("main..HEAD", "--tasks", "own.yaml"))
    assert yaml.safe_load(path.read_text(encoding="utf-8"))["tasks"] == ["../own.yaml"]
