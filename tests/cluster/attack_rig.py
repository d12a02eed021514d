"""Hostile agents in real pods: the real manifest and backend, or the same with one defence out of the pod."""

from __future__ import annotations

import itertools
import json
import secrets
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.cluster.cluster import ended, read_pod
from tests.cluster.minimal import Minimal, kubectl, minimal
from tests.support import records
from trialfleet_agents.registry import agent as registered
from trialfleet_controller.backends.kube import names
from trialfleet_controller.backends.kube.api_requests import KubeRequest
from trialfleet_controller.backends.kube.backend import KubernetesBackend
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.backends.kube.manifest import COMMANDS, ContainerCommands
from trialfleet_controller.backends.protocol import AttemptId, Order
from trialfleet_controller.backends.runner_termination import RunnerTermination
from trialfleet_controller.campaigns import from_file
from trialfleet_controller.dispatch.launch_requests import Granter
from trialfleet_ledger import keys
from trialfleet_ledger.bundle import Bundle, unpack
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan, PlannedAgent
from trialfleet_ledger.records.agent import AgentSpec, Limits
from trialfleet_ledger.records.attempt import End, Patch
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.trial_order import trials

KEY = "sk-planted-0123456789abcdef"  # the model's, in a Secret that the runner alone mounts
Json = dict[str, Any]
Change = Callable[[Json], object]  # of a pod's manifest, in place
ENDS_S = 240
LIMITS = Limits(cpu=0.2, memory_bytes=2**28, disk_bytes=2**28, tests_timeout_s=120, stop_grace_s=1)


@dataclass
class Changed(Client):
    """Sends pods that differ from what the backend made. Nothing else of the API is touched."""

    inner: Client
    change: Change

    def __post_init__(self) -> None:
        super().__init__(self.inner._connection)

    def call(self, request: KubeRequest) -> Json:
        if request.method == "POST" and request.body is not None and request.body["kind"] == "Pod":
            self.change(request.body)
        return super().call(request)


def as_it_is(pod: Json) -> None:
    """The real pod."""
    del pod


def container(pod: Json, name: str) -> Json:
    """One of a manifest's containers."""
    found: Json = next(one for one in pod["spec"]["containers"] if one["name"] == name)
    return found


@dataclass(frozen=True)
class Left:
    """What an attempt left in the store and in the cluster. `pod`: as the API server had it at the end."""

    store: Store
    grants: Grants
    grants_url: str
    departure: RunnerTermination
    pod: Json

    def raw(self, name: keys.AttemptFile) -> bytes:
        data = self.store.get(
            keys.attempt_file(self.grants.campaign, self.grants.trial.id, self.grants.attempt, name)
        )
        assert data is not None, f"no {name}: {self.departure}"
        return data

    @cached_property
    def end(self) -> End:
        return End.model_validate_json(self.raw("end.json"))

    @cached_property
    def patch(self) -> Patch:
        return Patch.model_validate_json(self.raw("patch.json"))

    @cached_property
    def bundle(self) -> Bundle:
        return unpack(self.raw("bundle.tar.zst"), self.end.bundle)

    @property
    def report(self) -> Any:
        """The JSON that the agent printed, its last line; also where another's end names no bundle."""
        raw = self.raw("bundle.tar.zst")
        return json.loads(unpack(raw, sha256(raw)).files["agent/stdout.log"].splitlines()[-1])

    def everything(self) -> str:
        """All bytes that were kept, as text to search."""
        parts = [
            *self.bundle.files.values(),
            *(self.raw(name) for name in ("start.json", "patch.json", "end.json")),
        ]
        return "\n".join(part.decode(errors="replace") for part in parts)

    def terminated(self, name: str) -> Json:
        """How a container ended."""
        (status,) = (one for one in self.pod["status"]["containerStatuses"] if one["name"] == name)
        state: Json = status["state"]["terminated"]
        return state


@dataclass
class Site:
    """A namespace, a bucket and the frozen plan of one trial, which every attack changes for itself."""

    place: Minimal
    plan: Plan
    store: Store
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    @property
    def network(self) -> str:
        """Whether the cluster enforces network policies, as the probe pod saw it."""
        assert self.plan.kubernetes is not None
        return self.plan.kubernetes.network

    def plan_of(self, spec: AgentSpec, limits: Limits) -> Plan:
        """A campaign of its own for each attack; nobody's keys meet another's."""
        n = next(self.numbers)
        agent = PlannedAgent(spec=spec, digest=registered(spec.kind).identify(spec).digest)
        changes = {
            "campaign": f"attack-{n}",
            "uid": secrets.token_hex(16),
            "agents": dict.fromkeys(self.plan.conditions, agent),
            "limits": limits,
        }
        return self.plan.model_copy(update=changes)

    def run(
        self,
        program: str,
        *args: str,
        limits: Limits = LIMITS,
        timeout_s: float = 60,
        change: Change = as_it_is,
        commands: ContainerCommands = COMMANDS,
        attempt: int = 1,
        meanwhile: Callable[[str], object] = lambda pod: None,
    ) -> Left:
        """An attempt of a Python program as its agent. `meanwhile` gets the pod's name once it is launched."""
        argv = ["python", "-c", program, *args]
        spec = AgentSpec(kind="command", timeout_s=timeout_s, options={"argv": argv})
        plan = self.plan_of(spec, limits)
        (trial,) = trials(plan)
        previous = None if attempt == 1 else "0" * 64
        intent = records.intent(trial=trial.id, attempt=attempt, at=time.time(), previous_end=previous)
        granter = Granter(plan, self.store)
        grants = granter.grants(trial, intent, None)
        url = granter.url(Ledger(self.store, plan.campaign).attempts.grant(grants))
        name = names.pod(plan.uid, trial.id, attempt)
        client = Changed(Client.connect(), change)
        with closing(KubernetesBackend(plan, store_url=self.store.url, client=client, commands=commands)) as pods:
            pods.launch(Order(AttemptId(trial.id, attempt), canonical_json(grants), url))
            meanwhile(name)
            departure = _departure(pods)
            ended(self.place.namespace, name)  # all of its containers
            return Left(self.store, grants, url, departure, read_pod(self.place.namespace, name))


def _departure(pods: KubernetesBackend) -> RunnerTermination:
    until = time.monotonic() + ENDS_S
    while time.monotonic() < until:
        for finished in pods.poll(0.5):
            return finished.departure
    raise AssertionError(f"no end within {ENDS_S} s")


def planned(place: Minimal, **kubernetes: Any) -> Site:
    """By the program itself, with a probe pod. `kubernetes`: of the campaign file."""
    secret = ("create", "secret", "generic", "model-keys", f"--from-literal=ANTHROPIC_API_KEY={KEY}")
    kubectl(*secret, "-n", place.namespace)
    path = place.campaign(campaign="attacks", kubernetes={"model_secret": "model-keys", **kubernetes})
    ran = place.trialfleet("plan", str(path), "--freeze")
    assert ran.code == 0, ran.err
    store = from_file(path).store
    return Site(place, Ledger(store, "attacks").plan(), store)


@contextmanager
def site(folder: Path) -> Generator[Site]:
    """On the cluster and store of the environment."""
    with minimal(folder) as place:
        yield planned(place)
