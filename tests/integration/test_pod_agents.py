"""Codex and mini-swe-agent in a pod's three containers, as processes: the gateway is in another container."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.agent_attempts import BAD, FIXED, GOOD, KEY, SEARCH
from tests.support.agent_rows import ROWS, AgentRow
from tests.support.attempts import Lab, Left
from tests.support.local_pod import bake, pod
from trialfleet_agents.agent_check.scripted_answers import Answer
from trialfleet_agents.agent_check.scripted_model import ModelRequest, scripted_model
from trialfleet_agents.pinned import pinned
from trialfleet_ledger.records.agent import AgentSpec, Limits
from trialfleet_ledger.records.verdicts import Stop, Verdict
from trialfleet_ledger.token_usage import TokenUsage

KINDS = ("codex", "mini-swe-agent")
LIMITS = Limits(memory_bytes=3 * 2**30, disk_bytes=2**29, stop_grace_s=2.0)
PITFALL = "a fraction such as 0.1 is a tenth of a percent"


@dataclass(frozen=True)
class PodLeft:
    """What the attempt left, and the requests of its agent's loop."""

    row: AgentRow
    left: Left
    main: list[ModelRequest]


@pytest.fixture(
    scope="module", params=[pytest.param(kind, marks=pytest.mark.needs(ROWS[kind].program)) for kind in KINDS]
)
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PodLeft]:
    """It reads, edits and searches for secrets, under a condition whose text is in the prompt."""
    row, folder = ROWS[request.param], tmp_path_factory.mktemp("pod-agents")
    lab = Lab(folder)
    spec = AgentSpec(kind=row.kind, model=row.tools.model, max_turns=10, timeout_s=240, options=row.options)
    grants = lab.grants(spec, "preamble_only", limits=LIMITS)
    with scripted_model() as model:
        model.last = Answer("All done.", row.tools.ends)
        model.play(
            Answer("Looking.", (row.tools.read(FIXED),), TokenUsage(input=100, output=20, cache_read=1000)),
            Answer("Mending.", (row.edit(FIXED, BAD, GOOD),), TokenUsage(input=50, output=30)),
            Answer("Searching.", (row.tools.run(SEARCH),), TokenUsage(input=7, output=11)),
            model.last,
        )
        provider = {name: value.format(url=model.url, key=KEY) for name, value in row.provider.items()}
        program = {name: value for name, value in os.environ.items() if name == pinned()[row.kind].variable}
        with pod(grants, baked=bake(lab, folder), env={**provider, **program}) as running:
            assert running.wait(400) == (0, 0, 0)
        yield PodLeft(row, Left(lab, grants.attempt, 0, ""), model.main)


def test_it_repairs_and_the_counts_agree(ran: PodLeft) -> None:
    scored = ran.left.end.scored
    assert scored is not None, ran.left.end.loss
    assert (scored.verdict, scored.stop) == (Verdict.PASSED, Stop.FINISHED)
    assert ran.left.bundle.manifest.isolation == "container"
    metrics, report = scored.metrics, json.loads(ran.left.bundle.files["gateway/report.json"])
    assert (metrics.turns, report["turns"]) == (4, 4)
    assert (metrics.input_tokens, metrics.output_tokens, metrics.cache_read_tokens) == (167, 66, 1000)
    assert (metrics.first_edit_turn, metrics.files_read_before_edit) == (2, 1)


def test_the_text_of_its_condition_reaches_its_model(ran: PodLeft) -> None:
    scored = ran.left.end.scored
    assert scored is not None
    assert scored.delivery.reached_model == {"inline": True}
    assert PITFALL in ran.main[0].strings


def test_the_key_is_not_in_its_reach_nor_in_what_is_kept(ran: PodLeft) -> None:
    assert "SEARCHED" in ran.main[3].strings
    assert all(KEY not in request.strings for request in ran.main)
    assert any(KEY in str(request.headers) for request in ran.main)
    assert [name for name, data in ran.left.bundle.files.items() if KEY.encode() in data] == []
