"""Where cgroups of memory can be made, and what they say of their kills."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import pytest

from trialfleet_sandbox import memory_group
from trialfleet_sandbox.memory_group import LEAF, GroupParent, MemoryGroup, NoMemoryGroup, find_own_cgroup

V1 = "35 31 0:32 {root} /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory"
V2 = "41 31 0:38 {root} /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw,nsdelegate"
OTHER = "36 31 0:33 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n22 1 8:1 / / rw - ext4 /dev/sda1 rw"


@pytest.mark.parametrize(
    ("groups", "mounts", "folder", "version"),
    [
        ("5:cpu,memory:/a/b\n0::/\n", [V1, V2], "/sys/fs/cgroup/memory/a/b", 1),
        ("5:cpu:/\n0::/user.slice/a:b.scope\n", [V2], "/sys/fs/cgroup/user.slice/a:b.scope", 2),
        ("0::/\n", [V2], "/sys/fs/cgroup", 2),
        ("4:memory:/docker/x/y\n", [V1.replace("{root}", "/docker/x")], "/sys/fs/cgroup/memory/y", 1),
        ("4:memory:/docker/x\n", [V1.replace("{root}", "/docker/x")], "/sys/fs/cgroup/memory", 1),
        ("4:memory:/docker/y\n", [V1.replace("{root}", "/docker/x")], None, 1),
        ("0::/../other\n", [V2.replace("{root}", "/own")], None, 2),
        ("4:memory:/\n0::/\n", [], None, 1),
        ("", [V1, V2], None, 1),
    ],
)
def test_the_cgroup_of_this_process(groups: str, mounts: list[str], folder: str | None, version: int) -> None:
    text = "\n".join([OTHER, *(mount.replace("{root}", "/") for mount in mounts)])
    if folder is None:
        with pytest.raises(NoMemoryGroup, match="mounted"):
            find_own_cgroup(groups, text)
    else:
        parent = find_own_cgroup(groups, text)
        assert (parent.folder.as_posix(), parent.version) == (folder, version)


@pytest.mark.parametrize(
    ("version", "files", "reason"),
    [
        (2, {"memory.events": "low 0\nmax 70\noom 1\noom_kill 3\n"}, "limit"),
        (2, {"memory.events": "low 0\nmax 70\noom 0\noom_kill 3\n"}, "machine"),
        (2, {"memory.events": "low 0\nmax 70\noom 1\noom_kill 0\n"}, None),
        (2, {}, None),
        (1, {"memory.oom_control": "under_oom 0\noom_kill 1", "memory.max_usage_in_bytes": "99\n"}, "limit"),
        (1, {"memory.oom_control": "oom_kill 1", "memory.memsw.max_usage_in_bytes": "100\n"}, "limit"),
        (1, {"memory.oom_control": "oom_kill 1", "memory.max_usage_in_bytes": "60\n"}, "machine"),
        (1, {"memory.oom_control": "oom_kill 0", "memory.max_usage_in_bytes": "100\n"}, None),
    ],
)
def test_for_what_the_kernel_has_killed(
    tmp_path: Path, version: Literal[1, 2], files: dict[str, str], reason: str | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert MemoryGroup(tmp_path, version, 100).read_kill_reason() == reason


def test_a_cgroup_that_nobody_has_delegated_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its processes would have to move."""
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    (tmp_path / "cgroup.type").write_text("domain\n")
    monkeypatch.setattr(memory_group, "find_own_cgroup", lambda *_: GroupParent(tmp_path, 2))
    with pytest.raises(NoMemoryGroup, match="not delegated"):
        memory_group.find_parent()
    assert {path.name for path in tmp_path.iterdir()} == {"cgroup.controllers", "cgroup.type"}
    (tmp_path / "cgroup.controllers").write_text("cpu\n")
    with pytest.raises(NoMemoryGroup, match="lacks the memory controller"):
        memory_group.find_parent()


def test_a_delegated_cgroup_is_used_also_from_its_leaf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {
        "cgroup.controllers": "memory",
        "cgroup.type": "",
        "cgroup.subtree_control": "memory",
    }.items():
        (tmp_path / name).write_text(text)
    try:
        os.setxattr(tmp_path, "user.delegate", b"1")
    except OSError:
        pytest.skip("no extended attributes here")
    for own in (tmp_path, tmp_path / LEAF):
        monkeypatch.setattr(memory_group, "find_own_cgroup", lambda *_, own=own: GroupParent(own, 2))
        assert memory_group.find_parent() == GroupParent(tmp_path, 2)


@pytest.mark.parametrize(("line", "delegated"), [("Delegate=yes", True), ("Delegate=no", False), ("", False)])
def test_a_user_managers_unit_says_whether_it_delegates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, delegated: bool
) -> None:
    (tmp_path / "cgroup.type").write_text("domain\n")
    unit = f"[Unit]\nDescription=Delegate=yes\n\n[Scope]\n{line}\nMemoryMax=1\n"
    monkeypatch.setattr(memory_group, "_read", lambda path: unit if path.name == tmp_path.name else "")
    assert memory_group.is_delegated(tmp_path) is delegated
