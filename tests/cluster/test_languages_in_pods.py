"""Tasks in Go and JavaScript in pods: the image has their toolchains and environments, and there is no network.

`.ci/run` builds the image for the task files that `python -m tests.support.language_projects` writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster import on_cluster
from tests.cluster.minimal import Minimal, minimal
from tests.support.language_projects import GO, NODE, Project, task_file
from trialfleet_controller.campaigns import from_file
from trialfleet_ledger import keys
from trialfleet_ledger.bundle import Bundle, unpack
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.attempt import End
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.trial_order import trials

pytestmark = on_cluster("go", "node", "npm")

# Mends the program once its test has failed as it should, and takes that back unless the test then passes.
REPAIR = """set -e
if [ -e go.mod ]; then file=cart/total.go right='s/return a /return a + b /' test='go test -count=1 ./cart'
else file=src/total.js right='s/=> a;/=> a + b;/' test='node --test test/total.test.js'; fi
$test >failed 2>&1 && exit 1
grep -e 'not three' -e 'fail 1' failed
sed -i "$right" $file
$test || { git checkout -q $file; exit 1; }
rm failed
"""
AGENTS: dict[str, dict[str, Any]] = {
    "oracle": {"kind": "oracle"},
    "nop": {"kind": "nop"},
    "command": {"kind": "command", "options": {"argv": ["/bin/sh", "-c", REPAIR]}},
}
LIMITS = {"cpu": 0.5, "memory": "1Gi", "disk": "1Gi", "parallel": 2}
Left = tuple[End, Bundle]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minimal]:
    with minimal(tmp_path_factory.mktemp("languages")) as made:
        yield made


@pytest.fixture(scope="module")
def files(place: Minimal) -> list[str]:
    """Validated here, on local processes."""
    made = [str(task_file(project, place.folder)) for project in (GO, NODE)]
    ran = place.trialfleet("validate", *made, "--write")
    assert ran.code == 0, ran.err
    return made


@pytest.fixture(scope="module")
def left(place: Minimal, files: list[str]) -> Mapping[tuple[str, str], Left]:
    """By agent and task. The agents' campaigns run at the same time."""
    with ThreadPoolExecutor(len(AGENTS)) as pool:
        found = pool.map(lambda name: attempted(place, name, files), AGENTS)
        return {
            (name, task): each for name, ends in zip(AGENTS, found, strict=True) for task, each in ends.items()
        }


def attempted(place: Minimal, name: str, files: list[str]) -> dict[str, Left]:
    """A campaign of one agent, as a user runs it."""
    own = replace(place, folder=place.folder / name)
    own.folder.mkdir(exist_ok=True)  # a test that is run again resumes the campaign
    file = own.campaign(campaign=f"languages-{name}", tasks=files, agent=AGENTS[name], limits=LIMITS)
    ran = own.trialfleet("run", str(file), "--no-ray", "--no-report")
    assert ran.code == 0, ran.out + ran.err
    ledger = Ledger(from_file(file).store, f"languages-{name}")
    return {trial.task: ended(ledger, trial.id) for trial in trials(ledger.plan())}


def ended(ledger: Ledger, trial: str) -> Left:
    (attempt,) = ledger.attempts.chain(trial)
    assert attempt.end is not None
    raw = ledger.store.get(keys.attempt_file(ledger.campaign, trial, 1, "bundle.tar.zst"))
    assert raw is not None
    return attempt.end, unpack(raw, attempt.end.bundle)


@pytest.mark.parametrize("project", [GO, NODE], ids=lambda project: project.language)
@pytest.mark.parametrize(
    ("agent", "verdict"), [("oracle", Verdict.PASSED), ("nop", Verdict.FAILED), ("command", Verdict.PASSED)]
)
def test_an_attempt_is_scored_in_its_pod(
    left: Mapping[tuple[str, str], Left], project: Project, agent: str, verdict: Verdict
) -> None:
    end, bundle = left[agent, project.language.lower()]
    assert end.scored is not None, end.loss
    assert end.scored.verdict is verdict, bundle.files
    assert bundle.manifest.isolation == "container"
    outcomes = {each["id"]: each["outcome"] for each in json.loads(bundle.files["tests/results.json"])}
    assert outcomes.pop(project.fails) == ("passed" if verdict is Verdict.PASSED else "failed")
    assert "missing" not in outcomes.values()


def test_an_image_without_the_environment_is_refused(place: Minimal, tmp_path: Path) -> None:
    """Another module than the image has; the task is not validated first, since that takes longer."""
    other = replace(GO, base={**GO.base, "go.mod": GO.base["go.mod"].replace("v1.6.0", "v1.5.0")})
    file = task_file(other, tmp_path)
    file.write_text(file.read_text().replace("  id: go", "  id: go\n  status: validated"))
    own = replace(place, folder=tmp_path)
    ran = own.trialfleet("plan", str(own.campaign(tasks=[str(file)], limits=LIMITS)), "--freeze")
    assert ran.code == 2, ran.out
    assert "lacks the environments of go (go 1." in ran.err
    assert "trialfleet image build --for go.yaml" in ran.err
