"""What docker, podman, kind and kubectl print, read from programs that print it."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest

from tests.support.scripts import write_script
from trialfleet_controller.kind_cluster import engine, machine
from trialfleet_controller.kind_cluster.engine import (
    ContainerEngine,
    EngineState,
    NodeContainers,
    find_engine,
    parse_docker_info,
    parse_podman_info,
)
from trialfleet_controller.kind_cluster.machine import KindSettings, read_machine

DOCKER = "Docker version 29.1.0, build 1234567"
INFO = {"MemTotal": 2**34, "CgroupVersion": "2", "DockerRootDir": "/", "SecurityOptions": ["name=seccomp"]}
BINDINGS = {"30070/tcp": [{"HostIp": "127.0.0.1", "HostPort": "7071"}], "6443/tcp": [{"HostPort": "40001"}]}


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of the PATH but for the system's shell and tools."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for tool in ("cat", "sleep"):
        (folder / tool).symlink_to(f"/bin/{tool}")
    monkeypatch.setenv("PATH", str(folder))
    return folder


def write_docker(folder: Path, info: object = INFO, code: int = 0) -> None:
    lines = (
        "case $1 in",
        f'--version) echo "{DOCKER}";;',
        f"info) cat <<'END'\n{json.dumps(info)}\nEND\nexit {code};;",
        "buildx) echo buildx v0.24.0;;",
        r'ps) case "$*" in *--all*) printf "other-control-plane\trunning\nother-worker\texited\n";;',
        "*role*) echo other-control-plane; echo third-control-plane;; esac;;",
        rf"inspect) printf '%s\t%s\n' kindest/node:v1.36.1@sha256:0 '{json.dumps(BINDINGS)}';;",
        "esac",
    )
    write_script(folder / "docker", "\n".join(lines))


def test_a_machine_that_has_everything(programs: Path) -> None:
    write_docker(programs)
    write_script(programs / "kind", "echo kind v0.33.0 go1.26.0 linux/amd64 # kindest/node:v1.37.0@sha256:0")
    client = json.dumps({"clientVersion": {"gitVersion": "v1.36.2"}})
    write_script(programs / "kubectl", f"echo '{client}'")
    found = read_machine(KindSettings("other"))
    assert found.engine == ContainerEngine("docker", DOCKER)
    assert isinstance(found.state, EngineState)
    assert (found.state.memory_bytes, found.state.data_folder) == (2**34, Path("/"))
    assert (found.kind, found.kubectl, found.default_minor) == ("v0.33.0", "v1.36.2", 37)
    states = {"other-control-plane": "running", "other-worker": "exited"}
    assert found.nodes == NodeContainers(states, 36, 7071)
    assert found.other_clusters == 1


def test_a_machine_that_has_nothing(programs: Path) -> None:
    found = read_machine(KindSettings())
    assert (found.engine, found.nodes, found.port) == (None, None, None)


def test_programs_that_hang_are_left_after_their_time(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child of the program that keeps its output open does not prolong it."""
    for module in (engine, machine):
        monkeypatch.setattr(module, "_ANSWER_S", 0.3)
    write_script(programs / "docker", f'case $1 in --version) echo "{DOCKER}";; *) sleep 60;; esac')
    write_script(programs / "kind", "sleep 60")
    write_script(programs / "kubectl", "sleep 60 & sleep 60")
    began = time.monotonic()
    found = read_machine(KindSettings())
    assert time.monotonic() - began < 10
    assert isinstance(found.state, str)
    assert "takes longer than" in found.state
    assert not isinstance(found.kind, str)


@pytest.mark.parametrize("words", ["", "not json", "[]", "{}", '{"MemTotal": "much"}', "null"])
def test_what_cannot_be_read_is_no_traceback(programs: Path, words: str) -> None:
    for program in ("docker", "kind", "kubectl"):
        write_script(programs / program, f"case $1 in --version) echo \"{DOCKER}\";; *) echo '{words}';; esac")
    assert isinstance(read_machine(KindSettings()).state, str)


def test_podmans_docker_is_no_docker(programs: Path) -> None:
    for program in ("docker", "podman"):
        write_script(programs / program, "echo podman version 5.4.0")
    assert find_engine(None) == ContainerEngine("podman", "podman version 5.4.0")
    assert find_engine("docker") is None
    assert find_engine("nerdctl") is None
    write_script(programs / "docker", f'echo "{DOCKER}"')
    assert find_engine(None) == ContainerEngine("docker", DOCKER)
    assert find_engine("podman") == ContainerEngine("podman", "podman version 5.4.0")


def test_older_dockers_say_in_json_that_the_daemon_is_down() -> None:
    words = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock."
    assert parse_docker_info(json.dumps({"ServerErrors": [words]}).encode()) == words


def test_a_virtual_machines_disk_is_not_measured_here() -> None:
    desktop = parse_docker_info(json.dumps({**INFO, "OperatingSystem": "Docker Desktop"}).encode())
    remote = parse_docker_info(json.dumps({**INFO, "DockerRootDir": "/nowhere/docker"}).encode())
    assert isinstance(desktop, EngineState)
    assert isinstance(remote, EngineState)
    assert desktop.free_bytes is remote.free_bytes is None


def test_podmans_info() -> None:
    info = {
        "host": {
            "memTotal": 2**33,
            "cgroupVersion": "v2",
            "security": {"rootless": True},
            "serviceIsRemote": False,
        },
        "store": {"graphRoot": "/"},
    }
    found = parse_podman_info(json.dumps(info).encode())
    assert isinstance(found, EngineState)
    assert (found.memory_bytes, found.cgroup_version, found.rootless) == (2**33, "2", True)
    assert found.free_bytes


def test_a_port_that_a_program_listens_on(programs: Path) -> None:
    write_docker(programs)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        use = read_machine(KindSettings("new", str(port))).port
    assert use is not None
    assert use.taken
    assert use.holder is None
    assert use.free_port != port
