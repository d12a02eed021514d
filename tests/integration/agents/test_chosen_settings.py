"""The settings that a campaign may choose, against what a real program says that it knows."""

from __future__ import annotations

import pytest

from trialfleet_agents.codex import CODEX
from trialfleet_agents.codex.agent import CodexOptions, native
from trialfleet_agents.program import output_of


@pytest.mark.needs("codex")
def test_codex_has_the_features_that_a_campaign_may_choose() -> None:
    listed = output_of("codex", native(CodexOptions()), "features", "list")
    known = {f"features.{line.split()[0]}" for line in listed.splitlines() if line.strip()}
    assert len(known) > 100
    others = {*CODEX.rules.allowed.split()} - known
    assert others == {"project_doc_max_bytes"}  # a setting of its own: test_receipts_of_agents sees what it does
