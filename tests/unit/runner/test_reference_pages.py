"""Reference pages say what the code says."""

from __future__ import annotations

import re
from enum import IntEnum
from pathlib import Path

import pytest

from trialfleet_agents.claude_code import agent as claude_code
from trialfleet_agents.context_files import is_context_file
from trialfleet_controller.backends.kube import reasons
from trialfleet_ledger.attempt_ends import END_RULES
from trialfleet_ledger.exit_codes import CommandExit, RunnerExit
from trialfleet_tasks.taskfile import load_all, tasks_of

ROOT = Path(__file__).parents[3]


def page(name: str) -> str:
    return (ROOT / "docs/reference" / name).read_text()


def section(text: str, heading: str) -> str:
    return re.split(r"^## ", text.split(f"## {heading}\n")[1], flags=re.MULTILINE)[0]


def test_every_reason_that_a_pod_waits_for_is_listed() -> None:
    known = reasons.BAD_REFERENCE | reasons.MISCONFIGURED | reasons.PULLING | reasons.CREATING - {""}
    assert [reason for reason in sorted(known) if f"`{reason}`" not in page("pods.md")] == []


def test_the_page_has_every_event_that_ends_an_attempt() -> None:
    rows = re.findall(
        r"^\| (.+) \| (.+) \| (?:`(\w+)`|a verdict).* \|$",
        section(page("ledger.md"), "What ends an attempt, and who has seen it"),
        re.MULTILINE,
    )
    table = [(str(event), rule.witness, rule.loss.value if rule.loss else "") for event, rule in END_RULES.items()]
    assert rows == table


def test_the_hook_fires_after_the_tools_that_the_page_names() -> None:
    named = re.search(r"After ([\w, ]+), the covering node", section(page("conditions.md"), "The hook"))
    assert named is not None
    assert re.split(r", | or ", named[1]) == claude_code.HOOK_TOOLS.split("|")


def test_the_search_agents_page_measures_every_quick_start_task() -> None:
    text = page("search-agent.md")
    rows = re.findall(r"^\| ([a-z]+-[a-z-]+) \|", section(text, "What it solves without context"), re.MULTILINE)
    every = tasks_of(load_all(sorted((ROOT / "tasks/quickstart/tasks").glob("*.yaml"))))
    assert sorted(rows) == sorted(task.id for task in every)
    assert not re.search(r"of (8|eight) quick-start", text)


def test_both_pages_say_the_same_of_the_fail_fast_hook() -> None:
    words = "the third identical test or build command with nothing edited since the first"
    for name in ("conditions.md", "campaign-file.md"):
        assert words in " ".join(page(name).split()), name


@pytest.mark.parametrize("arrives", [True, False])
def test_the_page_says_what_of_a_context_folder_arrives(arrives: bool) -> None:
    rows = re.findall(
        r"^\| (.+?) \| (yes|refused) \|",
        section(page("conditions.md"), "What arrives in the workspace"),
        re.MULTILINE,
    )
    names = [name for cell, said in rows if (said == "yes") is arrives for name in re.findall(r"`([^`]+)`", cell)]
    assert len(names) >= 3
    paths = [name.replace("…", "rules").replace("*", "team").rstrip("/") for name in names if name != ".claude/"]
    assert [path for path in paths if is_context_file(path) is not arrives] == []


PAGE = Path(__file__).parents[3] / "docs/reference/exit-codes.md"


@pytest.mark.parametrize(("section", "codes"), [(1, CommandExit), (2, RunnerExit)])
def test_the_page_lists_every_code_once(section: int, codes: type[IntEnum]) -> None:
    text = PAGE.read_text().split("\n## ")[section]
    assert re.findall(r"^\| (\d+) \|", text, re.MULTILINE) == [str(code.value) for code in codes]
