"""What `doctor` looks at: each check says what it found and how to mend it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Literal

from trialfleet_runner.errors import OperatorError

if TYPE_CHECKING:
    from trialfleet_controller.campaigns import Campaign

Result = Literal["ok", "warning", "missing"]

LEAST_FREE_BYTES = 2 * 2**30
PYTHONS = ((3, 11), (3, 14))  # from, below


@dataclass(frozen=True)
class Check:
    """`missing` keeps campaigns from running; a `warning` makes them worse."""

    name: str
    result: Result
    found: str
    mend: str | None = None


def machine_checks() -> Iterator[Check]:
    """Of this machine, whatever the campaign."""
    yield _python()
    yield _program("git", "git", "apt-get install git")
    yield _package("ray", "pip install 'trialfleet[controller]'")
    yield _package("uv", "pip install 'trialfleet[controller]'")
    yield _package("scipy", "pip install 'trialfleet[analysis]': without it there is no report", needed=False)
    yield from _isolation()
    yield from _space()


def agent_check(kind: str, identify: Callable[[], str]) -> Check:
    """`identify` resolves the agent as a run would."""
    try:
        return Check(f"agent {kind}", "ok", identify())
    except OperatorError as error:
        return Check(f"agent {kind}", "missing", error.message, error.hint)


def campaign_checks(campaign: Campaign) -> Iterator[Check]:
    """Of what one campaign needs: its store, its agent, its credentials, its size."""
    yield _store(campaign)
    if campaign.file is not None:
        from trialfleet_controller.prepare import identified

        file, spec = campaign.file, campaign.file.spec
        yield agent_check(spec.agent.kind, lambda: _identity(identified(file)[0].version))
        yield from _credentials(spec.agent.kind)
        yield _fits(campaign)


def _identity(version: str) -> str:
    return f"version {version}"


def _python() -> Check:
    found = f"{platform.python_version()} ({sys.executable})"
    if PYTHONS[0] <= sys.version_info[:2] < PYTHONS[1]:
        return Check("Python", "ok", found)
    return Check("Python", "missing", found, "use Python 3.11, 3.12 or 3.13")


def _program(name: str, program: str, mend: str) -> Check:
    path = shutil.which(program)
    return Check(name, "ok", path) if path else Check(name, "missing", "not on PATH", mend)


def _package(name: str, mend: str, *, needed: bool = True) -> Check:
    try:
        return Check(name, "ok", metadata.version(name))
    except metadata.PackageNotFoundError:
        return Check(name, "missing" if needed else "warning", "not installed", mend)


def _isolation() -> Iterator[Check]:
    """The best kind that works here; a warning when that is not bubblewrap."""
    from trialfleet_runner.sandbox.choose import isolation_report

    report = isolation_report()
    best = next(line for line in report if line.available)
    wanted = report[0]
    if best is wanted:
        yield Check("isolation", "ok", best.name)
        return
    missing = f"{best.name}, because {wanted.name}: {wanted.missing}"
    yield Check("isolation", "warning", f"{missing}. {' '.join(best.warnings)}".strip(), wanted.hint)


def _space() -> Iterator[Check]:
    from trialfleet_runner.attempt.scratch import scratch_root
    from trialfleet_runner.cache import cache_root

    for name, path in (("scratch", scratch_root()), ("cache", cache_root())):
        there = next(folder for folder in (path, *path.parents) if folder.is_dir())
        free = shutil.disk_usage(there).free
        enough = free >= LEAST_FREE_BYTES and os.access(there, os.W_OK)
        variable = "TRIALFLEET_SCRATCH" if name == "scratch" else "TRIALFLEET_CACHE"
        yield Check(
            name,
            "ok" if enough else "missing",
            f"{path}, {free / 2**30:.1f} GiB free",
            None if enough else f"free at least {LEAST_FREE_BYTES // 2**30} GiB, or set ${variable}",
        )


def _store(campaign: Campaign) -> Check:
    from trialfleet_runner.store.probe import examine
    from trialfleet_runner.store.protocol import StoreError

    try:
        report = examine(campaign.store)
    except (OperatorError, StoreError) as error:
        hint = error.hint if isinstance(error, OperatorError) else "check address, credentials and network"
        return Check("store", "missing", str(error).partition("\n")[0], hint)
    broken = "; ".join(f"{check.name}: {check.detail}" for check in report.broken)
    if broken:
        return Check("store", "missing", f"{report.url}: {broken}", "use a store that honours If-None-Match: *")
    return Check("store", "ok", f"{report.url}: {len(report.checks)} promises asked for, all kept")


def _credentials(kind: str) -> Iterator[Check]:
    if kind != "claude-code":
        return
    names = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
    found = [name for name in names if os.environ.get(name)]
    if found:
        yield Check("credentials", "ok", f"${found[0]} is set")
    else:
        yield Check("credentials", "missing", "no key for the model provider", f"export {names[0]}=…")


def _fits(campaign: Campaign) -> Check:
    from trialfleet_controller.capacity import local_slots
    from trialfleet_controller.prepare import UNBOUNDED

    assert campaign.file is not None
    limits = campaign.file.spec.limits
    try:
        count = local_slots(limits.frozen(), limits.parallel or UNBOUNDED)
    except OperatorError as error:
        return Check("size", "missing", error.message, error.hint)
    return Check("size", "ok", f"{count} trials at a time")


def memory_line() -> str:
    """For the header."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"{len(os.sched_getaffinity(0))} CPUs, {memory / 2**30:.1f} GiB, Linux {platform.release()}"
