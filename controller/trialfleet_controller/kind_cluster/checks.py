"""What keeps `make kind-up` from working, each with its one remedy. Pure: `machine.py` asks the programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from trialfleet_controller.doctor_check import DoctorCheck
from trialfleet_controller.kind_cluster.engine import ContainerEngine, EngineState, NodeContainers
from trialfleet_controller.kind_cluster.machine import CLUSTER_NAME, KindMachine, KindSettings, PortUse
from trialfleet_ledger.child_program import ChildFailure
from trialfleet_ledger.plurals import plural

NEW_CLUSTER_BYTES = 8 * 2**30  # node image, three nodes, build cache and the runner's image, at their peak
SAME_CLUSTER_BYTES = 3 * 2**30  # an image that is built again, and loaded into two nodes
LEAST_MEMORY_BYTES = 3 * 2**30  # three nodes without a trial
DEMO_MEMORY_BYTES = 6 * 2**30  # three nodes, and the demo's four trials at a time
BUILDX_NEEDED = 23  # the first docker whose `build` needs the plugin; older ones contain it
OLDEST_KUBECTL = 21  # older ones cannot read k8s/kind
POLICIES_SINCE = 24  # the first kind, 0.x, whose network enforces policies
CLUSTER_WATCHES, CLUSTER_INSTANCES = 2_000, 60  # of inotify, for three nodes: 621 and 55 were measured
MACHINE_INSTANCES = 40  # of inotify, for what else the user runs
_GIB = 2**30


def kind_checks(machine: KindMachine) -> Iterator[DoctorCheck]:
    """What depends on a missing thing is not checked: its absence says nothing more."""
    yield _engine_check(machine)
    if machine.engine is not None and isinstance(machine.state, EngineState):
        yield _builder_check(machine, machine.engine)
        yield _cgroup_check(machine.state)
        yield _memory_check(machine.state)
        yield _disk_check(machine, machine.engine, machine.state)
        if machine.inotify is not None:
            yield _inotify_check(*machine.inotify, machine.other_clusters + 1)
    yield _kind_check(machine.kind)
    yield _kubectl_check(machine)
    yield from _cluster_checks(machine)


def _engine_check(machine: KindMachine) -> DoctorCheck:
    settings, engine = machine.settings, machine.engine
    if engine is None:
        return _absent_engine(settings)
    if isinstance(machine.state, EngineState):
        return DoctorCheck(engine.program, "ok", engine.banner)
    refused = "permission denied" in machine.state.lower()
    found = f"{engine.program} {'may not be used by this user' if refused else 'does not answer'}: {machine.state}"
    return DoctorCheck(engine.program, "missing", found, _engine_fix(settings, engine, refused=refused))


def _absent_engine(settings: KindSettings) -> DoctorCheck:
    install = "sudo apt-get install docker.io, or https://docs.docker.com/engine/install"
    if settings.provider is None:
        return DoctorCheck("docker", "missing", "neither docker nor podman is installed", install)
    found = (
        f"KIND_EXPERIMENTAL_PROVIDER={settings.provider}, which is not installed or is neither docker nor podman"
    )
    return DoctorCheck("docker", "missing", found, "unset KIND_EXPERIMENTAL_PROVIDER, or install that program")


def _engine_fix(settings: KindSettings, engine: ContainerEngine, *, refused: bool) -> str:
    if engine.program == "podman":
        return "read what `podman info` says"
    if settings.docker_host is not None:
        return f"correct or unset DOCKER_HOST ({settings.docker_host})"
    if refused:
        return "sudo usermod -aG docker $USER, then log in again"
    return "sudo systemctl restart docker, or start Docker Desktop"


def _builder_check(machine: KindMachine, engine: ContainerEngine) -> DoctorCheck:
    """The Dockerfile's cache mounts need BuildKit."""
    if engine.program == "podman":
        return DoctorCheck("BuildKit", "ok", "not needed: podman builds")
    if engine.major is not None and engine.major < BUILDX_NEEDED:
        return DoctorCheck("BuildKit", "ok", f"docker {engine.major} contains it (DOCKER_BUILDKIT=1)")
    if not isinstance(machine.buildx, ChildFailure):
        version = machine.buildx.text.strip() if machine.buildx else "not asked"
        return DoctorCheck("BuildKit", "ok", version)
    of_distribution = re.search(r"dfsg|ubuntu", engine.banner) is not None
    package = "docker-buildx" if of_distribution else "docker-buildx-plugin"
    return DoctorCheck(
        "BuildKit",
        "missing",
        f"docker has no plugin buildx, without which it cannot build the image: {machine.buildx}",
        f"sudo apt-get install {package}" + ("" if of_distribution else ", or https://docs.docker.com/go/buildx"),
    )


def _cgroup_check(state: EngineState) -> DoctorCheck:
    fix = "boot with systemd.unified_cgroup_hierarchy=1"
    if state.cgroup_version == "2":
        return DoctorCheck("cgroups", "ok", "version 2")
    if state.rootless:
        return DoctorCheck("cgroups", "missing", "version 1: kind in a rootless engine needs version 2", fix)
    return DoctorCheck("cgroups", "warning", "version 1, which Kubernetes 1.35 and newer use only by request", fix)


def _memory_check(state: EngineState) -> DoctorCheck:
    memory = state.memory_bytes
    found = f"{memory / _GIB:.1f} GiB"
    if memory < LEAST_MEMORY_BYTES:
        needed = f"{found}; the cluster's three nodes need {LEAST_MEMORY_BYTES / _GIB:.0f} GiB"
        return DoctorCheck("memory", "missing", needed, "use a machine, or a virtual machine, with more memory")
    if memory < DEMO_MEMORY_BYTES:
        found = (
            f"{found}; the cluster and the demo's four trials at a time need {DEMO_MEMORY_BYTES / _GIB:.0f} GiB"
        )
        return DoctorCheck("memory", "warning", found, "lower limits.parallel in the campaign file")
    return DoctorCheck("memory", "ok", found)


def _disk_check(machine: KindMachine, engine: ContainerEngine, state: EngineState) -> DoctorCheck:
    needed = SAME_CLUSTER_BYTES if machine.nodes else NEW_CLUSTER_BYTES
    asked = f"{needed / _GIB:.0f} GiB are needed"
    if state.free_bytes is None:
        return DoctorCheck("disk", "ok", f"{engine.program} keeps its data on another machine; {asked} free there")
    found = f"{state.data_folder}, {state.free_bytes / _GIB:.1f} GiB free"
    if state.free_bytes >= needed:
        return DoctorCheck("disk", "ok", found)
    return DoctorCheck("disk", "missing", f"{found}; {asked}", f"free some: {engine.program} system prune")


def _inotify_check(watches: int, instances: int, clusters: int) -> DoctorCheck:
    """All nodes share the limits of one user; beyond them pods fail with "too many open files"."""
    found = f"{instances} instances and {watches} watches for {clusters} kind cluster{'s' * (clusters > 1)}"
    needed = MACHINE_INSTANCES + clusters * CLUSTER_INSTANCES, clusters * CLUSTER_WATCHES
    if instances >= needed[0] and watches >= needed[1]:
        return DoctorCheck("inotify", "ok", found)
    return DoctorCheck(
        "inotify",
        "warning",
        f'{found}, which take some {needed[0]} and {needed[1]}: pods may fail with "too many open files"',
        "sudo sysctl fs.inotify.max_user_instances=512 fs.inotify.max_user_watches=524288",
    )


def _kind_check(version: str | ChildFailure) -> DoctorCheck:
    if isinstance(version, ChildFailure):
        return _program_check("kind", version, "https://kind.sigs.k8s.io/docs/user/quick-start/#installation")
    minor = _minor_version(version, "0")
    if minor is not None and minor < POLICIES_SINCE:
        found = f"{version}, whose network does not enforce policies"
        return DoctorCheck("kind", "warning", found, f"install kind v0.{POLICIES_SINCE}.0 or newer")
    return DoctorCheck("kind", "ok", version)


def _kubectl_check(machine: KindMachine) -> DoctorCheck:
    version = machine.kubectl
    if isinstance(version, ChildFailure):
        return _program_check("kubectl", version, "https://kubernetes.io/docs/tasks/tools/#kubectl")
    nodes = machine.nodes.minor if machine.nodes else machine.default_minor
    minor = _minor_version(version, "1")
    fix = f"install kubectl v1.{nodes or OLDEST_KUBECTL}: https://kubernetes.io/docs/tasks/tools/#kubectl"
    if minor is not None and minor < OLDEST_KUBECTL:
        return DoctorCheck("kubectl", "missing", f"{version} cannot read k8s/kind", fix)
    if minor is None or nodes is None:
        return DoctorCheck("kubectl", "ok", version)
    if abs(minor - nodes) > 1:
        found = f"{version} is more than one version away from the cluster's Kubernetes 1.{nodes}"
        return DoctorCheck("kubectl", "warning", found, fix)
    return DoctorCheck("kubectl", "ok", f"{version}, for Kubernetes 1.{nodes}")


def _program_check(name: str, failure: ChildFailure, install: str) -> DoctorCheck:
    absent = "No such file" in failure.reason
    found = "not on PATH" if absent else str(failure)
    return DoctorCheck(name, "missing", found, f"install {name}: {install}")


def _minor_version(version: str, major: str) -> int | None:
    """
    >>> _minor_version("v1.37.0+k3s1", "1")
    37
    """
    number = re.match(rf"v{major}\.(\d+)", version)
    return int(number[1]) if number else None


def _cluster_checks(machine: KindMachine) -> Iterator[DoctorCheck]:
    settings = machine.settings
    if CLUSTER_NAME.fullmatch(settings.cluster) is None:
        found = f"KIND_CLUSTER={settings.cluster} is not a name: a-z, 0-9, '.' and '-', at most 50 characters"
        yield DoctorCheck("cluster", "missing", found, replace(settings, cluster="other").up_command)
    elif settings.port_number is None:
        found = f"KIND_PORT={settings.port} is not a port between 1 and 65535"
        yield DoctorCheck("port", "missing", found, replace(settings, port="7071").up_command)
    elif machine.nodes is not None:
        yield from _existing_cluster_checks(settings, machine.nodes, machine.engine)
    elif machine.port is not None:
        yield _port_check(settings, settings.port_number, machine.port)


def _existing_cluster_checks(
    settings: KindSettings, nodes: NodeContainers, engine: ContainerEngine | None
) -> Iterator[DoctorCheck]:
    stopped = sorted(name for name, state in nodes.states.items() if state != "running")
    if stopped and engine is not None:
        found = f"kind cluster {settings.cluster} exists, but {', '.join(stopped)} does not run"
        yield DoctorCheck("cluster", "missing", found, f"{engine.program} start {' '.join(stopped)}")
    else:
        yield DoctorCheck("cluster", "ok", f"{settings.cluster} exists: {plural(len(nodes.states), 'node')}")
    yield _published_port_check(settings, nodes)


def _published_port_check(settings: KindSettings, nodes: NodeContainers) -> DoctorCheck:
    if nodes.port is None:
        found = f"kind cluster {settings.cluster} publishes no port for a store: `make kind-up` did not create it"
        other = replace(settings, cluster=f"{settings.cluster[:40]}-trials").up_command
        return DoctorCheck("port", "missing", found, f"use another name: {other}")
    if settings.port is not None and settings.port_number != nodes.port:
        found = (
            f"KIND_PORT={settings.port}, but cluster {settings.cluster} has port {nodes.port}, which cannot change"
        )
        return DoctorCheck("port", "missing", found, replace(settings, port=None).up_command)
    return DoctorCheck("port", "ok", f"{nodes.port}, of this cluster")


def _port_check(settings: KindSettings, port: int, use: PortUse) -> DoctorCheck:
    if not use.taken:
        return DoctorCheck("port", "ok", f"{port} is free")
    holder = "another program" if use.holder is None else f"container {use.holder}"
    free = "PORT" if use.free_port is None else str(use.free_port)
    fix = replace(settings, port=free).up_command
    return DoctorCheck("port", "missing", f"{holder} listens on port {port} of this machine", fix)
