"""The commands of pages that are carried out, as they are written."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.git_repositories import Made

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial" / "first-campaign.md"
REPOSITORY = ROOT / "docs" / "tutorial" / "your-repository.md"
VERSIONS = ROOT / "docs" / "how-to" / "compare-two-agents-md.md"


def commands(text: str) -> list[str]:
    """Every command of the console blocks, in order."""
    return [line for block in re.findall(r"```console\n(.*?)```", text, re.S) for line in block.splitlines()]


def carried_out(page: Path, folder: Path, before_run: Callable[[], object] = lambda: None) -> str:
    """What the page's commands print, run as they are written, in a folder with what a checkout has."""
    for name in ("examples", "tasks", ".venv"):
        if not (folder / ".git").exists():
            (folder / name).symlink_to(ROOT / name)
    said = ""
    for command in commands(page.read_text(encoding="utf-8")):
        if "trialfleet run " in command:
            before_run()
        done = subprocess.run(["/bin/bash", "-c", command], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        said += done.stdout
    return said


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_command_of_the_tutorial_works(tmp_path: Path) -> None:
    said = carried_out(TUTORIAL, tmp_path)
    assert "validated" in said
    assert json.loads((tmp_path / "my-shop/runs/shop-report/report.json").read_text())["decision"] == "more"
    assert "current passed more often than outdated" in " ".join(said.split())
    assert re.search(r"Stopped for benefit at look \d of 5", " ".join(said.split()))
    assert len(list((tmp_path / "my-shop/runs/shop/outcomes").iterdir())) < 40, "it stops early"
    shutil.rmtree(tmp_path / "my-shop")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_command_of_comparing_two_versions_works(tmp_path: Path) -> None:
    """With one rep of the three that are planned: no number of this page's campaign is looked at."""
    file = tmp_path / "my-versions/agents-md.yaml"
    said = carried_out(VERSIONS, tmp_path, lambda: file.write_text(file.read_text().replace("reps: 3", "reps: 1")))
    assert "3 cells × 3 reps = 9" in said
    assert "agents-md: complete; 3 of 3 trials" in said
    report = (tmp_path / "my-versions/runs/agents-md-report/report.md").read_text()
    assert "after" in report
    shutil.rmtree(tmp_path / "my-versions")


def test_the_page_and_the_campaign_file_compare_the_same_conditions() -> None:
    file = (ROOT / "examples/shop/agents-md.yaml").read_text()
    shown = VERSIONS.read_text().split("`my-versions/agents-md.yaml`:\n\n```yaml\n")[1].split("```")[0]
    assert [line for line in shown.splitlines() if line not in file.splitlines()] == []


@pytest.mark.needs("bwrap")
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_command_of_your_repository_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = a_history(tmp_path / "shop")
    monkeypatch.setenv("PATH", f"{ROOT / '.venv/bin'}:{os.environ['PATH']}")
    said = carried_out(REPOSITORY, made.folder)
    assert "CLAUDE.md, src/AGENTS.md" in said
    assert "2 tasks in" in said
    assert "complete; 20 of 20 trials" in said
    assert "Dry run: the agent search runs in place of claude-code." in " ".join(said.split())
    assert "difference between own and none on these 2 tasks is no larger than 30.0 points" in " ".join(
        said.split()
    )
    assert made.git("status", "--porcelain", "-uall", "--", "src", "tests", "CLAUDE.md", "trialfleet/runs") == ""


def a_history(folder: Path) -> Made:
    """Two small bugs, each fixed with a test."""
    made = Made(folder)
    made.write(
        "pyproject.toml", '[project]\nname = "shop"\nversion = "1"\n[dependency-groups]\ntest = ["pytest"]\n'
    )
    made.write("CLAUDE.md", "# Shop\nPrices are in cents.\n")
    made.write("src/AGENTS.md", "# Source\n## Pitfalls\n- Totals are sums.\n")
    wrong = {
        "cart": "def total(prices):\n    return max(prices)\n",
        "mail": "def is_late(days):\n    return days > 30\n",
    }
    made.commit("Start", src__shop____init__="", **{f"src__shop__{name}": text for name, text in wrong.items()})
    right = {"cart": ("max(", "sum(", "total([1, 2]) == 3"), "mail": (">", ">=", "is_late(30)")}
    for name, (old, new, claim) in right.items():
        test = f"from shop.{name} import *\n\n\ndef test_{name}():\n    assert {claim}\n"
        code = wrong[name].replace(old, new)
        made.commit(f"Fix {name}", **{f"src__shop__{name}": code, f"tests__test_{name}": test})
    return made
