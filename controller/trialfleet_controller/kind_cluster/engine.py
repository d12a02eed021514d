"""Asks docker or podman about itself and about a kind cluster's node containers. Each answer has a time limit."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from trialfleet_ledger.child_program import ChildFailure, ChildOutput, run_program

STORE_PORT = "30070/tcp"  # of the control plane: k8s/kind/cluster.yaml publishes it on this machine
NODE_IMAGE = re.compile(r"kindest/node:v1\.(\d+)")
_BANNERS = {"docker": "Docker version", "podman": "podman version"}
_ANSWER_S = 10.0
_CLUSTER_LABEL, _ROLE_LABEL = "io.x-k8s.kind.cluster", "io.x-k8s.kind.role"


@dataclass(frozen=True)
class ContainerEngine:
    """`banner`: what `--version` prints."""

    program: str
    banner: str

    @property
    def major(self) -> int | None:
        """
        >>> ContainerEngine("docker", "Docker version 20.10.24+dfsg1, build 297e128").major
        20
        """
        version = re.search(r"version (\d+)\.", self.banner)
        return int(version[1]) if version else None


@dataclass(frozen=True)
class EngineState:
    """What an engine that answers says. `data_folder`, `free_bytes` None: its data is not on this machine."""

    memory_bytes: int
    cgroup_version: str
    rootless: bool
    data_folder: Path | None
    free_bytes: int | None


@dataclass(frozen=True)
class NodeContainers:
    """A cluster's containers: name -> state, such as "running". `minor`: of its Kubernetes 1.x. `port`: the port
    of this machine that its store has. None: unknown."""

    states: Mapping[str, str]
    minor: int | None
    port: int | None


def find_engine(provider: str | None) -> ContainerEngine | None:
    """The engine that kind would use: `provider`, else docker, else podman. None: it is not installed, or the
    program of that name is another (podman's package podman-docker has a `docker`)."""
    for program, beginning in _BANNERS.items():
        if provider not in (None, program):
            continue
        answer = run_program((program, "--version"), timeout_s=_ANSWER_S)
        banner = answer.stdout.decode(errors="replace").strip() if isinstance(answer, ChildOutput) else ""
        if banner.startswith(beginning):
            return ContainerEngine(program, banner)
    return None


def read_engine_state(engine: ContainerEngine) -> EngineState | str:
    """Its state, or why it does not answer."""
    form = "{{json .}}" if engine.program == "docker" else "json"
    answer = run_program((engine.program, "info", "--format", form), timeout_s=_ANSWER_S)
    if isinstance(answer, ChildFailure):
        return answer.reason.partition(": ")[2] or answer.reason
    try:
        return (parse_docker_info if engine.program == "docker" else parse_podman_info)(answer.stdout)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return f"`{engine.program} info` prints what cannot be read: {type(error).__name__}: {error}"


def parse_docker_info(output: bytes) -> EngineState | str:
    """Older clients end with exit code 0 and name the error of the daemon in the JSON."""
    info = cast("dict[str, Any]", json.loads(output))
    if info.get("ServerErrors"):
        return " ".join(info["ServerErrors"])
    options = [str(option) for option in info.get("SecurityOptions") or ()]
    elsewhere = info.get("OperatingSystem") == "Docker Desktop"
    return EngineState(
        int(info["MemTotal"]),
        str(info.get("CgroupVersion") or "1"),
        any("rootless" in option for option in options),
        *_free_bytes(None if elsewhere else Path(str(info["DockerRootDir"]))),
    )


def parse_podman_info(output: bytes) -> EngineState | str:
    """Of podman 4 and newer."""
    info = cast("dict[str, Any]", json.loads(output))
    host = info["host"]
    elsewhere = bool(host.get("serviceIsRemote"))
    return EngineState(
        int(host["memTotal"]),
        str(host.get("cgroupVersion", "v1")).removeprefix("v"),
        bool(host.get("security", {}).get("rootless")),
        *_free_bytes(None if elsewhere else Path(str(info["store"]["graphRoot"]))),
    )


def _free_bytes(folder: Path | None) -> tuple[Path | None, int | None]:
    """A folder that a virtual machine or another host has is not here."""
    try:
        return (folder, shutil.disk_usage(folder).free) if folder else (None, None)
    except OSError:
        return None, None


def read_buildx(engine: ContainerEngine) -> ChildOutput | ChildFailure:
    return run_program((engine.program, "buildx", "version"), timeout_s=_ANSWER_S)


def read_nodes(engine: ContainerEngine, cluster: str) -> NodeContainers | None:
    """The containers of the kind cluster `cluster`; None: there are none."""
    label = f"label={_CLUSTER_LABEL}={cluster}"
    listed = run_program(
        (engine.program, "ps", "--all", "--filter", label, "--format", "{{.Names}}\t{{.State}}"),
        timeout_s=_ANSWER_S,
    )
    lines = listed.stdout.decode(errors="replace").splitlines() if isinstance(listed, ChildOutput) else []
    states = dict(line.split("\t", 1) for line in lines if "\t" in line)
    if not states:
        return None
    return NodeContainers(states, *_read_control_plane(engine, f"{cluster}-control-plane"))


def _read_control_plane(engine: ContainerEngine, name: str) -> tuple[int | None, int | None]:
    """Its minor version of Kubernetes, and the port of this machine that its store has."""
    form = "{{.Config.Image}}\t{{json .HostConfig.PortBindings}}"
    answer = run_program((engine.program, "inspect", "--format", form, name), timeout_s=_ANSWER_S)
    if isinstance(answer, ChildFailure):
        return None, None
    image, _, ports = answer.stdout.decode(errors="replace").partition("\t")
    version = NODE_IMAGE.search(image)
    return int(version[1]) if version else None, _published_port(ports)


def _published_port(bindings: str) -> int | None:
    """
    >>> _published_port('{"30070/tcp": [{"HostIp": "127.0.0.1", "HostPort": "7071"}]}')
    7071
    """
    try:
        return int(json.loads(bindings)[STORE_PORT][0]["HostPort"])
    except (ValueError, KeyError, TypeError, IndexError):
        return None


def find_publisher(engine: ContainerEngine, port: int) -> str | None:
    """The container that publishes `port` on this machine; None: no container, or podman, which does not tell."""
    answer = run_program(
        (engine.program, "ps", "--filter", f"publish={port}", "--format", "{{.Names}}"), timeout_s=_ANSWER_S
    )
    names = answer.stdout.decode(errors="replace").split() if isinstance(answer, ChildOutput) else []
    return names[0] if names else None


def count_other_clusters(engine: ContainerEngine, cluster: str) -> int:
    """How many kind clusters run here next to `cluster`."""
    answer = run_program(
        (engine.program, "ps", "--filter", f"label={_ROLE_LABEL}=control-plane", "--format", "{{.Names}}"),
        timeout_s=_ANSWER_S,
    )
    names = answer.stdout.decode(errors="replace").split() if isinstance(answer, ChildOutput) else []
    return len(set(names) - {f"{cluster}-control-plane"})
