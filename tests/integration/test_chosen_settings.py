"""`settings` and `effort` as treatments: what a campaign chooses of an agent's own configuration is in the request
of its real program, and is not there without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.agent_rows import CLAUDE, ROWS, AgentRow
from tests.support.session_run import session
from trialfleet_runner.agent_check.scripted_model import ModelRequest

pytestmark = pytest.mark.needs("bwrap")

ALL = {"claude-code": CLAUDE, **ROWS}
WORDS = "You mend what is broken, says needle-17."
TRAILER = "co-authored-by"
WARM = [{"match": {"model": "gemini-2.5-pro"}, "modelConfig": {"generateContentConfig": {"temperature": 0.25}}}]
GEMINI_3 = "gemini-3-pro-preview"  # the series whose effort is a level


def _at(request: ModelRequest, *path: str) -> Any:
    found: Any = request.body
    for name in path:
        found = (found or {}).get(name)
    return found


# agent -> the settings, and what is then true of a request, and not without them
SETTINGS: dict[str, tuple[dict[str, Any], Any]] = {
    "claude-code": ({"includeCoAuthoredBy": False}, lambda asked: TRAILER not in asked.strings.lower()),
    "codex": ({"model_verbosity": "high"}, lambda asked: _at(asked, "text", "verbosity") == "high"),
    "copilot": ({"includeCoAuthoredBy": False}, lambda asked: TRAILER not in asked.strings.lower()),
    "opencode": ({"agent": {"build": {"temperature": 0.25}}}, lambda asked: _at(asked, "temperature") == 0.25),
    "gemini": (
        {"modelConfigs": {"customOverrides": WARM}},
        lambda asked: _at(asked, "generationConfig", "temperature") == 0.25,
    ),
    "mini-swe-agent": ({"agent": {"system_template": WORDS}}, lambda asked: WORDS in asked.strings),
}
# agent -> where a request has its effort, and the value for effort: high
EFFORTS: dict[str, tuple[tuple[str, ...], str]] = {
    "claude-code": (("output_config", "effort"), "high"),
    "codex": (("reasoning", "effort"), "high"),
    "copilot": (("reasoning", "effort"), "high"),
    "opencode": (("output_config", "effort"), "high"),
    "gemini": (("generationConfig", "thinkingConfig", "thinkingLevel"), "HIGH"),
    "mini-swe-agent": (("reasoning", "effort"), "high"),
}


def first_request(row: AgentRow, **options: Any) -> ModelRequest:
    with session(row, [], **options) as ran:
        assert ran.ended.code == 0, (ran.scratch.record / "stderr").read_text()[-2000:]
        assert ran.parsed.turns in (1, None)
        return ran.requests[0]


def _params(kinds: dict[str, Any]) -> list[Any]:
    return [pytest.param(kind, marks=pytest.mark.needs(ALL[kind].program)) for kind in kinds]


@pytest.mark.parametrize("kind", _params(SETTINGS))
def test_a_setting_is_in_the_request_of_its_condition_only(kind: str) -> None:
    settings, shown = SETTINGS[kind]
    assert not shown(first_request(ALL[kind]))
    assert shown(first_request(ALL[kind], settings=settings))


@pytest.mark.parametrize("kind", _params(EFFORTS))
def test_the_effort_is_in_the_request_of_its_condition_only(kind: str) -> None:
    path, value = EFFORTS[kind]
    row = ALL[kind]
    row = replace(row, tools=replace(row.tools, model=GEMINI_3)) if kind == "gemini" else row
    asked = [_at(first_request(row, **options), *path) for options in ({"effort": "low"}, {"effort": "high"})]
    assert asked == ["LOW" if value.isupper() else "low", value]
