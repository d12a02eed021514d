"""Claude Code, Codex and mini-swe-agent in pods, as the image has them: one campaign, a condition for each. Each
fixes the program, behind the runner's gateway, whose key is a Secret that the runner alone mounts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cluster import agents_pod
from tests.cluster.cluster import on_cluster
from tests.cluster.minimal import Minimal, Ran, kubectl, minimal
from tests.cluster.provider_pod import asked, provider, results, stored
from trialfleet_agents.pinned import pinned
from trialfleet_agents.registry import list_tool_calls
from trialfleet_ledger.bundle import Bundle
from trialfleet_ledger.records.attempt import End
from trialfleet_ledger.records.verdicts import Scored, Stop, Verdict

pytestmark = on_cluster()

KEY = "sk-planted-0123456789abcdef"
KINDS = {kind: api for api, (kind, _, _) in agents_pod.PLAYED.items()}
LIMITS = {"cpu": 0.6, "memory": "1Gi", "disk": "512Mi", "parallel": 2}
INLINE = "`token_index` finds by identity inside one group only"


@dataclass(frozen=True)
class Left:
    """`heard`: the provider's requests; `stored`: all of the bucket, unpacked, by key."""

    ran: Ran
    heard: list[dict[str, Any]]
    ends: Mapping[str, End]
    bundles: Mapping[str, Bundle]
    stored: Mapping[str, bytes]

    def scored(self, kind: str) -> Scored:
        end = self.ends[kind]
        assert end.scored is not None, end.loss
        return end.scored

    def turns(self, kind: str) -> list[str]:
        """All text of each request of the agent's loop."""
        return [each["strings"] for each in self.heard if each["api"] == KINDS[kind]]


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Left]:
    with minimal(tmp_path_factory.mktemp("agents")) as place:
        yield campaign(place)


def campaign(place: Minimal) -> Left:
    """Planned on a machine that has none of the agents: the image's are the ones that count."""
    given = [f"--from-literal={name}={KEY}" for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")]
    kubectl("create", "secret", "generic", "model-keys", *given, "-n", place.namespace)
    address = provider(place, agents_pod, answers="heard")
    chosen = {kind: {"kind": kind, "version": pinned()[kind].version} for kind in KINDS}
    models = {kind: list_tool_calls()[kind].model for kind in KINDS}
    told = {"inline": {"source": "nearest"}}
    file = place.campaign(
        campaign="agents",
        conditions={kind: {"agent": chosen[kind], "model": models[kind], **told} for kind in KINDS},
        agent={**chosen["codex"], "model": models["codex"], "max_turns": 10, "timeout_s": 300},
        limits=LIMITS,
        kubernetes={"model_secret": "model-keys", "model_base_url": address},
    )
    absent = {pinned()[kind].variable: "/no/such" for kind in KINDS}
    ran = place.trialfleet("run", str(file), "--no-ray", "--no-report", "--json", env=absent, timeout_s=560)
    assert ran.code == 0, ran.err
    return Left(ran, asked(place, "heard"), *results(file), stored(place.bucket))


@pytest.mark.parametrize("kind", KINDS)
def test_the_agent_fixes_the_program(left: Left, kind: str) -> None:
    end, manifest = left.scored(kind), left.bundles[kind].manifest
    assert (end.verdict, end.stop, end.tests_passed) == (Verdict.PASSED, Stop.FINISHED, True)
    assert (end.metrics.files_changed, end.metrics.lines_added, end.metrics.lines_removed) == (1, 2, 1)
    assert (manifest.isolation, manifest.agent.kind, manifest.agent.version) == (
        "container",
        kind,
        pinned()[kind].version,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_turns_and_tokens_are_the_providers(left: Left, kind: str) -> None:
    metrics, report = left.scored(kind).metrics, json.loads(left.bundles[kind].files["gateway/report.json"])
    assert (metrics.turns, report["turns"], report["error_count"], report["undeclared"]) == (4, 4, 0, [])
    assert (metrics.input_tokens, metrics.output_tokens, metrics.cache_read_tokens) == (160, 65, 1000)
    assert (metrics.first_edit_turn, metrics.files_read_before_edit) == (2, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_conditions_text_arrives(left: Left, kind: str) -> None:
    assert left.scored(kind).delivery.reached_model == {"inline": True}
    assert INLINE in left.turns(kind)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_key_is_out_of_the_agents_reach(left: Left, kind: str) -> None:
    assert {each["key"] for each in left.heard if each["api"] == KINDS[kind]} == {KEY}
    turns = left.turns(kind)
    assert len(turns) == 4
    assert "agent-gate" in turns[3], "what the search printed"
    assert not any(KEY in each for each in turns)


def test_the_key_is_in_nothing_that_is_kept(left: Left) -> None:
    assert not [key for key, data in left.stored.items() if KEY.encode() in data]
    assert KEY not in left.ran.out + left.ran.err
