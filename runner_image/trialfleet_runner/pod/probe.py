"""`trialfleet-pod probe`: reports to the planner what a pod of this image contains and what it can reach."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

from pydantic import TypeAdapter

from trialfleet_agents.registry import agent as registered
from trialfleet_deliveries import texts
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.attempt import KUBELET_BYTES
from trialfleet_ledger.records.base import Frozen
from trialfleet_ledger.records.grants import GRANTS_URL, GetGrant
from trialfleet_ledger.store import grants as store
from trialfleet_ledger.store.probe import ProbeGrants, StoreCheck, check_grants
from trialfleet_ledger.store.protocol import StoreError
from trialfleet_ledger.store.retry_policy import Patience
from trialfleet_repository.environments.environment import baked_folder, missing_programs
from trialfleet_repository.environments.tool_environment import furnishings
from trialfleet_runner.attempt.bundle_builder import versions
from trialfleet_runner.model_access import upstream
from trialfleet_runner.pod.canary import addresses_of, reached, verdict
from trialfleet_runner.pod.isolation import REFUSALS
from trialfleet_runner.pod.words import first_fitting, termination_log
from trialfleet_runner.pod_report import CanaryAddress, PodProbeReport, ProbedAgent
from trialfleet_sandbox.interpreter import FURNISHINGS

MOST_THREADS = 4096
DETAIL_CHARS = 120
_PATIENCE = Patience(total_s=20)  # somebody waits for the report


def main() -> int:
    """The report on stdout; as much of it as there is room for in the termination message."""
    report = examine()
    print(report.model_dump_json(), flush=True)
    try:
        termination_log().write_bytes(shortened(report))
    except OSError:
        return 0  # not in a pod
    return 0


def _steady(first: CanaryAddress) -> CanaryAddress:
    """The answer of an address that counts as refused only if it is so as often as a runner wants it to be: one
    lost packet is no policy, and a runner would wait for one."""
    if first.answer == "connected":
        return first
    again = (reached((first.address,))[0] for _ in range(REFUSALS - 1))
    return next((one for one in again if one.answer == "connected"), first)


def examine() -> PodProbeReport:
    """Looks at what the environment names: $TRIALFLEET_PROBE_AGENTS (their JSON), $TRIALFLEET_GRANTS_URL (of
    `ProbeGrants`), $TRIALFLEET_CANARY (host:port, separated by spaces or commas) for $TRIALFLEET_CANARY_S,
    $TRIALFLEET_KUBELET likewise."""
    specs = TypeAdapter(tuple[AgentSpec, ...]).validate_json(os.environ.get("TRIALFLEET_PROBE_AGENTS", "[]"))
    checks, store_error = _store(os.environ.get(GRANTS_URL))
    addresses = addresses_of(os.environ.get("TRIALFLEET_CANARY", ""))
    kubelet = addresses_of(os.environ.get("TRIALFLEET_KUBELET", ""))
    answers = reached((*addresses, *kubelet), patience_s=float(os.environ.get("TRIALFLEET_CANARY_S", "0")))
    canary = answers[: len(addresses)]
    return PodProbeReport(
        versions=versions(),
        texts=texts.digest(),
        uv=shutil.which("uv") is not None,
        baked=dict(baked_versions(baked_folder())),
        agents=tuple(_probed(spec) for spec in specs),
        threads=_threads(),
        user=_user(),
        store=checks,
        store_error=store_error,
        canary=canary,
        network=verdict(canary),
        kubelet=_steady(answers[-1]) if kubelet else None,
    )


def shortened(report: PodProbeReport, limit: int = KUBELET_BYTES) -> bytes:
    """The report in at most `limit` bytes: details go first, then the checks that hold, then what is baked."""
    return first_fitting(_ever_less(report), limit)


def _ever_less(report: PodProbeReport) -> Iterator[PodProbeReport]:
    yield report
    short = tuple(check.model_copy(update={"detail": check.detail[:DETAIL_CHARS]}) for check in report.store)
    report = report.model_copy(update={"store": short})
    yield report
    report = report.model_copy(update={"store": tuple(check for check in short if not check.holds)})
    yield report
    agents = tuple(agent.model_copy(update=_cut(agent, "error", "model_error")) for agent in report.agents)
    report = report.model_copy(update={"agents": agents} | _cut(report, "store_error"))
    yield report
    report = report.model_copy(update={"baked": {}})
    yield report
    yield report.model_copy(update={"canary": (), "store": ()})


def _cut(report: Frozen, *names: str) -> dict[str, str | None]:
    return {name: text and text[:DETAIL_CHARS] for name in names for text in [getattr(report, name)]}


def baked_versions(folder: Path | None) -> Iterator[tuple[str, str]]:
    """Of every environment in the image whose programs are there: its recipe, and its interpreter's version or its
    tools'."""
    if folder is None or not folder.is_dir():
        return
    for found in sorted(folder.iterdir()):
        settings = found / "pyvenv.cfg"
        if settings.exists():
            version = re.search(r"^version(?:_info)?\s*=\s*(\S+)", settings.read_text(), re.MULTILINE)
            yield found.name, version[1] if version else "unknown"
        elif (found / FURNISHINGS).exists() and not missing_programs(found):
            tools = furnishings(found).tools.items()
            yield found.name, ", ".join(f"{name} {version}" for name, version in tools)


def _probed(spec: AgentSpec) -> ProbedAgent:
    try:
        identity = registered(spec.kind).identify(spec)
    except OperatorError as error:
        return ProbedAgent(error=str(error))
    return ProbedAgent(identity=identity, model_error=_model(spec) if identity.needs_model else None)


def _model(spec: AgentSpec) -> str | None:
    try:
        upstream(spec)
    except OperatorError as error:
        return error.message
    return None


def _threads() -> int | None:
    """How many a pod may have, tried out: the limit is the kubelet's, and no file in a container tells it. None:
    at least `MOST_THREADS`."""
    over, started = threading.Event(), list[threading.Thread]()
    try:
        while len(started) < MOST_THREADS:
            thread = threading.Thread(target=over.wait, daemon=True)
            thread.start()
            started.append(thread)
    except RuntimeError:
        return len(started)
    finally:
        over.set()
        for thread in started:
            thread.join()
    return None


def _user() -> str | None:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return None


def _store(url: str | None) -> tuple[tuple[StoreCheck, ...], str | None]:
    """What the store promises, through the path that runners use; why there is no answer."""
    if url is None:
        return (), None
    found: list[StoreCheck] = []
    try:
        found.extend(
            check_grants(ProbeGrants.model_validate_json(store.read(GetGrant(url=url), patience=_PATIENCE)))
        )
    except (StoreError, OperatorError) as error:
        return tuple(found), str(error)
    return tuple(found), None
