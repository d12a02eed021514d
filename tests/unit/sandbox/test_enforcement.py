"""What `doctor` says of a sandbox's limits."""

from __future__ import annotations

import pytest

from trialfleet_sandbox import bubblewrap, choose, memory_group, memory_watch, syscall_filter
from trialfleet_sandbox.bubblewrap import Bubblewrap
from trialfleet_sandbox.choose import NO_FILTER, EnforcementLine, enforcement_report
from trialfleet_sandbox.host import AnotherUid, Subreaper
from trialfleet_sandbox.memory_group import GroupParent, NoMemoryGroup
from trialfleet_sandbox.protocol import Sandbox


def by_name(sandbox: Sandbox, *, root: bool) -> dict[str, EnforcementLine]:
    return {line.name: line for line in enforcement_report(sandbox, root=root)}


def refuse_groups(monkeypatch: pytest.MonkeyPatch, *, can_delegate: bool = False) -> None:
    def refuse() -> GroupParent:
        error = NoMemoryGroup("a reason")
        error.can_delegate = can_delegate
        raise error

    monkeypatch.setattr(memory_group, "find_parent", refuse)


@pytest.mark.parametrize("sandbox", [Bubblewrap("bwrap"), AnotherUid(), Subreaper()], ids=lambda s: s.name)
def test_what_is_not_covered_is_said(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_groups(monkeypatch)
    for_root, for_user = by_name(sandbox, root=True), by_name(sandbox, root=False)
    confined = sandbox.name == "bubblewrap"
    assert ("/dev/shm" in for_root["memory limit"].holds) == confined
    assert ("machine's /tmp" in str(for_root["memory limit"].missing)) != confined
    for name in ("memory limit", "disk limit"):
        more = str(for_user[name].missing).removeprefix(str(for_root[name].missing))
        assert "hide" in more
        assert (for_root[name].hint, bool(for_user[name].hint)) == (None, True)


@pytest.mark.parametrize("root", [True, False])
def test_how_to_get_a_cgroup_is_said(monkeypatch: pytest.MonkeyPatch, root: bool) -> None:
    refuse_groups(monkeypatch, can_delegate=True)
    line = by_name(Bubblewrap("bwrap"), root=root)["memory limit"]
    assert line.holds.endswith("makes no cgroup: a reason")
    user = "" if root else "--user "
    assert line.hint == f"systemd-run {user}--scope -p Delegate=yes trialfleet run …"
    monkeypatch.setattr(memory_watch, "read_proc", lambda _: b"")  # a kernel without proportional sizes
    assert "what processes share counts for each" in by_name(Subreaper(), root=root)["memory limit"].holds.lower()


@pytest.mark.parametrize(
    ("sandbox", "leaves"), [(Bubblewrap("bwrap"), False), (AnotherUid(), False), (Subreaper(), True)]
)
def test_a_cgroup_is_said(monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox, leaves: bool) -> None:
    monkeypatch.setattr(memory_group, "probe_group", lambda: 2)
    line = by_name(sandbox, root=False)["memory limit"]
    assert (line.holds, line.hint) == ("a cgroup (version 2) for each program", None)
    assert ("leaves its cgroup" in str(line.missing)) == leaves


def test_a_machine_without_a_filter_is_said_by_doctor_and_bundles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "usable_filters", tuple)
    monkeypatch.setattr(syscall_filter, "usable_program", bytes)
    for sandbox in (Bubblewrap("bwrap"), Subreaper()):
        line = by_name(sandbox, root=True)["system calls"]
        assert (line.holds, line.missing, bool(line.hint)) == ("not filtered", NO_FILTER, True)
        if sandbox.name == "subreaper" or bubblewrap.probe() is None:
            assert choose.choose(sandbox.name).warnings[-1] == NO_FILTER


@pytest.mark.needs("bwrap")
def test_the_filter_works_here() -> None:
    bubblewrap.usable_filters.cache_clear()
    if syscall_filter.usable_program():
        assert by_name(choose.choose("bubblewrap"), root=True)["system calls"].missing is None
        assert choose.choose("bubblewrap").warnings == ()
