"""Context files of revisions and working trees: real repositories, compared file by file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from trialfleet_controller.planning.campaign_file import CampaignFile, load_campaign
from trialfleet_controller.planning.own_contexts import list_untracked_files, with_contexts
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_repository.git import GitError
from trialfleet_repository.trees import EntryKind, read_files
from trialfleet_tasks.sources.own_context import list_untracked, of_revision, of_worktree

pytestmark = pytest.mark.needs("git")


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    subprocess.run(("git", *who, *words), cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """`main` has a root file, a nested one and a link; later changes are not committed."""
    folder = tmp_path / "repository"
    (folder / "sub").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "AGENTS.md").write_text("old\n")
    (folder / "CLAUDE.md").symlink_to("AGENTS.md")
    (folder / "sub/AGENTS.md").write_text("sub\n")
    (folder / "code.py").write_text("x = 1\n")
    (folder / ".gitignore").write_text("ignored/\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one")
    return folder


MAIN = {"AGENTS.md": b"old\n", "CLAUDE.md": b"old\n", "sub/AGENTS.md": b"sub\n"}


def test_a_revision_has_its_context_files_and_what_links_lead_to(repository: Path) -> None:
    (repository / "AGENTS.md").write_text("new\n")
    assert read_files(of_revision(repository, "main")) == MAIN
    assert read_files(of_revision(repository / "sub", "HEAD")) == MAIN, "paths are those of the repository"


def test_modes_and_links_are_kept_and_links_that_leave_are_refused_by_name(repository: Path) -> None:
    hook = repository / ".claude/hooks/start.sh"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "two")
    for tree in (of_revision(repository, "HEAD"), of_worktree(repository)):
        assert tree[".claude/hooks/start.sh"].kind is EntryKind.EXEC
        assert tree["CLAUDE.md"].kind is EntryKind.LINK
    (repository / "GEMINI.md").symlink_to("/etc/hostname")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "three")
    for source in ("{ref: HEAD}", "{worktree: .}"):
        with pytest.raises(OperatorError, match=r"contexts.a.*'GEMINI.md': a link that leaves the repository"):
            with_contexts(campaign(repository, f"{{a: {source}}}"), (), Objects(repository.parent / "objects"))


def test_secrets_never_reach_a_store_and_untracked_files_are_named(repository: Path) -> None:
    objects = Objects(repository.parent / "objects")
    (repository / ".mcp.json").write_text('{"mcpServers": {"a": {"env": {"A_TOKEN": "abcdef"}}}}')
    file = campaign(repository, "{a: {worktree: .}}")
    with pytest.raises(OperatorError, match=r"contexts.a.*'.mcp.json', line 1, looks like a secret"):
        with_contexts(file, (), objects)
    assert not (repository.parent / "objects").exists()
    (repository / ".mcp.json").write_text("{}")
    with_contexts(file, (), objects)
    assert list(list_untracked_files(file)) == ["contexts.a: includes files that git does not track: .mcp.json"]
    assert list(list_untracked_files(campaign(repository, "{a: {worktree: .}}", "[none]"))) == []


@pytest.mark.parametrize(
    ("link", "to", "tracked", "named"),
    [
        ("GEMINI.md", "notes.md", {"GEMINI.md"}, ("notes.md",)),
        ("GEMINI.md", "notes.md", {"GEMINI.md", "notes.md"}, ()),
        ("GEMINI.md", "notes.md", {"notes.md"}, ("GEMINI.md",)),
        (".claude/rules", "../docs/rules", {".claude/rules", "docs/rules/a.md"}, ()),
        (".claude/rules", "../docs/rules", {".claude/rules"}, ("docs/rules/a.md",)),
        (".claude/rules", "../docs/rules", {"docs/rules/a.md"}, (".claude/rules/a.md",)),
    ],
)
def test_untracked_files_are_those_that_links_lead_to(
    repository: Path, link: str, to: str, tracked: set[str], named: tuple[str, ...]
) -> None:
    for path in (repository / "notes.md", repository / "docs/rules/a.md", repository / link):
        path.parent.mkdir(parents=True, exist_ok=True)
    (repository / link).symlink_to(to)
    (repository / "notes.md").write_text("notes\n")
    (repository / "docs/rules/a.md").write_text("rule\n")
    git(repository, "add", *tracked)
    assert list_untracked(repository) == named


def test_a_working_tree_has_what_is_not_committed_and_not_what_is_removed_or_ignored(repository: Path) -> None:
    assert read_files(of_worktree(repository)) == MAIN
    (repository / "AGENTS.md").write_text("new\n")
    (repository / "sub/AGENTS.md").unlink()
    (repository / "more").mkdir()
    (repository / "more/CLAUDE.md").write_text("more\n")
    for copies in ("ignored", "trialfleet/contexts/own"):
        (repository / copies).mkdir(parents=True)
        (repository / copies / "CLAUDE.md").write_text("no\n")
    assert read_files(of_worktree(repository)) == {
        "AGENTS.md": b"new\n",
        "CLAUDE.md": b"new\n",
        "more/CLAUDE.md": b"more\n",
    }


@pytest.mark.parametrize("revision", ["nobody", "--all", "HEAD:AGENTS.md", "main..HEAD"])
def test_what_is_no_revision_is_refused(repository: Path, revision: str) -> None:
    with pytest.raises(GitError):
        of_revision(repository, revision)


def test_a_folder_without_a_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GitError):
        of_worktree(tmp_path)


def campaign(folder: Path, contexts: str, conditions: str = "{a: {files: a}}") -> CampaignFile:
    (folder / "t.yaml").write_text("")
    path = folder / "c.yaml"
    path.write_text(
        f"{{campaign: c, seed: 1, tasks: [t.yaml], contexts: {contexts}, conditions: {conditions}, reps: 1, "
        "agent: {kind: nop}, store: runs}"
    )
    return load_campaign(path)


@pytest.mark.parametrize(
    ("contexts", "words"),
    [
        ("{a: {ref: nobody}}", "contexts.a"),
        ("{a: {worktree: /no/such/folder}}", "contexts.a"),
        ("{a: {ref: bare}}", "no context files"),
        ("{a: {}}", "of a revision or of a working tree"),
        ("{a: {ref: main, worktree: .}}", "of a revision or of a working tree"),
    ],
)
def test_what_cannot_be_had_is_refused_by_name(repository: Path, contexts: str, words: str) -> None:
    git(repository, "checkout", "-q", "--orphan", "bare")
    git(repository, "rm", "-q", "-rf", ".")
    git(repository, "commit", "-q", "--allow-empty", "-m", "bare")
    git(repository, "checkout", "-q", "main")
    with pytest.raises(OperatorError, match=words):
        with_contexts(campaign(repository, contexts), (), Objects(repository.parent / "objects"))


@pytest.mark.parametrize("source", ["{ref: nobody}", "{worktree: /no/such/folder}", "{ref: main, repo: /proc}"])
def test_what_no_condition_uses_is_not_demanded(repository: Path, source: str) -> None:
    file = campaign(repository, f"{{a: {source}}}", "[none]")
    assert with_contexts(file, (), Objects(repository.parent / "objects")) == ()
