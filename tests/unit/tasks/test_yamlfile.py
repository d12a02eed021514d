"""Refusals of hand-written YAML name file, line, field and way out."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from trialfleet_ledger.campaign_spec import CampaignSpec
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.base import Frozen
from trialfleet_ledger.task import TaskFile
from trialfleet_tasks import yamlfile
from trialfleet_tasks.yamlfile import load, read

GOOD = """\
campaign: demo
seed: 1
tasks: [tasks/*.yaml]
conditions: [none, flat_llm]
reps: 5
agent: {kind: nop}
store: out
_note: {anything: [1, 2]}
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "campaign.yaml"
    path.write_text(text)
    return path


def test_a_good_file_is_read_and_notes_are_ignored(tmp_path: Path) -> None:
    loaded = read(write(tmp_path, GOOD), CampaignSpec)
    assert loaded.value.reps == 5
    assert loaded.value.conditions == ("none", "flat_llm")
    assert loaded.where("conditions", 1) == f"{tmp_path}/campaign.yaml:4: conditions[1]"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("reps: 5", "reps: 0", (":5: reps", "greater than or equal to 1", "given: 0", "set it to 1 or more")),
        ("store: out", "store: out\nbackend: moon", (":8: backend", "fix: choose one of 'local'")),
        ("[none, flat_llm]", "[]", (":4: conditions", "give at least 1")),
        ("reps: 5", 'reps: "5"', (":5: reps", "must be a whole number", "without quotes")),
        ("reps: 5", "reps: true", (":5: reps", "must be a whole number")),
        ("reps: 5", "rep: 5", (":5: rep: unknown key", "did you mean reps?")),
        ("reps: 5\n", "", ("reps: is required and missing", "add it")),
        ("agent: {kind: nop}", "agent: {kind: nop, version: 3.11}", (":6: agent.version", "put it in quotes")),
        ("[none, flat_llm]", "5", (":4: conditions", "must be a list or must be a mapping")),
        (
            "[none, flat_llm]",
            "{x: {filess: tree}}",
            (":4: conditions.x.filess: unknown key", "did you mean files?"),
        ),
        (
            "[none, flat_llm]",
            "{x: {backend: local}}",
            (":4: conditions.x.backend: unknown key", "move it: this file knows backend at its top level"),
        ),
        ("reps: 5", "reps: 5\nmax_turns: 9", (":6: max_turns", "this file knows max_turns as agent.max_turns")),
        ("store: out", "store: out\nlimits: {imagee: 1}", (":8: limits.imagee", "remove it, or start it with _")),
        ("seed: 1", "seed: 1\nseed: 2", (":3: seed: this key is used twice", "line 2")),
        ("reps: 5", "reps: [5", ("is not YAML",)),
        ("seed: 1", "seed: !!python/object:os.system 1", (":2: seed",)),
        ("seed: 1", "seed: .inf", (":2: seed", "finite")),
        ("store: out", "store: out\nlimits: {memory: 4Gigs}", (":8: limits.memory", "is not a size")),
    ],
)
def test_refusals_name_the_line_and_the_field(tmp_path: Path, old: str, new: str, words: tuple[str, ...]) -> None:
    path = write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(OperatorError) as error:
        load(path, CampaignSpec)
    assert str(error.value).startswith(str(path))
    for word in words:
        assert word in str(error.value)


def test_a_missing_file_a_directory_and_a_list_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path, write(tmp_path, "- 1\n"), write(tmp_path, "")):
        with pytest.raises(OperatorError, match=str(path)):
            load(path, CampaignSpec)


def test_alias_bombs_and_cycles_are_refused(tmp_path: Path) -> None:
    lines = ["_a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"_a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    for text in ("\n".join(lines), "_a: &a [*a]"):
        with pytest.raises(OperatorError, match="expand to too much text"):
            load(write(tmp_path, text), CampaignSpec)


class Pair(Frozen):
    left: dict[str, int]
    right: dict[str, int]


def test_merge_keys_copy_from_notes(tmp_path: Path) -> None:
    text = "_base: &base {a: 1, b: 2}\nleft: {<<: *base, b: 3}\nright: *base\n"
    assert load(write(tmp_path, text), Pair) == Pair(left={"a": 1, "b": 3}, right={"a": 1, "b": 2})


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
            "write 4Gi, 500Mi, 1G or a number of bytes; the units are k,",
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
    source = Path(yamlfile.__file__).read_text(encoding="utf-8")
    calls = re.split(r"\bOperatorError\(", source)[1:]
    assert len(calls) > 10
    assert all("hint=" in call.split("OperatorError")[0][:500] for call in calls)


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        ("reps: 5", "reps: 010", "YAML reads `010` as 8", "write 8 if that is meant, 10 if a decimal number is"),
        ("reps: 5", "reps: 1:30", "YAML reads `1:30` as 90", "write 90"),
        ("reps: 5", "reps: 1_000", "YAML reads `1_000` as 1000", "write 1000"),
        ("reps: 5", "reps: 0x10", "YAML reads `0x10` as 16", "write 16"),
        ("reps: 5", "reps: 0b11", "YAML reads `0b11` as 3", "write 3"),
        ("reps: 5", "reps: 1e3", "must be a whole number", "YAML takes 1e3 for text: write 1000"),
        ("reps: 5", "reps: 08", "must be a whole number", "YAML takes 08 for text: write 8"),
        ("{kind: nop}", "{kind: nop, timeout_s: 0100}", "YAML reads `0100` as 64", "100 if a decimal number is"),
        ("{kind: nop}", "{kind: nop, version: 1.10}", "must be text", 'put it in quotes: "1.10"'),
        ("{kind: nop}", "{kind: nop, options: {country: no}}", "YAML reads `no` as false", 'or "no" in quotes'),
        ("reps: 5", "reps: 999999999999", "less than or equal to 100000", "set it to 100000 or less"),
    ],
)
def test_numbers_that_yaml_reads_otherwise_than_people(
    tmp_path: Path, old: str, new: str, message: str, hint: str
) -> None:
    assert old in CAMPAIGN
    error = refusal(tmp_path, CampaignSpec, CAMPAIGN.replace(old, new))
    assert message in error.message
    assert hint in (error.hint or "")


@pytest.mark.parametrize(
    "text", ["reps: 0", "reps: 25", "-1", "1.5", "-0.5e-3", ".5", "true", "False", "null", "~"]
)
def test_plain_notation_is_left_alone(text: str, tmp_path: Path) -> None:
    value = text.removeprefix("reps: ")
    assert "YAML reads" not in str(refusal(tmp_path, CampaignSpec, f"{CAMPAIGN}extra: {value}\n"))


def test_every_number_of_a_campaign_file_has_an_upper_bound(tmp_path: Path) -> None:
    """A number of any size is refused by its field, wherever one may stand."""
    for field in (
        "limits: {parallel: %s}",
        "limits: {cpu: %s}",
        "limits: {memory: %s}",
        "limits: {disk: %s}",
        "limits: {setup_timeout_s: %s}",
        "limits: {retries: {mid_run: %s}}",
        "limits: {blocks_ahead: %s}",
        "limits: {cost_usd: {trial: %s}}",
        "limits: {wall_clock_s: %s}",
        "limits: {live_interval_s: %s}",
    ):
        error = refusal(tmp_path, CampaignSpec, CAMPAIGN + field % (10**30))
        assert "less than or equal to" in error.message, field


@pytest.mark.parametrize("escape", [r"\0", r"\ud800", r"\uDFFF"])
@pytest.mark.parametrize("field", ["store", "tasks"])
def test_text_that_no_path_can_hold_is_refused(tmp_path: Path, field: str, escape: str) -> None:
    lines = [line for line in GOOD.splitlines() if not line.startswith(field)]
    value = f'"out{escape}"'
    text = "\n".join([*lines, f"{field}: [{value}]" if field == "tasks" else f"{field}: {value}"])
    with pytest.raises(OperatorError, match=rf"campaign\.yaml:8: {field}(\[0\])?: holds NUL or half a character"):
        load(write(tmp_path, text), CampaignSpec)


def test_a_key_that_holds_nul_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"campaign\.yaml:9: a key must be plain text"):
        load(write(tmp_path, GOOD + '"a\\0": 1\n'), CampaignSpec)


def test_a_pipe_and_a_device_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    for path in (tmp_path / "pipe.yaml", Path("/dev/zero")):
        with pytest.raises(OperatorError, match="is not a regular file"):
            load(path, CampaignSpec)
