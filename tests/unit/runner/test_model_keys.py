"""Where the key of the model provider comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialfleet_runner.attempt.model import upstream
from trialfleet_runner.contract import AgentSpec
from trialfleet_runner.errors import OperatorError

ANTHROPIC = AgentSpec(kind="claude-code")
OPENAI = AgentSpec(kind="command", options={"provider": "openai"})


def test_a_mounted_secret_is_a_file_per_variable(tmp_path: Path) -> None:
    (tmp_path / "ANTHROPIC_API_KEY").write_text("from-file\n")
    (tmp_path / "OPENAI_API_KEY").write_text("other")
    keys = {"TRIALFLEET_KEYS": str(tmp_path)}
    assert (upstream(ANTHROPIC, keys).key, upstream(ANTHROPIC, keys).auth) == ("from-file", "x-api-key")
    assert (upstream(OPENAI, keys).key, upstream(OPENAI, keys).auth) == ("other", "bearer")
    assert upstream(ANTHROPIC, keys | {"ANTHROPIC_API_KEY": "mine"}).key == "mine"


def test_the_address_comes_with_the_environment(tmp_path: Path) -> None:
    (tmp_path / "ANTHROPIC_AUTH_TOKEN").write_text("token")
    told = {"TRIALFLEET_KEYS": str(tmp_path), "ANTHROPIC_BASE_URL": "http://gateway.internal:4000"}
    found = upstream(ANTHROPIC, told)
    assert (found.base_url, found.key, found.auth) == ("http://gateway.internal:4000", "token", "bearer")


def test_no_key_anywhere_names_the_variable(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="ANTHROPIC_API_KEY"):
        upstream(ANTHROPIC, {"TRIALFLEET_KEYS": str(tmp_path)})
