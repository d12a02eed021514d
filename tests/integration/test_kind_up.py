"""k8s/kind/up and down, with programs in the place of docker, kind, kubectl and `trialfleet image build`."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.support.ports import reserved_port
from tests.support.scripts import write_script
from tests.support.waiting import wait_until
from trialfleet_controller.planning.campaign_file import load_campaign

ROOT = Path(__file__).parents[2]
INFO = {"MemTotal": 2**34, "CgroupVersion": "2", "DockerRootDir": "/nowhere"}
NODES = ("control-plane", "worker", "worker2")

# Clusters are lines of the file `clusters`; `fault-…` files make a step fail or last.
DOCKER = rf"""case "$1 $*" in
--version*) echo "Docker version 29.1.0, build 1234567";;
info*) [ ! -e fault-daemon ] || {{ echo "Cannot connect to the Docker daemon" >&2; exit 1; }}
  echo '{json.dumps(INFO)}';;
buildx*) echo buildx v0.24.0;;
ps*--all*) name=${{4##*=}}; name=${{name##*=}}
  ! grep -qx "$name" clusters || for node in {" ".join(NODES)}; do printf '%s-%s\trunning\n' "$name" $node; done;;
"inspect inspect -f"*) echo 192.168.96.2;;
inspect*) port=$(cat port-"${{4%-control-plane}}")
  printf 'kindest/node:v1.37.0\t{{"30070/tcp": [{{"HostPort": "%s"}}]}}\n' "$port";;
port*) echo "127.0.0.1:$(cat port-"${{2%-control-plane}}")";;
esac
"""
KIND = rf"""case "$*" in
version) echo kind v0.33.0;;
"get clusters") cat clusters;;
"get nodes"*) for node in {" ".join(NODES)}; do echo "$4-$node"; done;;
"create cluster"*) cat >config; echo "$4" >>clusters
  sed -n 's/.*hostPort: \([0-9]*\).*/\1/p' config >port-"$4"
  [ ! -e fault-create ] || {{ echo no room for nodes; exit 1; }}
  [ ! -e fault-create-lasts ] || sleep 60;;
"delete cluster"*) grep -vx "$4" clusters >rest; mv rest clusters;;
esac
"""
KUBECTL = r"""case "$*" in
version*) echo '{"clientVersion": {"gitVersion": "v1.37.0"}}';;
*"rollout status"*) [ ! -e fault-store ] || exit 1;;
kustomize*) cat k8s/kind/kustomization.yaml;;
*"apply --server-side"*) cat >applied;;
*"get pods --no-headers"*) echo "versitygw-1 0/1 Init:ImagePullBackOff 0 9s";;
*"get pods,"*) echo "pods and claims";;
*"get events"*) echo "Failed to pull image";;
*"get secret"*) cat keys 2>/dev/null || true;;
*"create secret"*) cat "${9#--from-env-file=}" >>secrets;;
*"get namespace trialfleet-store --request-timeout"*) [ ! -e fault-namespace ] || exit 1;;
*exec*) echo demo-kind; echo objects;;
esac
"""


@dataclass(frozen=True)
class Checkout:
    """A folder with k8s/kind and a `trialfleet` whose checks are the real ones."""

    folder: Path

    def environment(self, **variables: str) -> dict[str, str]:
        unset = {name: value for name, value in os.environ.items() if not name.startswith(("KIND_", "DOCKER_"))}
        path = f"{self.folder / 'programs'}:{os.environ['PATH']}"
        return {**unset, "PATH": path, "XDG_CACHE_HOME": str(self.folder / "cache"), **variables}

    def run(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.folder / "k8s/kind" / script)],
            env=self.environment(**variables),
            capture_output=True,
            text=True,
            timeout=60,
        )

    def calls(self, program: str) -> list[str]:
        log = self.folder / "calls"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line.removeprefix(f"{program} ") for line in lines if line.startswith(f"{program} ")]

    @property
    def clusters(self) -> list[str]:
        return (self.folder / "clusters").read_text().split()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    programs = tmp_path / "programs"
    programs.mkdir()
    shutil.copytree(ROOT / "k8s/kind", tmp_path / "k8s/kind")
    shutil.copytree(ROOT / "tasks/quickstart/tasks", tmp_path / "tasks/quickstart/tasks")
    (tmp_path / "clusters").touch()
    for name, lines in {"docker": DOCKER, "kind": KIND, "kubectl": KUBECTL}.items():
        write_script(programs / name, f'cd {tmp_path}\necho "{name} $*" >>calls\n{lines}')
    (tmp_path / ".venv/bin").mkdir(parents=True)
    real = Path(sys.executable).with_name("trialfleet")
    build = "case $1 in image) [ ! -e fault-build ] || exit 3; [ ! -e fault-build-lasts ] || sleep 60; exit;; esac"
    lines = f'cd {tmp_path}\necho "trialfleet $*" >>calls\n{build}\nexec {real} "$@"'
    write_script(tmp_path / ".venv/bin/trialfleet", lines)
    return Checkout(tmp_path)


def free_port() -> int:
    with reserved_port() as port:
        return port


def up(checkout: Checkout, port: int, **variables: str) -> subprocess.CompletedProcess[str]:
    return checkout.run("up", KIND_PORT=str(port), **variables)


def test_from_nothing_to_the_next_command(checkout: Checkout) -> None:
    port = free_port()
    done = up(checkout, port, KIND_CLUSTER="other")
    assert done.returncode == 0, done.stderr
    assert checkout.clusters == ["other"]
    (load,) = [call for call in checkout.calls("kind") if call.startswith("load")]
    assert load == "load docker-image --name other --nodes other-worker,other-worker2 trialfleet-runner:dev"
    assert not [call for call in checkout.calls("trialfleet") if "controller" in call]
    assert "set -a; . .kind/other.env; set +a" in done.stdout
    assert ".venv/bin/trialfleet run .kind/other.yaml" in done.stdout
    assert "make kind-down KIND_CLUSTER=other" in done.stdout
    contexts = {word for call in checkout.calls("kubectl") for word in call.split() if word.startswith("kind-")}
    assert contexts == {"kind-other"}
    applied = (checkout.folder / "applied").read_text()
    assert "cidr: 192.168.0.0/16" in applied
    assert "172.16" not in applied
    load_campaign(checkout.folder / ".kind/other.yaml")
    written = yaml.safe_load((checkout.folder / ".kind/other.yaml").read_text())
    assert written["campaign"] == "demo-kind-other"
    assert written["store"]["endpoint"] == f"http://127.0.0.1:{port}"
    assert written["store"]["pod_endpoint"] == "http://versitygw.trialfleet-store.svc:7070"
    assert written["kubernetes"]["context"] == "kind-other"
    assert all((checkout.folder / ".kind" / task).is_file() for task in written["tasks"])


def test_an_installed_program_names_itself_and_where_its_files_are(checkout: Checkout) -> None:
    program = str(checkout.folder / ".venv/bin/trialfleet")
    done = up(checkout, free_port(), KIND_CLUSTER="other", TRIALFLEET_PROGRAM=program)
    assert done.returncode == 0, done.stderr
    assert f"set -a; . {checkout.folder}/.kind/other.env; set +a" in done.stdout
    assert f"  trialfleet run {checkout.folder}/.kind/other.yaml" in done.stdout
    assert "trialfleet kind down --name other" in done.stdout
    assert "make" not in done.stdout


def test_again_uses_the_clusters_port_and_keys(checkout: Checkout) -> None:
    port = free_port()
    assert up(checkout, port).returncode == 0
    keys = checkout.folder / ".kind/trialfleet.env"
    before = keys.read_text()
    assert keys.stat().st_mode & 0o777 == 0o600
    (checkout.folder / "keys").write_text(before)
    keys.write_text("AWS_ACCESS_KEY_ID=of another cluster\n")
    done = checkout.run("up")
    assert done.returncode == 0, done.stderr
    assert keys.read_text() == before, "the store's own"
    assert len([call for call in checkout.calls("kind") if call.startswith("create")]) == 1
    assert f"127.0.0.1:{port}" in (checkout.folder / ".kind/trialfleet.yaml").read_text()


def test_the_controllers_image_is_made_when_asked_for(checkout: Checkout) -> None:
    port = free_port()
    done = up(checkout, port, CONTROLLER="1")
    assert done.returncode == 0, done.stderr
    assert len([call for call in checkout.calls("trialfleet") if "--target controller" in call]) == 1
    assert "trialfleet-runner:dev trialfleet-controller:dev" in " ".join(checkout.calls("kind"))
    assert "--controller-image trialfleet-controller:dev" in done.stdout


def test_nothing_is_made_where_something_is_missing(checkout: Checkout) -> None:
    (checkout.folder / "fault-daemon").touch()
    done = checkout.run("up")
    assert done.returncode == 2
    assert "Cannot connect to the Docker daemon" in done.stdout
    assert "kind-up: nothing was made" in done.stderr
    assert not (checkout.folder / ".kind").exists()
    assert not [call for call in checkout.calls("kind") if call.startswith("create")]


def test_a_port_in_use_is_said_before(checkout: Checkout) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = up(checkout, port, KIND_CLUSTER="other")
    assert done.returncode == 2
    assert f"another program listens on port {port} of this machine" in done.stdout
    assert "fix: KIND_CLUSTER=other KIND_PORT=" in done.stdout
    assert checkout.clusters == []


@pytest.mark.parametrize("fault", ["create", "build"])
def test_a_step_that_fails_ends_the_other(checkout: Checkout, fault: str) -> None:
    other = "build" if fault == "create" else "create"
    (checkout.folder / f"fault-{fault}").touch()
    (checkout.folder / f"fault-{other}-lasts").touch()
    port = free_port()
    done = up(checkout, port)
    assert done.returncode == 1
    assert ("no room for nodes" in done.stderr) == (fault == "create")
    assert checkout.clusters == [], "no half of a cluster is left"


def test_a_build_that_fails_after_the_cluster_leaves_it(checkout: Checkout) -> None:
    port = free_port()
    assert up(checkout, port).returncode == 0
    (checkout.folder / "fault-build").touch()
    done = checkout.run("up")
    assert done.returncode == 1
    assert "make kind-up continues; make kind-down deletes the cluster" in done.stderr
    assert checkout.clusters == ["trialfleet"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_up_leaves_no_half_of_a_cluster(checkout: Checkout, number: signal.Signals) -> None:
    for step in ("create", "build"):
        (checkout.folder / f"fault-{step}-lasts").touch()
    port = free_port()
    process = subprocess.Popen(
        [str(checkout.folder / "k8s/kind/up")],
        env=checkout.environment(KIND_PORT=str(port)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: checkout.clusters)
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert "cluster trialfleet is not complete: deleting it" in errors
    assert checkout.clusters == []
    assert not (checkout.folder / ".kind/trialfleet.creating").exists()


def test_a_second_up_waits_for_the_first(checkout: Checkout) -> None:
    (checkout.folder / "cache").mkdir()
    with (checkout.folder / "cache/trialfleet-kind-trialfleet.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = subprocess.Popen(
            [str(checkout.folder / "k8s/kind/up")],
            env=checkout.environment(KIND_PORT=str(free_port())),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        assert "waiting for its end" in process.stderr.readline()
        assert not (checkout.folder / "calls").exists() or checkout.calls("kind") == []
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert checkout.clusters == ["trialfleet"]


@pytest.mark.parametrize("complete", [True, False])
def test_what_a_killed_up_left_is_deleted_by_nobody_but_the_user(checkout: Checkout, complete: bool) -> None:
    """The cluster of that name may be another one by now, with results."""
    port = free_port()
    (checkout.folder / ".kind").mkdir()
    (checkout.folder / ".kind/trialfleet.creating").touch()
    (checkout.folder / "clusters").write_text("trialfleet\n")
    (checkout.folder / "port-trialfleet").write_text(str(port))
    if not complete:
        (checkout.folder / "fault-namespace").touch()
    done = up(checkout, port)
    assert done.returncode == (0 if complete else 1), done.stderr
    assert ("an earlier kind-up ended while it created cluster trialfleet" in done.stderr) is not complete
    assert ("make kind-down" in done.stderr) or complete
    assert [call for call in checkout.calls("kind") if call.split()[0] in ("create", "delete")] == []
    assert checkout.clusters == ["trialfleet"]
    assert (checkout.folder / ".kind/trialfleet.creating").exists() is not complete


def test_a_store_that_does_not_come_up_is_shown(checkout: Checkout) -> None:
    script = checkout.folder / "k8s/kind/up"
    script.write_text(script.read_text().replace("sleep 2\n", "sleep 0.1\n"))
    (checkout.folder / "fault-store").touch()
    port = free_port()
    done = up(checkout, port)
    assert done.returncode == 1
    assert "waiting for the store: versitygw-1 0/1 Init:ImagePullBackOff" in done.stderr
    assert "pods and claims" in done.stderr
    assert "Failed to pull image" in done.stderr
    assert checkout.clusters == ["trialfleet"]
    (checkout.folder / "fault-store").unlink()
    assert checkout.run("up").returncode == 0


def test_down_takes_the_same_name_and_says_what_it_deletes(checkout: Checkout) -> None:
    (checkout.folder / "clusters").write_text("trialfleet\nother\n")
    (checkout.folder / ".kind").mkdir()
    for name in ("trialfleet.env", "other.env", "other.yaml"):
        (checkout.folder / ".kind" / name).touch()
    done = checkout.run("down", KIND_CLUSTER="other")
    assert done.returncode == 0, done.stderr
    assert "deleting cluster other: 3 nodes, and its store with all results (demo-kind)" in done.stderr
    assert checkout.clusters == ["trialfleet"]
    assert [path.name for path in (checkout.folder / ".kind").iterdir()] == ["trialfleet.env"]
    done = checkout.run("down", KIND_CLUSTER="other")
    assert done.returncode == 0
    assert "there is no kind cluster other; there is: trialfleet" in done.stderr


@pytest.mark.parametrize("script", ["up", "down"])
def test_a_name_that_is_a_path_is_refused(checkout: Checkout, script: str) -> None:
    done = checkout.run(script, KIND_CLUSTER="../other")
    assert done.returncode == 2
    assert "KIND_CLUSTER=../other is not a name" in done.stderr
    assert checkout.calls("kind") == []
