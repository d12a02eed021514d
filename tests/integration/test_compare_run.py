"""`trialfleet compare` in a real repository: it writes a file, and with --run both sides reach the agent."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pytest
import yaml

from tests.support.git_repositories import Made
from tests.support.package_index import PYTEST, with_pytest
from tests.support.real_campaign import ran
from trialfleet_controller.campaigns import find
from trialfleet_controller.status.campaign_status import State, read_status

WRONG = "def total(items):\n    return max(items)\n"
RIGHT = WRONG.replace("max", "sum")
TEST = "from shop.price import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
TOLD = "Totals are sums.\n"
# The bug is fixed by an agent that reads the sentence above in the workspace's CLAUDE.md, and by no other.
READS_AND_FIXES = f"""
from pathlib import Path
context, code = Path("CLAUDE.md"), Path("src/shop/price.py")
if context.is_file() and {TOLD!r} in context.read_text():
    code.write_text(code.read_text().replace("max", "sum"))
"""


@dataclass(frozen=True)
class Shop:
    made: Made
    env: dict[str, str]

    def trialfleet(self, *words: str, expect: int = 0) -> str:
        ended = ran(*words, cwd=self.made.folder, env=self.env, expect=expect)
        return ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A bug and its fix in the history; then `main` has one text of CLAUDE.md and the branch `mine` another."""
    folder = tmp_path_factory.mktemp("compare")
    index = with_pytest(folder / "index")
    names = ("cache", "scratch", "settings")
    env = {f"TRIALFLEET_{name.upper()}": str(folder / name) for name in names[:2]}
    env |= {"PIP_FIND_LINKS": str(index.folder), "PIP_INDEX_URL": (folder / "nothing").as_uri()}
    made = Made(folder / "shop")
    made.write("CLAUDE.md", "# Shop\n")
    broken = made.commit("Start", src__shop____init__="", src__shop__price=WRONG)
    fixed = made.commit("Totals are sums", src__shop__price=RIGHT, tests__test_price=TEST)
    _campaign(made, broken, fixed, index.lock(*PYTEST))
    made.git("checkout", "-q", "-b", "mine")
    made.write("CLAUDE.md", f"# Shop\n{TOLD}")
    made.commit("Say it")
    shop = Shop(made, env)
    shop.trialfleet("validate", "trialfleet/tasks/shop.yaml", "--write", "--repeats", "1")
    return shop


def _campaign(made: Made, broken: str, fixed: str, lock: str) -> None:
    this = ".".join(map(str, sys.version_info[:2]))
    task = {
        "id": "shop-total",
        "source": {
            "kind": "git",
            "url": str(made.folder),
            "pre_fix_commit": broken,
            "fix_commit": fixed,
        },
        "prompt_source": "failing_test",
        "test_file": "tests/test_price.py",
        "status": "unvalidated",
    }
    environment = {"python": [this], "lock": "lock.txt", "pythonpath": ["src"]}
    campaign = {
        "campaign": "shop",
        "seed": 5,
        "tasks": ["tasks/*.yaml"],
        "conditions": ["none"],
        "reps": 2,
        "agent": {"kind": "command", "options": {"argv": ["python", "-I", "-c", READS_AND_FIXES]}},
        "limits": {"memory": "256Mi", "disk": "256Mi"},
        "store": "runs",
    }
    made.write("trialfleet/tasks/lock.txt", lock)
    tasks = {"repo": {"environment": environment}, "tasks": [task]}
    made.write("trialfleet/tasks/shop.yaml", yaml.safe_dump(tasks, sort_keys=False))
    made.write("trialfleet/campaign.yaml", yaml.safe_dump(campaign, sort_keys=False))
    made.write(".gitignore", "trialfleet/\n")


def test_without_run_it_writes_a_file_and_says_what_that_can_detect(shop: Shop) -> None:
    said = shop.trialfleet("compare", "main..mine", "--out", "trialfleet/planned.yaml")
    assert said.splitlines()[0] == "trialfleet/planned.yaml"
    assert "after" in said
    assert "before" in said
    assert not (shop.made.folder / "trialfleet/runs").exists(), "nothing was planned, and nothing ran"
    assert "2 cells × 2 reps = 4" in shop.trialfleet("plan", "trialfleet/planned.yaml", "--offline")


def test_run_measures_both_sides_and_names_them_in_the_report(shop: Shop) -> None:
    said = shop.trialfleet("compare", "main..mine", "--out", "trialfleet/ran.yaml", "--run")
    path = shop.made.folder / "trialfleet/ran.yaml"
    found = find(str(path))
    status = read_status(found.store, found.name)
    assert status.state is State.COMPLETE
    passed = {name: (c.interim_passed, c.interim_measured) for name, c in status.conditions.items()}
    assert passed == {"before": (0, 2), "after": (2, 2)}
    report = path.parent / "runs" / f"{found.name}-report" / "report.md"
    assert str(report.with_suffix(".html").relative_to(shop.made.folder)) in said
    assert "between after and before" in report.read_text().splitlines()[4]


def test_the_working_tree_is_the_other_side_with_what_is_not_committed(shop: Shop) -> None:
    """The texts are those of the comparison above, the other way round; it is another campaign."""
    shop.made.write("CLAUDE.md", "# Shop\nnot committed\n")
    shop.trialfleet("compare", "mine..", "--out", "trialfleet/tree.yaml", "--reps", "1", "--run")
    found = find(str(shop.made.folder / "trialfleet/tree.yaml"))
    status = read_status(found.store, found.name)
    passed = {name: (c.interim_passed, c.interim_measured) for name, c in status.conditions.items()}
    assert passed == {"before": (1, 1), "after": (0, 1)}


def test_a_campaign_file_that_exists_is_kept_and_the_way_on_is_named(shop: Shop) -> None:
    path = shop.made.write("trialfleet/mine.yaml", "kept")
    said = shop.trialfleet("compare", "main..mine", "--out", "trialfleet/mine.yaml", "--run", expect=2)
    assert "`trialfleet run trialfleet/mine.yaml` starts or continues it" in said
    assert path.read_text() == "kept"
