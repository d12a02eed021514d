"""Trials of agents that write anything where they are read: from their output to a report, without running them.

A campaign of these is a function of its seed. What is random is what an agent has a say in: its output, the hooks'
logs, the live log, the members of its bundle and, as if somebody else had been at the store, the bundle itself.
"""

from __future__ import annotations

import io
import json
import random
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from backports import zstd

from tests.support import ledgers as made
from trialfleet_agents.claude_code.parse import parse_stream
from trialfleet_agents.protocol import Identity
from trialfleet_agents.search import SearchAgent
from trialfleet_agents.trajectory import read_trajectory
from trialfleet_deliveries.composed import Composed
from trialfleet_deliveries.hook_log import denials, read_hook_log
from trialfleet_ledger.bundle import capped
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.display_text import visible
from trialfleet_ledger.live_output import inflated
from trialfleet_ledger.records.attempt import Patch
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.measurements import Delivery
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Stop, Verdict
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.trajectory import Parsed, WorkspaceChange
from trialfleet_repository.patch import WorkspacePatch as Diff
from trialfleet_runner.attempt.agent_run import AgentRun, stopped
from trialfleet_runner.attempt.patch_record import delivered, jsonl, measured
from trialfleet_sandbox.protocol import Exit

Draw = random.Random

NUMBERS = ("0", "-1", "1", "2", "17", "1e400", "-1e400", "NaN", "Infinity", "-0.0", "1e308", "5e-324", "9" * 400)
NUMBERS += (str(2**53), str(2**53 + 1), str(2**63), str(-(2**63)), "1.5", "true", "null", "[]", "{}")
TEXTS = (
    "",
    "x",
    "a.py",
    "/etc/passwd",
    "../..",
    "AGENTS.md",
    "<script>alert(1)</script>",
    "|a|b|",
    "=cmd()",
    "\\ud800",
)
TEXTS += ("\\u0000", "\\u001b[2J", "\\u202e", "n" * 5000, "%s%n", "CLAUDE.md", "search", "finished", "ATIF-1.5")
KINDS = ("message", "read", "edit", "run", "search", "hook", "other", "", "kind")
STEP = ("turn", "kind", "at_s", "tool", "path", "detail", "stop", "answer")
FIRING = ("at", "tool", "path", "node", "emitted", "chars", "rule", "denied")
BLOCK = ("type", "id", "name", "input", "tool_use_id", "is_error", "content", "text")
EVENT = (
    "type",
    "subtype",
    "message",
    "result",
    "total_cost_usd",
    "modelUsage",
    "usage",
    "cwd",
    "model",
    "num_turns",
)
MESSAGE = ("id", "model", "content", "usage", "role")
USAGE = ("input_tokens", "output_tokens", "cache_read_input_tokens", "inputTokens", "outputTokens")
CALL = ("function_name", "arguments", "tool_call_id")
ENTRY = ("source", "timestamp", "message", "tool_calls", "step_id")
TOTALS = ("total_prompt_tokens", "total_cached_tokens", "total_completion_tokens", "total_cost_usd")


def text(draw: Draw) -> str:
    return json.dumps(draw.choice(KINDS)) if draw.random() < 0.3 else f'"{draw.choice(TEXTS)}"'


def value(draw: Draw, depth: int = 0) -> str:
    """Some JSON, not always well-formed."""
    chosen = draw.random()
    if chosen < 0.5 or depth > 3:
        return draw.choice(NUMBERS)
    if chosen < 0.85:
        return text(draw)
    if chosen < 0.86:
        return "[" * 3000 + "]" * draw.choice((3000, 2999))
    inner = [value(draw, depth + 1) for _ in range(draw.randrange(3))]
    return f"[{', '.join(inner)}]"


def record(draw: Draw, names: tuple[str, ...], **given: str) -> str:
    """An object with some of the names, each of any value; `given` are as they should be, mostly."""
    fields = {name: value(draw) for name in names if draw.random() < 0.6}
    fields |= {name: said for name, said in given.items() if draw.random() < 0.9}
    return "{" + ", ".join(f'"{name}": {said}' for name, said in fields.items()) + "}"


def step(draw: Draw) -> str:
    turn = draw.choice((str(draw.randint(0, 9)), value(draw)))
    return record(draw, STEP, turn=turn, kind=json.dumps(draw.choice(KINDS)), path=text(draw))


def event(draw: Draw) -> str:
    """Of Claude Code's stream."""
    role = draw.choice(("assistant", "user", "system", "result"))
    if role == "result":
        usage = f'{{"m": {record(draw, USAGE)}}}'
        subtype = json.dumps(draw.choice(("success", "error_max_turns", "")))
        return record(draw, EVENT, type='"result"', subtype=subtype, modelUsage=usage)
    if role == "system":
        return record(draw, EVENT, type='"system"', subtype='"init"')
    kind = json.dumps(draw.choice(("text", "tool_use", "tool_result")))
    tool = json.dumps(draw.choice(("Read", "Edit", "Bash")))
    block = record(
        draw, BLOCK, type=kind, id=f'"u{draw.randrange(4)}"', name=tool, input=record(draw, ("file_path",))
    )
    message = record(draw, MESSAGE, id=f'"m{draw.randrange(4)}"', content=f"[{block}]", usage=record(draw, USAGE))
    return record(draw, EVENT, type=f'"{role}"', message=message)


def document(draw: Draw) -> str:
    """An ATIF document."""
    entries = [
        record(
            draw, ENTRY, source='"agent"', tool_calls=f"[{record(draw, CALL)}]", timestamp='"2026-01-01T00:00:0'
        )
        if draw.random() < 0.05
        else record(draw, ENTRY, source='"agent"', tool_calls=f"[{record(draw, CALL, function_name=text(draw))}]")
        for _ in range(draw.randrange(4))
    ]
    totals = record(draw, TOTALS)
    return f'{{"schema_version": "ATIF-1.5", "steps": [{", ".join(entries)}], "final_metrics": {totals}}}'


def _seen(draw: random.Random) -> list[WorkspaceChange] | None:
    """Of the workspace; None: it was not watched."""
    kinds: list[Literal["added", "changed", "removed"]] = ["added", "changed", "removed"]
    seen = [
        WorkspaceChange(
            path=noise(draw), how=draw.choice(kinds), turn=draw.choice((None, 1, 7)), at_s=draw.uniform(0, 1e6)
        )
        for _ in range(draw.randrange(4))
    ]
    return draw.choice((None, seen))


def noise(draw: Draw) -> str:
    return draw.randbytes(draw.randrange(40)).decode("latin-1")


def log(draw: Draw, *lines: Callable[[Draw], str]) -> bytes:
    """Lines, some of them cut or of any bytes."""
    said = [draw.choice((*lines, *lines, *lines, noise))(draw) for _ in range(draw.randrange(12))]
    if draw.random() < 0.3:
        said = [line[: draw.randrange(len(line) + 1)] for line in said]
    return "\n".join(said).encode("utf-8", "replace") + draw.choice((b"", b"\n", b"\r\n", b"\xff\n"))


def damaged(draw: Draw, data: bytes) -> bytes:
    """A bundle that somebody has been at."""
    cut = draw.randrange(len(data))
    other = io.BytesIO()
    with tarfile.open(fileobj=other, mode="w") as tar:
        link = tarfile.TarInfo(draw.choice(("manifest.json", "../x", "/x", "x")))
        link.type, link.linkname = draw.choice((tarfile.SYMTYPE, tarfile.REGTYPE, tarfile.FIFOTYPE)), "/etc/passwd"
        tar.addfile(link)
    return draw.choice(
        (
            data[:cut],
            data[:cut] + draw.randbytes(1) + data[cut + 1 :],
            data + b"more",
            draw.randbytes(64),
            zstd.compress(b"0" * 300_000_000) if draw.random() < 0.02 else zstd.compress(b"0" * 3_000),
            zstd.compress(other.getvalue()),
            zstd.compress(draw.randbytes(600)),
        )
    )


@dataclass(frozen=True)
class Hostile:
    """One trial's writings, in a folder as an agent leaves them."""

    draw: Draw
    folder: Path

    def parsed(self) -> Parsed:
        out = log(self.draw, step, event, document)
        if self.draw.random() < 0.2:
            out = document(self.draw).encode("utf-8", "replace")
        (self.folder / "stdout").write_bytes(out)
        (self.folder / "answers.jsonl").write_bytes(
            log(self.draw, lambda draw: record(draw, ("id", "turn", "at_s")))
        )
        ended = Exit(self.draw.choice((0, 1, 130, 137)), "itself", 1.0, 0.5)
        return self.draw.choice(
            (
                lambda: read_trajectory(self.folder / "stdout", self.folder),
                lambda: parse_stream(self.folder, ended, self.folder),
                lambda: SearchAgent().parse(self.folder, ended, self.folder),
            )
        )()

    def patch(self, grants: Grants) -> Patch:
        for name in ("hook.jsonl", "fail_fast.jsonl"):
            (self.folder / name).write_bytes(log(self.draw, lambda draw: record(draw, FIRING, tool='"Read"')))
        hook = read_hook_log(self.folder / "hook.jsonl")
        parsed, ended = self.parsed(), Exit(0, "itself", 1.0, 0.5)
        composed = Composed("", None, {}, None, {}, Delivery())
        identity = Identity(kind="command", version="1", digest="0" * 64)
        run = AgentRun(identity, parsed, ended, None, stopped(ended, None, parsed), composed)
        diff = log(self.draw, noise).decode("utf-8", "replace")
        left = Diff(diff, (), (), ())
        trajectory, _ = jsonl(parsed.steps)
        patch = Patch(
            trial="t", attempt=1, nonce="n", at=0, diff=diff, stop=run.stop, trajectory_jsonl=trajectory,
            metrics=measured(
                grants, run, left, hook, denials(self.folder / "fail_fast.jsonl"), _seen(random.Random(diff))
            ),
            delivery=delivered(Delivery(), {}, None, None),
        )  # fmt: skip
        return Patch.model_validate_json(canonical_json(patch))

    def members(self, patch: Patch) -> dict[str, bytes]:
        files = {name: (self.folder / name).read_bytes() for name in ("hook.jsonl", "fail_fast.jsonl")}
        files["agent/stdout.log"] = capped((self.folder / "stdout").read_bytes()).data
        return files | {"patch.diff": patch.diff.encode(), "trajectory.jsonl": patch.trajectory_jsonl.encode()}

    def look_at_the_live_log(self) -> None:
        whole = zstd.compress((self.folder / "stdout").read_bytes())
        raw = self.draw.choice((whole, damaged(self.draw, whole)))
        visible(inflated(raw))


def order() -> Grants:
    """What measuring needs of an attempt's order, for a condition with a hook."""
    frozen = made.plan(("alpha",), ("intent_layer",))
    condition = frozen.cells[0].condition.model_copy(update={"hook": "on_read", "fail_fast": True})
    task = frozen.tasks[0].order.model_copy(update={"targets": ("a.py",)})
    return Grants.model_construct(condition=condition, task=task, prediction=None)


@dataclass(frozen=True)
class Left:
    """A hostile campaign in a store. `broken`: trials whose bundle was damaged; `odd`: those of the others with
    metrics that cannot be."""

    store: DirectoryStore
    trials: int
    broken: int
    odd: int


def hostile_campaign(root: Path, seed: str, *, reps: int) -> Left:
    """Four cells of hostile trials below `root`, by the seed."""
    grants, found = order(), list[made.Fate]()
    (root / "agent").mkdir(parents=True)

    def fate(trial: Trial) -> made.Fate:
        found.append(fate_of(random.Random(f"{seed}/{trial.id}"), root / "agent", grants))
        return found[-1]

    frozen = made.plan(reps=reps, primary=Primary(treatment="intent_layer", control="none"))
    store = made.write(root / "store", frozen, fate)
    whole = [one for one in found if one.stored is None]
    odd = sum(one.metrics.tail_turns == -1 for one in whole)
    return Left(store, len(found), len(found) - len(whole), odd)


def fate_of(draw: Draw, folder: Path, grants: Grants) -> made.Fate:
    """What a hostile trial comes to. `folder`: where it writes."""
    hostile = Hostile(draw, folder)
    patch = hostile.patch(grants)
    hostile.look_at_the_live_log()
    metrics = patch.metrics
    if draw.random() < 0.1:  # by a runner with a fault of its own
        metrics = metrics.model_copy(update={"tail_turns": -1, "turns": 2**70})
    return made.Fate(
        verdict=draw.choice(list(Verdict)),
        stop=draw.choice((patch.stop, Stop.CRASHED)),
        metrics=metrics,
        delivery=patch.delivery,
        files=hostile.members(patch),
        stored=(lambda data: damaged(draw, data)) if draw.random() < 0.1 else None,
        sealed=draw.random() < 0.5,
    )
