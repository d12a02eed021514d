"""`--keep-failed`: pods that ended badly stay to be looked at, the newest so many, until `gc`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster import kubectl as asked
from tests.cluster.faults import until
from tests.cluster.minimal import Minimal, kubectl, minimal
from trialfleet_controller.kube import names

pytestmark = [pytest.mark.cluster, pytest.mark.needs("cluster", "s3", "image"), pytest.mark.slow]

# The first attempts wait to be stopped.
WAITS = {
    "kind": "command",
    "options": {"argv": ["/bin/sh", "-c", "touch /tmp/begun; until [ -e /tmp/go ]; do sleep 0.1; done"]},
    "timeout_s": 400,
}
REPS = 2


def pods(place: Minimal) -> dict[tuple[str, str], dict[str, Any]]:
    """The campaign's, by trial and attempt."""
    listed = json.loads(kubectl("get", "pods", "-n", place.namespace, "-l", names.CAMPAIGN, "-o", "json"))["items"]
    return {
        (pod["metadata"]["labels"][names.TRIAL], pod["metadata"]["labels"][names.ATTEMPT]): pod for pod in listed
    }


def all_at_work(place: Minimal, attempt: str) -> list[str]:
    """The names of all trials' pods of this attempt, once their agents run."""

    def runs(name: str) -> bool:
        return (
            asked(
                "exec", name, "-n", place.namespace, "-c", names.AGENT, "--", "test", "-e", "/tmp/begun"
            ).returncode
            == 0
        )

    def found() -> list[str] | None:
        there = [pod["metadata"]["name"] for (_, n), pod in pods(place).items() if n == attempt]
        return there if len(there) == REPS and all(map(runs, there)) else None

    running: list[str] = until(found)
    return running


def test_the_newest_failed_pods_stay_until_they_are_cleared_away(tmp_path: Path) -> None:
    with minimal(tmp_path) as place:
        file = place.campaign(campaign="kept", reps=REPS, agent=WAITS)
        argv = ("run", str(file), "--no-ray", "--no-report", "--keep-failed", "1")
        controller = subprocess.Popen(
            [sys.executable, "-m", "trialfleet_runner.cli", *argv],
            env={**os.environ, "KUBECONFIG": str(place.kubeconfig)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            for name in all_at_work(place, "1"):
                kubectl("exec", name, "-n", place.namespace, "-c", names.RUNNER, "--", "/bin/sh", "-c", "kill 1")
            for name in all_at_work(place, "2"):
                kubectl("exec", name, "-n", place.namespace, "-c", names.AGENT, "--", "touch", "/tmp/go")
            printed, _ = controller.communicate(timeout=240)
        finally:
            if controller.poll() is None:
                controller.kill()
                controller.communicate()
        assert controller.returncode == 0, printed

        def only_one() -> bool:
            return [n for _, n in pods(place)] == ["1"]

        until(only_one)  # the other, and those of the verdicts, are on their way out
        ((pod,),) = [pods(place).values()]
        assert pod["status"]["phase"] == "Failed"
        assert "deletionTimestamp" not in pod["metadata"]
        (runner,) = [one for one in pod["status"]["containerStatuses"] if one["name"] == names.RUNNER]
        assert runner["state"]["terminated"]["exitCode"] == 143

        cleared = place.trialfleet("gc", str(file))
        assert cleared.code == 0, cleared.err
        until(lambda: not pods(place))
