"""Filling in a task file changes the three fields and not one other character."""

from __future__ import annotations

import difflib

import pytest
import yaml

from trialfleet_runner.errors import OperatorError
from trialfleet_runner.task import Status
from trialfleet_runner.validate.write import filled_in

TEXT = """\
# The head.
repo:
    url: "https://example.org/a/b"   # quoted, indented by four

tasks:
  # First task
  - id: one   # trailing
    fail_to_pass: []   # none yet
    prompt_source: issue
    issue: |
      Two lines,
        # not a comment

      of text.

  # Second task

  - prompt_source: failing_test
    id: two
    test_file: "tests/test_a.py"
    pass_to_pass:
      # old ones
      - tests/test_a.py::test_old
      - "tests/test_a.py::test_odd[a: b]"

    # about the status
    status: unvalidated
    contexts: {flat: x,
               tree: y}
# The foot.
"""
FAIL = ["tests/test_a.py::test_x[a #1: b]", "tests/test_a.py::TestB::test_y", 'tests/test_a.py::test_z[é\\n"]']


def fill(text: str, index: int) -> str:
    return filled_in(text, index, status=Status.VALIDATED, fail_to_pass=FAIL, pass_to_pass=["b::c"])


def removed_and_added(old: str, new: str) -> tuple[list[str], list[str]]:
    lines = list(difflib.ndiff(old.splitlines(), new.splitlines()))
    return [x[2:] for x in lines if x[0] == "-"], [x[2:] for x in lines if x[0] == "+"]


@pytest.mark.parametrize("index", [0, 1])
def test_the_fields_are_set_and_all_else_is_equal(index: int) -> None:
    new = yaml.safe_load(fill(TEXT, index))
    wanted = yaml.safe_load(TEXT)
    wanted["tasks"][index] |= {"status": "validated", "fail_to_pass": FAIL, "pass_to_pass": ["b::c"]}
    assert new == wanted


def test_only_the_lines_of_the_old_values_go() -> None:
    gone, _ = removed_and_added(TEXT, fill(TEXT, 0))
    assert gone == ["    fail_to_pass: []   # none yet"]
    gone, added = removed_and_added(TEXT, fill(TEXT, 1))
    assert gone == [
        "      # old ones",
        "      - tests/test_a.py::test_old",
        '      - "tests/test_a.py::test_odd[a: b]"',
        "    status: unvalidated",
    ]
    assert "    status: validated" in added
    assert "    # about the status" in fill(TEXT, 1).split("\n")


def test_filling_in_twice_changes_nothing_more() -> None:
    once = fill(fill(TEXT, 0), 1)
    assert fill(fill(once, 0), 1) == once


def test_a_file_without_a_last_newline() -> None:
    text = "repo: {}\ntasks:\n- id: one\n  prompt_source: issue"
    assert yaml.safe_load(fill(text, 0))["tasks"][0]["fail_to_pass"] == FAIL


def test_a_value_that_is_written_differently_but_equal_stays() -> None:
    lists = "    fail_to_pass: ['a',\n       b]\n    pass_to_pass: []\n"
    text = f"tasks:\n  - id: one\n    status: 'validated'\n{lists}"
    assert filled_in(text, 0, status=Status.VALIDATED, fail_to_pass=["a", "b"], pass_to_pass=[]) == text


def test_a_task_in_one_line_is_left_to_its_author() -> None:
    with pytest.raises(OperatorError, match="not written as lines"):
        fill("tasks:\n  - {id: one}\n", 0)


ALIASES = """\
repo:
  _environment: &env
    lock: a.txt
  environment: *env
tasks:
  - id: one
    environment: *env
  - id: two
    environment:
      <<: *env
      setup: []
  # the end
"""


@pytest.mark.parametrize("index", [0, 1])
def test_a_last_value_that_stands_elsewhere(index: int) -> None:
    new = fill(ALIASES, index)
    assert yaml.safe_load(new)["tasks"][index]["fail_to_pass"] == FAIL
    assert removed_and_added(ALIASES, new)[0] == []
