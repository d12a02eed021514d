"""What `doctor` says of a sandbox's limits."""

from __future__ import annotations

import pytest

from trialfleet_sandbox import bubblewrap, choose, syscall_filter
from trialfleet_sandbox.bubblewrap import Bubblewrap
from trialfleet_sandbox.choose import NO_FILTER, EnforcementLine, enforcement_report
from trialfleet_sandbox.host import AnotherUid, Subreaper
from trialfleet_sandbox.protocol import Sandbox


def by_name(sandbox: Sandbox, *, root: bool) -> dict[str, EnforcementLine]:
    return {line.name: line for line in enforcement_report(sandbox, root=root)}


@pytest.mark.parametrize("sandbox", [Bubblewrap("bwrap"), AnotherUid(), Subreaper()], ids=lambda s: s.name)
def test_what_is_not_covered_is_said(sandbox: Sandbox) -> None:
    for_root, for_user = by_name(sandbox, root=True), by_name(sandbox, root=False)
    confined = sandbox.name == "bubblewrap"
    assert ("/dev/shm" in for_root["memory limit"].holds) == confined
    assert ("machine's /tmp" in str(for_root["memory limit"].missing)) != confined
    for name in ("memory limit", "disk limit"):
        more = str(for_user[name].missing).removeprefix(str(for_root[name].missing))
        assert "hide" in more
        assert (for_root[name].hint, bool(for_user[name].hint)) == (None, True)


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
