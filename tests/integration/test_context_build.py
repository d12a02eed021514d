"""Contexts that programs write, through the command line: an outline, any program, and the real Claude Code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tests.support.attempts import Lab
from tests.support.scripted_messages import Fail, Say, Usage, scripted_messages
from trialfleet_controller.authoring.context_cache import ContextManifest, manifest_key
from trialfleet_controller.commands.context import context
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_repository.trees import read_folder, tree_digest
from trialfleet_tasks.contexts import context_tree
from trialfleet_tasks.taskfile import load_task_file

MORE = {
    "CLAUDE.md": "STALE: what the repository itself tells agents.\n",
    "shop/stock.py": "from shop.pricing.rules import total\n\n\ndef left() -> float:\n    return total([1.0])\n",
    "shop/orders.py": "from shop.pricing.rules import total\n\n\ndef bill() -> float:\n    return total([2.0])\n",
}
SCRIPT = """
printf '# Shop\\n\\nFiles: ' > CLAUDE.md
find . -path ./.git -prune -o -type f -print | LC_ALL=C sort | tr '\\n' ' ' >> CLAUDE.md
printf '\\n\\nAsked: ' >> CLAUDE.md
grep -c AGENTS.md "$TRIALFLEET_PROMPT" >> CLAUDE.md
head -c 8 /dev/urandom | od -An -tx1 >> CLAUDE.md
printf '\\n## Commands\\n\\n```sh\\nmake test\\n```\\n' >> CLAUDE.md
printf '# Pricing\\n\\n## Pitfalls\\n\\n- A discount is in percent.\\n' > shop/pricing/AGENTS.md
rm shop/stock.py
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    root = tmp_path_factory.mktemp("contexts")
    root.chmod(0o755)
    made = Lab(root, files=MORE, hidden=True)
    assert made.task_file.exists()
    return made


def program(lab: Lab, script: str) -> str:
    """An agent of kind command that runs the script."""
    path = lab.root / "agent.yaml"
    path.write_text(
        yaml.safe_dump({"kind": "command", "timeout_s": 60.0, "options": {"argv": ["sh", "-ec", script]}})
    )
    return str(path)


def run(lab: Lab, *args: str, code: int = 0, env: Mapping[str, str] | None = None) -> str:
    """What `context build` of the lab's task prints, or why it refuses."""
    given = {"TRIALFLEET_SCRATCH": str(lab.scratch), **(env or {})}
    ran = CliRunner().invoke(context, ["build", str(lab.task_file), *args], env=given)
    refused = isinstance(ran.exception, OperatorError)
    assert (2 if refused else ran.exit_code) == code, f"{args}: {ran.output}{ran.exception!r}"
    return str(ran.exception) if refused else ran.stdout


def built(lab: Lab, *args: str, env: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    return list(json.loads(run(lab, *args, "--json", env=env)))


def test_an_outline_is_the_same_wherever_it_is_made_and_tasks_can_name_it(lab: Lab, tmp_path: Path) -> None:
    kinds = ("--kind", "flat", "--kind", "tree", "--agent", "outline")
    first = built(lab, *kinds, "--store", str(tmp_path / "store"))
    second = built(lab, *kinds, "--out", str(tmp_path / "out"))
    assert [one["kind"] for one in first] == ["flat", "tree"]
    assert first == second
    assert all(one["fresh"] and one["cost"]["turns"] is None for one in first)
    flat = (tmp_path / "out/shop-discount/flat/CLAUDE.md").read_text()
    assert "`shop/pricing/rules.py`: 2 files depend on it: `total`" in flat
    assert "STALE" not in flat
    assert "test_rules" not in flat  # the fix brings it
    store = DirectoryStore(tmp_path / "store")
    task = load_task_file(lab.task_file).tasks[0]
    for one in first:
        named = task.__class__(**{**vars(task), "contexts": {"made": f"sha256:{one['tree']}"}})
        tree = context_tree(named, "made", objects=Objects(tmp_path / "cache", store))
        assert tree == read_folder(tmp_path / "out/shop-discount" / one["kind"])
    again = built(lab, *kinds, "--store", str(tmp_path / "store"), "--out", str(tmp_path / "out"))
    assert [(one["tree"], one["fresh"]) for one in again] == [(one["tree"], False) for one in first]


def test_a_program_writes_once_from_the_tree_before_the_fix(lab: Lab, tmp_path: Path) -> None:
    args = ("--kind", "tree", "--agent", program(lab, SCRIPT), "--store", str(tmp_path / "store"))
    (first,) = built(lab, *args, "--out", str(tmp_path / "out"), "--log", str(tmp_path / "log"))
    text = (tmp_path / "out/shop-discount/tree/CLAUDE.md").read_text()
    seen = text.split("Files: ")[1].split("\n")[0].split()
    # What is there: the source, neither the stale context nor the hidden test.
    assert "./shop/pricing/rules.py" in seen
    assert not [path for path in seen if "test_rules" in path or path == "./.git"]
    assert "STALE" not in text
    assert "make test" not in text
    assert first["stripped"] is not None
    assert b"make test" in Objects(lab.cache.objects).get(first["stripped"])
    prompt = Objects(lab.cache.objects).get(first["prompt"]).decode()
    assert f"Asked: {sum('AGENTS.md' in line for line in prompt.splitlines())}\n" in text
    assert (tmp_path / "log/shop-discount/tree/stderr").exists()
    (second,) = built(lab, *args)
    assert (second["tree"], second["fresh"]) == (first["tree"], False)
    (third,) = built(lab, *args, "--seed", "1")
    assert third["fresh"]
    assert third["tree"] != first["tree"]
    kept = DirectoryStore(tmp_path / "store").get(manifest_key(first["request"]))
    assert ContextManifest.model_validate_json(kept or b"").tree == first["tree"]
    assert tree_digest(read_folder(tmp_path / "out/shop-discount/tree")) == first["tree"]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("true", "the author wrote nothing"),
        ("echo Shop. > CLAUDE.md; exit 3", "the agent did not finish (error)"),
        ("printf '```sh\\nmake test\\n```\\n' > CLAUDE.md", "nothing but development commands"),
        ("echo Shop. > AGENTS.md", "wrote nothing (but AGENTS.md)"),
        ("ln -s /etc/passwd CLAUDE.md", "left CLAUDE.md, which cannot be read"),
    ],
)
def test_what_is_no_context_is_refused_and_nothing_is_kept(
    script: str, why: str, lab: Lab, tmp_path: Path
) -> None:
    places = ("--store", str(tmp_path / "store"), "--out", str(tmp_path / "out"))
    said = run(lab, "--kind", "flat", "--agent", program(lab, script), *places, code=2)
    assert why in said
    assert "fix: " in said
    assert not list(DirectoryStore(tmp_path / "store").list(""))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("--kind", "flat", "--agent", "outline"), "no destination is given"),
        (("--kind", "flat", "--agent", "oracle", "--out", "o"), "an agent of kind oracle cannot write contexts"),
        (("--kind", "flat", "--agent", "claude-code", "--out", "o"), "no model is named"),
        (("--kind", "flat", "--agent", "outline", "--out", "o", "--only", "x"), "no task 'x'"),
    ],
)
def test_what_cannot_be_built_is_said_before_anything_is_run(args: tuple[str, ...], why: str, lab: Lab) -> None:
    said = run(lab, *args, code=2)
    assert why in said


@pytest.mark.needs("claude")
@pytest.mark.needs("bwrap")
def test_claude_code_writes_behind_the_gateway_and_its_cost_is_kept(lab: Lab, tmp_path: Path) -> None:
    write = {"file_path": "/workspace/CLAUDE.md", "content": "# Shop\n\nDiscounts are in percent.\n"}
    agent = ("--kind", "flat", "--agent", "claude-code", "--model", "claude-sonnet-4-6", "--timeout", "60")
    with scripted_messages() as provider:
        env = {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "sk-ant-real", "HOME": str(tmp_path)}
        env |= {"TRIALFLEET_CACHE": str(lab.cache.root), "TRIALFLEET_ISOLATION": "bubblewrap"}
        provider.play(Say("Writing.", (("Write", write),), Usage(input=1000, output=200)), Say("Done."))
        (made,) = built(lab, *agent, "--out", str(tmp_path / "out"), env=env)
        assert "Write one file, CLAUDE.md" in provider.main[0].strings
        assert "sk-ant-real" not in json.dumps(made)
        provider.play(then=Fail(401))
        said = run(
            lab, *agent, "--timeout", "30", "--seed", "1", "--out", str(tmp_path / "other"), code=2, env=env
        )
    assert "the model provider failed" in said
    assert not (tmp_path / "other").exists()
    assert (tmp_path / "out/shop-discount/flat/CLAUDE.md").read_text() == write["content"]
    assert (made["author"]["kind"], made["author"]["model"]) == ("claude-code", "claude-sonnet-4-6")
    assert made["cost"]["turns"] == 2
    assert made["cost"]["cost_usd"] > 0
