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
    from trialfleet_controller.spec import CampaignFile
    from trialfleet_runner.contract import AgentSpec
    from trialfleet_runner.store.protocol import Store

Result = Literal["ok", "warning", "missing"]

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
    from trialfleet_controller.room import space_checks

    yield _python()
    yield _program("git", "git", "apt-get install git")
    yield _package("ray", "pip install 'trialfleet[controller]'")
    yield _package("uv", "pip install 'trialfleet[controller]'")
    yield _package("scipy", "pip install 'trialfleet[analysis]': without it there is no report", needed=False)
    yield from _isolation()
    yield from space_checks()


def agent_check(kind: str, identify: Callable[[], str]) -> Check:
    """`identify` resolves the agent as a run would."""
    try:
        return Check(f"agent {kind}", "ok", identify())
    except OperatorError as error:
        return Check(f"agent {kind}", "missing", error.message, error.hint)


def campaign_checks(campaign: Campaign) -> Iterator[Check]:
    """Of what one campaign needs: its store; its agent, credentials and size, or its cluster."""
    yield _store(campaign)
    if campaign.file is not None and campaign.file.spec.kubernetes is not None:
        yield from _cluster(campaign.file, campaign.store)
    elif campaign.file is not None:
        from trialfleet_controller.prepare import identified

        file, spec = campaign.file, campaign.file.spec
        yield agent_check(spec.agent.kind, lambda: _identity(identified(file).version))
        yield from _credentials(spec.agent)
        yield from _fits(campaign)


def _cluster(file: CampaignFile, store: Store) -> Iterator[Check]:
    from trialfleet_controller.operate.preflight import findings
    from trialfleet_controller.operate.target import of_file
    from trialfleet_runner.taskfile import campaign_tasks

    try:
        yield from findings(of_file(file), campaign_tasks(file.loaded), store)
    except OperatorError as error:
        yield Check("cluster", "missing", error.message, error.hint)


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
    yield from _company(best.name)
    wanted = report[0]
    if best is wanted:
        yield Check("isolation", "ok", best.name)
        return
    missing = f"{best.name}, because {wanted.name}: {wanted.missing}"
    yield Check("isolation", "warning", f"{missing}. {' '.join(best.warnings)}".strip(), wanted.hint)


def _company(isolation: str) -> Iterator[Check]:
    from trialfleet_runner.attempt.exposure import refuse_company

    try:
        refuse_company(isolation)
    except OperatorError as error:
        yield Check("above scratch", "missing", error.message, error.hint)


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


def _credentials(agent: AgentSpec) -> Iterator[Check]:
    """Of whoever asks a model, also when its program is not here yet."""
    from trialfleet_runner.attempt.model import upstream

    if agent.kind != "claude-code" and not agent.options.get("needs_model"):
        return
    try:
        upstream(agent)
        yield Check("credentials", "ok", f"there is a key for {agent.options.get('provider', 'anthropic')}")
    except OperatorError as error:
        yield Check("credentials", "missing", error.message, error.hint)


def _fits(campaign: Campaign) -> Iterator[Check]:
    from trialfleet_controller.capacity import UNBOUNDED, local_slots
    from trialfleet_controller.room import campaign_check

    assert campaign.file is not None
    limits = campaign.file.spec.limits
    try:
        count = local_slots(limits.frozen(), limits.parallel or UNBOUNDED)
    except OperatorError as error:
        yield Check("size", "missing", error.message, error.hint)
        return
    yield Check("size", "ok", f"{count} trials at a time")
    yield campaign_check(limits.frozen(), count)


def memory_line() -> str:
    """For the header."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"{len(os.sched_getaffinity(0))} CPUs, {memory / 2**30:.1f} GiB, Linux {platform.release()}"
