"""Before, beside and after a campaign, under the Roles of k8s/base: the image on nodes, campaigns cancelled and
extended, and everything cleared away."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster import on_cluster, read_pods
from tests.cluster.minimal import GATED, Minimal, Ran, kubectl, minimal
from tests.support.audit import audit, records
from tests.support.buckets import client
from tests.support.waiting import wait_until
from trialfleet_controller.backends.kube import names
from trialfleet_controller.campaigns import from_file
from trialfleet_ledger.exit_codes import CommandExit
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.verdicts import LossClass, Verdict
from trialfleet_ledger.trial_order import trials

pytestmark = on_cluster()

S3 = {"AWS_ENDPOINT_URL_S3": os.environ.get("S3_ENDPOINT", "")}
NO_REPORT = ("--no-ray", "--no-report")
LIMITS = {"cpu": 0.3, "memory": "256Mi", "disk": "256Mi", "parallel": 2}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minimal]:
    with minimal(tmp_path_factory.mktemp("day-two")) as made:
        yield made


def real_node() -> str:
    """One that runs containers: others may only be simulated."""
    told = kubectl(
        "get", "nodes", "-o", "jsonpath={range .items[*]}{.metadata.name} {.status.nodeInfo.osImage}\n{end}"
    )
    return next(name for name, image in (line.split(" ", 1) for line in told.splitlines()) if image.strip())


def keys(place: Minimal) -> set[str]:
    return {item["Key"] for item in client().list_objects_v2(Bucket=place.bucket).get("Contents", ())}


def ledger(file: Path) -> Ledger:
    return from_file(file).ledger


@pytest.fixture(scope="module")
def gated(place: Minimal) -> Callable[[str], Ledger]:
    """Freezes a campaign of this name, three trials wide two, whose agents wait. The cluster is looked at once."""
    file = place.campaign(campaign="gated", reps=3, agent=GATED, limits=LIMITS)
    ran = place.trialfleet("plan", str(file), "--freeze")
    assert ran.code == 0, ran.err
    made = ledger(file)

    def frozen(campaign: str) -> Ledger:
        named = Ledger(made.store, campaign)
        named.freeze(made.plan().model_copy(update={"campaign": campaign, "uid": secrets.token_hex(16)}))
        return named

    return frozen


def by_url(place: Minimal, command: str, campaign: str, *options: str) -> Ran:
    """From anywhere: the store's address and nothing of the cluster."""
    env = {"AWS_ENDPOINT_URL_S3": os.environ["S3_ENDPOINT"], "KUBECONFIG": "/no/such/file"}
    return place.trialfleet(command, url(place, campaign), *options, env=env)


def url(place: Minimal, campaign: str) -> str:
    return f"s3://{place.bucket}/runs/{campaign}"


def standing(place: Minimal, campaign: str) -> dict[str, Any]:
    return dict(json.loads(by_url(place, "status", campaign, "--json").out))


def resumed(place: Minimal, campaign: str, *options: str) -> AbstractContextManager[subprocess.Popen[str]]:
    env = {"AWS_ENDPOINT_URL_S3": os.environ["S3_ENDPOINT"]}
    return place.controller("resume", url(place, campaign), *options, env=env)


def pods(place: Minimal, kept: Ledger) -> dict[str, str]:
    """The campaign's pods that are there, by trial."""
    listed = read_pods(place.namespace, names.selector(kept.plan().uid))
    return {pod["metadata"]["labels"][names.TRIAL]: pod["metadata"]["name"] for pod in listed}


def both(place: Minimal, kept: Ledger, controller: subprocess.Popen[str]) -> dict[str, str]:
    """Two pods by their trials, once their agents run."""

    def at_work() -> dict[str, str] | None:
        assert controller.poll() is None, controller.communicate()[0]
        there = pods(place, kept).items()
        running = {trial: pod for trial, pod in there if place.begun(pod)}
        return running if len(running) == 2 else None

    running: dict[str, str] = wait_until(at_work)
    return running


def test_prepull_says_which_nodes_are_ready(place: Minimal) -> None:
    file = str(place.campaign())
    ran = place.trialfleet("prepull", file)
    assert ran.code == 2
    assert "may not list nodes" in ran.err
    assert "--node NAME" in ran.err
    node = real_node()
    ran = place.trialfleet("prepull", file, "--node", node)
    assert ran.code == 0, ran.err
    assert f"{node}: ready (1/1)" in ran.out
    ran = place.trialfleet("prepull", str(place.campaign(kubernetes={"image": "no-such-image:1"})), "--node", node)
    assert ran.code == 2
    assert "no-such-image:1 cannot be pulled" in ran.out
    assert "ready on only 0 of 1 node" in ran.err
    assert kubectl("get", "pods", "-n", place.namespace, "-o", "name") == ""


def test_gc_clears_the_namespace_and_only_when_told_the_results(place: Minimal) -> None:
    file = str(place.campaign(campaign="swept"))
    ran = place.trialfleet("run", file, "--no-ray", "--no-report", "--json")
    assert ran.code == 0, ran.err
    assert '"ending": "complete"' in ran.out
    there = kubectl("get", "configmaps,jobs", "-n", place.namespace, "-o", "name")
    assert "trialfleet-" not in there, "a complete campaign leaves nothing"
    results = {key for key in keys(place) if "/attempts/" in key or "/outcomes/" in key}

    env = {"AWS_ENDPOINT_URL_S3": os.environ["S3_ENDPOINT"], "KUBECONFIG": "/no/such/file"}
    shown = place.trialfleet(
        "logs", f"s3://{place.bucket}/runs/swept", "sqlparse-aligned-case-without-end/none/0", env=env
    )
    assert shown.code == 0, shown.err

    ran = place.trialfleet("gc", file)
    assert ran.code == 0, ran.err
    assert "swept: 0 pods of ended attempts removed" in ran.out
    assert results <= keys(place)
    assert not any("/grants/" in key for key in keys(place))

    listed = place.trialfleet("gc", file, "--results")
    assert "would remove swept" in listed.out
    assert results <= keys(place)
    gone = place.trialfleet("gc", file, "--results", "--yes")
    assert gone.code == 0, gone.err
    assert not any(key.startswith("runs/swept/") for key in keys(place))


def test_a_whole_store_by_age(place: Minimal, tmp_path: Path) -> None:
    url, env = f"s3://{place.bucket}/runs", {"AWS_ENDPOINT_URL_S3": os.environ["S3_ENDPOINT"]}
    frozen = place.trialfleet("plan", str(place.campaign(campaign="aged")), "--freeze")
    assert frozen.code == 0, frozen.err
    young = place.trialfleet("gc", "--store", url, "--older-than", "1", env=env)
    assert "nothing to remove" in young.out
    old = place.trialfleet("gc", "--store", url, "--older-than", "0", env=env)
    assert "would remove aged" in old.out
    assert "runs/aged/campaign.json" in keys(place)
    assert place.trialfleet("gc", "--older-than", "1").code == 2


def test_cancel_drains_and_cancel_now_stops(
    place: Minimal, gated: Callable[[str], Ledger], tmp_path: Path
) -> None:
    """Both by the store alone; the controller lives, and obeys."""
    log, kept = tmp_path / "controller.jsonl", gated("cancelled")
    with resumed(place, "cancelled", "--log-json", str(log)) as controller:
        finishing, stopped = (running := both(place, kept, controller))
        said = by_url(place, "cancel", "cancelled").out
        assert "cancelled is cancelled: no further trial starts, running attempts are finished" in said
        wait_until(lambda: "cancelled by" in log.read_text())
        place.let_go(running[finishing])
        wait_until(lambda: kept.attempts.outcome(finishing))
        assert place.inside_agent(running[stopped], "true"), "what runs is finished"
        said = by_url(place, "cancel", "cancelled", "--now").out
        assert "cancelled is cancelled: no further trial starts, running attempts are stopped" in said
        printed, _ = controller.communicate(timeout=150)
    assert controller.returncode == CommandExit.NOT_COMPLETE, printed
    wait_until(lambda: not pods(place, kept))
    shown = standing(place, "cancelled")
    assert (shown["state"], shown["terminal"], shown["losses"]) == ("cancelled", 2, {})
    assert shown["stops"] == {"cancelled": 1}

    (never,) = {trial.id for trial in trials(kept.plan())} - {finishing, stopped}
    measured, given_up = kept.attempts.outcome(finishing), kept.attempts.outcome(stopped)
    assert measured is not None
    assert measured.scored is not None
    assert (measured.attempts, measured.losses, measured.scored.verdict) == (1, (), Verdict.FAILED)
    assert given_up is not None
    assert (given_up.attempts, given_up.losses, given_up.scored) == (1, (LossClass.CANCELLED,), None)
    assert (kept.attempts.chain(never), kept.attempts.outcome(never)) == ((), None)

    before = records(kept.store, "cancelled")
    with resumed(place, "cancelled") as controller:
        printed, _ = controller.communicate(timeout=150)
    assert controller.returncode == CommandExit.NOT_COMPLETE, printed
    assert "cancelled by" in printed
    added = records(kept.store, "cancelled").items() - before.items()
    allowed = ("cancelled/epochs/", "cancelled/journal/")
    assert all(key.startswith(allowed) for key, _ in added), "a cancelled campaign goes on"
    assert not pods(place, kept)


def test_cancel_now_of_a_campaign_whose_controller_died(place: Minimal, gated: Callable[[str], Ledger]) -> None:
    kept = gated("orphaned")
    with resumed(place, "orphaned") as controller:
        running = both(place, kept, controller)
        controller.kill()
    before = records(kept.store, "orphaned")
    alone = by_url(place, "cancel", "orphaned", "--now")
    assert alone.code == 2
    assert "no controller is running to stop the pods" in alone.err
    assert "export KUBECONFIG" in alone.err
    assert pods(place, kept).keys() == running.keys()
    env = {"AWS_ENDPOINT_URL_S3": os.environ["S3_ENDPOINT"]}
    ran = place.trialfleet("cancel", url(place, "orphaned"), "--now", env=env)
    assert ran.code == 0, ran.err
    wait_until(lambda: not pods(place, kept))
    for trial in trials(kept.plan()):
        outcome = kept.attempts.outcome(trial.id)
        assert (outcome is not None) == (trial.id in running)
        assert outcome is None or outcome.losses == (LossClass.CANCELLED,)
    assert before.items() <= records(kept.store, "orphaned").items()
    assert standing(place, "orphaned")["state"] == "cancelled"


def test_an_owner_deleted_while_no_controller_lives_is_no_other_cluster(
    place: Minimal, gated: Callable[[str], Ledger]
) -> None:
    """Kubernetes deletes the ConfigMap and the pods with it. Their attempts are lost; the trials run again."""
    kept = gated("ownerless")
    with resumed(place, "ownerless") as controller:
        first = both(place, kept, controller)
        controller.kill()
    kubectl("delete", "jobs", "-n", place.namespace, "-l", names.selector(kept.plan().uid))
    wait_until(lambda: not pods(place, kept))
    with resumed(place, "ownerless") as controller:
        assert both(place, kept, controller).keys() & first.keys(), "they go first"
        for trial in first:
            lost = kept.attempts.chain(trial)[0].end
            assert lost is not None
            assert lost.loss is not None
            assert lost.loss.loss is LossClass.TERMINATED
        controller.kill()
    assert place.trialfleet("cancel", url(place, "ownerless"), "--now", env=S3).code == 0


def test_more_reps_of_a_finished_campaign_run_the_new_blocks_alone(place: Minimal) -> None:
    file = place.campaign(campaign="extended", conditions=["none", "placebo"])
    ran = place.trialfleet("run", str(file), *NO_REPORT)
    assert ran.code == 0, ran.err
    kept = ledger(file)
    before = records(kept.store, "extended")
    ran = place.trialfleet("resume", str(file), "--reps", "2", *NO_REPORT)
    assert ran.code == 0, ran.err
    assert "amended: 2 reps (after a look: the report says so)" in ran.err
    now = records(kept.store, "extended")
    assert before.items() <= now.items(), "a record of the first block was changed or lost"
    new = {trial.id for trial in trials(kept.plan(), 2)} - {trial.id for trial in trials(kept.plan())}
    grown = [
        key for key in now if key not in before and key.split("/")[1] not in ("epochs", "amendments", "journal")
    ]
    assert {key.split("/")[2].removesuffix(".json") for key in grown} == new
    outcomes = audit(kept.store, kept.plan(), before=before, verdict=Verdict.FAILED, reps=2)
    assert [outcome.attempts for outcome in outcomes] == [1] * 4
    shown = standing(place, "extended")
    assert (shown["terminal"], shown["reps"], shown["after_look"], shown["losses"]) == (4, 2, True, {})
