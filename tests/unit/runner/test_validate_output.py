"""The failing test's text: the same on every machine and run."""

from __future__ import annotations

import pytest

from trialfleet_runner import prompts
from trialfleet_runner.validate.output import CAP, normalised, tail

RUN_A = """\
\x1b[1m============ test session starts ============\x1b[0m
platform linux -- Python 3.11.7, pytest-8.4.0, pluggy-1.6.0
cachedir: .pytest_cache
rootdir: /var/tmp/scratch-1/workspace
plugins: anyio-4.0
/var/tmp/scratch-1/workspace/src/a.py:3: AssertionError
E   assert <object object at 0x7f3a1c2b4d50> == 1
E   PosixPath('/tmp/pytest-of-root/pytest-17/test_x0/f')
E   at 2026-11-22T01:02:03.456Z, pid 4711
/opt/cache/environments/0123/lib/python3.11/site-packages/x.py:1: in y
-------- generated xml file: /var/tmp/scratch-1/home/junit.xml --------
1 failed, 2 passed in 12.34s (0:00:12)
"""
RUN_B = (
    RUN_A.replace("scratch-1", "scratch-22")
    .replace("0x7f3a1c2b4d50", "0x55d0aa")
    .replace("pytest-of-root/pytest-17", "pytest-of-agent/pytest-3")
    .replace("12.34s (0:00:12)", "0.99s")
    .replace("2026-11-22T01:02:03.456Z", "2027-01-02T11:12:13Z")
    .replace("4711", "12")
    .replace("3.11.7", "3.12.1")
    .replace("/opt/cache", "/home/u/.cache")
)


def places(scratch: str, cache: str) -> dict[str, str]:
    return {
        f"{scratch}/workspace/": "",
        f"{scratch}/workspace": "/workspace",
        f"{scratch}/home": "/home/agent",
        f"{cache}/environments/0123": "/environment",
    }


def test_two_machines_give_the_same_text() -> None:
    one = normalised(RUN_A, places("/var/tmp/scratch-1", "/opt/cache"))
    other = normalised(RUN_B, places("/var/tmp/scratch-22", "/home/u/.cache"))
    assert one == other
    assert "\x1b" not in one
    assert "src/a.py:3: AssertionError" in one.split("\n")
    assert "platform" not in one
    assert one.endswith("1 failed, 2 passed in 0.00s\n")


def test_what_a_test_compares_is_left_alone() -> None:
    text = "E   assert 0.5 == 1.5\nE   - took 3 tries\nE   0xff\n"
    assert normalised(text, {}) == text


@pytest.mark.parametrize("size", [CAP - 1, CAP, CAP + 1, 3 * CAP])
def test_the_tail_is_kept_and_capped(size: int) -> None:
    text = "".join(f"line {n}\n" for n in range(size))[-size:]
    kept = tail(text)
    assert len(kept) <= CAP
    assert kept.endswith(text[-100:])
    assert kept.startswith("[... earlier output cut ...]\nline ") or kept == text


def test_one_endless_line_is_cut_too() -> None:
    assert len(tail("x" * 3 * CAP)) <= CAP


def test_prompts_put_the_output_in_a_fence_that_it_cannot_close() -> None:
    text = prompts.failing_test("before\n````\nnot the end\n")
    assert "\n`````\nbefore\n````\nnot the end\n`````\n" in text
    assert text.endswith("Do not modify the tests.\n")


def test_a_commit_message_loses_its_trailers() -> None:
    text = prompts.commit_message("Fix it (#3)\n\nBecause.\n\nCo-authored-by: A <a@b>\nSigned-off-by: C <c@d>\n")
    assert text.endswith("Fix it (#3)\n\nBecause.\n")
