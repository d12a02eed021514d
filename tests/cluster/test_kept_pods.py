"""Finished pods: the newest failed ones stay with `--keep-failed` until `gc`, and the others are deleted, also if
their controller was killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cluster.cluster import kubectl as asked
from tests.cluster.cluster import on_cluster, read_pods
from tests.cluster.minimal import GATED, Minimal, minimal
from tests.support.waiting import wait_until
from trialfleet_controller.backends.kube import names

pytestmark = on_cluster()

REPS = 2
LIMITS = {"cpu": 0.3, "memory": "256Mi", "disk": "256Mi", "parallel": REPS}
SETTLE_S = "10"


def pods(place: Minimal) -> dict[tuple[str, str], dict[str, Any]]:
    """The campaign's, by trial and attempt."""
    listed = read_pods(place.namespace, names.CAMPAIGN)
    return {
        (pod["metadata"]["labels"][names.TRIAL], pod["metadata"]["labels"][names.ATTEMPT]): pod for pod in listed
    }


def by_name(place: Minimal) -> dict[str, str]:
    """Their phases."""
    return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in pods(place).values()}


def stop_runner(place: Minimal, pod: str) -> None:
    """A runner that ends may take along the shell that told it so: the exit code says nothing."""
    asked("exec", pod, "-n", place.namespace, "-c", names.RUNNER, "--", "/bin/sh", "-c", "kill 1")


def all_at_work(place: Minimal, attempt: str) -> list[str]:
    """The names of all trials' pods of this attempt, once their agents run."""

    def found() -> list[str] | None:
        there = [pod["metadata"]["name"] for (_, n), pod in pods(place).items() if n == attempt]
        return there if len(there) == REPS and all(map(place.begun, there)) else None

    def conditions() -> str:
        """Why pods do not run, as the cluster says it: a full node, for example."""
        there = {name: pod["status"].get("conditions") for name, pod in pods(place).items()}
        return f"{REPS} agents run in attempt {attempt}: {there}"

    running: list[str] = wait_until(found, conditions, within_s=240)
    return running


def test_the_newest_failed_pods_stay_until_they_are_cleared_away(tmp_path: Path) -> None:
    with minimal(tmp_path) as place:
        file = place.campaign(campaign="kept", reps=REPS, agent=GATED, limits=LIMITS)
        with place.controller("run", str(file), "--keep-failed", "1") as controller:
            for name in all_at_work(place, "1"):
                stop_runner(place, name)
            for name in all_at_work(place, "2"):
                place.let_go(name)
            printed, _ = controller.communicate(timeout=240)
        assert controller.returncode == 0, printed

        def only_one() -> bool:
            return [n for _, n in pods(place)] == ["1"]

        wait_until(only_one)  # the other, and those of the verdicts, are on their way out
        ((pod,),) = [pods(place).values()]
        assert pod["status"]["phase"] == "Failed"
        assert "deletionTimestamp" not in pod["metadata"]
        (runner,) = [one for one in pod["status"]["containerStatuses"] if one["name"] == names.RUNNER]
        assert runner["state"]["terminated"]["exitCode"] == 143

        cleared = place.trialfleet("gc", str(file))
        assert cleared.code == 0, cleared.err
        wait_until(lambda: not pods(place))


def test_finished_pods_of_a_killed_controller_are_deleted_by_the_next(tmp_path: Path) -> None:
    """One that the killed controller kept although its end was in the ledger, and one that ended while no
    controller lived. `SETTLE_S` stands for the ten minutes of pods.md."""
    with minimal(tmp_path) as place:
        file = str(place.campaign(campaign="killed", reps=REPS, agent=GATED, limits=LIMITS))
        with place.controller("run", file, "--keep-failed", "1") as controller:
            stopped, finishing = all_at_work(place, "1")
            stop_runner(place, stopped)
            wait_until(lambda: any(place.begun(pod) for pod in by_name(place) if pod.endswith("-a2")))
            controller.kill()
            controller.communicate()
        place.let_go(finishing)
        wait_until(lambda: by_name(place)[finishing] == "Succeeded")
        (runs,) = by_name(place).keys() - {stopped, finishing}
        assert by_name(place) == {stopped: "Failed", finishing: "Succeeded", runs: "Running"}

        short = ("tests.cluster.short_settling", SETTLE_S)
        with place.controller("resume", file, module=short) as controller:
            wait_until(lambda: by_name(place) == {runs: "Running"})
            assert controller.poll() is None, "a controller that ends takes all its pods along"
            place.let_go(runs)
            printed, _ = controller.communicate(timeout=120)
        assert controller.returncode == 0, printed
