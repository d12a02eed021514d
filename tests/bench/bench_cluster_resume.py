"""A controller that takes up a campaign of 10,000 measured and 1,000 running trials; and one that has nothing more
to do, on a Ray of its own as in use: its processes, and apart from them Ray's daemons and two actors without work.

$TRIALFLEET_BENCH_MEASURED (10000) and $TRIALFLEET_BENCH_RUNNING (1000) choose smaller sizes. The listings that a
resume reads hold as many keys as they would; of measured trials only what it reads is there: grants and outcomes.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psutil

from tests.bench.figure import Figure
from tests.bench.hosted_campaign import title
from tests.cluster import simulated_rig
from tests.cluster.simulated.wire import Api
from tests.cluster.simulated_campaign import CONDITIONS, simulated_plan
from tests.cluster.simulated_rig import Rig
from trialfleet_controller.backends.kube import manifest, names
from trialfleet_controller.backends.kube.api_requests import PODS
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.backends.kube.owner import CampaignOwner
from trialfleet_controller.dispatch.launch_requests import Granter
from trialfleet_ledger import keys
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.fold import Intend
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.measurements import Delivery, Metrics
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import Scored, Stop, Verdict
from trialfleet_ledger.store.open import open_store
from trialfleet_ledger.trial_order import Planned, trials

MEASURED = int(os.environ.get("TRIALFLEET_BENCH_MEASURED", "10000"))
RUNNING = int(os.environ.get("TRIALFLEET_BENCH_RUNNING", "1000"))
NEW = 20  # places that are free: new pods can start while all that run go on
TASKS = 5
THREADS = 16
PATIENCE_S = 300
IDLE_S = 30
SETTLE_S, CALM = 5, 5
OWN, NOTHING = ("driver", "guard.py", "CampaignSupervisor", "ShardDispatcher"), "Idle"  # the rest is Ray's


def measure() -> list[Figure]:
    if not simulated_rig.there():
        return [Figure("resume", None, "", note=simulated_rig.MISSING)]
    with simulated_rig.rig("--run-s", "100000") as rig:
        plan = _plan(rig)
        begun = _fill(rig, plan, trials(plan))
        _await_pods(rig, RUNNING)
        began = time.monotonic()
        controller = rig.start(
            "tests.cluster.simulated_campaign",
            rig.store,
            rig.node,
            rig.namespace,
            *_size(plan),
            "--name",
            "resume",
        )
        first_s = _first_new_pod(rig, begun) - began
        _await_pods(rig, RUNNING + NEW)
        controller.kill()
        controller.wait()
        hosted = rig.start(
            "tests.bench.hosted_campaign",
            rig.store,
            rig.node,
            rig.namespace,
            *_size(plan),
            "--name",
            "resume",
            "--unwatched",
        )
        shares = _idle_shares(hosted.pid)
    note = f"{MEASURED:,} measured, {RUNNING:,} running; from the process's start"
    return [
        Figure("resume: first new pod", first_s, "s", goal=15, note=note),
        *_idle_figures(shares),
    ]


def _idle_figures(shares: dict[str, float]) -> list[Figure]:
    """`shares`: of a core in percent, by kind of process."""
    own = {kind: share for kind, share in shares.items() if kind in OWN}
    daemons = {kind: share for kind, share in shares.items() if kind not in (*OWN, NOTHING)}
    pods, whole, floor = f"{RUNNING + NEW:,} running pods", sum(own.values()), shares.get(NOTHING, 0)
    return [
        Figure("idle controller", whole, "% of a core", goal=2, note=f"{pods}: {_spelt(own)}"),
        Figure("less two idle actors", whole - floor, "% of a core"),
        Figure("Ray's daemons", sum(daemons.values()), "% of a core", note=_spelt(daemons)),
    ]


def _spelt(shares: dict[str, float]) -> str:
    """
    >>> _spelt({"raylet": 1.234, "gcs_server": 2.0})
    'gcs_server 2.00, raylet 1.23'
    """
    return ", ".join(f"{kind} {share:.2f}" for kind, share in sorted(shares.items()))


def _size(plan: Plan) -> tuple[str, ...]:
    return ("--tasks", f"{TASKS}", "--reps", f"{plan.reps}", "--width", f"{plan.parallel}")


def _plan(rig: Rig) -> Plan:
    reps = -(-(MEASURED + RUNNING + 10 * NEW) // (TASKS * len(CONDITIONS)))
    return simulated_plan(
        node=rig.node, namespace=rig.namespace, tasks=TASKS, reps=reps, width=RUNNING + NEW, name="resume"
    )


def _fill(rig: Rig, plan: Plan, every: list[Planned]) -> set[str]:
    """What an earlier controller left; the ids of all trials that it had begun."""
    store = open_store(rig.store, endpoint=rig.env["AWS_ENDPOINT_URL_S3"])
    ledger = Ledger(store, plan.campaign)
    ledger.freeze(plan)
    granter, client = Granter(plan, store), Client.connect(threads=THREADS)
    owner = CampaignOwner(client, rig.namespace, plan, rig.store).ensure()

    def measured(trial: Planned) -> None:
        store.create(keys.grants(plan.campaign, trial.id, 1), b"{}")
        store.create(keys.outcome(plan.campaign, trial.id), canonical_json(_outcome(trial)))

    def running(trial: Planned) -> None:
        attempt = ledger.attempts.intend(trial.id, Intend(1, None, None), epoch=1)
        assert attempt is not None
        url = granter.url(ledger.attempts.grant(granter.grants(trial, attempt.intent, None)))
        pod = manifest.pod(plan, trial=trial.id, attempt=1, owner=owner, grants_url=url)
        client.call(PODS.create(rig.namespace, pod))

    over, open_ = every[:MEASURED], every[MEASURED : MEASURED + RUNNING]
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(running, open_))
        list(pool.map(measured, over))
    return {trial.id for trial in (*over, *open_)}


def _outcome(trial: Planned) -> Outcome:
    passed = trial.seed % 2 == 0
    scored = Scored(
        verdict=Verdict.PASSED if passed else Verdict.FAILED,
        stop=Stop.FINISHED,
        tests_passed=passed,
        metrics=Metrics(turns=9, tool_calls=14, input_tokens=90_000, output_tokens=2_000, cost_usd=0.31),
        delivery=Delivery(),
    )
    bundle = keys.below(trial.id, 1, "bundle.tar.zst")
    return Outcome(
        trial=trial.record(), attempts=1, scored=scored, bundle=bundle, bundle_sha256=sha256(trial.id.encode())
    )


def _await_pods(rig: Rig, running: int) -> None:
    api, until = Api(threads=1), time.monotonic() + PATIENCE_S
    path = f"/api/v1/namespaces/{rig.namespace}/pods?fieldSelector=status.phase%3DRunning"
    while len(api.call("GET", path)["items"]) < running:
        assert time.monotonic() < until, f"{running} pods do not come to run"
        time.sleep(1)


def _first_new_pod(rig: Rig, begun: set[str]) -> float:
    """When the first pod of another trial is announced."""
    api = Api(threads=1)
    path = f"/api/v1/namespaces/{rig.namespace}/pods"
    version = api.call("GET", f"{path}?limit=1")["metadata"]["resourceVersion"]
    for event in api.events(f"{path}?resourceVersion={version}", timeout_s=PATIENCE_S):
        if event["type"] == "ADDED" and event["object"]["metadata"]["labels"][names.TRIAL] not in begun:
            return time.monotonic()
    raise AssertionError("no new pod")


def _idle_shares(pid: int) -> dict[str, float]:
    """Of a core in percent, by kind of process: the driver and all below it, once all records have been read."""
    until = time.monotonic() + PATIENCE_S
    while "CampaignSupervisor" not in (before := _core_s(pid)) or "ShardDispatcher" not in before:
        assert time.monotonic() < until, f"no actors among {', '.join(before)}"
        time.sleep(1)
    calm = 0
    while calm < CALM:  # on a busy machine it rests in between, too, before it has read anything
        before = _core_s(pid)
        time.sleep(SETTLE_S)
        after = _core_s(pid)
        calm = calm + 1 if sum(after[kind] - before[kind] for kind in OWN) < 0.1 * SETTLE_S else 0
        assert time.monotonic() < until, "the controller does not come to rest"
    before, began = _core_s(pid), time.monotonic()
    time.sleep(IDLE_S)
    after, took = _core_s(pid), time.monotonic() - began
    return {kind: 100 * max(0.0, spent - before[kind]) / took for kind, spent in after.items()}


def _core_s(pid: int) -> dict[str, float]:
    """What every kind of process has used."""
    driver = psutil.Process(pid)
    sums = defaultdict[str, float](float, driver=sum(driver.cpu_times()[:2]))
    for process in driver.children(recursive=True):
        with suppress(psutil.Error):
            sums[_kind(title(process))] += sum(process.cpu_times()[:2])
    return sums


def _kind(words: str) -> str:
    """
    >>> _kind("ray::CampaignSupervisor.run"), _kind("/x/ray/core/src/ray/raylet/raylet --with=worker.py")
    ('CampaignSupervisor', 'raylet')
    >>> _kind("/x/python -u /x/ray/_private/log_monitor.py --session-dir=/y")
    'log_monitor.py'
    """
    if words.startswith("ray::"):
        return words.removeprefix("ray::").split(".")[0].split(" ")[0]
    program, *more = words.split(" ")
    if "python" in program.rpartition("/")[2]:
        program = next((word for word in more if word.endswith(".py")), program)
    return program.rpartition("/")[2]
