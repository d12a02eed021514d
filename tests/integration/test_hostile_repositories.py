"""No git command of ours reads the configuration, hooks or attributes of a repository. Each test that nothing is
started has plain git as its control: there the same repository starts the programs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.git_programs import COMMANDS, ArmedRepository, ProgramSetting, copy_armed, read_list
from tests.support.git_repositories import ENV, Made
from trialfleet_controller.commands.compare import compare
from trialfleet_controller.commands.context import context
from trialfleet_git.discovery import UnreadableRepository
from trialfleet_git.view import open_repository_view
from trialfleet_repository.cache import Cache
from trialfleet_repository.git import locate_repository
from trialfleet_repository.trees import read_files
from trialfleet_targets.commands.targets import targets
from trialfleet_tasks.commands.init import init
from trialfleet_tasks.commands.mine import tasks
from trialfleet_tasks.mining.history import open_repository, read_commits, resolve
from trialfleet_tasks.sources.git import with_history
from trialfleet_tasks.sources.materialise import materialise
from trialfleet_tasks.sources.own_context import of_revision, of_worktree
from trialfleet_tasks.taskfile import load_task_file

STARTED = [setting for setting in read_list() if setting.is_started]
TASK = """\
repo: {{url: {url}, environment: {{lock: lock.txt}}}}
tasks:
  - {{id: t, pre_fix_commit: {before}, fix_commit: {fix}, prompt_source: failing_test,
     test_file: tests/test_cart.py}}
"""
Reader = Callable[[ArmedRepository, pytest.MonkeyPatch], None]


def write_task_file(armed: ArmedRepository, url: str) -> Path:
    path = armed.marks.with_name("tasks.yaml")
    path.with_name("lock.txt").write_text("")
    path.write_text(TASK.format(url=url, before=armed.before, fix=armed.fix))
    return path


def run_init(armed: ArmedRepository, _: pytest.MonkeyPatch) -> None:
    assert CliRunner().invoke(init, [str(armed.made.folder)], catch_exceptions=False).exit_code == 0


def read_task(armed: ArmedRepository, _: pytest.MonkeyPatch) -> None:
    """As `validate` and `run` do: the repository's trees come over a path, a file:// address or a mirror."""
    folder, cache = armed.made.folder, Cache.default()
    for url, mirrors in (
        (str(folder), {}),
        (f"file://{folder}/.git", {}),
        ("https://e.org/x", {"https://e.org/x": folder}),
    ):
        trees = materialise(load_task_file(write_task_file(armed, url)).tasks[0], cache=cache, mirrors=mirrors)
        assert trees.fixed["shop/cart.py"].data == b"def total():\n    return 1\n", "no filter"
        assert with_history(url, armed.before, cache=cache, mirrors=mirrors) is not None


def read_contexts(armed: ArmedRepository, _: pytest.MonkeyPatch) -> None:
    assert read_files(of_worktree(armed.made.folder)) == {"CLAUDE.md": b"Edited.\n"}
    assert read_files(of_revision(armed.made.folder, "HEAD~1")) == {"CLAUDE.md": b"Main.\n"}


def run_compare(armed: ArmedRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    run_init(armed, monkeypatch)
    monkeypatch.chdir(armed.made.folder)
    monkeypatch.setattr("trialfleet_controller.commands.compare._power", lambda _: None)  # reads no repository
    write_task_file(armed, "./shop")
    ended = CliRunner().invoke(compare, ["HEAD~1..", "--tasks", "../tasks.yaml"], catch_exceptions=False)
    assert list(armed.made.folder.glob("trialfleet/compare-*.yaml")), ended.output


def run_targets(armed: ArmedRepository, _: pytest.MonkeyPatch) -> None:
    asked = ["predict", str(armed.made.folder), "the total of a cart is wrong", "--json"]
    assert CliRunner().invoke(targets, asked, catch_exceptions=False).exit_code == 0


def run_evaluation(armed: ArmedRepository, _: pytest.MonkeyPatch) -> None:
    asked = ["evaluate", str(armed.made.folder), "--commits", "2", "--json"]
    assert CliRunner().invoke(targets, asked, catch_exceptions=False).exit_code == 0


def build_context(armed: ArmedRepository, _: pytest.MonkeyPatch) -> None:
    file = write_task_file(armed, str(armed.made.folder))
    asked = ["build", str(file), "--kind", "flat", "--agent", "outline", "--store", str(file.with_name("store"))]
    ended = CliRunner().invoke(context, asked, catch_exceptions=False)
    assert ended.exit_code == 0, ended.output


def run_mining(armed: ArmedRepository, _: pytest.MonkeyPatch) -> None:
    asked = ["mine", str(armed.made.folder), "--want", "1", "--minutes", "1"]
    ended = CliRunner().invoke(tasks, asked, catch_exceptions=False)
    assert "examined" in ended.output, ended.output


READERS = (
    *(run_init, run_mining, read_task, read_contexts, build_context, run_compare, run_targets),
    run_evaluation,
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> ArmedRepository:
    return ArmedRepository(tmp_path_factory.mktemp("armed") / "template")


@pytest.mark.parametrize("also_refused", [False, True], ids=["all settings", "and broken ones"])
@pytest.mark.parametrize("read", READERS)
def test_nothing_that_a_repository_configures_is_started(
    read: Reader, also_refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`also_refused`: no git that reads its configuration succeeds."""
    monkeypatch.setenv("TRIALFLEET_CACHE", str(tmp_path / "cache"))
    armed = ArmedRepository(tmp_path / "armed")
    armed.arm(setting for setting in read_list() if also_refused or setting.effect != "refused")
    armed.arm_hooks()
    if also_refused:
        armed.break_includes()
        assert armed.run_plain_git("log") == 128, "the control"
    read(armed, monkeypatch)
    assert armed.started == set()


@pytest.mark.parametrize("setting", STARTED, ids=lambda setting: setting.name)
def test_plain_git_starts_what_a_repository_configures(
    setting: ProgramSetting, template: ArmedRepository, tmp_path: Path
) -> None:
    armed = copy_armed(template, tmp_path / "copy", setting)
    armed.run_plain_git(*COMMANDS[setting.effect])
    assert armed.started == {setting.name}


def test_plain_git_starts_hooks(template: ArmedRepository, tmp_path: Path) -> None:
    armed = copy_armed(template, tmp_path / "copy", ProgramSetting("user.name", "accepted"))
    armed.arm_hooks()
    armed.run_plain_git("add", "-A")
    assert armed.started == {"hook"}


def test_the_list_has_the_settings_that_start_programs() -> None:
    """The script found each of these by itself."""
    known = "core.fsmonitor gpg.program diff.external core.sshCommand filter.<driver>.clean diff.<driver>.textconv"
    assert {*known.split()} <= {setting.name for setting in STARTED}
    assert len(read_list()) > 150


def test_init_writes_into_the_repository_whatever_its_work_tree_is_called(tmp_path: Path) -> None:
    made, elsewhere = Made(tmp_path / "shop"), tmp_path / "elsewhere"
    made.commit("Start", shop__cart="x = 1\n")
    elsewhere.mkdir()
    made.git("config", "core.worktree", str(elsewhere))
    assert made.git("rev-parse", "--show-toplevel") == str(elsewhere), "the control"
    assert CliRunner().invoke(init, [str(made.folder)], catch_exceptions=False).exit_code == 0
    assert (made.folder / "trialfleet/campaign.yaml").exists()
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("kind", ["shallow", "bare", "sha256", "packed", "split index", "detached", "submodule"])
def test_every_kind_of_repository_is_read(kind: str, tmp_path: Path) -> None:
    made = Made(tmp_path / "made", digests="sha256" if kind == "sha256" else "sha1")
    made.write("CLAUDE.md", "Main.\n")
    made.commit("Start", shop__cart="x = 1\n")
    commit = made.commit("Next", shop__cart="x = 2\n")
    folder = made.folder
    if kind in ("shallow", "bare"):
        folder = tmp_path / "clone"
        options = ("--depth=1",) if kind == "shallow" else ("--bare",)
        made.git("clone", "-q", *options, f"file://{made.folder}", str(folder))
    if kind == "packed":
        made.git("gc", "-q")
    if kind == "split index":
        made.git("update-index", "--split-index")
    if kind == "detached":
        made.git("checkout", "-q", "--detach", "HEAD")
        made.git("branch", "-q", "-D", "main")
    if kind == "submodule":
        outer = Made(tmp_path / "outer")
        outer.git("submodule", "--quiet", "add", str(made.folder), "inner")
        folder = outer.folder / "inner"
    repository = locate_repository(folder)
    assert resolve(repository.git_dir, "HEAD") == commit
    assert len(read_commits(repository.git_dir)) == (0 if kind == "shallow" else 1), "commits with a parent"
    assert repository.shallow == (kind == "shallow")
    assert read_files(of_revision(folder, "HEAD")) == {"CLAUDE.md": b"Main.\n"}
    if kind == "bare":
        assert repository.work_tree is None
    else:
        assert read_files(of_worktree(folder)) == {"CLAUDE.md": b"Main.\n"}


def test_a_view_reads_reftables(tmp_path: Path) -> None:
    """Git 2.45 and newer reads references there; the view names their form and leads to them."""
    made = Made(tmp_path / "shop")
    made.commit("Start", shop__cart="x = 1\n")
    linked = tmp_path / "linked"
    made.git("worktree", "add", "-q", str(linked))
    made.git("config", "core.repositoryFormatVersion", "1")
    made.git("config", "extensions.refStorage", "reftable")
    view = open_repository_view(made.folder)
    assert view is not None
    assert "refStorage = reftable" in (view.git_dir / "config").read_text()
    assert (view.git_dir / "reftable").readlink() == made.folder / ".git/reftable"
    with pytest.raises(UnreadableRepository, match="read its main work tree"):
        open_repository_view(linked)


@pytest.mark.parametrize(("name", "value"), [("objectFormat", "md5"), ("refStorage", "files://elsewhere")])
def test_a_form_of_storage_that_is_not_known_is_refused(name: str, value: str, tmp_path: Path) -> None:
    made = Made(tmp_path / "shop")
    made.git("config", f"extensions.{name}", value)
    with pytest.raises(UnreadableRepository, match="in a form that is not known"):
        open_repository_view(made.folder)


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize(
    "name",
    ["HEAD", "config", "commondir", "index", "packed-refs", "shallow", "info/exclude", "refs/heads/x", "logs/HEAD",
     "objects/info/alternates", "objects/pack/pack-1.idx", "objects/00/1", "ORIG_HEAD", "sharedindex.1"],
)  # fmt: skip
def test_nothing_without_an_end_is_read(name: str, kind: str, tmp_path: Path) -> None:
    """A pipe that nobody writes to, or a link to a device. Also behind a link to a folder, and a loop of links."""
    made = Made(tmp_path / "shop")
    made.commit("Start", shop__cart="x = 1\n")
    path = made.folder / ".git" / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    (path.parent / "self").symlink_to("self")
    if kind == "pipe":  # a loop leads the walk of refs everywhere: without it each folder is looked at by itself
        (made.folder / ".git/refs/loop").symlink_to("..")
    moved = made.folder / ".git/objects"
    moved.rename(tmp_path / "objects")
    moved.symlink_to(tmp_path / "objects")
    with suppress(UnreadableRepository):
        assert open_repository_view(made.folder) is None, "read as no repository"
    path.unlink()


def test_no_object_replaces_another(tmp_path: Path) -> None:
    made = Made(tmp_path / "shop")
    made.write("CLAUDE.md", "Real.\n")
    real = made.commit("Start", shop__cart="x = 1\n")
    made.write("CLAUDE.md", "Forged.\n")
    forged = made.commit("Forged", shop__cart="x = 2\n")
    made.git("reset", "-q", "--hard", real)
    made.git("replace", real, forged)
    assert made.git("show", "HEAD:CLAUDE.md") == "Forged.", "the control"
    assert read_files(of_revision(made.folder, "HEAD")) == {"CLAUDE.md": b"Real.\n"}


@pytest.mark.parametrize("how", ["graft", "commit graph"])
def test_no_commit_gets_another_parent(how: str, tmp_path: Path) -> None:
    made = Made(tmp_path / "shop")
    shas = [made.commit(f"Change {number}", shop__cart=f"x = {number}\n") for number in range(4)]
    info = made.folder / ".git"
    if how == "graft":
        (info / "info/grafts").write_text(f"{shas[3]} {shas[0]}\n")
    else:  # written while a graft holds would not be allowed; a graph of another repository is as wrong
        made.git("replace", "--graft", shas[3], shas[0])
        made.git("-c", "core.useReplaceRefs=true", "commit-graph", "write", "--reachable")
    assert made.git("rev-list", "--count", "HEAD") == "2", "the control"
    assert [commit.sha for commit in read_commits(open_repository(made.folder).git_dir)] == shas[:0:-1]


def test_tracking_reflogs_and_linked_work_trees_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upstream = Made(tmp_path / "upstream")
    first = upstream.commit("Start", shop__cart="x = 1\n")
    subprocess.run(("git", "clone", "-q", str(upstream.folder), str(tmp_path / "clone")), env=ENV, check=True)
    clone = Made.__new__(Made)
    clone.folder, clone._clock = tmp_path / "clone", 1_700_000_000
    second = clone.commit("Next", shop__cart="x = 2\n")
    clone.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"), first)
    clone.git("pack-refs", "--all")
    here = open_repository(clone.folder).git_dir
    assert resolve(here, "HEAD") == second
    assert resolve(here, "@{upstream}") == resolve(here, "HEAD@{1}") == first
    linked = open_repository(tmp_path / "linked")
    assert (resolve(linked.git_dir, "HEAD"), linked.work_tree) == (first, tmp_path / "linked")
    assert read_files(of_worktree(tmp_path / "linked")) == {}
    assert linked.place.common_dir == clone.folder / ".git"
