"""No refusal of a file that people write is without a way out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from trialfleet_runner import yamlfile
from trialfleet_runner.campaign import CampaignSpec
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.task import TaskFile

SHA, DIGEST = "a" * 40, "b" * 64
CAMPAIGN = """\
campaign: demo
seed: 1
tasks: [tasks/*.yaml]
conditions: [none, flat_llm]
reps: 5
agent: {kind: nop}
store: out
"""
TASKS = f"""\
repo:
  url: https://example.org/a/b
  environment: {{lock: lock.txt}}
tasks:
  - id: one
    pre_fix_commit: {SHA}
    fix_commit: {SHA}
    prompt_source: failing_test
    test_file: tests/test_a.py
  - id: two
    source:
      kind: sdist
      pre_fix: a==1
      pre_fix_sha256: {DIGEST}
      fixed: a==2
      fixed_sha256: {DIGEST}
      files: [a.py]
    prompt_source: issue
    issue: It breaks.
"""


def refusal(folder: Path, model: type[BaseModel], text: str | bytes) -> OperatorError:
    path = folder / "file.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(OperatorError) as caught:
        yamlfile.load(path, model)
    return caught.value


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("reps: 5", "reps: 0", "set it to 1 or more"),
        ("reps: 5", "reps: 1.5", "without a decimal point"),
        ("seed: 1", "seed: -1", "set it to 0 or more"),
        ("campaign: demo", "campaign: a/b", "letters, digits"),
        (
            "store: out",
            "store: out\nlimits: {memory: 1Gb}",
            "write 4Gi, 500Mi or a number of bytes; the units are k,",
        ),
        ("store: out", "store: out\nlimits: {memory: 0}", "set it to more than 0"),
        ("store: out", "store: out\nlimits: {memory: null}", ""),
        ("store: out", "store: out\nlimits: 5", "write {key: value}"),
        ("store: out", "store: out\nbackend: moon", "choose one of 'local'"),
        ("store: out", "store: out\nallow_no_oracle: maybe", "write true or false"),
        ("store: out", "store: out\nprimary: {treatment: x, control: none}", "choose one of none, flat_llm"),
        ("store: out", "store: out\nprimary: {treatment: none, control: none}", "name two conditions"),
        ("[none, flat_llm]", "[none, none]", "keep one of the two"),
        ("[none, flat_llm]", "none", "write [a, b]"),
        ("[tasks/*.yaml]", "tasks.yaml", "write [a, b]"),
        ("[tasks/*.yaml]", "[]", "give at least 1"),
        ("store: out", "store: {{ out }}", "braces of a template need quotes"),
        ("seed: 1", "seed: .nan", "in digits"),
        ("seed: 1", "seed: !!binary aGk=", "plain text"),
        ("seed: 1", "seed: !!int x", "in quotes"),
        ("seed: 1", "<<: 1", "mapping"),
    ],
)
def test_of_a_campaign_file(tmp_path: Path, old: str, new: str, hint: str) -> None:
    assert old in CAMPAIGN
    error = refusal(tmp_path, CampaignSpec, CAMPAIGN.replace(old, new))
    assert error.hint
    assert hint in error.hint


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (f"pre_fix_sha256: {DIGEST}", "pre_fix_sha256: abc", "all 64 lower-case hexadecimal digits"),
        (f"fixed_sha256: {DIGEST}", f"fixed_sha256: {'Z' * 64}", "all 64 lower-case hexadecimal digits"),
        (f"pre_fix_commit: {SHA}", "pre_fix_commit: abcdef1", "all 40 lower-case hexadecimal digits"),
        (f"    pre_fix_commit: {SHA}\n", "", "add the one that is missing"),
        ("pre_fix: a==1", "pre_fix: a>=1", "name==version"),
        ("tests/test_a.py", "../../x", "from the repository's root"),
        ("tests/test_a.py", "/etc/x", "from the repository's root"),
        ("    test_file: tests/test_a.py\n", "", "add `test_file:`"),
        ("    issue: It breaks.\n", "", "add `issue: |` with the text"),
        ("    issue: It breaks.\n", "    issue_number: 7\n", "issue_number is a note only"),
        ("kind: sdist", "kind: tarball", "choose one of 'git', 'sdist', 'path'"),
        ("      kind: sdist\n", "", "which kind"),
        ("prompt_source: issue", "prompt_source: guess", "choose one of 'failing_test'"),
        ("id: one", "id: 1", "put it in quotes"),
        ("id: one", "id: one two", "letters, digits"),
        ("files: [a.py]", "files: []", "give at least 1"),
        ("id: one", "id: one\n    anchor: {file: a.py}", ""),
    ],
)
def test_of_a_task_file(tmp_path: Path, old: str, new: str, hint: str) -> None:
    assert old in TASKS
    error = refusal(tmp_path, TaskFile, TASKS.replace(old, new, 1))
    assert error.hint
    assert hint in error.hint


@pytest.mark.parametrize(
    "content",
    [
        b"\x7fELF\x02\x01\x01\x00\xff\xfe",
        b"\x00\x01\x02",
        b"a: \x07",
        b"- a\n",
        b"",
        b"a: [1",
        b"a: *b",
        b"[" * 800,
    ],
    ids=["binary", "control characters", "a bell", "list", "empty", "open bracket", "no anchor", "deep"],
)
def test_of_what_is_no_such_file_at_all(tmp_path: Path, content: bytes) -> None:
    assert refusal(tmp_path, CampaignSpec, content).hint


def test_every_refusal_in_the_reader_is_written_with_a_hint() -> None:
    """Also those that no table above reaches."""
    source = Path(yamlfile.__file__).read_text()
    calls = re.split(r"\bOperatorError\(", source)[1:]
    assert len(calls) > 10
    assert all("hint=" in call.split("OperatorError")[0][:500] for call in calls)
