"""What an agent could write where its doings are read: any JSON, and much of it. Reading never fails, for an
exception is a broken harness, which halts the campaign; nor does it take more memory than the runner has."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from trialfleet_agents.claude_code.parse import parse_stream
from trialfleet_agents.search import SearchAgent
from trialfleet_agents.trajectory import read_trajectory
from trialfleet_deliveries.hook_log import denials, read_hook_log
from trialfleet_ledger.trajectory import Parsed
from trialfleet_ledger.untrusted import LINE_BYTES, lines, regular_file
from trialfleet_repository.languages.run_files import RunFiles
from trialfleet_repository.read_results import read_results
from trialfleet_repository.results import junit
from trialfleet_repository.results.limits import ResultError
from trialfleet_runner.attempt.bundle_builder import read_hostile
from trialfleet_runner.attempt.patch_record import jsonl

Record = dict[str, object]

ODD: list[object] = [
    *json.loads(r'[null, true, 0, -1, Infinity, NaN, "", "\ud800", "\u0000", [], [[]], {}, {"a": [{}]}]'),
    10**400,
]
FIRING: Record = {
    "at": 1.5,
    "tool": "Read",
    "path": "a",
    "node": "n",
    "emitted": True,
    "chars": 3,
    "rule": False,
    "denied": True,
}
STEP: Record = {"turn": 1, "kind": "read", "at_s": 0.5, "tool": "x", "path": "a.py", "detail": "x"}
LAST: Record = {"turn": 1, "kind": "message", "detail": "x", "stop": "finished", "answer": "x"}
RESULT: Record = {
    "type": "result",
    "subtype": "success",
    "total_cost_usd": 1,
    "modelUsage": {"m": {}},
    "result": "x",
}
BLOCK: Record = {"type": "tool_use", "id": "u", "name": "Read", "input": {"file_path": "a.py"}}
FAILED: Record = {"type": "tool_result", "tool_use_id": "u", "is_error": True, "content": [{"text": "x"}]}
MESSAGE: Record = {"id": "m", "model": "x", "content": [BLOCK], "usage": {"input_tokens": 1}}
ANSWER: Record = {"id": "m", "turn": 1, "at_s": 0.5, "input_tokens": 1, "output_tokens": 1}
CALL: Record = {"function_name": "read", "arguments": {"path": "a.py"}}
ENTRY: Record = {"source": "agent", "timestamp": "2026-01-01T00:00:00", "message": "m", "tool_calls": [CALL]}
TOTALS: Record = {
    "total_prompt_tokens": 2,
    "total_cached_tokens": 1,
    "total_completion_tokens": 1,
    "total_cost_usd": 1,
}


def odd(record: Record) -> list[Record]:
    """The record, and again with each of its fields holding each odd thing."""
    return [record, *(record | {name: value} for name in record for value in ODD)]


def said(role: str, message: Record) -> Record:
    return {"type": role, "message": message}


LINES: list[Record] = [
    *odd({"type": "system", "subtype": "init", "cwd": "/w", "model": "x"}),
    *(line for message in odd(MESSAGE) for line in odd(said("assistant", message))),
    *(said("assistant", MESSAGE | {"content": [block]}) for block in odd(BLOCK)),
    *(said("user", {"content": [block]}) for block in odd(FAILED)),
    *(line for record in (FIRING, STEP, LAST, ANSWER, RESULT) for line in odd(record)),
]
DOCUMENTS: list[Record] = [
    *odd({"schema_version": "ATIF-1.5", "steps": [ENTRY], "final_metrics": TOTALS}),
    *({"schema_version": "ATIF-1", "steps": [entry]} for entry in odd(ENTRY)),
    *({"schema_version": "ATIF-1", "steps": [ENTRY | {"tool_calls": [call]}]} for call in odd(CALL)),
    *({"schema_version": "ATIF-1", "steps": [], "final_metrics": totals} for totals in odd(TOTALS)),
]


def test_no_line_is_too_odd(tmp_path: Path) -> None:
    for name in ("stdout", "answers.jsonl", "hook.jsonl"):
        (tmp_path / name).write_text("".join(f"{json.dumps(line)}\n" for line in LINES))
    assert read_hook_log(tmp_path / "hook.jsonl").firings
    assert denials(tmp_path / "hook.jsonl")
    for parsed in (
        parse_stream(tmp_path, None, tmp_path),
        SearchAgent().parse(tmp_path, None, tmp_path),
        read_trajectory(tmp_path / "stdout", tmp_path),
    ):
        assert parsed.steps
        jsonl(parsed.steps)[0].encode()


def test_no_result_and_no_document_is_too_odd(tmp_path: Path) -> None:
    for record in (*odd(RESULT), *DOCUMENTS):
        (tmp_path / "stdout").write_text(json.dumps(record))
        parse_stream(tmp_path, None, tmp_path)
        jsonl(read_trajectory(tmp_path / "stdout", tmp_path).steps)[0].encode()


def test_a_time_that_no_float_holds_is_no_firing(tmp_path: Path) -> None:
    line = {"at": 10**400, "tool": "Read", "path": "a", "node": "n", "emitted": True, "chars": 1}
    (tmp_path / "hook.jsonl").write_text(json.dumps(line))
    read = read_hook_log(tmp_path / "hook.jsonl")
    assert (read.firings, read.unreadable) == ((), 1)


def test_a_kind_that_is_no_text_is_malformed(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text(json.dumps({"turn": 1, "kind": ["read"]}))
    assert SearchAgent().parse(tmp_path, None, tmp_path).malformed_lines == 1


READERS: dict[str, Callable[[Path], Parsed]] = {
    "trialfleet_agents.claude_code.parse": lambda folder: parse_stream(folder, None, folder),
    "trialfleet_agents.search": lambda folder: SearchAgent().parse(folder, None, folder),
    "trialfleet_agents.trajectory": lambda folder: read_trajectory(folder / "stdout", folder),
}


@pytest.mark.parametrize("atif", [False, True])
@pytest.mark.parametrize("module", READERS)
def test_all_steps_are_counted_and_not_all_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, atif: bool
) -> None:
    read = READERS[module]
    uses = [(BLOCK | {"id": f"u{n}"}, FAILED | {"tool_use_id": f"u{n}"}, STEP | {"turn": n + 1}) for n in range(9)]
    messages = [
        line
        for n, (block, failed, step) in enumerate(uses)
        for line in (
            said("assistant", MESSAGE | {"id": f"m{n}", "content": [block]}),
            said("user", {"content": [failed]}),
            step,
        )
    ]
    document = {"schema_version": "ATIF-1", "steps": [ENTRY] * 9}
    (tmp_path / "stdout").write_text("".join(f"{json.dumps(one)}\n" for one in ([document] if atif else messages)))
    whole = read(tmp_path)
    monkeypatch.setattr(f"{module}.MAX_STEPS", 4)
    cut = read(tmp_path)
    assert cut.steps == whole.steps[:4]
    assert cut.model_copy(update={"steps": whole.steps}) == whole


def peak_bytes(does: Callable[[], object]) -> int:
    """The most memory that it held at once."""
    tracemalloc.start()
    try:
        does()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_failure_of_many_short_lines_is_read_in_a_few_times_its_size() -> None:
    words = b"xy\n" * 200_000
    data = b'<testsuite><testcase name="a"><failure message="m">%s</failure></testcase></testsuite>' % words
    assert peak_bytes(lambda: junit.parse(data)) < 8 * len(words)
    assert junit.parse(data)[0].outcome == "failed"


@pytest.mark.parametrize("ended", [True, False])
def test_a_line_is_as_long_as_the_runner_can_take_apart(tmp_path: Path, ended: bool) -> None:
    """The densest JSON takes thirty times its length, and the runner's container has 1 GiB."""
    assert 30 * LINE_BYTES <= 2**29
    (tmp_path / "stdout").write_bytes(b"[" + b"{}," * (LINE_BYTES // 3) + b"1]" + b"\n1" * ended)
    assert list(lines(tmp_path / "stdout")) == [b"", *[b"1"] * ended]


@pytest.mark.parametrize("kind", ["folder", "link", "pipe", "nothing"])
def test_what_is_no_file_in_a_files_place_is_not_there(tmp_path: Path, kind: str) -> None:
    """A folder that an agent makes at `hook.jsonl`, or a test at `junit.xml`, must not break the runner."""
    path, secret = tmp_path / "x.xml", tmp_path / "secret"
    secret.write_text("{}\n")
    match kind:
        case "folder":
            path.mkdir()
        case "link":
            path.symlink_to(secret)
        case "pipe":
            os.mkfifo(path)
    assert regular_file(path) is None
    assert (read_hook_log(path).firings, read_hostile(path)) == ((), None)
    with pytest.raises(ResultError, match="no JUnit XML"):
        read_results("pytest", RunFiles(path, path.parent, path.parent, "/workspace", ""))
