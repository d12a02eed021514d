"""What the model asked an agent to do, from the gateway's record: the agent cannot forge it, and its program's own
output need not be understood. One reader for every agent and every API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trialfleet_agents.called_step import called_step
from trialfleet_ledger.records.base import LARGEST_COUNT
from trialfleet_ledger.trajectory import MAX_STEPS, Step
from trialfleet_ledger.untrusted import finite, json_object, lines, mapping, objects, plain

RECORD = "model.jsonl"  # written by the gateway


@dataclass(frozen=True)
class ModelCall:
    """A tool that the model called. `given`: its arguments; a free text is under "input"."""

    name: str
    given: Mapping[str, Any]


@dataclass(frozen=True)
class ModelTurn:
    """One answer of the model that counts as a turn. `at_s`: when its request left."""

    turn: int
    at_s: float | None
    text: str
    calls: tuple[ModelCall, ...]


def model_turns(record: Path) -> Iterator[ModelTurn]:
    """The answers in the gateway's record, in order; without one, nothing."""
    for line in lines(record / RECORD):
        row = json_object(line)
        turn, response = row.get("turn"), mapping(row.get("response"))
        if type(turn) is int and 1 <= turn <= LARGEST_COUNT and response:
            text, calls = _said(response)
            yield ModelTurn(turn, finite(row.get("at_s")), text, calls)


def steps(record: Path, roots: tuple[str, ...], kinds: Mapping[str, str] | None = None) -> tuple[Step, ...]:
    """One step for each answer's text and each tool call. `roots`: the workspace, under every name that it has.
    `kinds`: tool -> kind of step, where the tool's name does not say it."""
    found: list[Step] = []
    for turn in model_turns(record):
        if turn.text:
            found.append(Step(turn=turn.turn, at_s=turn.at_s, kind="message", detail=plain(turn.text)))
        found += [
            called_step(call.name, call.given, turn=turn.turn, at_s=turn.at_s, roots=roots, kinds=kinds)
            for call in turn.calls
        ]
        if len(found) >= MAX_STEPS:
            return tuple(found[:MAX_STEPS])
    return tuple(found)


def _said(response: dict[str, Any]) -> tuple[str, tuple[ModelCall, ...]]:
    """Text and tool calls of an answer of any of the APIs."""
    texts: list[str] = []
    calls: list[ModelCall] = []
    for part in _parts(response):
        function = mapping(part.get("function") or part.get("functionCall"))
        name = part.get("name") or function.get("name")
        if isinstance(name, str):
            space = part.get("namespace")  # of a server's tools
            calls.append(ModelCall(f"{space}__{name}" if space else name, _arguments(part, function)))
        elif isinstance(part.get("text"), str) and not part.get("thought"):
            texts.append(part["text"])
    return " ".join(texts), tuple(calls)


def _parts(response: dict[str, Any]) -> list[dict[str, Any]]:
    """Messages: content. Responses: output, whose messages have content. Chat: choices. Gemini: candidates."""
    found = objects(response.get("content"))
    for item in objects(response.get("output")):
        found += objects(item.get("content")) if item.get("type") == "message" else [item]
    for choice in objects(response.get("choices")):
        message = mapping(choice.get("message"))
        found += [{"text": message.get("content")}, *objects(message.get("tool_calls"))]
    for candidate in objects(response.get("candidates")):
        found += objects(mapping(candidate.get("content")).get("parts"))
    return found


def _arguments(part: dict[str, Any], function: dict[str, Any]) -> dict[str, Any]:
    """An object, or a text that holds one; any other text is under "input"."""
    places = (part.get("input"), part.get("arguments"), function.get("arguments"), function.get("args"))
    text = next((given for given in places if isinstance(given, str)), None)
    if text is not None:
        return json_object(text) or {"input": text}
    objects_given = [mapping(given) for given in places]
    return next((found for found in objects_given if found), dict[str, Any]())
