"""Attempts as real pods on a real kubelet: how each can end, and what their backend makes of it."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.cluster.cluster import (
    allow,
    apply_roles,
    done,
    evict,
    fresh_namespace,
    kubeconfig,
    kubectl,
    restricted_namespace,
)
from tests.support import records
from tests.support.plans import kube_plan
from tests.support.waiting import in_background, wait_until
from trialfleet_controller.backends.kube import manifest, names
from trialfleet_controller.backends.kube.api_requests import PODS, VERSION
from trialfleet_controller.backends.kube.backend import KubernetesBackend
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.backends.kube.errors import NotFound
from trialfleet_controller.backends.kube.manifest import ContainerCommands
from trialfleet_controller.backends.kube.owner import CampaignOwner
from trialfleet_controller.backends.kube.pods import Pod, parse
from trialfleet_controller.backends.protocol import AttemptId, Finished, Liveness, Order
from trialfleet_controller.backends.runner_termination import RunnerTermination, classify
from trialfleet_controller.operate.permissions import Need, missing
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import Limits
from trialfleet_ledger.records.attempt import LastWords
from trialfleet_ledger.records.verdicts import HaltScope, Loss, LossClass

ACCOUNT = "trialfleet-controller"

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


def commands(runner: str, agent: str = "sleep 2", score: str = "sleep 2") -> ContainerCommands:
    return ContainerCommands(shell(runner), shell(agent), shell(score))


@pytest.fixture(scope="module")
def namespace() -> Iterator[str]:
    """One that enforces the `restricted` level."""
    with fresh_namespace("trialfleet-pods") as name:
        restricted_namespace(name)
        yield name


@pytest.fixture(scope="module")
def client(namespace: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """As the controller that k8s/base describes: it may do no more than its Role says."""
    apply_roles(namespace)
    allow(namespace, ACCOUNT, ACCOUNT)
    config = kubeconfig(namespace, ACCOUNT, tmp_path_factory.mktemp("kube") / "config")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(config))
        made = Client.connect()
    yield made
    made.close()


@pytest.fixture(scope="module")
def image_id(client: Client, namespace: str) -> str:
    """As the kubelet reports it, by a probe pod: a new namespace takes a moment to admit its first pod."""
    kube = kube_plan(image=os.environ["TRIALFLEET_TEST_IMAGE"]).kubernetes
    assert kube is not None
    probe = manifest.probe_pod(kube, name="probe", env={}, deadline_s=120, command=("/bin/true",))
    wait_until(lambda: kubectl("get", "serviceaccount", "default", "-n", namespace).returncode == 0)
    client.call(PODS.create(namespace, probe))

    def ended() -> Pod | None:
        pod = parse(client.call(PODS.get(namespace, "probe")))
        return pod if pod.terminal else None

    pod: Pod = wait_until(ended)
    assert pod.container("probe").exit_code == 0
    client.call(PODS.delete(namespace, "probe", uid=pod.uid))
    return pod.container("probe").image_id


class Rig:
    """Backends of campaigns of their own, in one namespace."""

    def __init__(self, client: Client, namespace: str, image_id: str) -> None:
        self.client, self.namespace, self.image_id = client, namespace, image_id
        self.told: list[str] = []
        self.opened: list[KubernetesBackend] = []
        self.uid = secrets.token_hex(16)

    def backend(
        self,
        what: ContainerCommands,
        *,
        keep_failed: int = 0,
        limits: Limits = SMALL,
        outlives_s: float | None = None,
        **kube: Any,
    ) -> KubernetesBackend:
        section = {
            "image": os.environ["TRIALFLEET_TEST_IMAGE"],
            "image_id": self.image_id,
            "namespaces": (self.namespace,),
            "graces": GRACES,
        }
        plan = kube_plan(**(section | kube)).model_copy(update={"uid": self.uid, "limits": limits})
        self.opened.append(
            KubernetesBackend(
                plan,
                client=self.client,
                store_url="s3://bucket/runs",
                commands=what,
                keep_failed=keep_failed,
                outlives_s=outlives_s,
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
    kubectl("delete", "job", names.expiry(made.uid), "-n", namespace, "--ignore-not-found")


def order(n: int = 1) -> Order:
    return Order(AttemptId(TRIAL, n), b"{}", f"https://store.example/grants?signature={n}")


def ends(backend: KubernetesBackend, count: int = 1, *, within_s: float = 180) -> dict[int, RunnerTermination]:
    """By the attempt's number."""
    until, got = time.monotonic() + within_s, list[Finished]()
    while len(got) < count:
        assert time.monotonic() < until, f"{len(got)} of {count} finished"
        got += backend.poll(0.5)
    return {one.id.n: one.departure for one in got}


def loss_of(departure: RunnerTermination) -> Loss:
    return classify(departure, started=True, patched=False)


def run(rig: Rig, runner: str, **more: Any) -> RunnerTermination:
    agent, score = more.pop("agent", "sleep 2"), more.pop("score", "sleep 2")
    backend = rig.backend(commands(runner, agent, score), **more)
    backend.launch(order())
    return ends(backend)[1]


def gone(client: Client, rig: Rig, name: str) -> bool:
    try:
        client.call(PODS.get(rig.namespace, name))
    except NotFound:
        return True
    return False


def runs(client: Client, rig: Rig, n: int = 1) -> Pod:
    def running() -> Pod | None:
        pod = parse(client.call(PODS.get(rig.namespace, rig.name(n))))
        return pod if all(pod.container(name).doing == "running" for name in names.CONTAINERS) else None

    pod: Pod = wait_until(running)
    return pod


# --- ends of its own --------------------------------------------------------------------------------


def test_a_runner_that_committed_and_its_pod_goes_once_it_is_settled(rig: Rig, client: Client) -> None:
    backend = rig.backend(commands("exit 0"))
    backend.launch(order())
    assert ends(backend)[1] == RunnerTermination(code=0)
    assert not gone(client, rig, rig.name())
    backend.settled(order().id)
    backend.poll(0)
    wait_until(lambda: gone(client, rig, rig.name()))


def test_many_at_once_each_with_its_own_code(rig: Rig) -> None:
    by_attempt = (
        'case "$(hostname)" in *-a3) exit 75;; *-a4) echo "Traceback: boom" >&2; exit 1;; *) exit 0;; esac'
    )
    backend = rig.backend(commands(by_attempt, "true", "true"))
    launched = [in_background(backend.launch, order(n)) for n in range(1, 9)]
    for each in launched:
        each.result()
    found = ends(backend, 8)
    assert {n: departure.code for n, departure in found.items()} == {
        1: 0, 2: 0, 3: 75, 4: 1, 5: 0, 6: 0, 7: 0, 8: 0,
    }  # fmt: skip
    assert loss_of(found[3]).loss is LossClass.STORE
    assert "Traceback: boom" in loss_of(found[4]).message


def test_last_words_are_read_from_the_runner_alone(rig: Rig) -> None:
    loss = Loss(loss=LossClass.STORE, message="the signature has expired", agent_started=True)
    end = records.end(loss, trial=TRIAL)
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
        ' test -z "$TRIALFLEET_GRANTS_URL"; test "$(id -u)" -ge 70000; test "$(id -un)" = trialfleet;'
        " touch /trialfleet/agent/ok; sleep 3"
    )
    runner = (
        "for i in $(seq 600); do test -e /trialfleet/agent/ok && break; sleep 0.1; done;"
        " test -e /trialfleet/agent/ok && touch /trialfleet/score/x /trialfleet/score-gate/x /trialfleet/runner/x"
        ' && test -n "$TRIALFLEET_GRANTS_URL" && test -n "$TRIALFLEET_POD_UID" && test -n "$TRIALFLEET_NODE"'
    )
    departure = run(rig, runner, agent=agent)
    assert departure.code == 0, departure.words


INOTIFY = "/opt/trialfleet/bin/python -I -S -c 'import ctypes, time\ntake = ctypes.CDLL(None).inotify_init1\n{}'"
TAKE_ALL = 'while take(0) >= 0: pass\nopen("/trialfleet/agent/taken", "w"); time.sleep(300)'
ONE_SHARED = {"min": 65532, "max": 65532}


@pytest.mark.parametrize(("uids", "neighbour"), [({}, 0), (ONE_SHARED, 24)], ids=["own", "control-shared"])
def test_an_agent_that_takes_all_inotify_instances_of_its_user_leaves_its_neighbour_others(
    rig: Rig, uids: dict[str, int], neighbour: int
) -> None:
    """The kernel counts them for each user of a node. 24: EMFILE."""
    take_one = INOTIFY.format("raise SystemExit(0 if take(0) >= 0 else 24)")
    backend = rig.backend(
        commands(
            f'case "$(hostname)" in *-a2) {take_one};; *) {PATIENT};; esac',
            f'case "$(hostname)" in *-a1) {INOTIFY.format(TAKE_ALL)};; esac',
        ),
        limits=SMALL.model_copy(update={"cpu": 0.2}),
        uids=uids,
    )
    backend.launch(order(1))
    taken = ("exec", rig.name(1), "-n", rig.namespace, "-c", names.RUNNER, "--", "test", "-e")
    wait_until(lambda: kubectl(*taken, "/trialfleet/agent/taken").returncode == 0)
    backend.launch(replace(order(2), position=1))
    assert ends(backend)[2].code == neighbour


# --- ends by others ---------------------------------------------------------------------------------


def test_the_runner_out_of_memory_is_a_loss(rig: Rig) -> None:
    loss = loss_of(run(rig, "tail /dev/zero; exit 1"))
    assert loss.loss is LossClass.RUNNER
    assert "OOMKilled" in loss.message


def test_the_agent_out_of_memory_is_the_runners_to_judge(rig: Rig) -> None:
    assert run(rig, "sleep 4; exit 0", agent="tail /dev/zero") == RunnerTermination(code=0)


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
    evict(rig.namespace, rig.name())
    loss = loss_of(ends(backend)[1])
    assert loss.loss is LossClass.EVICTED
    assert "EvictionByEvictionAPI" in loss.message


def test_a_deleted_owner_is_made_again(rig: Rig, client: Client) -> None:
    """The real garbage collector takes the running pods along; the one that comes next stays."""
    first_two_stay = f'case "$(hostname)" in *-a[12]) {PATIENT};; esac; sleep 12'
    backend = rig.backend(commands(first_two_stay, "sleep 30", "sleep 30"))
    for n in (1, 2):
        backend.launch(order(n))
        runs(client, rig, n)
    config_map = names.config_map(rig.uid)
    done(kubectl("delete", "configmap", config_map, "-n", rig.namespace))
    for departure in ends(backend, 2).values():
        loss = loss_of(departure)
        assert loss.loss is LossClass.TERMINATED
        assert f"ConfigMap {config_map} was deleted, and the controller made it again" in loss.message
    backend.launch(order(3))
    assert ends(backend)[3].code == 0, "twelve seconds later nobody has taken it away"


def test_a_full_disk_evicts(rig: Rig) -> None:
    fill = "dd if=/dev/zero of=/trialfleet/agent/full bs=1M count=64 2>/dev/null; sleep 120"
    departure = run(rig, PATIENT, agent=fill)
    loss = loss_of(departure)
    assert not departure.exhausted, "nothing says that the agent had started"
    assert loss.loss is LossClass.OVERUSE
    assert "more than its limit" in loss.message


def test_an_agent_that_is_evicted_for_its_disk_is_exhausted_by_what_its_runner_left_before(rig: Rig) -> None:
    """The kubelet keeps the message of a runner that it gives no time."""
    words = LastWords(state="running", program="agent").model_dump_json(exclude_defaults=True)
    fill = "dd if=/dev/zero of=/trialfleet/agent/full bs=1M count=64 2>/dev/null; sleep 120"
    waits = "until [ -e /trialfleet/agent/told ]; do sleep 0.1; done"  # on a busy node it may be evicted before
    tells = f"echo '{words}' > /dev/termination-log; touch /trialfleet/agent/told; sleep 120"
    departure = run(rig, tells, agent=f"{waits}; {fill}")
    loss = loss_of(departure)
    assert departure.exhausted
    assert (loss.loss, loss.by_patch) == (LossClass.OVERUSE, False)
    assert "its agent was beyond its limits: exhausted" in loss.message


def test_a_pod_deleted_by_hand(rig: Rig, client: Client) -> None:
    backend = rig.backend(commands("sleep 60", "sleep 60", "sleep 60"))  # a shell as PID 1 does not hear SIGTERM
    backend.launch(order())
    runs(client, rig)
    done(kubectl("delete", "pod", rig.name(), "-n", rig.namespace, "--wait=false"))
    assert loss_of(ends(backend)[1]).loss is LossClass.TERMINATED


def test_a_pod_that_waits_for_a_node_ends_some_time_after_its_controller(rig: Rig, client: Client) -> None:
    """Its own deadline begins when a node has it: an autoscaler would grow for nobody."""
    nowhere = {"node_selector": {"no-such": "node"}, "graces": {**GRACES, "unschedulable_s": 600}}
    backend = rig.backend(commands("true"), outlives_s=8, **nowhere)
    backend.launch(order())
    until = time.monotonic() + 25
    while time.monotonic() < until:
        assert backend.poll(0.5) == [], "as long as its controller lives, it waits"
    assert not gone(client, rig, rig.name())
    backend.close()
    wait_until(lambda: gone(client, rig, rig.name()))
    left = kubectl("get", "configmap,job", "-n", rig.namespace, "-o", "name").stdout
    assert names.config_map(rig.uid) not in left
    assert names.expiry(rig.uid) not in left


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
    wait_until(lambda: gone(client, rig, rig.name()))


@pytest.mark.parametrize("missing", names.CONTAINERS)
def test_a_program_that_is_not_in_the_image(rig: Rig, missing: str) -> None:
    """Told at once: the others would run for longer than anybody waits here."""
    programs = {name: shell("sleep 600") for name in names.CONTAINERS} | {missing: ("/no/such/program",)}
    backend = rig.backend(ContainerCommands(**programs))
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
    wait_until(lambda: not done(kubectl("get", "pods", "-n", rig.namespace, "-o", "name")))
    done(kubectl("apply", "-f", "-", stdin=quota))
    try:
        wait_until(lambda: "exceeded quota" in kubectl(*one_more).stderr)  # it counts from then on
        first_stays = 'case "$(hostname)" in *-a1) sleep 6;; esac'
        backend = rig.backend(commands(first_stays, "true", "true"))
        backend.launch(order(1))
        second = in_background(backend.launch, order(2))
        found = ends(backend)
        wait_until(lambda: any("exceeded quota" in line for line in rig.told))
        backend.settled(order(1).id)
        found |= ends(backend, 2 - len(found))
        assert {n: departure.code for n, departure in found.items()} == {1: 0, 2: 0}
        second.result()
    finally:
        kubectl("delete", "quota", "one", "-n", rig.namespace)


def test_what_no_patience_mends_is_said(rig: Rig) -> None:
    with pytest.raises(OperatorError, match="no-such-class"):
        rig.backend(commands("true"), runtime_class="no-such-class").launch(order())
    with pytest.raises(OperatorError, match="configmaps"):  # no Role there, so nobody says that it is not there
        CampaignOwner(rig.client, "trialfleet-no-such", kube_plan(), "s3://bucket/runs").ensure(patience_s=1)


def test_what_the_client_is_asked_before_a_campaign(client: Client, namespace: str) -> None:
    assert client.call(VERSION)["gitVersion"].startswith("v1.")
    assert not missing(client, namespace, [Need("create", "pods", ""), Need("get", "pods/log", "")])
    withheld = [Need("get", "secrets", ""), Need("create", "pods/exec", "")]
    assert missing(client, namespace, withheld) == withheld


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
    start = records.start(trial=TRIAL, pod=pod.uid, node=pod.node)  # fmt: skip
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
