"""`--keep-failed`: pods that ended badly stay to be looked at, the newest so many, until `gc`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cluster.cluster import kubectl as asked
from tests.cluster.cluster import on_cluster
from tests.cluster.minimal import GATED, Minimal, kubectl, minimal
from tests.support.waiting import wait_until
from trialfleet_controller.backends.kube import names

pytestmark = on_cluster()

REPS = 2


def pods(place: Minimal) -> dict[tuple[str, str], dict[str, Any]]:
    """The campaign's, by trial and attempt."""
    listed = json.loads(kubectl("get", "pods", "-n", place.namespace, "-l", names.CAMPAIGN, "-o", "json"))["items"]
    return {
        (pod["metadata"]["labels"][names.TRIAL], pod["metadata"]["labels"][names.ATTEMPT]): pod for pod in listed
    }


def all_at_work(place: Minimal, attempt: str) -> list[str]:
    """The names of all trials' pods of this attempt, once their agents run."""

    def found() -> list[str] | None:
        there = [pod["metadata"]["name"] for (_, n), pod in pods(place).items() if n == attempt]
        return there if len(there) == REPS and all(map(place.begun, there)) else None

    running: list[str] = wait_until(found)
    return running


def test_the_newest_failed_pods_stay_until_they_are_cleared_away(tmp_path: Path) -> None:
    with minimal(tmp_path) as place:
        file = place.campaign(campaign="kept", reps=REPS, agent=GATED)
        with place.controller("run", str(file), "--keep-failed", "1") as controller:
            for name in all_at_work(place, "1"):
                # A runner that ends may take along the shell that told it so.
                asked("exec", name, "-n", place.namespace, "-c", names.RUNNER, "--", "/bin/sh", "-c", "kill 1")
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
