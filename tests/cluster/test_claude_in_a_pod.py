"""Claude Code in pods, as the image has it, under the Roles of k8s/base: behind the runner's gateway, whose key is
a Secret that the runner alone mounts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import scripted_pod
from tests.cluster.cluster import on_cluster, read_pods
from tests.cluster.minimal import Minimal, kubectl, minimal
from tests.cluster.provider_pod import asked, provider, results, stored
from tests.support import scripted_messages
from tests.support.waiting import wait_until
from trialfleet_agents.pinned import pinned
from trialfleet_controller.backends.kube import names
from trialfleet_ledger.bundle import Bundle
from trialfleet_ledger.records.attempt import End
from trialfleet_ledger.records.measurements import PreflightResult
from trialfleet_ledger.records.verdicts import Scored, Stop, Verdict

pytestmark = on_cluster()

KEY = "sk-planted-0123456789abcdef"
MODEL = "claude-sonnet-4-6"
VERSION = pinned()["claude-code"].version
TASK = "sqlparse-aligned-case-without-end"
LIMITS = {
    "cpu": 0.6,
    "memory": "1Gi",
    "disk": "512Mi",
    "parallel": 2,
    "live_interval_s": 0.5,
    "cost_usd": {"trial": 1, "campaign": 10},
}
TREE, LOOK = "intent_layer_preamble", "preflight"
CONDITIONS = (TREE, LOOK)
INLINE = "`token_index` finds by identity inside one group only"
PUSHED = "A group's first and last token are its delimiters only in well-formed SQL"
ROOT_LINE = "A non-validating SQL parser: text becomes tokens, tokens become statements"
Json = dict[str, Any]


@dataclass(frozen=True)
class Left:
    """`pods`, `objects` (as the API server has them) and `live` (`trialfleet logs`, by condition): what could be
    seen while all agents waited for their last answer. `printed`: by `trialfleet run`; `words`: by the pods'
    containers; `heard`: the provider's requests; `stored`: all of the bucket, unpacked, by key."""

    pods: list[Json]
    objects: str
    live: Mapping[str, str]
    printed: str
    words: str
    heard: list[Json]
    ends: Mapping[str, End]
    bundles: Mapping[str, Bundle]
    stored: Mapping[str, bytes]

    def scored(self, condition: str) -> Scored:
        end = self.ends[condition]
        assert end.scored is not None, end.loss
        return end.scored

    def looks(self) -> list[str]:
        """All text of each request of a pre-flight."""
        return [each["strings"] for each in self.heard if each["tools"] == ["Glob", "Read"]]

    def turns(self) -> list[str]:
        """Of each other request."""
        return [each["strings"] for each in self.heard if each["tools"] != ["Glob", "Read"]]


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Left]:
    with minimal(tmp_path_factory.mktemp("claude")) as place:
        yield campaign(place)


def campaign(place: Minimal) -> Left:
    """Both conditions at once, looked at while their agents wait for the last answer."""
    secret = ("create", "secret", "generic", "model-keys", f"--from-literal=ANTHROPIC_API_KEY={KEY}")
    kubectl(*secret, "-n", place.namespace)
    address = provider(place, scripted_pod, scripted_messages, answers="held/0")
    file = place.campaign(
        campaign="claude",
        conditions=list(CONDITIONS),
        agent={"kind": "claude-code", "version": VERSION, "model": MODEL, "max_turns": 10, "timeout_s": 600},
        limits=LIMITS,
        kubernetes={"model_secret": "model-keys", "model_base_url": address},
    )
    said = place.folder / "said"
    with ExitStack() as stack:
        running = stack.enter_context(started(place, said, "run", str(file), "--no-ray", "--no-report", "--json"))
        wait_until(lambda: running.poll() is not None or asked(place, f"held/{len(CONDITIONS)}"), within_s=300)
        assert running.poll() is None, said.read_text()
        live = {name: wait_until(lambda name=name: arrived(place, file, name)) for name in CONDITIONS}
        pods = read_pods(place.namespace, names.TRIAL)
        objects = kubectl("get", "pods,configmaps,events", "-n", place.namespace, "-o", "json")
        followed = [stack.enter_context(following(place, pod["metadata"]["name"])) for pod in pods]
        heard = asked(place, "heard")
        asked(place, "release")
        assert running.wait(timeout=300) == 0, said.read_text()
        words = "".join(each.communicate(timeout=60)[0] for each in followed)
    return Left(pods, objects, live, said.read_text(), words, heard, *results(file), stored(place.bucket))


@contextmanager
def started(place: Minimal, said: Path, *args: str) -> Generator[subprocess.Popen[bytes]]:
    """`trialfleet` on a machine that has no Claude Code: the image's is the one that counts. `said`: what it
    prints; nobody empties a pipe meanwhile."""
    env = {**os.environ, "KUBECONFIG": str(place.kubeconfig), "TRIALFLEET_CLAUDE": "/no/such"}
    argv = [sys.executable, "-m", "trialfleet_runner.cli", *args]
    with (
        said.open("wb") as out,
        subprocess.Popen(argv, cwd=place.folder, env=env, stdout=out, stderr=subprocess.STDOUT) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def following(place: Minimal, pod: str) -> Generator[subprocess.Popen[str]]:
    """What all containers of the pod print, until they end."""
    argv = ("kubectl", "logs", "--follow", "--all-containers", pod, "-n", place.namespace)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def arrived(place: Minimal, file: Path, condition: str) -> str | None:
    """`trialfleet logs`, once the agent has come to what it does last."""
    ran = place.trialfleet("logs", str(file), f"{TASK}/{condition}/0")
    assert ran.code == 0, ran.err
    return ran.out if "SEARCHED" in ran.out else None


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_agent_mends_the_program(left: Left, condition: str) -> None:
    end = left.scored(condition)
    assert (end.verdict, end.stop, end.tests_passed) == (Verdict.PASSED, Stop.FINISHED, True)
    assert (end.metrics.files_changed, end.metrics.lines_added, end.metrics.lines_removed) == (1, 2, 1)
    manifest = left.bundles[condition].manifest
    assert manifest.isolation == "container"


def test_turns_tokens_and_money_are_the_providers(left: Left) -> None:
    metrics = left.scored(TREE).metrics
    assert (metrics.turns, metrics.tool_calls, metrics.first_edit_turn) == (3, 3, 2)
    tokens = (metrics.input_tokens, metrics.output_tokens, metrics.cache_read_tokens, metrics.cache_write_tokens)
    assert tokens == (157, 61, 2300, 300)
    assert metrics.cost_usd == pytest.approx((157 * 3 + 61 * 15 + 2300 * 0.3 + 300 * 3.75) / 1e6)
    gateway = json.loads(left.bundles[TREE].files["gateway/report.json"])
    assert (gateway["turns"], gateway["error_count"], gateway["undeclared"]) == (3, 0, [])


def test_the_context_arrives(left: Left) -> None:
    end = left.scored(TREE)
    assert end.delivery.reached_model == {"files": True, "inline": True, "hook": True}
    assert end.metrics.hook_firings == 1
    told, other = ([each for each in left.turns() if (ROOT_LINE in each) == there] for there in (True, False))
    assert len(told) == len(other) == 3
    assert all(INLINE in each for each in told)
    assert [PUSHED in each for each in sorted(told, key=len)] == [False, True, True], "with what was read"
    assert not any(line in each for each in other for line in (INLINE, PUSHED))


def test_a_look_comes_first_reads_only_and_is_counted_apart(left: Left) -> None:
    end, looks = left.scored(LOOK), left.looks()
    assert (end.delivery.preflight, end.delivery.reached_model) == (PreflightResult.FOUND, {"inline": True})
    assert len(looks) == 2
    metrics = end.metrics
    assert (metrics.turns, metrics.preflight_turns) == (5, 2)
    assert (metrics.input_tokens, metrics.preflight_input_tokens) == (257, 100)
    assert (metrics.output_tokens, metrics.preflight_output_tokens) == (91, 30)
    assert 0 < (metrics.preflight_cost_usd or 0) < (metrics.cost_usd or 0)
    assert 0 < (metrics.preflight_s or 0) < (metrics.agent_s or 0)
    kept = left.bundles[LOOK].files
    assert kept["preflight/answer.txt"].decode() == scripted_pod.FOUND
    assert "No such tool available: Write" in kept["preflight/stdout.log"].decode()
    assert "in `_process_case`" in kept["prompt.txt"].decode()


def test_the_key_is_the_providers_and_nobody_elses(left: Left) -> None:
    """The agent, which looked for it, has a token of the gateway in its environment, and is told the key by the
    provider's last answer: what it then prints is kept without."""
    assert {each["key"] for each in left.heard} == {KEY}
    for pod in left.pods:
        mounts = {each["name"]: [m["name"] for m in each["volumeMounts"]] for each in pod["spec"]["containers"]}
        assert [name for name, mounted in mounts.items() if "model-keys" in mounted] == ["runner"]
    searched = [each for each in left.turns() if "SEARCHED" in each]
    assert len(searched) == len(CONDITIONS)
    for each in searched:
        assert re.search(r"^ANTHROPIC_AUTH_TOKEN=tf-", each, re.MULTILINE)
        assert re.search(r"^agent\nagent-gate\nSEARCHED$", each, re.MULTILINE), "a file that has the key"
    for said in (left.objects, left.printed, left.words, *left.live.values(), *left.turns()):
        assert KEY not in said
    assert not [key for key, data in left.stored.items() if KEY.encode() in data]
    redacted = [key for key, data in left.stored.items() if b"Done, with [redacted]" in data]
    assert {name.rpartition("/")[2] for name in redacted} >= {"bundle.tar.zst"}


def test_what_an_agent_has_printed_is_there_while_it_runs(left: Left) -> None:
    for said in left.live.values():
        assert "Mending." in said
        assert "Done, with" not in said
