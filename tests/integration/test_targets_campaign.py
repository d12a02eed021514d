"""Conditions that name files, from a campaign file to bundles, with the real predictor and the offline agent."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.attempts import Lab, write
from tests.support.real_campaign import campaign_file, trialfleet
from trialfleet_controller.planning.predicted_targets import Predictor
from trialfleet_deliveries.naming import naming
from trialfleet_ledger.bundle import Bundle, unpack
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.objects import Objects, object_key
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.measurements import Coverage, PreflightResult
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_repository.cache import Cache
from trialfleet_repository.trees import TreeEntry
from trialfleet_tasks.taskfile import load_task_file
from trialfleet_tasks.variants import Variants

pytestmark = pytest.mark.timeout(900)  # the first test of each worker waits for a whole campaign

FIXED = "shop/pricing/rules.py"
DIRECTIVE = naming([FIXED]).splitlines()[0]
MORE = {
    "shop/pricing/vouchers.py": "def redeem(number: int) -> float:\n    return float(number)\n",
    "shop/pricing/tax.py": "def tax(amount: float) -> float:\n    return amount * 0.19\n",
    "shop/stock.py": "def left(item: str) -> int:\n    return len(item)\n",
}
HIDING = """
import importlib.machinery
found = importlib.machinery.PathFinder.find_spec
def find_spec(name, path=None, target=None):
    return None if name == "tree_sitter" else found(name, path, target)
importlib.machinery.PathFinder.find_spec = staticmethod(find_spec)
"""
ARMS = ("placebo_matched", "wrong_targets", "predicted_targets", "oracle_targets")

Ran = tuple[Plan, dict[str, tuple[Outcome, Bundle]], DirectoryStore]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("targets"), files=MORE)


@pytest.fixture(scope="module")
def described(lab: Lab) -> Lab:
    """The task is validated, the campaign's file is there, and nothing has run."""
    conditions: dict[str, Any] = dict.fromkeys(("none", "placebo", *ARMS, "preflight"))
    conditions |= {"ruled": {"inline": {"source": "targets", "channel": "rules"}}}
    conditions |= {"told_before": {"inline": {"source": "targets", "channel": "system"}}}
    spec = {
        "campaign": "targets",
        "seed": 3,
        "tasks": [str(lab.task_file)],
        "conditions": conditions,
        "reps": 1,
        "agent": {"kind": "search", "max_turns": 6, "timeout_s": 120},
        "limits": {"parallel": 2, "memory": "1Gi", "disk": "256Mi"},
        "store": "runs",
    }
    trialfleet("validate", str(lab.task_file), "--write", "--repeats", "1", lab=lab)
    (lab.root / "campaign.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    return lab


@pytest.fixture(scope="module")
def ran(described: Lab) -> Ran:
    lab = described
    trialfleet("run", "campaign.yaml", "--no-ray", "--no-report", lab=lab)
    store = DirectoryStore(lab.root / "runs")
    found: dict[str, tuple[Outcome, Bundle]] = {}
    for file in sorted((store.root / "targets/outcomes").iterdir()):
        outcome = Outcome.model_validate_json(file.read_bytes())
        assert outcome.bundle is not None
        data = store.get(f"targets/{outcome.bundle}")
        assert data is not None
        found[outcome.trial.condition] = (outcome, unpack(data))
    return Ledger(store, "targets").plan(), found, store


def prompt(bundle: Bundle) -> str:
    return bundle.files["prompt.txt"].decode()


def test_what_was_predicted_is_in_the_plan_and_in_every_bundle(ran: Ran) -> None:
    plan, found, _ = ran
    prediction = plan.tasks[0].prediction
    assert prediction is not None
    assert (prediction.history, prediction.commit, prediction.abstained) == (False, None, None)
    assert FIXED in [target.path for target in prediction.targets]
    assert prediction.hit is True
    assert len(found) == 9
    for name, (outcome, bundle) in found.items():
        assert outcome.scored is not None, name
        assert outcome.scored.metrics.predicted_hit is True
        assert json.loads(bundle.files["targets.json"]) == json.loads(prediction.model_dump_json())


def test_the_index_is_among_the_objects_and_no_attempt_may_read_it(ran: Ran) -> None:
    plan, _, store = ran
    prediction = plan.tasks[0].prediction
    assert prediction is not None
    assert store.get(object_key(prediction.index)) is not None
    for file in (store.root / "targets/grants").rglob("*.json"):
        assert prediction.index not in json.loads(file.read_bytes())["objects"]
    for cell in plan.cells:
        assert prediction.index not in cell.condition.model_dump_json()


def test_each_arm_says_its_own(ran: Ran) -> None:
    plan, found, _ = ran
    task = prompt(found["none"][1])
    deliveries = {name: outcome.scored.delivery for name, (outcome, _) in found.items() if outcome.scored}
    words = {name: prompt(found[name][1]).removeprefix(task) for name in found}
    assert all(prompt(bundle).startswith(task) for _, bundle in found.values())
    assert words["none"] == words["placebo"] == words["ruled"] == words["told_before"] == ""
    assert f"- `{FIXED}`" in words["predicted_targets"]
    assert words["oracle_targets"].strip().splitlines() == [DIRECTIVE, "", f"- `{FIXED}`"]
    assert FIXED not in words["wrong_targets"]
    assert DIRECTIVE in words["wrong_targets"]
    assert deliveries["wrong_targets"].targets
    long, other = (deliveries[name].inline_tokens for name in ("predicted_targets", "placebo_matched"))
    assert long is not None
    assert other is not None
    assert long - 1 <= other <= long
    assert DIRECTIVE in found["told_before"][1].files["system.txt"].decode()
    assert deliveries["placebo"].coverage is Coverage.NOT_ASKED
    assert {cell.condition.name for cell in plan.cells if cell.condition.text} == {*ARMS, "ruled", "told_before"}


def test_a_rule_speaks_when_its_files_are_read(ran: Ran) -> None:
    outcome, bundle = ran[1]["ruled"]
    assert outcome.scored is not None
    assert outcome.scored.metrics.rule_firings == 1
    assert b'"rule": true' in bundle.files["hook.jsonl"]
    assert DIRECTIVE in bundle.files["trajectory.jsonl"].decode()


def test_the_offline_agent_looks_first_through_the_same_interface(ran: Ran) -> None:
    plan, found, _ = ran
    outcome, bundle = found["preflight"]
    assert outcome.scored is not None
    delivery, metrics = outcome.scored.delivery, outcome.scored.metrics
    looked = plan.tasks[0].prediction
    assert looked is not None
    assert metrics.preflight_turns is not None
    assert metrics.preflight_turns == len(looked.targets)
    assert metrics.turns is not None
    assert metrics.preflight_turns < metrics.turns
    assert delivery.preflight is PreflightResult.FOUND
    assert set(delivery.targets) <= {target.path for target in looked.targets}
    assert (metrics.preflight_hit, FIXED in delivery.targets) == (True, True)
    answer = bundle.files["preflight/answer.txt"].decode()
    assert f"FILE: {FIXED}" in answer
    assert "in `total`" in prompt(bundle)
    steps = [json.loads(line) for line in bundle.files["trajectory.jsonl"].splitlines()]
    assert [step["turn"] for step in steps] == sorted(step["turn"] for step in steps)
    assert max(step["turn"] for step in steps) == metrics.turns


def test_an_anchor_of_targets_is_the_best_predicted_file(tmp_path: Path) -> None:
    """Also where no condition names files, and the anchor is all that a prediction is for."""
    lab = Lab(tmp_path, files=MORE, task={"anchor": "targets"})
    path = campaign_file(lab, name="anchored", agent={"kind": "nop"}, store="runs", conditions=["none"])
    planned = Plan.model_validate(json.loads(trialfleet("plan", str(path), "--json", lab=lab))["plan"]).tasks[0]
    assert planned.prediction is not None
    assert planned.order.anchor == planned.prediction.targets[0].path
    assert planned.covered == planned.order.anchor.startswith("shop/pricing/")


# --- a source with history ------------------------------------------------------------------------------


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(("git", *who, *words), cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path, message: str, files: dict[str, str]) -> str:
    write(folder, files)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD")


TASK = """\
repo: {url: %s, environment: {lock: lock.txt}}
tasks:
  - {id: one, pre_fix_commit: %s, fix_commit: %s, prompt_source: issue, issue: %s}
"""


def predictor(folder: Path, source: Path, before: str, fix: str) -> Predictor:
    folder.mkdir()
    (folder / "lock.txt").write_text("")
    (folder / "task.yaml").write_text(TASK % (source, before, fix, "Vouchers are redeemed twice."))
    cache = Cache(folder / "cache")
    return Predictor(load_task_file(folder / "task.yaml").tasks[0], cache, Objects(cache.objects), {})


def test_history_before_the_fix_counts_and_nothing_later(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    git(source, "init", "-q")
    commit(source, "Shop", {**MORE, "shop/pricing/rules.py": "def total() -> int:\n    return 1\n"})
    before = commit(
        source, "Vouchers are kept in the stock", {"shop/stock.py": "def left() -> int:\n    return 2\n"}
    )
    fix = commit(
        source, "Vouchers are redeemed once", {"shop/pricing/tax.py": "def voucher_redeemed() -> None: ...\n"}
    )
    tree = {path: TreeEntry(b"") for path in (*MORE, "shop/pricing/rules.py")}
    variants = Variants(tree, tree, {}, (), ("shop/pricing/vouchers.py",), (), ())
    first = predictor(tmp_path / "a", source, before, fix).predict("Vouchers are redeemed twice.", variants)
    assert (first.history, first.commit) == (True, before)

    commit(source, "Vouchers vouchers vouchers", {"shop/pricing/rules.py": "VOUCHERS = redeem = twice = 1\n"})
    again = predictor(tmp_path / "b", source, before, fix).predict("Vouchers are redeemed twice.", variants)
    assert again == first
    said = b"".join(file.read_bytes() for file in (tmp_path / "b/cache").rglob("*.index"))
    assert b"kept\0" in said  # a word of the earlier message
    assert b"onc\0" not in said  # "once", of the fix's message
    assert b"voucherredeemed" not in said
    assert b"voucher_redeemed" not in said


def test_a_file_that_the_workspace_lacks_is_not_named(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    git(source, "init", "-q")
    before = commit(source, "Shop", MORE)
    fix = commit(source, "Fix", {"shop/stock.py": ""})
    tree = {"shop/stock.py": TreeEntry(b"")}
    found = predictor(tmp_path / "a", source, before, fix).predict(
        "Vouchers are redeemed twice.", Variants(tree, tree, {}, (), ("shop/stock.py",), (), ())
    )
    assert [target.path for target in found.targets] in ([], ["shop/stock.py"])
    assert (found.abstained is None) == bool(found.targets)


def test_without_the_extra_a_campaign_is_refused(described: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything slow, and with the way out."""
    hidden = described.root / "hidden"
    write(hidden, {"sitecustomize.py": HIDING})
    monkeypatch.setenv("PYTHONPATH", str(hidden))
    with pytest.raises(AssertionError, match=r"exited 2:(.|\n)*install trialfleet again"):
        trialfleet("plan", "campaign.yaml", lab=described)
