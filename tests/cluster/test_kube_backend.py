"""Attempts as real pods on a real kubelet: how each can end, and what their backend makes of it."""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster import done, fresh_namespace, kubectl
from tests.unit.controller.kube.lab import kube_plan
from trialfleet_controller.backend import AttemptId, Finished, Order
from trialfleet_controller.classify import Departure, classify
from trialfleet_controller.kube import manifest, names
from trialfleet_controller.kube.backend import KubernetesBackend
from trialfleet_controller.kube.client import Client
from trialfleet_controller.kube.errors import NotFound
from trialfleet_controller.kube.manifest import Commands
from trialfleet_controller.kube.owner import ensure_owner
from trialfleet_controller.kube.pods import Pod, parse
from trialfleet_controller.machine import Liveness
from trialfleet_runner.contract import End, HaltScope, LastWords, Limits, Loss, LossClass, Start
from trialfleet_runner.errors import OperatorError

ACCOUNT = "trialfleet-controller"
BASE = Path(__file__).parents[2] / "k8s" / "base"

pytestmark = [pytest.mark.cluster, pytest.mark.needs("cluster", "image"), pytest.mark.slow]

TRIAL = "abcdefghijklmnopqrstuvwxyz"
SMALL = Limits(cpu=0.02, memory_bytes=48 * 2**20, disk_bytes=32 * 2**20)
GRACES = {
    "image_pull_s": 3,
    "config_error_s": 3,
    "unschedulable_s": 3,
    "unseen_s": 20,
    "pending_s": 300,
    "terminating_s": 30,
    "termination_s": 2,
}
PATIENT = "trap 'exit 143' TERM; while :; do sleep 0.1; done"  # a runner that ends when it is told to


def shell(script: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", script)


def commands(runner: str, agent: str = "sleep 2", score: str = "sleep 2") -> Commands:
    return Commands(shell(runner), shell(agent), shell(score))


@pytest.fixture(scope="module")
def namespace() -> Iterator[str]:
    """One that enforces the `restricted` level."""
    with fresh_namespace("trialfleet-pods") as name:
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        head = {"name": name, "labels": labels}
        done(kubectl("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "Namespace", "metadata": head}))
        yield name


@pytest.fixture(scope="module")
def client(namespace: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """As the controller that k8s/base describes: it may do no more than its Role says."""
    for file in ("accounts.yaml", "roles.yaml"):
        done(kubectl("apply", "--server-side", "-n", namespace, "-f", str(BASE / file)))
    who, name = f"--serviceaccount={namespace}:{ACCOUNT}", f"--role={ACCOUNT}"
    done(kubectl("create", "rolebinding", "tested", "-n", namespace, name, who))
    config = json.loads(done(kubectl("config", "view", "--raw", "--minify", "-o", "json")))
    token = done(kubectl("create", "token", ACCOUNT, "-n", namespace)).strip()
    config["users"] = [{"name": "controller", "user": {"token": token}}]
    config["contexts"][0]["context"]["user"] = "controller"
    written = tmp_path_factory.mktemp("kube") / "config"
    written.write_text(json.dumps(config))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(written))
        made = Client.connect()
    yield made
    made.close()


def until_there(condition: Callable[[], Any], *, within_s: float = 120) -> Any:
    until = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < until, f"not within {within_s} s"
        time.sleep(0.1)
    return found


@pytest.fixture(scope="module")
def image_id(client: Client, namespace: str) -> str:
    """As the kubelet reports it, by a probe pod: a new namespace takes a moment to admit its first pod."""
    kube = kube_plan(image=os.environ["TRIALFLEET_TEST_IMAGE"]).kubernetes
    assert kube is not None
    probe = manifest.probe_pod(kube, name="probe", env={}, deadline_s=120, command=("/bin/true",))
    until_there(lambda: kubectl("get", "serviceaccount", "default", "-n", namespace).returncode == 0)
    client.create_pod(namespace, probe)

    def ended() -> Pod | None:
        pod = parse(client.get_pod(namespace, "probe"))
        return pod if pod.terminal else None

    pod: Pod = until_there(ended)
    assert pod.container("probe").exit_code == 0
    client.delete_pod(namespace, "probe", uid=pod.uid)
    return pod.container("probe").image_id


class Rig:
    """Backends of campaigns of their own, in one namespace."""

    def __init__(self, client: Client, namespace: str, image_id: str) -> None:
        self.client, self.namespace, self.image_id = client, namespace, image_id
        self.told: list[str] = []
        self.opened: list[KubernetesBackend] = []
        self.uid = secrets.token_hex(16)

    def backend(
        self, what: Commands, *, keep_failed: int = 0, limits: Limits = SMALL, **kube: Any
    ) -> KubernetesBackend:
        section = {
            "image": os.environ["TRIALFLEET_TEST_IMAGE"],
            "image_id": self.image_id,
            "namespaces": (self.namespace,),
            "graces": GRACES,
        }
        plan = kube_plan(**(section | kube)).model_copy(update={"uid": self.uid, "limits": limits})
        self.opened.append(
            KubernetesBackend.open(
                plan,
                client=self.client,
                store_url="s3://bucket/runs",
                commands=what,
                keep_failed=keep_failed,
                tell=self.told.append,
            )
        )
        return self.opened[-1]

    def name(self, n: int = 1) -> str:
        return names.pod(self.uid, TRIAL, n)


@pytest.fixture
def rig(client: Client, namespace: str, image_id: str) -> Iterator[Rig]:
    made = Rig(client, namespace, image_id)
    yield made
    for backend in made.opened:
        backend.close()
    kubectl("delete", "configmap", names.config_map(made.uid), "-n", namespace, "--ignore-not-found")


def order(n: int = 1) -> Order:
    return Order(AttemptId(TRIAL, n), b"{}", f"https://store.example/grants?signature={n}")


def ends(backend: KubernetesBackend, count: int = 1, *, within_s: float = 180) -> dict[int, Departure]:
    """By the attempt's number."""
    until, got = time.monotonic() + within_s, list[Finished]()
    while len(got) < count:
        assert time.monotonic() < until, f"{len(got)} of {count} finished"
        got += backend.poll(0.5)
    return {one.id.n: one.departure for one in got}


def loss_of(departure: Departure) -> Loss:
    return classify(departure, started=True, patched=False)


def run(rig: Rig, runner: str, **more: Any) -> Departure:
    agent, score = more.pop("agent", "sleep 2"), more.pop("score", "sleep 2")
    backend = rig.backend(commands(runner, agent, score), **more)
    backend.launch(order())
    return ends(backend)[1]


def gone(client: Client, rig: Rig, name: str) -> bool:
    try:
        client.get_pod(rig.namespace, name)
    except NotFound:
        return True
    return False


def runs(client: Client, rig: Rig, n: int = 1) -> Pod:
    def running() -> Pod | None:
        pod = parse(client.get_pod(rig.namespace, rig.name(n)))
        return pod if all(pod.container(name).doing == "running" for name in names.CONTAINERS) else None

    pod: Pod = until_there(running)
    return pod


# --- ends of its own --------------------------------------------------------------------------------


def test_a_runner_that_committed_and_its_pod_goes_once_it_is_settled(rig: Rig, client: Client) -> None:
    backend = rig.backend(commands("exit 0"))
    backend.launch(order())
    assert ends(backend)[1] == Departure(code=0)
    assert not gone(client, rig, rig.name())
    backend.settled(order().id)
    backend.poll(0)
    until_there(lambda: gone(client, rig, rig.name()))


def test_many_at_once_each_with_its_own_code(rig: Rig) -> None:
    by_attempt = (
        'case "$(hostname)" in *-a3) exit 75;; *-a4) echo "Traceback: boom" >&2; exit 1;; *) exit 0;; esac'
    )
    backend = rig.backend(commands(by_attempt, "true", "true"))
    threads = [threading.Thread(target=backend.launch, args=(order(n),)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = ends(backend, 8)
    assert {n: departure.code for n, departure in found.items()} == {
        1: 0, 2: 0, 3: 75, 4: 1, 5: 0, 6: 0, 7: 0, 8: 0,
    }  # fmt: skip
    assert loss_of(found[3]).loss is LossClass.STORE
    assert "Traceback: boom" in loss_of(found[4]).message


def test_last_words_are_read_from_the_runner_alone(rig: Rig) -> None:
    loss = Loss(loss=LossClass.STORE, message="the signature has expired", agent_started=True)
    end = End(trial=TRIAL, attempt=1, nonce="n", at=1.0, by="runner", loss=loss)
    text = LastWords(state="refused", end=end).model_dump_json()
    forged = LastWords(state="refused", end=end.model_copy(update={"nonce": "forged"})).model_dump_json()
    say = "printf %s '{}' > /dev/termination-log; exit 75"
    departure = run(rig, say.replace("{}", text), agent=say.replace("{}", forged))
    assert departure.last_words == end


def test_what_each_container_can_see_and_write(rig: Rig) -> None:
    """The agent reaches its own folder and the gate for reading; neither keys of others nor the API's token."""
    agent = (
        "set -e; touch /trialfleet/agent/x /tmp/x; ! touch /trialfleet/agent-gate/x; ! touch /x;"
        " test ! -e /trialfleet/runner; test ! -e /trialfleet/score; test ! -e /var/run/secrets;"
        ' test -z "$TRIALFLEET_GRANTS_URL"; test "$(id -u)" = 65532; touch /trialfleet/agent/ok; sleep 3'
    )
    runner = (
        "for i in $(seq 600); do test -e /trialfleet/agent/ok && break; sleep 0.1; done;"
        " test -e /trialfleet/agent/ok && touch /trialfleet/score/x /trialfleet/score-gate/x /trialfleet/runner/x"
        ' && test -n "$TRIALFLEET_GRANTS_URL" && test -n "$TRIALFLEET_POD_UID" && test -n "$TRIALFLEET_NODE"'
    )
    departure = run(rig, runner, agent=agent)
    assert departure.code == 0, departure.words


# --- ends by others ---------------------------------------------------------------------------------


def test_the_runner_out_of_memory_is_a_loss(rig: Rig) -> None:
    loss = loss_of(run(rig, "tail /dev/zero; exit 1"))
    assert loss.loss is LossClass.RUNNER
    assert "OOMKilled" in loss.message


def test_the_agent_out_of_memory_is_the_runners_to_judge(rig: Rig) -> None:
    assert run(rig, "sleep 4; exit 0", agent="tail /dev/zero") == Departure(code=0)


def test_a_deadline(rig: Rig, client: Client) -> None:
    backend = rig.backend(commands(PATIENT, "sleep 60", "sleep 60"))
    backend.launch(order())
    runs(client, rig)
    shorter = '{"spec":{"activeDeadlineSeconds":1}}'
    done(kubectl("patch", "pod", rig.name(), "-n", rig.namespace, "--type=merge", "-p", shorter))
    loss = loss_of(ends(backend)[1])
    assert loss.loss is LossClass.TERMINATED
    assert "DeadlineExceeded" in loss.message


def test_an_eviction(rig: Rig, client: Client) -> None:
    backend = rig.backend(commands(PATIENT, "sleep 60", "sleep 60"))
    backend.launch(order())
    runs(client, rig)
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": rig.name(), "namespace": rig.namespace},
    }
    path = f"/api/v1/namespaces/{rig.namespace}/pods/{rig.name()}/eviction"
    done(kubectl("create", "--raw", path, "-f", "-", stdin=eviction))
    loss = loss_of(ends(backend)[1])
    assert loss.loss is LossClass.EVICTED
    assert "EvictionByEvictionAPI" in loss.message


def test_a_full_disk_evicts(rig: Rig) -> None:
    fill = "dd if=/dev/zero of=/trialfleet/agent/full bs=1M count=64 2>/dev/null; sleep 120"
    loss = loss_of(run(rig, PATIENT, agent=fill))
    assert loss.loss is LossClass.EVICTED
    assert "more disk than the plan gives it" in loss.message


def test_a_pod_deleted_by_hand(rig: Rig, client: Client) -> None:
    backend = rig.backend(commands("sleep 60", "sleep 60", "sleep 60"))  # a shell as PID 1 does not hear SIGTERM
    backend.launch(order())
    runs(client, rig)
    done(kubectl("delete", "pod", rig.name(), "-n", rig.namespace, "--wait=false"))
    assert loss_of(ends(backend)[1]).loss is LossClass.TERMINATED


def test_the_campaigns_config_map_takes_its_pods_along(rig: Rig, client: Client) -> None:
    backend = rig.backend(commands(PATIENT, "sleep 60", "sleep 60"))
    backend.launch(order())
    runs(client, rig)
    done(kubectl("delete", "configmap", names.config_map(rig.uid), "-n", rig.namespace))
    assert loss_of(ends(backend)[1]).loss is LossClass.TERMINATED
    until_there(lambda: gone(client, rig, rig.name()))


def test_a_stop_is_heard(rig: Rig, client: Client) -> None:
    backend = rig.backend(commands(PATIENT, "sleep 60", "sleep 60"))
    backend.launch(order())
    runs(client, rig)
    backend.stop([order().id], grace_s=5)
    departure = ends(backend)[1]
    assert departure.code == 143
    assert loss_of(departure).loss is LossClass.TERMINATED


# --- never there ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kube", "loss", "halt"),
    [
        ({"image": "no-such-registry.invalid/none:1"}, LossClass.IMAGE_PULL, None),
        ({"image": "Not A Name"}, LossClass.IMAGE_PULL, HaltScope.TASK),
        ({"model_secret": "no-such-secret"}, LossClass.SETUP, HaltScope.TASK),
        ({"node_selector": {"trialfleet.dev/no-such": "node"}}, LossClass.UNSCHEDULABLE, HaltScope.NONE),
        ({"image_id": "sha256:" + "00" * 32}, LossClass.SETUP, HaltScope.CAMPAIGN),
    ],
    ids=["no image", "no name", "no secret", "no node", "another image"],
)
def test_pods_that_cannot_start(
    rig: Rig, client: Client, kube: dict[str, Any], loss: LossClass, halt: HaltScope | None
) -> None:
    backend = rig.backend(commands("sleep 30"), **kube)
    backend.launch(order())
    found = loss_of(ends(backend)[1])
    assert found.loss is loss, found.message
    assert halt is None or found.halt is halt
    until_there(lambda: gone(client, rig, rig.name()))


@pytest.mark.parametrize("missing", names.CONTAINERS)
def test_a_program_that_is_not_in_the_image(rig: Rig, missing: str) -> None:
    """Told at once: the others would run for longer than anybody waits here."""
    programs = {name: shell("sleep 600") for name in names.CONTAINERS} | {missing: ("/no/such/program",)}
    backend = rig.backend(Commands(**programs))
    backend.launch(order())
    found = loss_of(ends(backend, within_s=50)[1])
    assert (found.loss, found.halt) == (LossClass.SETUP, HaltScope.TASK), found.message
    assert f"the {missing} did not start" in found.message


def test_a_quota_is_waited_for(rig: Rig, client: Client) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "one", "namespace": rig.namespace},
        "spec": {"hard": {"pods": "1", "secrets": "0"}},
    }
    one_more = ("create", "secret", "generic", "one", "-n", rig.namespace, "--dry-run=server")
    until_there(lambda: not done(kubectl("get", "pods", "-n", rig.namespace, "-o", "name")))
    done(kubectl("apply", "-f", "-", stdin=quota))
    try:
        until_there(lambda: "exceeded quota" in kubectl(*one_more).stderr)  # it counts from then on
        first_stays = 'case "$(hostname)" in *-a1) sleep 6;; esac'
        backend = rig.backend(commands(first_stays, "true", "true"))
        backend.launch(order(1))
        second = threading.Thread(target=backend.launch, args=(order(2),))
        second.start()
        found = ends(backend)
        until_there(lambda: any("exceeded quota" in line for line in rig.told))
        backend.settled(order(1).id)
        found |= ends(backend, 2 - len(found))
        assert {n: departure.code for n, departure in found.items()} == {1: 0, 2: 0}
        second.join()
    finally:
        kubectl("delete", "quota", "one", "-n", rig.namespace)


def test_what_no_patience_mends_is_said(rig: Rig) -> None:
    with pytest.raises(OperatorError, match="no-such-class"):
        rig.backend(commands("true"), runtime_class="no-such-class").launch(order())
    with pytest.raises(OperatorError, match="configmaps"):  # no Role there, so nobody says that it is not there
        ensure_owner(rig.client, "trialfleet-no-such", kube_plan(), "s3://bucket/runs", patience_s=1)


def test_what_the_client_is_asked_before_a_campaign(client: Client, namespace: str) -> None:
    assert client.version().startswith("v1.")
    assert client.may(namespace, "create", "pods")
    assert client.may(namespace, "get", "pods", subresource="log")
    assert not client.may(namespace, "get", "secrets")
    assert not client.may(namespace, "create", "pods", subresource="exec")


# --- controllers come and go ------------------------------------------------------------------------


def test_the_next_controller_goes_on(rig: Rig, client: Client) -> None:
    # The first is still there when the second controller looks, however long that takes to come up.
    stays = "until [ -e /trialfleet/runner/go ]; do sleep 0.1; done"
    what = commands(f'case "$(hostname)" in *-a1) {stays};; *) sleep 2;; esac; exit 75', "sleep 120", "sleep 120")
    first = rig.backend(what)
    first.launch(order())
    pod = runs(client, rig)
    first.close()
    rig.opened.clear()
    second = rig.backend(what)
    start = Start(
        trial=TRIAL, attempt=1, nonce="n", at=0, host="h", boot_id="b", pid=1, scratch="/s", isolation="container",
        pod=pod.uid, node=pod.node,
    )  # fmt: skip
    assert second.alive(start) is Liveness.ALIVE
    assert second.adopt(order().id, start)
    second.launch(order(2))
    second.launch(order(2))  # as after a kill between the POST and its answer
    inside = ("-n", rig.namespace, "-c", names.RUNNER, "--")
    done(kubectl("exec", rig.name(), *inside, "touch", "/trialfleet/runner/go"))
    found = ends(second, 2)
    assert {n: departure.code for n, departure in found.items()} == {1: 75, 2: 75}
    assert second.alive(start) is Liveness.GONE


def test_another_campaign_in_the_namespace_is_not_followed(client: Client, namespace: str, image_id: str) -> None:
    mine, other = (Rig(client, namespace, image_id) for _ in range(2))
    try:
        ours, theirs = (rig.backend(commands("exit 0", "true", "true")) for rig in (mine, other))
        for backend in (ours, theirs):
            backend.launch(order())
        assert ends(ours)[1].code == ends(theirs)[1].code == 0
        assert ours.poll(1) == theirs.poll(1) == []
    finally:
        for rig in (mine, other):
            for backend in rig.opened:
                backend.close()
            kubectl("delete", "configmap", names.config_map(rig.uid), "-n", namespace)
