"""Hostile agents on a real kubelet. Each attack fails; with its one defence out of the pod, the same succeeds."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tests.cluster import hostile
from tests.cluster.attack_rig import KEY, LIMITS, Change, Json, Left, Site, as_it_is, container, site
from tests.cluster.cluster import done, on_cluster
from tests.cluster.cluster import kubectl as asked
from tests.cluster.minimal import kubectl
from tests.integration.test_sandbox_attacks import CALLS, FAMILIES, TRY
from tests.support import records
from tests.support.attempts import SIGNALS
from tests.support.forged_modules import ATTACKS, WRITE
from tests.support.waiting import wait_until
from trialfleet_controller.backends.kube.manifest import COMMANDS
from trialfleet_ledger.records.grants import GRANTS_URL
from trialfleet_ledger.records.verdicts import LossClass, Stop, Verdict

pytestmark = on_cluster()

API = os.environ.get(
    "TRIALFLEET_TEST_API_SERVER", "kubernetes.default.svc"
)  # where there is no Service network: its node
API_PORT = 6443 if "TRIALFLEET_TEST_API_SERVER" in os.environ else 443
METADATA = "169.254.169.254"
SMALL_DISK = LIMITS.model_copy(update={"disk_bytes": 2**26})
OTHERS = ("runner", "score", "score-gate")
MESSAGE = "/dev/termination-log"  # of a container; the tests' way to hear of what has no other


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("attacks")) as made:
        yield made


def told(attacked: Site) -> str:
    """What an attacker may know: all addresses and names, for they are no secrets."""
    below = f"{attacked.place.bucket}/runs/attacks"
    return json.dumps(
        {
            "api": f"https://{API}:{API_PORT}",
            "addresses": [[API, API_PORT], [METADATA, 80]],
            "namespace": attacked.place.namespace,
            "endpoint": os.environ.get("S3_ENDPOINT_PODS") or os.environ["S3_ENDPOINT"],
            "own": f"{below}/attempts/own/1/end.json",
            "other": f"{below}/attempts/other/1/end.json",
            "grants": f"{below}/grants/other/1.json",
        }
    )


@pytest.fixture(scope="module")
def looked(attacked: Site) -> Left:
    return attacked.run(hostile.LOOK, told(attacked))


def verdict(left: Left) -> tuple[Verdict, Stop]:
    assert left.end.scored is not None, left.end.loss
    return left.end.scored.verdict, left.end.scored.stop


# --- the runner's secrets ---------------------------------------------------------------------------


def open_up(pod: Json) -> None:
    """All that mounts and settings hold back from the agent's container, and the grants in its environment."""
    runner, agent = container(pod, "runner"), container(pod, "agent")
    agent["securityContext"]["readOnlyRootFilesystem"] = False
    mounted = {mount["name"]: mount for mount in runner["volumeMounts"]}
    mine = [mount for mount in agent["volumeMounts"] if mount["name"] != "agent-gate"]
    agent["volumeMounts"] = [*mine, *(mounted[name] for name in ("agent-gate", "model-keys", *OTHERS))]
    agent["env"] += [pair for pair in runner["env"] if pair["name"] == GRANTS_URL]
    pod["spec"]["automountServiceAccountToken"] = True


@pytest.fixture(scope="module")
def opened(attacked: Site, looked: Left) -> Left:
    """After `looked`. The account of trial pods may now do what a controller may."""
    namespace = attacked.place.namespace
    binding = ("--role=trialfleet-controller", f"--serviceaccount={namespace}:default")
    kubectl("create", "rolebinding", "opened", "-n", namespace, *binding)
    try:
        return attacked.run(hostile.LOOK, told(attacked), change=open_up)
    finally:
        kubectl("delete", "rolebinding", "opened", "-n", namespace)


def test_nothing_of_the_runner_is_seen(looked: Left) -> None:
    found = looked.report
    assert found["found"] == []
    assert found["ptrace"] is False
    assert found["descriptors"] == []
    assert found["visible"] == ["/trialfleet/agent", "/trialfleet/agent-gate"]
    assert found["gates"] == {"agent": "ConnectionRefusedError", "score": "FileNotFoundError"}


def test_control_in_one_process_namespace_the_grants_are_found(attacked: Site) -> None:
    def share(pod: Json) -> None:
        pod["spec"]["shareProcessNamespace"] = True

    assert {"environ", "memory"} <= set(attacked.run(hostile.LOOK, told(attacked), change=share).report["found"])


def test_control_mounted_volumes_are_seen_and_a_gate_is_come_through(opened: Left) -> None:
    assert set(opened.report["visible"]) >= {f"/trialfleet/{name}" for name in ("keys", *OTHERS)}
    own, others = opened.report["gates"]["agent"], opened.report["gates"]["score"]
    assert (own, others) == ("ConnectionRefusedError", "connected"), "one's own has been taken, by the supervisor"


def test_a_supervisor_tells_nobody_what_is_in_its_environment(opened: Left) -> None:
    """Were the grants there; the control is the next test, with a shell in the supervisor's place."""
    assert not {"environ", "env", "memory", "arguments"} & set(opened.report["found"])


def test_control_stolen_grants_forge_a_verdict_once(attacked: Site) -> None:
    def steal(pod: Json) -> None:
        runner, agent = container(pod, "runner"), container(pod, "agent")
        agent["env"] += [pair for pair in runner["env"] if pair["name"] == GRANTS_URL]

    scored = records.scored()
    forged = records.end(scored, nonce="forged")
    below_a_shell = replace(COMMANDS, agent=("/bin/sh", "-c", '"$@"; true', "sh", *COMMANDS.agent))
    left = attacked.run(hostile.STEAL, forged.model_dump_json(), change=steal, commands=below_a_shell)
    assert json.loads(left.raw("end.json"))["nonce"] == "forged"
    assert left.terminated("runner")["message"].startswith('{"state":"another"'), "the runner's own came second"
    assert left.report == [200, 412], "a second write of the same key is refused, whoever has the grant"


# --- what the runner reads --------------------------------------------------------------------------


def through_the_runner(attacked: Site, *scripts: str) -> tuple[Callable[[str], None], list[str]]:
    """What shell scripts print in the runner's container once the agent is ready, which may then go on."""
    said: list[str] = []

    def look(pod: str) -> None:
        inside = ("exec", pod, "-n", attacked.place.namespace, "-c", "runner", "--", "/bin/sh", "-c")
        wait_until(lambda: asked(*inside, "test -d /trialfleet/agent/ready").returncode == 0, every_s=0.3)
        said.extend(asked(*inside, script).stdout for script in scripts)
        done(asked(*inside, "touch /trialfleet/agent/go"))

    return look, said


def test_links_pipes_and_git_settings_in_the_workspace_give_nothing_away(attacked: Site) -> None:
    at = "/trialfleet/agent/workspace"
    follow, said = through_the_runner(attacked, f"cat {at}/sqlparse/planted.py", f"git -C {at} diff")
    left = attacked.run(hostile.PLANT, timeout_s=180, meanwhile=follow)
    assert [left.grants_url in each for each in said] == [True, True], "control: who follows them gives it away"
    assert verdict(left) == (Verdict.FAILED, Stop.FINISHED)
    assert "X-Amz-Signature" not in left.everything()
    assert GRANTS_URL not in left.everything()
    odd = " ".join(left.patch.excluded)
    for planted in ("planted ", "sqlparse/planted.py ", "CREDITS ", "pipe "):
        assert planted in odd
    assert "+# changed" in left.patch.diff, "the same change as git itself sees it"


def test_folders_swapped_for_links_give_nothing_away(attacked: Site) -> None:
    at = "/trialfleet/agent"
    follow, said = through_the_runner(attacked, f"cat {at}/workspace/environ", f"cat {at}/home/ANTHROPIC_API_KEY")
    left = attacked.run(hostile.SWAP, timeout_s=180, meanwhile=follow)
    assert left.grants_url in said[0]
    assert KEY in said[1]
    assert verdict(left) == (Verdict.FAILED, Stop.FINISHED)
    assert "X-Amz-Signature" not in left.everything()
    assert KEY not in left.everything()


# --- the store, the API server, the network ---------------------------------------------------------


def test_the_store_takes_nothing_unsigned(looked: Left) -> None:
    """Its address is reachable, for the runner needs it; the control signs, with stolen grants."""
    assert set(looked.report["store"].values()) == {403}


def test_the_api_server_refuses_everything(attacked: Site, looked: Left) -> None:
    assert looked.report["token"] is False
    cut = attacked.network == "enforced"
    assert set(looked.report["api"].values()) <= ({None} if cut else {401, 403}), looked.report["api"]


def test_control_an_account_that_may_read_pods_finds_every_grant(opened: Left) -> None:
    assert opened.report["token"] is True
    answers = opened.report["api"]
    assert (answers["list pods"], answers["read own pod"], answers["delete own pod"]) == (200, 200, 200)
    assert (answers["list secrets"], answers["list nodes"]) == (403, 403), "which no account of ours may"
    assert "api" in opened.report["found"]


def test_an_open_network_is_said_in_the_bundle(attacked: Site, looked: Left) -> None:
    """Refusing it is the preflight's: `test_an_unenforced_network_is_refused_unless_allowed`."""
    warned = any("enforces no NetworkPolicy" in warning for warning in looked.bundle.manifest.warnings)
    assert warned == (attacked.network == "unenforced")
    assert attacked.network == "unenforced" or looked.report["reached"] == []


# --- verdicts ---------------------------------------------------------------------------------------


def test_no_file_that_an_agent_writes_is_a_verdict(attacked: Site) -> None:
    left = attacked.run(hostile.FORGE)
    assert verdict(left) == (Verdict.FAILED, Stop.FINISHED)
    assert left.departure.last_words is None
    assert {"conftest.py", "tests/conftest.py", "sitecustomize.py", "usercustomize.py", "pytest.ini"} <= set(
        left.patch.excluded
    )


def test_no_module_that_an_agent_adds_is_imported_by_the_tests(attacked: Site) -> None:
    files = {path: text for attack in ATTACKS.values() for path, text in attack.items()}
    left = attacked.run(WRITE, json.dumps(files))
    assert verdict(left) == (Verdict.FAILED, Stop.FINISHED)
    travels = {"evil.py", "helpers/pdb.py"}
    assert set(left.patch.excluded) == set(files) - travels


def test_signals_to_the_supervisors_change_nothing(attacked: Site) -> None:
    """By the agent, and by the code that it leaves while the tests run."""
    left = attacked.run(f"{SIGNALS}\nwith open('sqlparse/__init__.py', 'a') as file: file.write({SIGNALS!r})")
    assert verdict(left) == (Verdict.FAILED, Stop.FINISHED)


def test_control_what_cannot_be_closed_patched_code_decides_its_own_tests(attacked: Site) -> None:
    """docs/explanation/security.md says so: it knows the tests by name. The patch shows it, and is kept."""
    left = attacked.run(hostile.FORGE_IN_CODE)
    assert verdict(left) == (Verdict.PASSED, Stop.FINISHED)
    assert "TestReport.from_item_and_call" in left.patch.diff


def hear(pod: Json) -> None:
    """Agent and tests may speak to the test, by their containers' messages; as pods are made, they have none."""
    for name in ("agent", "score"):
        container(pod, name)["terminationMessagePath"] = MESSAGE


def one_memory(pod: Json) -> None:
    hear(pod)
    for name in ("agent", "score"):
        one = container(pod, name)
        one["volumeMounts"] = [mount for mount in one["volumeMounts"] if mount["mountPath"] != "/dev/shm"]


@pytest.mark.parametrize(
    ("change", "noted"), [(hear, "looked:"), (one_memory, "looked: /dev/shm")], ids=["real", "control"]
)
def test_only_the_patch_comes_to_scoring(attacked: Site, change: Callable[[Json], None], noted: str) -> None:
    left = attacked.run(hostile.NOTE, change=change)
    assert left.terminated("score")["message"].strip() == noted


# --- leaving something behind -----------------------------------------------------------------------


def test_an_agent_writes_to_its_own_volume_and_memory_alone(looked: Left) -> None:
    home, workspace = "/trialfleet/agent/home", "/trialfleet/agent/workspace"
    assert looked.report["written"] == ["/tmp", "/dev/shm", home, workspace, "/trialfleet/agent"]


def test_control_writable_mounts_and_root_are_written_to(opened: Left) -> None:
    gates = {"/trialfleet/agent-gate", "/trialfleet/score-gate"}
    assert {"/var/tmp", "/trialfleet/runner", "/trialfleet/score", *gates} <= set(opened.report["written"])


def test_the_next_attempt_finds_nothing_of_the_last(attacked: Site, looked: Left) -> None:
    assert looked.report["remains after"] == looked.report["written"], "control: within one attempt it is there"
    assert attacked.run(hostile.LOOK, told(attacked)).report["remains"] == []


# --- budgets ----------------------------------------------------------------------------------------

SPARED = """
import os, sys, time
sys.path.insert(0, "/opt/trialfleet")
import supervise
def spare(uid, statuses):
    with open("/proc/self/task/%d/children" % os.getpid()) as file:
        main = int(file.read().split()[0])
    os.kill(main, 9)
    statuses[main] = os.waitpid(main, 0)[1]
supervise.supervisor.kill_everything = spare
supervise.main("agent")
time.sleep(15)
"""


@pytest.mark.parametrize("spared", [False, True], ids=["real", "control"])
def test_nothing_outlives_the_agents_time(attacked: Site, spared: bool) -> None:
    careless = replace(COMMANDS, agent=("/opt/trialfleet/bin/python", "-I", "-S", "-c", SPARED))
    commands = careless if spared else COMMANDS
    left = attacked.run(hostile.OUTLIVE, timeout_s=8, change=hear, commands=commands)
    assert verdict(left) == (Verdict.TIMED_OUT, Stop.TIMEOUT)
    assert left.end.scored is not None
    agent_s = left.end.scored.metrics.agent_s
    assert agent_s is not None
    lived_s = float(left.terminated("agent")["message"]) - left.report
    assert (lived_s > agent_s + 5) is spared
    assert (lived_s < agent_s + 1) is not spared


@pytest.mark.parametrize(
    "file", ["workspace/full", "home/full", "full", "../../tmp/full"], ids=["workspace", "home", "volume", "tmp"]
)
def test_a_full_disk_is_the_agents_verdict(attacked: Site, file: str) -> None:
    left = attacked.run(hostile.FILL, f"/trialfleet/agent/{file}", "1000", "20", limits=SMALL_DISK)
    assert verdict(left) == (Verdict.EXHAUSTED, Stop.DISK)


def unwatched_tmp(pod: Json) -> None:
    agent = container(pod, "agent")
    (mount,) = (mount for mount in agent["volumeMounts"] if mount["mountPath"] == "/tmp")
    mount.pop("subPath")
    mount["name"] = "unwatched"
    pod["spec"]["volumes"].append({"name": "unwatched", "emptyDir": {"sizeLimit": str(SMALL_DISK.disk_bytes)}})


def test_control_on_a_volume_that_the_runner_cannot_see_it_is_a_loss_to_be_tried_again(attacked: Site) -> None:
    left = attacked.run(
        hostile.FILL, "/tmp/full", "100", "200", timeout_s=210, limits=SMALL_DISK, change=unwatched_tmp
    )
    assert left.departure.named is not None
    assert left.departure.named.loss is LossClass.OVERUSE


def test_no_file_of_the_nodes_can_be_filled(attacked: Site) -> None:
    """A container's termination message lies on the node's disk, and no limit counts it."""
    left = attacked.run(hostile.FILL, MESSAGE, "100", "20", limits=SMALL_DISK)
    assert verdict(left) == (Verdict.FAILED, Stop.CRASHED)
    assert b"Permission denied" in left.bundle.files["agent/stderr.log"]


def test_control_a_termination_message_in_reach_is_filled(attacked: Site) -> None:
    left = attacked.run(hostile.FILL, MESSAGE, "100", "20", limits=SMALL_DISK, change=hear)
    assert verdict(left) == (Verdict.FAILED, Stop.FINISHED), "beyond its limit, and nobody has noticed"
    assert left.report == "written"


def roomy(pod: Json) -> None:
    container(pod, "agent")["resources"]["limits"]["memory"] = str(2**30)


@pytest.mark.parametrize("program", [hostile.HOARD, hostile.HOARD_FILE], ids=["mapped", "memfd"])
@pytest.mark.parametrize(
    ("change", "ended"),
    [(as_it_is, (Verdict.EXHAUSTED, Stop.MEMORY)), (roomy, (Verdict.FAILED, Stop.FINISHED))],
    ids=["real", "control"],
)
def test_too_much_memory_is_the_agents_verdict(
    attacked: Site, program: str, change: Change, ended: tuple[Verdict, Stop]
) -> None:
    assert verdict(attacked.run(program, "400", change=change)) == ended


def test_calls_and_sockets_that_are_not_on_the_list_do_not_exist(attacked: Site) -> None:
    """Also those that the runtime's own profile has: io_uring, AF_VSOCK. Controls: `test_sandbox_attacks.py`."""
    calls = ", ".join(f"call({given})" for given in CALLS.values())
    left = attacked.run(f"{TRY}{FAMILIES}import json\nprint(json.dumps([{calls}]))")
    assert left.report == [errno.ENOSYS] * len(CALLS)
    families = set(left.bundle.files["agent/stdout.log"].decode().splitlines()[:-1])
    assert {"1", "2"} <= families <= {"1", "2", "10", "16"}


def test_a_fork_bomb_ends_with_its_time_and_the_runner_commits(attacked: Site) -> None:
    """The bound is the kubelet's (podPidsLimit). No control: a bomb without one would end the node."""
    limits = LIMITS.model_copy(update={"memory_bytes": 2**30, "cpu": 0.5})
    left = attacked.run(hostile.BOMB, timeout_s=30, limits=limits)
    assert verdict(left) == (Verdict.TIMED_OUT, Stop.TIMEOUT)
    assert left.report == "Resource temporarily unavailable", "control: it came as far as the bound"
    assert left.terminated("runner")["exitCode"] == 0
    ready = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
    assert kubectl("get", "node", left.pod["spec"]["nodeName"], "-o", ready) == "True"
