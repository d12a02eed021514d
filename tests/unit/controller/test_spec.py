"""What a bad campaign file gets: file, line or field, and the way out."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from trialfleet_controller.campaigns import find, from_file
from trialfleet_controller.planning.campaign_file import load_campaign
from trialfleet_ledger.conditions import PRESETS, AgentChange, Condition
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.store.directory import DirectoryStore

GOOD = """\
campaign: demo
seed: 1
tasks: [tasks/*.yaml]
conditions: [none, flat_llm]
reps: 5
agent: {kind: nop}
limits: {cost_usd: {trial: 2, campaign: 400}}
store: out
"""
PRIMARY = "store: out\nprimary: {treatment: flat_llm, control: none"
FIVE = "[none, flat_llm, intent_layer, placebo, preamble_only]"
HALVING = "primary: {treatment: flat_llm, control: none, halve: true}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks").mkdir()
    for name in ("a", "b"):
        (tmp_path / "tasks" / f"{name}.yaml").write_text("")
    return tmp_path


def write(folder: Path, text: str) -> Path:
    path = folder / "campaign.yaml"
    path.write_text(text)
    return path


def test_names_and_globs_are_resolved(folder: Path) -> None:
    text = GOOD.replace("[tasks/*.yaml]", "[tasks/b.yaml, tasks/*.yaml]")
    file = load_campaign(write(folder, text))
    assert [path.name for path in file.task_files] == ["b.yaml", "a.yaml"]
    assert file.conditions == {name: PRESETS[name] for name in ("none", "flat_llm")}


def test_conditions_are_composed_and_presets_named_by_null(folder: Path) -> None:
    text = GOOD.replace("[none, flat_llm]", "{none: null, mine: {files: flat}}")
    assert load_campaign(write(folder, text)).conditions == {"none": Condition(), "mine": Condition(files="flat")}


def test_a_condition_may_have_its_own_agent(folder: Path) -> None:
    text = GOOD.replace("[none, flat_llm]", "{none: null, v1: {agent: {kind: oracle, max_turns: 5}}}")
    assert load_campaign(write(folder, text)).conditions["v1"].agent == AgentChange(kind="oracle", max_turns=5)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[none, flat_llm]", "[none, flat]", (":4: conditions[1]", "'flat'", "intent_layer_preamble")),
        ("[none, flat_llm]", "{none: null, x: null}", (":4: conditions.x", "compose your own")),
        (
            "[none, flat_llm]",
            "{none: null, v1: {agnt: {max_turns: 5}}}",
            (":4: conditions.v1.agnt: unknown key", "did you mean agent"),
        ),
        (
            "[none, flat_llm]",
            "{none: null, v1: {agent: {max_trns: 5}}}",
            (":4: conditions.v1.agent.max_trns: unknown key", "did you mean max_turns?"),
        ),
        ("[none, flat_llm]", "{none: null, v1: {agent: 5}}", (":4: conditions.v1.agent",)),
        ("[none, flat_llm]", "[none, none]", ("a name is used twice",)),
        ("[none, flat_llm]", "[]", (":4: conditions",)),
        ("[tasks/*.yaml]", "[tasks/c.yaml]", (":3: tasks[0]", "tasks/c.yaml", "no such file")),
        ("[tasks/*.yaml]", "[tasks]", (":3: tasks[0]", "is a directory", "tasks/*.yaml")),
        ("[tasks/*.yaml]", "[tasks/*.yml]", (":3: tasks[0]", "no such file")),
        ("[tasks/*.yaml]", "[]", (":3: tasks",)),
        ("reps: 5", "reps: 0", (":5: reps", "greater than or equal to 1")),
        ("trial: 2, ", "", (":7: limits.cost_usd.campaign", "set cost_usd.trial")),
        ("campaign: 400", "campaign: 1", (":7: limits.cost_usd.campaign", "no trial could start")),
        ("store: out", "store: out\nbackend: moon", (":9: backend",)),
        ("store: out", "store: out\nprimary: {treatment: x, control: none}", ("'x' is not among",)),
        (
            "[none, flat_llm]",
            "[none, flat]\nprimary: {treatment: flat_llm, control: none}",
            (":4: conditions[1]", "no condition is called 'flat'"),
        ),
        ("campaign: demo", "campaign: ../evil", (":1: campaign",)),
        (
            "store: out",
            PRIMARY + ", stop: {looks: [2, 4, 5], drop_saturated: 5}}",
            ("drop_saturated: 5 is not the block of a look before the last", "write one of 2, 4, or remove"),
        ),
        (
            "store: out",
            PRIMARY + ", stop: {drop_saturated: true}}",
            ("primary.stop.drop_saturated: must be a whole number",),
        ),
        (
            "store: out",
            PRIMARY + ", stop: {reestimate: {after: 2, cap: 9}}}",
            ("reestimate computes the reps for the declared effect", "write effect: 0.1"),
        ),
        (
            "store: out",
            PRIMARY + ", effect: 0.1, stop: {looks: 2, reestimate: {after: 4, cap: 9}}}",
            ("reestimate: after: 4 is not the block of a look", "write one of 3, or remove reestimate"),
        ),
        (
            "store: out",
            PRIMARY + ", effect: 0.1, stop: {reestimate: {after: 2, cap: 4}}}",
            ("cap: 4 is below the campaign's 5 reps", "write 5 or more"),
        ),
        (
            "store: out",
            PRIMARY + ", stop: {anytime: mixture, drop_saturated: 2}}",
            ("drop_saturated: unknown key",),
        ),
        (
            "store: out",
            PRIMARY + ", halve: true}",
            ("halve needs exactly 4 treatments beside the control none", "there are 1", "or remove halve"),
        ),
        (
            "store: out",
            PRIMARY + ", halve: true, stop: {drop_saturated: 2}}",
            ("halve and stop: what the two do together has not been simulated", "remove stop, with its looks"),
        ),
        (
            "store: out",
            PRIMARY + ", halve: true, estimand: tasks_like_these}",
            ("halve needs estimand: these_tasks",),
        ),
        (
            "[none, flat_llm]",
            f"{FIVE[:-1]}, preflight]\n{HALVING}",
            ("halve needs exactly 4 treatments", "there are 5"),
        ),
        (
            "[none, flat_llm]",
            f"{FIVE.replace('placebo', 'oracle_targets')}\n{HALVING}",
            ("none of which knows the fix: oracle_targets knows the fix",),
        ),
        (
            "conditions: [none, flat_llm]\nreps: 5",
            f"conditions: {FIVE}\n{HALVING}\nreps: 1",
            ("halve needs 2 reps or more",),
        ),
    ],
)
def test_refusals(folder: Path, old: str, new: str, words: tuple[str, ...]) -> None:
    with pytest.raises(OperatorError) as error:
        load_campaign(write(folder, GOOD.replace(old, new, 1)))
    for word in words:
        assert word in str(error.value)


SECRETS = [
    ({"env": {"MY_TOKEN": "tr0ub4dor"}}, "env.MY_TOKEN", "its name"),
    ({"env": {"DB_PASSWORD": "tr0ub4dor"}}, "env.DB_PASSWORD", "its name"),
    ({"env": {"openai_api_key": "tr0ub4dor"}}, "env.openai_api_key", "its name"),
    ({"env": {"A": "sk-ant-api03-0123456789abcdef"}}, "env.A", "issued key"),
    ({"env": {"A": "fast", "URL": "https://bot:hunter2@host/"}}, "env.URL", "issued key"),
    ({"env": {"A": "q7Zr2LxT9vKe4WmB8nYc1HdS"}}, "env.A", "random"),
    ({"argv": ["/bin/x", "--auth=ghp_0123456789abcdefABCDEF"]}, "argv[1]", "issued key"),
    ({"files": {".netrc": "machine h\nAKIA0123456789ABCDEF"}}, "files..netrc", "issued key"),
]


@pytest.mark.parametrize(("options", "field", "reason"), SECRETS)
def test_what_looks_like_a_secret_is_refused_with_its_line_and_never_printed(
    folder: Path, options: dict[str, Any], field: str, reason: str
) -> None:
    agent = yaml.safe_dump({"kind": "command", "options": {"argv": ["/bin/true"], **options}}, width=1000)
    text = GOOD.replace("{kind: nop}", "\n" + textwrap.indent(agent, "  ").rstrip())
    with pytest.raises(OperatorError, match="looks like a secret") as refused:
        load_campaign(write(folder, text))
    assert f"agent.options.{field}: this looks like a secret" in str(refused.value)
    assert reason in refused.value.message
    assert "needs_model: true" in str(refused.value.hint)
    for value in ("tr0ub4dor", "hunter2", "0123456789", "q7Zr2LxT"):
        assert value not in str(refused.value)


@pytest.mark.parametrize(
    "env",
    [
        {"MY_AGENT_MODE": "fast", "MAX_TOKENS": "4096", "USE_TOKEN": "true", "KEYBOARD": "de", "MONKEY": "x"},
        {"MODEL": "Qwen2.5-Coder-32B-Instruct", "WEIGHTS": "/opt/Llama-3.1-70B-Instruct-GGUF-Q4_K_M.gguf"},
        {"COMMIT": "da39a3ee5e6b4b0d3255bfef95601890afd80709", "RUN": "550e8400-e29b-41d4-a716-446655440000"},
        {"NAME": "MyAgentConfigurationVersion2Final", "URL": "http://10.0.0.1:8080/v1"},
    ],
)
def test_plain_values_are_no_secrets(folder: Path, env: dict[str, str]) -> None:
    options = {"argv": ["/bin/true"], "env": env}
    path = write(folder, GOOD.replace("{kind: nop}", str({"kind": "command", "options": options})))
    assert load_campaign(path).spec.agent.options == options


def test_a_campaign_is_found_by_file_folder_and_name(folder: Path) -> None:
    path = write(folder, GOOD)
    by_file = from_file(path)
    assert by_file.store == DirectoryStore(folder / "out")
    (folder / "out" / "demo").mkdir(parents=True)
    (folder / "out" / "demo" / "campaign.json").write_text("{}")
    for found in (
        find(str(folder / "out" / "demo")),
        find(str(folder / "out" / "demo" / "campaign.json")),
        find("demo", str(folder / "out")),
        find(str(path)),
    ):
        assert (found.name, found.store.url) == ("demo", str(folder / "out"))
    with pytest.raises(OperatorError, match="neither a campaign file"):
        find("demo")
