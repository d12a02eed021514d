"""The offline agent's pre-flight: deterministic, read-only, and in the form of a model's pre-flight."""

from __future__ import annotations

import io
import json
from pathlib import Path

from trialfleet_deliveries.preflight import asked, parse
from trialfleet_ledger.records.measurements import PreflightResult
from trialfleet_search.config import Config
from trialfleet_search.preflight_agent import format_answer, matching_functions, run_preflight, words
from trialfleet_search.transcript import Transcript

RULES = b"""\
def total(prices, discount=None):
    amount = sum(prices)
    return amount - amount * discount / 0


def cheapest(prices):
    return min(prices)
"""
TASK = "The discount of a total is wrong: ZeroDivisionError.\n"


def preflight(tmp_path: Path, files: dict[str, bytes], max_turns: int = 9) -> list[dict[str, object]]:
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    out = io.StringIO()
    config = Config(
        tmp_path, asked(TASK, sorted(files)), "", 1, max_turns, 9.0, (), None, tmp_path, preflight=True
    )
    run_preflight(config, Transcript(out, max_turns))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_the_function_that_the_task_is_about_comes_first(tmp_path: Path) -> None:
    *reads, end = preflight(tmp_path, {"rules.py": RULES, "other.py": b"def left(item):\n    return len(item)\n"})
    assert [(line["kind"], line["path"]) for line in reads] == [("read", "other.py"), ("read", "rules.py")]
    said = parse(str(end["answer"]), {"rules.py", "other.py"})
    assert said.result is PreflightResult.FOUND
    assert (said.findings[0].file, said.findings[0].line, said.findings[0].function) == ("rules.py", 1, "total")
    assert end["stop"] == "finished"


def test_what_is_no_python_or_shares_nothing_is_uncertain(tmp_path: Path) -> None:
    *_, end = preflight(
        tmp_path, {"a.py": b"def (", "b.py": b"def left(item):\n    return len(item)\n", "c.py": b"\xff"}
    )
    assert parse(str(end["answer"]), {"a.py", "b.py", "c.py"}).result is PreflightResult.UNCERTAIN


def test_turns_end_it(tmp_path: Path) -> None:
    lines = preflight(tmp_path, {"a.py": RULES, "b.py": RULES}, max_turns=1)
    assert (lines[-1]["stop"], lines[-1]["turns"]) == ("max_turns", 1)
    assert "FILE: a.py" in str(lines[-1]["answer"])


def test_a_tie_is_settled_by_path_and_line() -> None:
    places = [*matching_functions("b.py", RULES, words(TASK)), *matching_functions("a.py", RULES, words(TASK))]
    assert format_answer(places) == format_answer(places[::-1])
    assert format_answer(places).startswith("FILE: a.py")
