"""An agent adds what the tests' interpreter imports before or besides the code under test, and still fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.attempts import LOCK, Lab
from tests.support.forged_modules import ATTACKS, SETTINGS, WRITE
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_repository.environments import environment
from trialfleet_repository.environments.python_environment import site_packages

ISOLATION = [
    pytest.param("bubblewrap", marks=pytest.mark.needs("bwrap")),
    pytest.param("uid", marks=pytest.mark.needs("root")),
]


def writes(files: dict[str, str]) -> AgentSpec:
    return AgentSpec(kind="command", options={"argv": ["python", "-I", "-c", WRITE, json.dumps(files)]})


@pytest.fixture(scope="module", params=ISOLATION)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    root = tmp_path_factory.mktemp(request.param)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TRIALFLEET_ISOLATION", request.param)
        yield Lab(root, files={"pyproject.toml": SETTINGS, "helpers/tools.py": ""})


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_an_agent_adds_decides_no_test(lab: Lab, attack: str) -> None:
    left = lab.run(lab.grants(writes(ATTACKS[attack]), attempt=1 + list(ATTACKS).index(attack)))
    assert left.end.scored is not None, left.end.loss
    assert left.end.scored.verdict is Verdict.FAILED
    found = {result["id"]: result["outcome"] for result in json.loads(left.bundle.files["tests/results.json"])}
    assert sorted(found.values()) == ["failed", "passed", "passed"], "the tests ran, and nothing was broken"


@pytest.mark.needs("bwrap")
def test_a_fix_inside_a_package_that_pytest_imports_is_scored(tmp_path: Path) -> None:
    """The project is iniconfig, with pytest on it, and the fix adds a module to it."""
    (root := tmp_path / "plain").mkdir()
    plain = Lab(root)
    built = environment.build(plain.planned.order.environment, LOCK.read_bytes(), cache=plain.cache)
    installed = (site_packages(built) / "iniconfig").glob("*.py")
    (root := tmp_path / "project").mkdir()
    declared = {"pyproject.toml": '[project]\nname = "iniconfig"\nversion = "1"\n'}
    project = Lab(root, files=declared | {f"iniconfig/{path.name}": path.read_text() for path in installed})
    fix = {
        "iniconfig/percent.py": "HUNDRED = 100\n",
        "shop/pricing/rules.py": (
            "from iniconfig.percent import HUNDRED\n\n\n"
            "def total(prices, discount=None):\n    return sum(prices) * (1 - (discount or 0) / HUNDRED)\n\n\n"
            "def cheapest(prices):\n    return min(prices)\n"
        ),
    }
    left = project.run(project.grants(writes(fix)))
    assert left.end.scored is not None, left.end.loss
    assert left.end.scored.verdict is Verdict.PASSED
    assert left.patch is not None
    assert not left.patch.excluded
