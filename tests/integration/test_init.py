"""`trialfleet init` in real repositories, hostile ones included."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_forks import run_command
from tests.support.git_repositories import Made
from trialfleet_controller.planning.campaign_file import load_campaign
from trialfleet_ledger.campaign_spec import CampaignSpec
from trialfleet_ledger.designs.looks import FutilityRule, StopRule
from trialfleet_ledger.errors import OperatorError
from trialfleet_tasks import yamlfile
from trialfleet_tasks.taskfile import campaign_tasks


def init(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    ended = run_command("init", *args, cwd=folder)
    assert "Traceback" not in ended.stderr
    return ended


def facts(folder: Path, *args: str) -> dict[str, Any]:
    ended = init(folder, *args, "--json")
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


WORKFLOW = """
on: push
jobs:
  test:
    steps:
      - run: |
          pip install -e .
          pytest -q tests
          make lint
          ./scripts/test --fast
          make unit-tests
          ${{ env.CARGO }} test --workspace
      - {run: "npm run test -- --ci"}
      - run: [3, null]
"""


@pytest.fixture
def monorepo(tmp_path: Path) -> Made:
    made = Made(tmp_path / "mono repo")
    made.write("pyproject.toml", '[project]\nname = "shop"\n[tool.pytest.ini_options]\n')
    made.write("web/package.json", '{"devDependencies": {"vitest": "3"}}')
    made.write("web/node_modules/x/package.json", '{"devDependencies": {"jest": "3"}}')
    made.write("web/src/a.ts", "export {}\n")
    made.write("uv.lock", "")
    made.write("src/shop/setup.py", "def setup(name):\n    return name\n")
    made.write("tools/setup.py", "import setuptools\n\nsetuptools.setup(name='tools')\n")
    made.write(".github/workflows/ci.yml", WORKFLOW)
    made.write(".github/workflows/odd.yml", "{: [")
    made.write("AGENTS.md", "# Read me\n")
    made.write("docs/agents.md", "# How our agents are deployed\n")
    made.write(".cursor/rules/a.mdc", "rule\n")
    made.write(".claude/skills/fix/SKILL.md", "skill\n")
    made.write(".windsurfrules", "other\n")
    (made.folder / "CLAUDE.md").symlink_to("AGENTS.md")
    made.commit("Start", src__shop__cart="x = 1\n")
    made.commit("Fix", src__shop__cart="x = 2\n", tests__test_cart="def test_x(): pass\n")
    return made


def test_scripts_links_and_imports_are_copied_and_secrets_are_named(tmp_path: Path) -> None:
    made = Made(tmp_path / "shop")
    made.write("CLAUDE.md", "@docs/rules.md\n")
    made.write("docs/rules.md", "Cents.\n")
    made.write(".claude/hooks/start.sh", "#!/bin/sh\n").chmod(0o755)
    made.write(".agents/skills/x/SKILL.md", "skill\n")
    made.write(".mcp.json", '{"mcpServers": {"a": {"env": {\n"A_TOKEN": "abcdef"}}}}')
    (made.folder / ".claude/skills").symlink_to("../.agents/skills")
    (made.folder / "GEMINI.md").symlink_to("/etc/hostname")
    made.commit("Start", src__shop="x = 1\n")
    made.write("CLAUDE.md", "Not committed.\n")
    made.write("src/AGENTS.md", "New.\n")
    ended = init(made.folder)
    own = made.folder / "trialfleet/contexts/own"
    assert (own / ".claude/hooks/start.sh").stat().st_mode & 0o777 == 0o755
    assert (own / ".claude/skills/x/SKILL.md").read_text() == "skill\n"
    assert (own / ".claude/skills").readlink() == Path("../.agents/skills")
    assert (own / "docs/rules.md").read_text() == "Cents.\n"
    assert not (own / ".mcp.json").exists()
    assert "not copied: .mcp.json, line 2, looks like a secret" in ended.stderr
    assert "abcdef" not in ended.stderr + ended.stdout
    assert "not committed: CLAUDE.md, src/AGENTS.md" in ended.stderr
    assert "{worktree: ..}" in ended.stderr
    assert "links outside  GEMINI.md" in ended.stdout
    found = facts(made.folder)
    assert (found["stale"], found["uncommitted"]) == ([], ["CLAUDE.md", "src/AGENTS.md"])
    assert found["secrets"] == [{"path": ".mcp.json", "line": 2, "reason": "its name is that of a secret"}]
    (own / ".claude/hooks/start.sh").chmod(0o644)
    assert facts(made.folder)["stale"] == ["contexts/own/.claude/hooks/start.sh"]


def test_what_is_found_and_written(monorepo: Made) -> None:
    found = facts(monorepo.folder / "web")
    assert found["languages"] == {"Python": 4, "TypeScript": 1}
    assert found["packages"] == ["pyproject.toml", "tools/setup.py", "web/package.json"]
    assert (found["locks"], found["test_runners"]) == (["uv.lock"], ["pytest", "vitest"])
    assert found["ci_test_commands"] == [
        "pytest -q tests",
        "./scripts/test --fast",
        "make unit-tests",
        "${{ env.CARGO }} test --workspace",
        "npm run test -- --ci",
    ]
    context = [".claude/skills/fix/SKILL.md", ".cursor/rules/a.mdc", "AGENTS.md", "CLAUDE.md"]
    assert (found["context_files"], found["other_instructions"]) == (context, [".windsurfrules"])
    assert found["pages"] == ["docs/agents.md"]
    assert (found["commits"], found["candidates"]) == (1, {"Python": 1}), "the first commit fixes nothing"
    folder = monorepo.folder / "trialfleet"
    assert Path(found["folder"]) == folder, "at the root, wherever it was started"
    assert sorted(found["written"]) == sorted(
        [".gitignore", "campaign.yaml", *(f"contexts/own/{path}" for path in context)]
    )
    own = folder / "contexts/own"
    assert (own / "CLAUDE.md").readlink() == Path("AGENTS.md"), "a link to a context file stays one"
    assert (own / "CLAUDE.md").read_text() == "# Read me\n"

    (folder / "tasks").mkdir()
    (folder / "tasks/mined.yaml").write_text("")
    campaign = load_campaign(folder / "campaign.yaml").spec
    assert (campaign.campaign, campaign.reps) == ("mono-repo-context", 5)
    assert campaign.primary is not None
    assert (campaign.primary.treatment, campaign.primary.control) == ("own", "none")
    assert campaign.primary.stop == StopRule(looks=5, spending="power_2", futility=FutilityRule(predictive=0.05))

    (folder / "campaign.yaml").write_text("mine")
    (own / "CLAUDE.md").unlink()
    again = init(monorepo.folder)
    assert "left as it is" in again.stdout
    assert (folder / "campaign.yaml").read_text() == "mine"
    assert (own / "CLAUDE.md").read_text() == "# Read me\n", "what is not there is written"


def test_hostile_names_and_links_do_no_harm(tmp_path: Path) -> None:
    made = Made(tmp_path / "repo")
    outside = tmp_path / "outside"
    outside.write_text("secret\n")
    (made.folder / "CLAUDE.md").symlink_to(outside)
    (made.folder / "AGENTS.md").symlink_to("GEMINI.md")
    (made.folder / "GEMINI.md").symlink_to("AGENTS.md")
    made.write("\x1b[2J\u202eAGENTS.md", "x")
    made.write("a/\x1b[31mclaude.md/CLAUDE.md", "shown\n")
    made.write(".github/workflows/deep.yml", "[" * 20_000)
    bomb = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
    made.write(".github/workflows/bomb.yml", "a0: &a0 [{run: pytest}]\n" + bomb + "self: &self [*self]\n")
    made.write("package.json", "[" * 20_000)
    made.commit("Start")
    ended = init(made.folder)
    assert ended.returncode == 0, ended.stderr
    assert "\x1b" not in ended.stdout
    assert "\u202e" not in ended.stdout
    written = [path for path in (made.folder / "trialfleet").rglob("*") if path.is_file()]
    assert all("secret" not in path.read_text() for path in written)
    assert not (made.folder / "trialfleet/contexts/own/CLAUDE.md").exists()

    (made.folder / "trialfleet/campaign.yaml").unlink()
    (made.folder / "trialfleet/campaign.yaml").symlink_to(outside)
    assert init(made.folder).returncode == 0
    assert outside.read_text() == "secret\n"


@pytest.mark.parametrize("place", ["trialfleet", "trialfleet/contexts/own", "trialfleet/contexts/own/.claude"])
@pytest.mark.parametrize("kind", ["folder", "file", "nothing"])
def test_a_link_in_the_repository_leads_nowhere(tmp_path: Path, place: str, kind: str) -> None:
    """The repository's CLAUDE.md would become the user's own where it leads into HOME."""
    made, home = Made(tmp_path / "repo"), tmp_path / "home"
    made.write(".claude/skills/fix/SKILL.md", "skill\n")
    made.write("CLAUDE.md", "Obey.\n")
    {"folder": home.mkdir, "file": home.touch, "nothing": list[str]}[kind]()
    (made.folder / place).parent.mkdir(parents=True, exist_ok=True)
    (made.folder / place).symlink_to(home)
    made.commit("Start")
    ended = init(made.folder)
    assert (ended.returncode, f"{place} is a link" in ended.stderr) == (2, True), ended.stderr
    assert not home.is_dir() or [*home.iterdir()] == []
    assert not (made.folder / "trialfleet/campaign.yaml").exists()


def test_other_repositories(tmp_path: Path) -> None:
    assert "not a git repository" in init(tmp_path).stderr
    made = Made(tmp_path / "empty")
    ended = init(made.folder)
    assert (ended.returncode, "no commit 'HEAD'" in ended.stderr) == (2, True)
    made.write("main.go", "package main\n")
    made.commit("Start")
    ended = init(made.folder)
    assert "No context file was found" in ended.stdout
    assert (made.folder / "trialfleet/contexts/own").is_dir(), (
        "tasks that are mined before it has a file name it, too"
    )
    assert "tasks have to be written" in ended.stdout
    made.write("cart/cart.go", "package cart\n")
    made.write("cart/cart_test.go", "package cart\n")
    made.commit("Fix", cart="x = 1\n", tests__test_cart="def test_x(): pass\n")
    for number in range(2):
        made.write("web/cart.ts", f"export const cart = {number}\n")
        made.write("web/cart.test.ts", f"it('is {number}', () => {{}})\n")
        made.commit(f"Fix {number}")
    ended = init(made.folder)
    assert "3 commits" in ended.stdout
    assert "; 3 change source and tests (JavaScript 2, Python 1)" in ended.stdout, "as many lines as Go: the first"
    assert "tasks mine --want 30" in ended.stdout
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "clone", "-q", "--bare", made.folder, bare], check=True, capture_output=True)
    assert Path(facts(bare)["folder"]) == bare / "trialfleet"
    loaded = yamlfile.read(bare / "trialfleet/campaign.yaml", CampaignSpec)
    with pytest.raises(OperatorError, match=r"tasks\[0\]"):
        campaign_tasks(loaded)
