"""Claude Code's `--output-format stream-json`, read line by line. Field names: measured with the
version of `pinned.tsv`.

An answer of the model arrives as several `assistant` events, one per content block, with the same message id and
the counts of the answer's *start*; `result`, the last event, has the true sums. `num_turns` there counts tool
results too, so turns are counted from message ids. Of a sub-agent that the model waits for, answers without a
tool call are in no event: the gateway counts one turn more than this file shows. Of one in the background all are.
When such a sub-agent outlives the loop's last answer, the loop begins again and there are several `result` events,
each with the sums so far.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from trialfleet_agents.sandbox_env import stop_of
from trialfleet_agents.shell_command import read_command
from trialfleet_ledger.prices import bare
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_ledger.token_usage import TokenUsage, count, messages_usage
from trialfleet_ledger.trajectory import MAX_STEPS, Parsed, Step
from trialfleet_ledger.untrusted import ANSWER_CHARS, finite, json_object, lines, mapping, objects, plain, relative
from trialfleet_sandbox.protocol import Exit

Kind = Literal["message", "read", "edit", "run", "search", "hook", "other"]

_KINDS: dict[str, Kind] = {
    "Read": "read",
    "NotebookRead": "read",
    "Edit": "edit",
    "MultiEdit": "edit",
    "Write": "edit",
    "NotebookEdit": "edit",
    "Bash": "run",
    "Grep": "search",
    "Glob": "search",
    "LS": "search",
}
_MODEL_USAGE = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
_SYNTHETIC = "<synthetic>"  # the program's own words where an answer should be


@dataclass(frozen=True)
class _Known:
    """What the gateway noted of one answer: its turn, seconds since it opened, and the final counts."""

    turn: int | None
    at_s: float | None
    usage: TokenUsage


@dataclass
class _StreamReader:
    known: dict[str, _Known]
    roots: tuple[str, ...]
    model: str | None = None
    turn_of: dict[str, int] = field(default_factory=dict[str, int])  # message id -> turn, in order
    usage: dict[str, TokenUsage] = field(default_factory=dict[str, TokenUsage])
    steps: list[Step] = field(default_factory=list[Step])
    step_of: dict[str, int] = field(default_factory=dict[str, int])  # tool use id -> place in steps
    result: dict[str, Any] | None = None
    malformed: int = 0
    turns: int = 0

    def read(self, stream: Path) -> None:
        for line in lines(stream):
            event = json_object(line)
            self.malformed += not event and bool(line.strip())
            self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        match event.get("type"):
            case "system" if event.get("subtype") == "init":
                self._begin(event)
            case "assistant":
                self._message(mapping(event.get("message")))
            case "user":
                self._results(mapping(event.get("message")))
            case "result":
                self.result = event
            case _:
                pass

    def _begin(self, event: dict[str, Any]) -> None:
        """The working directory is the workspace as the program sees it."""
        if isinstance(event.get("cwd"), str) and event["cwd"] not in self.roots:
            self.roots = (event["cwd"], *self.roots)
        if isinstance(event.get("model"), str):
            self.model = bare(event["model"])

    def _message(self, message: dict[str, Any]) -> None:
        name, model = message.get("id"), message.get("model")
        if not isinstance(name, str) or model == _SYNTHETIC:
            return
        known = self.known.get(name)
        if name not in self.turn_of:
            self.turns += self.model is None or not isinstance(model, str) or bare(model) == self.model
            self.turn_of[name] = (known.turn if known else None) or max(1, self.turns)
        self.usage[name] = messages_usage(mapping(message.get("usage")))
        turn, at_s = self.turn_of[name], known.at_s if known else None
        for block in objects(message.get("content")):
            step = self._step(block, turn, at_s)
            if step is None:
                continue
            use = block.get("id")
            if isinstance(use, str):
                if use in self.step_of:
                    continue
                self.step_of[use] = len(self.steps)
            if len(self.steps) < MAX_STEPS:
                self.steps.append(step)

    def _step(self, block: dict[str, Any], turn: int, at_s: float | None) -> Step | None:
        if block.get("type") == "text" and isinstance(block.get("text"), str):
            return Step(turn=turn, at_s=at_s, kind="message", detail=plain(block["text"]))
        if block.get("type") != "tool_use":
            return None
        name, given = str(block.get("name")), mapping(block.get("input"))
        path = _first(given, "file_path", "notebook_path", "path")
        kind, detail = _KINDS.get(name, "other"), _first(given, "skill", "command", "pattern", "description")
        if kind == "run" and detail is not None:
            kind, path = read_command(detail)
        return Step(
            turn=turn,
            at_s=at_s,
            kind=kind,
            tool=plain(name, 100),
            path=None if path is None else relative(path, self.roots),
            detail=None if detail is None else plain(detail),
        )

    def _results(self, message: dict[str, Any]) -> None:
        """An edit or a read that failed did not happen."""
        for block in objects(message.get("content")):
            place = self.step_of.get(str(block.get("tool_use_id")))
            if place is None or place >= len(self.steps) or block.get("is_error") is not True:
                continue
            if self.steps[place].kind in ("edit", "read"):
                words = f"failed: {_words(block.get('content'))}"
                self.steps[place] = self.steps[place].model_copy(update={"kind": "other", "detail": plain(words)})

    def summed(self) -> TokenUsage:
        """Over messages; the counts of an answer's end where the gateway noted them."""
        total = TokenUsage()
        for name, claimed in self.usage.items():
            total += self.known[name].usage if name in self.known else claimed
        return total


def parse_stream(record: Path, ended: Exit | None, workspace: Path) -> Parsed:
    """Everything that `record/stdout` says; partial and malformed lines are counted and skipped.

    Without a `result` event (time-out, crash) tokens are summed per message, cost is None and the sandbox says
    why it stopped.
    """
    reader = _StreamReader(known=_known(record / "answers.jsonl"), roots=(str(workspace),))
    reader.read(record / "stdout")
    result = reader.result
    usage = reader.summed() if result is None else _of_result(result)
    seen = bool(reader.turn_of) or result is not None
    return Parsed(
        steps=tuple(reader.steps),
        turns=reader.turns if seen else None,
        tool_calls=len(reader.step_of) if seen else None,
        **(usage.by_kind() if seen else {}),
        cost_usd=_cost(result),
        stop=_stop(result, ended),
        malformed_lines=reader.malformed,
        answer=_answer(result),
    )


def _of_result(result: dict[str, Any]) -> TokenUsage:
    """Sums over models where given: the plain `usage` leaves out answers that were not streamed."""
    models = mapping(result.get("modelUsage"))
    total = TokenUsage()
    for entry in map(mapping, models.values()):
        total += TokenUsage.of_kinds(entry, _MODEL_USAGE)
    return total if models else messages_usage(mapping(result.get("usage")))


def _answer(result: dict[str, Any] | None) -> str | None:
    said = None if result is None else result.get("result")
    return plain(said, ANSWER_CHARS) if isinstance(said, str) else None


def _cost(result: dict[str, Any] | None) -> float | None:
    return None if result is None else finite(result.get("total_cost_usd"))


def _stop(result: dict[str, Any] | None, ended: Exit | None) -> Stop | None:
    if result is None:
        said = stop_of(ended)
        return Stop.ERROR if said is Stop.FINISHED else said  # it never leaves without a result by itself
    match result.get("subtype"):
        case "error_max_turns":
            return Stop.MAX_TURNS
        case "error_max_budget_usd":
            return Stop.COST
        case "success" if not result.get("is_error"):
            return Stop.FINISHED
        case _:
            return Stop.ERROR


def _known(path: Path) -> dict[str, _Known]:
    """The gateway's lines by message id; none when the attempt had no gateway."""
    found: dict[str, _Known] = {}
    for line in lines(path):
        row = json_object(line)
        name, usage = row.get("id"), TokenUsage.of_kinds(row)
        if isinstance(name, str) and name:
            found[name] = _Known(count(row, "turn") or None, finite(row.get("at_s")), usage)
    return found


def _first(given: dict[str, Any], *keys: str) -> str | None:
    return next((value for key in keys if isinstance(value := given.get(key), str) and value), None)


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    return " ".join(block["text"] for block in objects(content) if isinstance(block.get("text"), str))
