"""What `doctor --kind` says of each thing that `make kind-up` needs: once, with one remedy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trialfleet_controller.doctor_check import DoctorCheck
from trialfleet_controller.kind_cluster import checks
from trialfleet_controller.kind_cluster.checks import kind_checks
from trialfleet_controller.kind_cluster.engine import ContainerEngine, EngineState, NodeContainers
from trialfleet_controller.kind_cluster.machine import KindMachine, KindSettings, PortUse
from trialfleet_ledger.child_program import ChildFailure, ChildOutput

GIB = 2**30
STATE = EngineState(16 * GIB, "2", False, Path("/var/lib/docker"), 50 * GIB)
RUNNING = {f"trialfleet-{name}": "running" for name in ("control-plane", "worker", "worker2")}
NODES = NodeContainers(RUNNING, 37, 7070)
GOOD = KindMachine(
    KindSettings(),
    ContainerEngine("docker", "Docker version 29.1.0, build 1234567"),
    STATE,
    buildx=ChildOutput(b"github.com/docker/buildx v0.24.0\n", b""),
    kind="v0.33.0",
    kubectl="v1.37.0",
    default_minor=37,
    nodes=None,
    port=PortUse(taken=False),
    inotify=(524288, 512),
)
ABSENT = ChildFailure("kind version", "does not start: No such file or directory")


def checked(**changes: Any) -> dict[str, DoctorCheck]:
    found = list(kind_checks(replace(GOOD, **changes)))
    assert len({check.name for check in found}) == len(found)
    for check in found:
        assert (check.fix is None) == (check.result == "ok"), "a remedy for what is wrong, and for nothing else"
    return {check.name: check for check in found}


def only(name: str, result: str, **changes: Any) -> DoctorCheck:
    """The one check that is not ok."""
    wrong = [check for check in checked(**changes).values() if check.result != "ok"]
    assert [(check.name, check.result) for check in wrong] == [(name, result)]
    return wrong[0]


def test_a_good_machine_has_nothing_wrong() -> None:
    assert {check.result for check in checked().values()} == {"ok"}
    assert list(checked()) == [
        "docker",
        "BuildKit",
        "cgroups",
        "memory",
        "disk",
        "inotify",
        "kind",
        "kubectl",
        "port",
    ]


def test_without_an_engine_what_depends_on_it_is_not_blamed() -> None:
    found = checked(engine=None, state="not installed", buildx=None, port=None, kind=ABSENT)
    assert [name for name, check in found.items() if check.result == "missing"] == ["docker", "kind"]
    assert found["docker"].found == "neither docker nor podman is installed"
    assert "disk" not in found
    assert found["kind"].found == "not on PATH"


@pytest.mark.parametrize(
    ("says", "host", "fix"),
    [
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", None, "systemctl restart docker"),
        ("takes longer than 10 s", None, "systemctl restart docker"),
        ("permission denied while trying to connect to the docker API", None, "usermod -aG docker $USER"),
        ("error during connect: dial tcp: no such host", "tcp://nowhere:2375", "unset DOCKER_HOST (tcp://nowhere"),
        ("Permission denied (publickey)", "ssh://nowhere", "unset DOCKER_HOST (ssh://nowhere)"),
    ],
)
def test_a_daemon_that_does_not_answer(says: str, host: str | None, fix: str) -> None:
    settings = KindSettings(docker_host=host)
    check = only("docker", "missing", state=says, buildx=None, port=None, settings=settings)
    assert says in check.found
    assert fix in (check.fix or "")


@pytest.mark.parametrize(
    ("banner", "package"),
    [
        ("Docker version 26.1.5+dfsg1, build a72d7cd", "docker-buildx"),
        ("Docker version 27.5.1, build 27.5.1-0ubuntu3~24.04.2", "docker-buildx"),
        ("Docker version 29.1.0, build 1234567", "docker-buildx-plugin"),
        ("Docker version 23.0.0, build 1234567", "docker-buildx-plugin"),
    ],
)
def test_buildx_is_named_as_the_package_of_that_docker(banner: str, package: str) -> None:
    none = ChildFailure("docker buildx version", "ends with exit code 1: 'buildx' is not a docker command.")
    check = only("BuildKit", "missing", engine=ContainerEngine("docker", banner), buildx=none)
    assert (check.fix or "").split(",")[0] == f"sudo apt-get install {package}"


@pytest.mark.parametrize(
    "engine",
    [
        ContainerEngine("docker", "Docker version 20.10.24+dfsg1, build 297e128"),
        ContainerEngine("podman", "podman version 5.4.0"),
    ],
)
def test_older_dockers_and_podman_need_no_buildx(engine: ContainerEngine) -> None:
    none = ChildFailure("buildx version", "ends with exit code 1")
    assert checked(engine=engine, buildx=none)["BuildKit"].result == "ok"


@pytest.mark.parametrize(
    ("free", "nodes", "result"),
    [
        (checks.NEW_CLUSTER_BYTES, None, "ok"),
        (checks.NEW_CLUSTER_BYTES - 1, None, "missing"),
        (checks.NEW_CLUSTER_BYTES - 1, NODES, "ok"),
        (checks.SAME_CLUSTER_BYTES - 1, NODES, "missing"),
        (None, None, "ok"),
    ],
)
def test_room_is_what_is_still_to_be_written(free: int | None, nodes: NodeContainers | None, result: str) -> None:
    check = checked(state=replace(STATE, free_bytes=free), nodes=nodes)["disk"]
    assert check.result == result
    assert ("another machine" in check.found) == (free is None)


@pytest.mark.parametrize(("gib", "result"), [(16, "ok"), (4, "warning"), (2, "missing")])
def test_memory(gib: int, result: str) -> None:
    assert checked(state=replace(STATE, memory_bytes=gib * GIB))["memory"].result == result


@pytest.mark.parametrize(("rootless", "result"), [(False, "warning"), (True, "missing")])
def test_cgroups_of_version_1(rootless: bool, result: str) -> None:
    only("cgroups", result, state=replace(STATE, cgroup_version="1", rootless=rootless))


@pytest.mark.parametrize(
    ("limits", "others", "result"),
    [
        ((65_536, 128), 0, "ok"),
        ((65_536, 128), 1, "warning"),
        ((65_536, 64), 0, "warning"),
        ((1_999, 512), 0, "warning"),
        ((524_288, 512), 3, "ok"),
    ],
)
def test_inotify_limits_are_shared_by_all_clusters(limits: tuple[int, int], others: int, result: str) -> None:
    check = checked(inotify=limits, other_clusters=others)["inotify"]
    assert check.result == result
    assert ("too many open files" in check.found) == (result == "warning")


def test_a_kind_without_enforced_policies() -> None:
    assert "does not enforce policies" in only("kind", "warning", kind="v0.23.0").found


@pytest.mark.parametrize(
    ("version", "default", "nodes", "result"),
    [
        ("v1.36.2", 37, None, "ok"),
        ("v1.38.0+k3s1", 37, None, "ok"),
        ("v1.35.0", 37, None, "warning"),
        ("v1.39.0", 37, None, "warning"),
        ("v1.35.0", 37, replace(NODES, minor=34), "ok"),
        ("v1.35.0", None, None, "ok"),
        ("v1.20.2", None, None, "missing"),
        ("v1.20.2", 37, None, "missing"),
        ("development", 37, None, "ok"),
    ],
)
def test_kubectl_goes_with_the_nodes(
    version: str, default: int | None, nodes: NodeContainers | None, result: str
) -> None:
    assert checked(kubectl=version, default_minor=default, nodes=nodes)["kubectl"].result == result


def test_kubectl_that_does_not_go_with_them_is_named_with_the_version_that_does() -> None:
    check = only("kubectl", "warning", kubectl="v1.32.4", default_minor=37)
    assert check.found == "v1.32.4 is more than one version away from the cluster's Kubernetes 1.37"
    assert (check.fix or "").startswith("install kubectl v1.37")


@pytest.mark.parametrize(
    ("settings", "use", "words"),
    [
        (
            KindSettings(),
            PortUse(True, None, 7072),
            ("another program", "port 7070", "KIND_PORT=7072 make kind-up"),
        ),
        (
            KindSettings("other"),
            PortUse(True, "trialfleet-control-plane", 7071),
            ("container trialfleet-control-plane", "KIND_CLUSTER=other KIND_PORT=7071 make kind-up"),
        ),
    ],
)
def test_a_port_in_use_names_the_next_one(settings: KindSettings, use: PortUse, words: tuple[str, ...]) -> None:
    check = only("port", "missing", settings=settings, port=use)
    assert all(word in f"{check.found} {check.fix}" for word in words)


def test_the_port_of_the_cluster_itself_is_no_port_in_use() -> None:
    found = checked(nodes=NODES, port=PortUse(True, "trialfleet-control-plane", 7071))
    assert found["port"].found == "7070, of this cluster"
    assert checked(nodes=replace(NODES, port=7071), port=PortUse(True, "x", 7072))["port"].result == "ok"


def test_the_port_of_a_cluster_does_not_change() -> None:
    check = only("port", "missing", settings=KindSettings(port="7071"), nodes=NODES)
    assert "has port 7070, which cannot change" in check.found
    assert check.fix == "make kind-up"


def test_a_cluster_of_somebody_else_is_not_used() -> None:
    check = only("port", "missing", settings=KindSettings("kind"), nodes=replace(NODES, port=None))
    assert "did not create it" in check.found
    assert check.fix == "use another name: KIND_CLUSTER=kind-trials make kind-up"


def test_a_cluster_that_is_stopped() -> None:
    stopped = replace(NODES, states={**RUNNING, "trialfleet-worker": "exited"})
    check = only("cluster", "missing", nodes=stopped)
    assert check.fix == "docker start trialfleet-worker"


@pytest.mark.parametrize("name", ["../x", "A", "a b", "-x", "", "x" * 51, "a;b"])
def test_names_that_kind_or_a_file_cannot_have(name: str) -> None:
    only("cluster", "missing", settings=KindSettings(name), port=None)


@pytest.mark.parametrize("port", ["0", "65536", "http", "-1", "7070/tcp", "1e3", "07070", "٧٠٧٠"])
def test_ports_that_are_none(port: str) -> None:
    check = only("port", "missing", settings=KindSettings(port=port), port=None)
    assert port in check.found
