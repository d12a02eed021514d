"""Context trees hold context files and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_repository.trees import TreeEntry, pack
from trialfleet_tasks.contexts import context_object, context_tree, readable_context
from trialfleet_tasks.taskfile import LoadedTask, load_task_file

ROOT = Path(__file__).parents[3]
TASK = """\
repo: {environment: {lock: lock.txt}, contexts: {flat: %s}}
tasks:
  - {id: one, source: {kind: path, pre_fix: a, fixed: b}, prompt_source: issue, issue: It breaks.}
"""
SHIPPED = sorted(
    folder
    for base in ("tasks/contexts", "tasks/quickstart/contexts", "examples/shop/contexts")
    for folder in (ROOT / base).rglob("*")
    if folder.name in ("flat", "tree", "placebo") and folder.is_dir()
)


def task_of(folder: Path, content: str) -> LoadedTask:
    (folder / "lock.txt").write_text("")
    (folder / "task.yaml").write_text(TASK % content)
    return load_task_file(folder / "task.yaml").tasks[0]


def objects(folder: Path) -> Objects:
    (folder / "store").mkdir(exist_ok=True)
    return Objects(folder / "objects", DirectoryStore(folder / "store"))


def put(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / "flat" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# Notes\n")


def refusal(folder: Path, content: str = "flat") -> OperatorError:
    with pytest.raises(OperatorError) as caught:
        context_object(task_of(folder, content), "flat", objects=objects(folder))
    assert caught.value.where is not None
    assert caught.value.where.endswith("task.yaml: one: contexts.flat")
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("name", ["README.md", "a/notes.txt", "passwd", "a/claude_client.md"])
def test_a_file_that_is_no_context_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    put(tmp_path, "CLAUDE.md", name)
    assert repr(name) in refusal(tmp_path).message
    assert not (tmp_path / "objects").exists()


def test_a_folder_of_the_machine_is_not_even_read(tmp_path: Path) -> None:
    put(tmp_path, "CLAUDE.md")
    secret = tmp_path / "flat" / "shadow"
    secret.write_text("x")
    secret.chmod(0)
    assert "'shadow'" in refusal(tmp_path).message
    assert "is not a context file" in refusal(tmp_path, "/etc").message


def test_one_file_and_an_object_are_held_to_it_too(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n")
    assert "'notes.md'" in refusal(tmp_path, "notes.md").message
    digest = objects(tmp_path).put(pack({"a/notes.md": TreeEntry(b"# Notes\n")}))
    assert "'a/notes.md'" in refusal(tmp_path, f"sha256:{digest}").message


def test_a_pipe_and_a_device_are_refused_unread(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "CLAUDE.md")
    for content in ("CLAUDE.md", "/dev/zero"):
        assert "is not a regular file" in str(refusal(tmp_path, content))


def test_what_agents_read_is_taken(tmp_path: Path) -> None:
    put(tmp_path, "CLAUDE.md", "a/b/AGENTS.md", ".claude/rules/a.md", ".cursorrules", ".git/config")
    tree = context_tree(task_of(tmp_path, "flat"), "flat", objects=objects(tmp_path))
    assert sorted(tree) == [".claude/rules/a.md", ".cursorrules", "CLAUDE.md", "a/b/AGENTS.md"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *((name, "# Größe\n".encode("latin-1")) for name in ("CLAUDE.md", "a/b/AGENTS.md", ".cursorrules")),
        *(("CLAUDE.md", "# Shop\n".encode(encoding)) for encoding in ("utf-16", "utf-16-le", "utf-16-be")),
    ],
)
def test_a_text_that_is_not_utf8_is_refused_by_its_name(tmp_path: Path, name: str, data: bytes) -> None:
    put(tmp_path, "CLAUDE.md", name)
    (tmp_path / "flat" / name).write_bytes(data)
    refused = refusal(tmp_path)
    assert f"{name!r} is not UTF-8 text" in refused.message
    assert "save the file as UTF-8" in str(refused.hint)


def test_a_picture_of_a_skill_need_not_be_text(tmp_path: Path) -> None:
    put(tmp_path, "CLAUDE.md", ".claude/skills/x/logo.png")
    (tmp_path / "flat/.claude/skills/x/logo.png").write_bytes(b"\x89PNG\xff")
    tree = context_tree(task_of(tmp_path, "flat"), "flat", objects=objects(tmp_path))
    assert ".claude/skills/x/logo.png" in tree


def test_a_pull_needs_something_to_point_at(tmp_path: Path) -> None:
    put(tmp_path, ".cursorrules")
    task = task_of(tmp_path, "flat")
    assert context_object(task, "flat", objects=objects(tmp_path))
    with pytest.raises(OperatorError, match="has no target"):
        context_object(task, "flat", objects=objects(tmp_path), pulled=True)
    put(tmp_path, "a/AGENTS.md")
    assert context_object(task, "flat", objects=objects(tmp_path), pulled=True)


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_shipped_trees_hold(folder: Path, tmp_path: Path) -> None:
    task = task_of(tmp_path, str(folder))
    assert context_object(task, "flat", objects=objects(tmp_path), pulled=True)


def test_there_are_shipped_trees() -> None:
    assert len(SHIPPED) >= 20


UNUSABLE = {
    "missing": (),
    "empty": ("flat/",),
    "empty file": ("flat/CLAUDE.md",),
    "no context file": ("flat/CLAUDE.md", "flat/notes.txt"),
    "not UTF-8": ("flat/AGENTS.md",),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_a_context_is_demanded_only_where_it_is_used(tmp_path: Path, case: str) -> None:
    for name in UNUSABLE[case]:
        path = tmp_path / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.write_bytes(b"caf\xe9" if case == "not UTF-8" else b"")
    task, kept = task_of(tmp_path, "flat"), objects(tmp_path)
    assert isinstance(readable_context(task, "flat", objects=kept), OperatorError)
    with pytest.raises(OperatorError, match=r"contexts\.flat"):
        context_tree(task, "flat", objects=kept)
