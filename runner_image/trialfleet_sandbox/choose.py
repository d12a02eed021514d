"""Chooses the best sandbox that works on this machine."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from trialfleet_ledger.errors import OperatorError
from trialfleet_sandbox.protocol import Sandbox

if TYPE_CHECKING:
    from trialfleet_sandbox.memory_group import NoMemoryGroup

NAMES = ("bubblewrap", "uid", "subreaper")
NO_FILTER = (
    "system calls are not filtered, because this kernel or processor does not permit it: programs can use "
    "keyrings, io_uring, bpf and AF_VSOCK"
)


@dataclass(frozen=True)
class IsolationLine:
    """One kind of sandbox on this machine, for `doctor`. `missing`: why it does not work; `hint`: how to get
    it."""

    name: Literal["bubblewrap", "uid", "subreaper"]
    available: bool
    missing: str | None
    hint: str | None
    warnings: tuple[str, ...]


def isolation_report() -> tuple[IsolationLine, ...]:
    """All kinds, best first; `choose()` takes the first that is available."""
    from trialfleet_sandbox.bubblewrap import probe
    from trialfleet_sandbox.host import AnotherUid, Subreaper

    why_not = probe()
    root = os.geteuid() == 0
    return (
        IsolationLine("bubblewrap", why_not is None, why_not, _bubblewrap_hint(why_not), ()),
        IsolationLine(
            "uid",
            root,
            None if root else "only root can become another user",
            None if root else "run as root, or better: install bubblewrap",
            AnotherUid().warnings,
        ),
        IsolationLine("subreaper", True, None, None, Subreaper().warnings),
    )


@dataclass(frozen=True)
class EnforcementLine:
    """One limit of a sandbox on this machine, for `doctor`. `missing`: what it does not cover; `hint`: how it
    could cover more."""

    name: Literal["system calls", "memory limit", "disk limit"]
    holds: str
    missing: str | None
    hint: str | None


def enforcement_report(sandbox: Sandbox, *, root: bool) -> tuple[EnforcementLine, ...]:
    """What holds in this sandbox. `root`: whether it is started by root, who sees every process."""
    mapped = "" if root else ", files without a name that a program has only mapped, or hides with itself"
    return (
        _call_line(sandbox),
        _memory_line(sandbox, root=root),
        EnforcementLine(
            "disk limit",
            "samples folders and open files without a name, in bytes and inodes; makes no file system",
            f"files that are on their way in a socket{mapped}",
            None if root else "set $TRIALFLEET_SCRATCH to a folder of a file system that holds nothing else",
        ),
    )


def _memory_line(sandbox: Sandbox, *, root: bool) -> EnforcementLine:
    from trialfleet_sandbox.memory_group import NoMemoryGroup, probe_group

    try:
        holds = f"a cgroup (version {probe_group()}) for each program"
    except NoMemoryGroup as error:
        return _sampled_memory_line(sandbox, error, root=root)
    confined = sandbox.capabilities.maps_paths or sandbox.capabilities.other_uid
    left = None if confined else "memory of the kernel, for a program that leaves its cgroup; the rest is sampled"
    return EnforcementLine("memory limit", holds, left, None)


def _sampled_memory_line(sandbox: Sandbox, why: NoMemoryGroup, *, root: bool) -> EnforcementLine:
    from trialfleet_sandbox.memory_watch import has_proportional_sizes

    in_files = "" if sandbox.capabilities.maps_paths else ", files in the machine's /tmp and /dev/shm"
    hidden = "" if root else ", memory files of processes that hide from other processes of their user"
    folders = ", /tmp and /dev/shm" if sandbox.capabilities.maps_paths else ""
    shared = (
        "" if has_proportional_sizes() else ". What processes share counts for each, as this kernel says no more"
    )
    scope = f"systemd-run {'' if root else '--user '}--scope -p Delegate=yes trialfleet run …"
    other = None if root else "run trialfleet in a container or a systemd scope with its own limit of memory"
    return EnforcementLine(
        "memory limit",
        f"samples the memory of all processes, memory files{folders}; makes no cgroup: {why}{shared}",
        f"memory of the kernel (full pipes, sockets), memory files on their way in a socket{in_files}{hidden}",
        scope if why.can_delegate else other,
    )


def _call_line(sandbox: Sandbox) -> EnforcementLine:
    from trialfleet_sandbox.bubblewrap import usable_filters
    from trialfleet_sandbox.syscall_filter import usable_program

    works = usable_filters() if sandbox.name == "bubblewrap" else usable_program()
    if not works:
        return EnforcementLine("system calls", "not filtered", NO_FILTER, "use x86_64 or aarch64 with seccomp")
    return EnforcementLine("system calls", "those on a list alone; keyrings are refused", None, None)


def _bubblewrap_hint(why_not: str | None) -> str | None:
    if why_not is None:
        return None
    if "not installed" in why_not:
        return "apt-get install bubblewrap (or dnf, apk: the same name)"
    return (
        "allow unprivileged user namespaces: sysctl -w user.max_user_namespaces=10000, and on Ubuntu 24.04 "
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    )


def choose(prefer: str | None = None) -> Sandbox:
    """The best sandbox that works here, or the preferred one (`prefer`, else `$TRIALFLEET_ISOLATION`).
    Raises `OperatorError` if the preferred one does not work here."""
    from trialfleet_sandbox.bubblewrap import Bubblewrap, bubblewrap_program, usable_filters
    from trialfleet_sandbox.host import AnotherUid, Subreaper
    from trialfleet_sandbox.syscall_filter import usable_program

    report = isolation_report()
    prefer = prefer or os.environ.get("TRIALFLEET_ISOLATION")
    if prefer is not None and prefer not in NAMES:
        raise OperatorError(f"unknown isolation {prefer!r}", hint=f"one of: {', '.join(NAMES)}")
    line = next(x for x in report if (x.available if prefer is None else x.name == prefer))
    if not line.available:
        raise OperatorError(f"isolation {line.name}: {line.missing}", hint=line.hint)
    match line.name:
        case "bubblewrap":
            return Bubblewrap(bubblewrap_program(), warnings=() if usable_filters() else (NO_FILTER,))
        case "uid":
            sandbox: AnotherUid | Subreaper = AnotherUid()
        case "subreaper":
            sandbox = Subreaper()
    return sandbox if usable_program() else replace(sandbox, warnings=(*sandbox.warnings, NO_FILTER))
