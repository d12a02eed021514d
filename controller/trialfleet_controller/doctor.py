"""The checks of `doctor`: each reports what it found and how to fix it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from trialfleet_agents.pinned import pinned
from trialfleet_controller.doctor_check import DoctorCheck
from trialfleet_ledger.campaign_spec import LimitSpec
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.operator_errors import REINSTALL
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.agent import Limits
from trialfleet_ledger.treatments import distinct
from trialfleet_repository.cache import cache_root
from trialfleet_sandbox.scratch import scratch_root

if TYPE_CHECKING:
    from trialfleet_agents.protocol import Identity
    from trialfleet_controller.campaigns import CampaignReference
    from trialfleet_controller.planning.campaign_file import CampaignFile
    from trialfleet_ledger.records.agent import AgentSpec
    from trialfleet_ledger.store.protocol import Store
    from trialfleet_sandbox.choose import EnforcementLine
    from trialfleet_sandbox.protocol import Sandbox


PYTHONS = ((3, 11), (3, 14))  # minimum, exclusive maximum


def machine_checks() -> Iterator[DoctorCheck]:
    """Checks of this machine that do not depend on a campaign."""
    yield _python()
    yield _program("git", "git", "apt-get install git")
    for name in ("ray", "uv", "scipy"):
        yield _package(name)
    yield _languages()
    yield from _isolation()
    yield _lookups()
    yield from space_checks()


def _checked(name: str, find: Callable[[], str]) -> DoctorCheck:
    """What `find` returns, or the operator's error that it raises."""
    try:
        return DoctorCheck(name, "ok", find())
    except OperatorError as error:
        return DoctorCheck(name, "missing", error.message, error.hint)


def campaign_checks(campaign: CampaignReference) -> Iterator[DoctorCheck]:
    """Checks of what one campaign needs: its store, and its agent, credentials and size, or its cluster."""
    yield _store(campaign)
    if campaign.file is not None and campaign.file.spec.kubernetes is not None:
        yield from _cluster(campaign.file, campaign.store)
    elif campaign.file is not None:
        from trialfleet_controller.planning.freeze import identified_agent

        file = campaign.file
        for agent in distinct(file.agents.values()):
            yield _checked(f"agent {agent.kind}", partial(_version, partial(identified_agent, file, agent)))
            yield from _credentials(agent)
        yield from _fits(campaign)


def _version(identify: Callable[[], Identity]) -> str:
    return f"version {identify().version}"


def _cluster(file: CampaignFile, store: Store) -> Iterator[DoctorCheck]:
    from trialfleet_controller.operate.preflight import findings
    from trialfleet_controller.operate.target import of_file
    from trialfleet_tasks.settings import load_settings, mirror_map
    from trialfleet_tasks.taskfile import campaign_tasks

    try:
        mirrors = mirror_map(load_settings(), ())
        yield from findings(of_file(file), campaign_tasks(file.loaded), store, mirrors=mirrors, say=_say)
    except OperatorError as error:
        yield DoctorCheck("cluster", "missing", error.message, error.hint)


def _say(message: str) -> None:
    """Print at once what a check waits for; its result comes later."""
    print(message, file=sys.stderr, flush=True)


def _python() -> DoctorCheck:
    found = f"{platform.python_version()} ({sys.executable})"
    if PYTHONS[0] <= sys.version_info[:2] < PYTHONS[1]:
        return DoctorCheck("Python", "ok", found)
    return DoctorCheck("Python", "missing", found, "use Python 3.11, 3.12 or 3.13")


def _program(name: str, program: str, fix: str) -> DoctorCheck:
    path = shutil.which(program)
    return DoctorCheck(name, "ok", path) if path else DoctorCheck(name, "missing", "not on PATH", fix)


def _package(name: str) -> DoctorCheck:
    try:
        return DoctorCheck(name, "ok", metadata.version(name))
    except metadata.PackageNotFoundError:
        return DoctorCheck(name, "missing", "not installed", REINSTALL)


def _languages() -> DoctorCheck:
    """Programs that tasks in other languages than Python need; none of them is needed by itself."""
    from trialfleet_repository.environments.tool_environment import BrokenTool, find_tool
    from trialfleet_repository.languages import LANGUAGES

    versions: list[str] = []
    broken: list[BrokenTool] = []
    for program in (name for language in LANGUAGES.values() for name in language.programs):
        try:
            versions.append(f"{program} {find_tool(program)[1]}")
        except BrokenTool as error:
            broken.append(error)
        except OperatorError:
            continue
    text = ", ".join(versions) or "Python alone: no tools of other languages are here"
    if broken:
        return DoctorCheck("languages", "warning", "; ".join((text, *(e.message for e in broken))), broken[0].hint)
    return DoctorCheck("languages", "ok", text)


def _isolation() -> Iterator[DoctorCheck]:
    """The best kind that works here; a warning when that is not bubblewrap."""
    from trialfleet_sandbox.choose import choose, enforcement_report, isolation_report

    report = isolation_report()
    best = next(line for line in report if line.available)
    sandbox = choose(best.name)
    yield from _company(sandbox)
    wanted = report[0]
    if best is wanted:
        yield DoctorCheck("isolation", "ok", best.name)
    else:
        missing = f"{best.name}, because {wanted.name}: {wanted.missing}"
        yield DoctorCheck("isolation", "warning", f"{missing}. {' '.join(best.warnings)}".strip(), wanted.hint)
    yield from map(_enforced, enforcement_report(sandbox, root=os.geteuid() == 0))


def _enforced(line: EnforcementLine) -> DoctorCheck:
    text = line.holds if line.missing is None else f"{line.holds}. Not covered: {line.missing}"
    return DoctorCheck(line.name, "ok" if line.hint is None else "warning", text, line.hint)


def _lookups() -> DoctorCheck:
    """Whether `validate` can record what tests look up."""
    from trialfleet_tasks.validate.lookups import probe_strace

    problem = probe_strace()
    if problem is None:
        return DoctorCheck("look-ups", "ok", "strace records which files tests look for when a task is validated")
    text = f"{problem}: validated tasks tell test files from the product's by their names alone"
    return DoctorCheck("look-ups", "warning", text, "apt-get install strace, and permit ptrace")


def _company(sandbox: Sandbox) -> Iterator[DoctorCheck]:
    from trialfleet_runner.exposure import refuse_folders

    try:
        refuse_folders(sandbox)
    except OperatorError as error:
        yield DoctorCheck("above scratch", "missing", error.message, error.hint)


def _store(campaign: CampaignReference) -> DoctorCheck:
    from trialfleet_ledger.store.probe import examine
    from trialfleet_ledger.store.protocol import StoreError

    try:
        report = examine(campaign.store)
    except (OperatorError, StoreError) as error:
        hint = (
            error.hint
            if isinstance(error, OperatorError)
            else "check the address, the credentials and the network"
        )
        return DoctorCheck("store", "missing", str(error).partition("\n")[0], hint)
    broken = "; ".join(f"{check.name}: {check.detail}" for check in report.broken)
    if broken:
        return DoctorCheck(
            "store", "missing", f"{report.url}: {broken}", "use a store that honours If-None-Match: *"
        )
    return DoctorCheck("store", "ok", f"{report.url}: all {len(report.checks)} checks passed")


def _credentials(agent: AgentSpec) -> Iterator[DoctorCheck]:
    """Credentials of an agent that uses a model, also if its program is not installed yet."""
    from trialfleet_runner.model_access import upstream

    if agent.kind not in pinned() and not agent.options.get("needs_model"):
        return

    def key() -> str:
        upstream(agent)
        return f"a key for {agent.options.get('provider', 'anthropic')} is set"

    yield _checked("credentials", key)


def _fits(campaign: CampaignReference) -> Iterator[DoctorCheck]:
    from trialfleet_controller.backends.local.capacity import UNBOUNDED, local_slots

    assert campaign.file is not None
    limits = campaign.file.spec.limits
    try:
        count = local_slots(limits.frozen(), limits.parallel or UNBOUNDED)
    except OperatorError as error:
        yield DoctorCheck("size", "missing", error.message, error.hint)
        return
    yield DoctorCheck("size", "ok", f"{plural(count, 'trial')} at a time")
    yield campaign_check(limits.frozen(), count)


def memory_line() -> str:
    """CPUs, memory and kernel, for the header."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"{len(os.sched_getaffinity(0))} CPUs, {memory / 2**30:.1f} GiB, Linux {platform.release()}"


CACHE_BYTES = 2 * 2**30  # environments and sources of a few tasks


def space_checks() -> Iterator[DoctorCheck]:
    """Without a campaign: of scratch, what its default limit would ask for."""
    yield attempts_fit(free_bytes(scratch_root()), LimitSpec().disk, 1, campaign=False)
    cache = cache_root()
    free = free_bytes(cache)
    if free is not None and free >= CACHE_BYTES:
        yield DoctorCheck("cache", "ok", f"{cache}, {gib(free)} free")
    else:
        fix = f"free at least {gib(CACHE_BYTES)}, or set $TRIALFLEET_CACHE"
        yield DoctorCheck("cache", "missing", f"{cache}, {_said(free)}", fix)


def campaign_check(limits: Limits, slots: int) -> DoctorCheck:
    return attempts_fit(free_bytes(scratch_root()), limits.disk_bytes, slots, campaign=True)


def attempts_fit(free: int | None, limit: int, slots: int, *, campaign: bool) -> DoctorCheck:
    """`free`: bytes below the scratch folder, None: it cannot be written. An attempt begins only where its whole
    limit is free; side by side they rarely use it all, so less room for the others is a warning."""
    name, found = ("disk" if campaign else "scratch"), f"{scratch_root()}, {_said(free)}"
    variable = "set $TRIALFLEET_SCRATCH to a folder of another disk"
    if free is None:
        return DoctorCheck(name, "missing", found, variable)
    if free < limit:
        asked = f"an attempt begins only with {gib(limit)} free (limits.disk{'' if campaign else ', by default'})"
        fix = f"free some, lower limits.disk, or {variable}"
        return DoctorCheck(name, "missing" if campaign else "warning", f"{found}; {asked}", fix)
    if free < slots * limit:
        found = f"{found}; {plural(slots, 'trial')} at a time may use {gib(slots * limit)} (limits.disk)"
        return DoctorCheck(name, "warning", found, "free some, or lower limits.parallel or limits.disk")
    return DoctorCheck(name, "ok", found)


def free_bytes(folder: Path) -> int | None:
    """Below `folder`, which need not exist; None when it cannot be written."""
    there = next(path for path in (folder, *folder.parents) if path.is_dir())
    return shutil.disk_usage(there).free if os.access(there, os.W_OK) else None


def gib(size: int) -> str:
    """
    >>> gib(8 * 2**30)
    '8.0 GiB'
    """
    return f"{size / 2**30:.1f} GiB"


def _said(free: int | None) -> str:
    return "not writable" if free is None else f"{gib(free)} free"
