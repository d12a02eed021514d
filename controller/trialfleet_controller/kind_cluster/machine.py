"""Reads everything that `make kind-up` needs of this machine."""

from __future__ import annotations

import json
import re
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trialfleet_controller.kind_cluster.engine import (
    NODE_IMAGE,
    ContainerEngine,
    EngineState,
    NodeContainers,
    count_other_clusters,
    find_engine,
    find_publisher,
    read_buildx,
    read_engine_state,
    read_nodes,
)
from trialfleet_ledger.child_program import ChildFailure, ChildOutput, run_program

DEFAULT_CLUSTER, DEFAULT_PORT = "trialfleet", 7070
CLUSTER_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,49}")  # what kind accepts, and a file of that name
_INOTIFY = Path("/proc/sys/fs/inotify")
_ANSWER_S = 10.0
_PORTS_TRIED = 100


@dataclass(frozen=True)
class KindSettings:
    """The variables of `make kind-up`, as they were written, and DOCKER_HOST. None: not set."""

    cluster: str = DEFAULT_CLUSTER
    port: str | None = None
    provider: str | None = None
    docker_host: str | None = None

    @classmethod
    def read_environment(cls, environment: Mapping[str, str]) -> KindSettings:
        """
        >>> KindSettings.read_environment({"KIND_CLUSTER": "other", "KIND_PORT": ""})
        KindSettings(cluster='other', port=None, provider=None, docker_host=None)
        """
        names = ("KIND_CLUSTER", "KIND_PORT", "KIND_EXPERIMENTAL_PROVIDER", "DOCKER_HOST")
        cluster, *others = (environment.get(name) or None for name in names)
        return cls(cluster or DEFAULT_CLUSTER, *others)

    @property
    def variables(self) -> str:
        """
        >>> KindSettings("other", "7071").variables
        'KIND_CLUSTER=other KIND_PORT=7071 '
        """
        cluster = "" if self.cluster == DEFAULT_CLUSTER else f"KIND_CLUSTER={self.cluster} "
        return f"{cluster}{f'KIND_PORT={self.port} ' if self.port else ''}"

    @property
    def up_command(self) -> str:
        return f"{self.variables}make kind-up"

    @property
    def port_number(self) -> int | None:
        """None: not a port.

        >>> [KindSettings(port=text).port_number for text in (None, "7071", "0", "70700", "http")]
        [7070, 7071, None, None, None]
        """
        if self.port is None:
            return DEFAULT_PORT
        return int(self.port) if re.fullmatch(r"[1-9][0-9]{0,4}", self.port) and int(self.port) < 2**16 else None


@dataclass(frozen=True)
class PortUse:
    """Who listens on the port of this machine that the store would have. `holder` None: not a container.
    `free_port`: the next one that nobody listens on, None: none was found."""

    taken: bool
    holder: str | None = None
    free_port: int | None = None


@dataclass(frozen=True)
class KindMachine:
    """What the programs say. `state` is a text when the engine does not answer. `kind`, `kubectl`: their versions,
    such as "v0.33.0". `default_minor`: of Kubernetes 1.x, of the nodes that kind makes; None: unknown. `inotify`:
    (watches, instances) that a user may have, None: unknown."""

    settings: KindSettings
    engine: ContainerEngine | None
    state: EngineState | str
    buildx: ChildOutput | ChildFailure | None
    kind: str | ChildFailure
    kubectl: str | ChildFailure
    default_minor: int | None
    nodes: NodeContainers | None
    port: PortUse | None
    inotify: tuple[int, int] | None
    other_clusters: int = 0


def read_machine(settings: KindSettings) -> KindMachine:
    """Asks each program; one that does not answer within 10 seconds counts as one that fails."""
    engine = find_engine(settings.provider)
    state = read_engine_state(engine) if engine else "not installed"
    answering = engine if isinstance(state, EngineState) else None
    named = CLUSTER_NAME.fullmatch(settings.cluster) is not None
    port = settings.port_number
    return KindMachine(
        settings,
        engine,
        state,
        buildx=read_buildx(answering) if answering else None,
        kind=_read_kind_version(),
        kubectl=_read_kubectl_version(),
        default_minor=_read_default_minor(),
        nodes=read_nodes(answering, settings.cluster) if answering and named else None,
        port=_read_port_use(answering, port) if answering and port else None,
        inotify=_read_inotify(),
        other_clusters=count_other_clusters(answering, settings.cluster) if answering else 0,
    )


def _read_kind_version() -> str | ChildFailure:
    answer = run_program(("kind", "version"), timeout_s=_ANSWER_S)
    return answer if isinstance(answer, ChildFailure) else _first_version(answer.text)


def _read_kubectl_version() -> str | ChildFailure:
    answer = run_program(("kubectl", "version", "--client", "--output", "json"), timeout_s=_ANSWER_S)
    if isinstance(answer, ChildFailure):
        return answer
    try:
        return str(json.loads(answer.stdout)["clientVersion"]["gitVersion"])
    except (ValueError, KeyError, TypeError):
        return _first_version(answer.text)


def _first_version(text: str) -> str:
    version = re.search(r"v\d+\.\d+\S*", text)
    return version[0] if version else text.strip()


def _read_default_minor() -> int | None:
    """kind names its node image in its program alone. None also where `kind` is a script that starts another."""
    path = shutil.which("kind")
    try:
        image = NODE_IMAGE.search(Path(path).read_bytes().decode("latin-1")) if path else None
    except OSError:
        return None
    return int(image[1]) if image else None


def _read_port_use(engine: ContainerEngine, port: int) -> PortUse:
    if _is_free(port):
        return PortUse(taken=False)
    following = range(port + 1, min(port + _PORTS_TRIED, 2**16))
    return PortUse(True, find_publisher(engine, port), next(filter(_is_free, following), None))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the engine does
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError:
            return True  # a port below 1024: the engine may
        except OSError:
            return False
    return True


def _read_inotify() -> tuple[int, int] | None:
    try:
        watches, instances = (
            int((_INOTIFY / name).read_text()) for name in ("max_user_watches", "max_user_instances")
        )
    except (OSError, ValueError):
        return None
    return watches, instances
