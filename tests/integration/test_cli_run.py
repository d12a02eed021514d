"""The operator's commands on a real task: one bug, validated, run, looked at, extended, and every refusal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from local_index import with_pytest

from trialfleet_controller import epochs
from trialfleet_controller.ledger import Ledger
from trialfleet_runner.store.directory import DirectoryStore

THIS = ".".join(map(str, sys.version_info[:2]))
TEST = """
from shop.price import total

def test_total():
    assert total([1, 2]) == 3

def test_kept():
    assert True
"""
WRONG = "def total(items):\n    return sum(items) + 1\n"
RIGHT = "def total(items):\n    return sum(items)\n"
CAMPAIGN: dict[str, Any] = {
    "campaign": "shop",
    "seed": 5,
    "tasks": ["task.yaml"],
    "conditions": ["none", "flat_llm"],
    "reps": 2,
    "agent": {"kind": "oracle"},
    "limits": {"memory": "256Mi", "disk": "256Mi"},
    "store": "out",
}


def trialfleet(*args: str, cwd: Path, expect: int | None = 0, env: dict[str, str] | None = None) -> str:
    """What the command prints, on both streams."""
    ran = subprocess.run(
        [sys.executable, "-m", "trialfleet_runner.cli", *args],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=200,
    )
    output = ran.stdout + ran.stderr
    assert expect is None or ran.returncode == expect, f"{args} exited {ran.returncode}:\n{output}"
    assert "Traceback" not in output
    return output


def write(folder: Path, name: str, content: str | dict[str, Any]) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a validated task and a campaign file; caches of its own."""
    folder = tmp_path_factory.mktemp("shop")
    index = with_pytest(tmp_path_factory.mktemp("index"))
    os.environ["PIP_FIND_LINKS"] = str(index.folder)
    os.environ["PIP_INDEX_URL"] = (folder / "nothing").as_uri()
    os.environ["TRIALFLEET_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["TRIALFLEET_SCRATCH"] = str(tmp_path_factory.mktemp("scratch"))
    write(folder, "lock.txt", index.lock("pytest", "pluggy", "iniconfig", "packaging", "pygments"))
    for tree, code in (("before", WRONG), ("after", RIGHT)):
        write(folder, f"{tree}/src/shop/__init__.py", "")
        write(folder, f"{tree}/src/shop/price.py", code)
    write(folder, "after/tests/test_price.py", TEST)
    write(folder, "flat/CLAUDE.md", "# Shop\nPrices are summed in `shop.price`.\n")
    environment = {"python": [THIS], "lock": "lock.txt", "pythonpath": ["src"]}
    task = {
        "id": "shop-total",
        "source": {"kind": "path", "pre_fix": "before", "fixed": "after"},
        "prompt_source": "failing_test",
        "test_file": "tests/test_price.py",
        "contexts": {"flat": "flat"},
        "status": "unvalidated",
    }
    write(folder, "task.yaml", {"repo": {"environment": environment}, "tasks": [task]})
    write(folder, "campaign.yaml", CAMPAIGN)
    return folder


@pytest.fixture(scope="module", autouse=True)
def _environment() -> Any:
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module")
def finished(shop: Path) -> Path:
    """The campaign's folder after `run`."""
    refused = trialfleet("run", "campaign.yaml", "--no-ray", cwd=shop, expect=2)
    assert "not validated yet: shop-total" in refused
    assert "trialfleet validate --write task.yaml" in refused
    trialfleet("validate", "task.yaml", "--write", "--repeats", "1", cwd=shop)
    output = trialfleet("run", "campaign.yaml", "--no-ray", cwd=shop)
    assert "4/4 trials" in output
    assert "report.html" in output
    return shop / "out" / "shop"


def test_plan_shows_blocks_before_anything_runs(finished: Path, shop: Path) -> None:
    listed = trialfleet("plan", "campaign.yaml", "--all", cwd=shop)
    assert "2 cells × 2 reps = 4" in listed
    frozen = json.loads(trialfleet("plan", str(finished), "--json", cwd=shop))
    assert [trial["block"] for trial in frozen["trials"]] == [0, 0, 1, 1]
    assert all(trial["id"] in listed for trial in frozen["trials"])
    assert "2 more trials for 3 reps" in trialfleet("plan", "campaign.yaml", "--extend", "3", cwd=shop)
    assert "not more than the 2" in trialfleet("plan", str(finished), "--extend", "2", cwd=shop, expect=2)


def test_status_and_report(finished: Path, shop: Path) -> None:
    standing = json.loads(trialfleet("status", "campaign.yaml", "--json", cwd=shop))
    assert (standing["state"], standing["terminal"]) == ("complete", 4)
    assert {name: c["interim_rate"] for name, c in standing["conditions"].items()} == {"none": 1, "flat_llm": 1}
    assert "no attempt was lost" in trialfleet("status", str(finished), cwd=shop)
    report = finished.parent / "shop-report"
    assert {path.name for path in report.iterdir()} == {"report.html", "report.md", "report.json"}


def test_run_again_is_a_resume_and_another_plan_is_refused(finished: Path, shop: Path) -> None:
    before = sorted(path.name for path in (finished / "attempts").iterdir())
    assert "going on with it" in trialfleet("run", "campaign.yaml", "--no-ray", "--no-report", cwd=shop)
    assert sorted(path.name for path in (finished / "attempts").iterdir()) == before
    write(shop, "other.yaml", CAMPAIGN | {"seed": 6})
    refused = trialfleet("run", "other.yaml", "--no-ray", cwd=shop, expect=2)
    assert "differ in: seed" in refused


def test_show_and_logs_neutralise_what_an_agent_printed(finished: Path, shop: Path) -> None:
    trial = next((finished / "outcomes").iterdir()).stem
    shown = trialfleet("show", "campaign.yaml", trial[:6], cwd=shop)
    for words in (trial, "outcome: passed", "── prompt", "── patch", "+    return sum(items)", "── attempts"):
        assert words in shown
    assert "(the agent finished, tests passed)" in shown
    assert "2 passed (--part tests names them)" in shown
    assert "passed   tests/test_price.py::test_total" in trialfleet(
        "show", "campaign.yaml", trial, "--part", "tests", cwd=shop
    )
    assert "A test of this repository fails" in trialfleet(
        "show", "campaign.yaml", trial, "--file", "prompt.txt", cwd=shop
    )
    plain = json.loads(trialfleet("show", "campaign.yaml", trial, "--json", cwd=shop))
    assert plain["attempts"][0]["end"]["by"] == "runner"
    trialfleet("logs", "campaign.yaml", trial[:8], cwd=shop)
    assert "no trial that begins with 'zzzz'" in trialfleet("show", "campaign.yaml", "zzzz", cwd=shop, expect=2)


def test_pull_makes_a_copy_that_serves_offline(finished: Path, shop: Path) -> None:
    (finished / "surprise").write_text("what is this")
    copy = shop / "copy"
    output = trialfleet("pull", "campaign.yaml", str(copy), cwd=shop)
    assert "left out, not a campaign's: 'shop/surprise'" in output
    (finished / "surprise").unlink()
    assert not (copy / "shop" / "grants").exists()
    assert not (copy / "shop" / "surprise").exists()
    assert "complete" in trialfleet("status", str(copy / "shop"), cwd=shop)
    again = trialfleet("pull", str(finished), str(copy), cwd=shop)
    changing = [path for kind in ("epochs/*.beat", "tables/*") for path in (copy / "shop").glob(kind)]
    assert again.startswith(f"{len(changing)} files pulled"), (
        again
    )  # heartbeats and tables, which may have changed
    trialfleet("report", str(copy / "shop"), "--out", str(shop / "r2"), cwd=shop)


def test_who_is_not_the_driver_amends_nothing(finished: Path, shop: Path) -> None:
    store = DirectoryStore(finished.parent)
    driver = epochs.claim(store, "shop", epochs.Pulse())  # this process lives
    refused = trialfleet("resume", str(finished), "--reps", "9", "--no-ray", cwd=shop, expect=2)
    assert f"another controller drives this campaign: process {os.getpid()}" in refused
    assert Ledger(store, "shop").amendments() == ()
    driver.end()


def test_an_extension_after_the_end_is_labelled(finished: Path, shop: Path) -> None:
    assert "reps only grow" in trialfleet("resume", str(finished), "--reps", "2", cwd=shop, expect=2)
    output = trialfleet("resume", str(finished), "--reps", "3", "--no-ray", cwd=shop)
    assert "amended: 3 reps (after a look: the report says so)" in output
    standing = json.loads(trialfleet("status", str(finished), "--json", cwd=shop))
    assert (standing["terminal"], standing["reps"], standing["after_look"]) == (6, 3, True)


def test_a_truncated_bundle_is_said_and_not_shown(finished: Path, shop: Path) -> None:
    folder = shop / "damaged"
    subprocess.run(["cp", "-r", str(finished.parent), str(folder)], check=True)
    bundle = next((folder / "shop" / "attempts").rglob("bundle.tar.zst"))
    bundle.write_bytes(bundle.read_bytes()[:-5])
    trial = bundle.parent.parent.name
    assert "is not what the end says" in trialfleet("show", str(folder / "shop"), trial, cwd=shop)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_under_ray_with_json_lines(finished: Path, shop: Path) -> None:
    write(shop, "ray.yaml", CAMPAIGN | {"campaign": "ray", "agent": {"kind": "nop"}, "reps": 1})
    ran = subprocess.run(
        [sys.executable, "-m", "trialfleet_runner.cli", "run", "ray.yaml", "--json"],
        cwd=shop,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert ran.returncode == 0, ran.stderr
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    assert events[-1] == {"event": "ended", "ending": "complete"}
    assert events[-2]["total"] == {"planned": 2, "measured": 2, "abandoned": 0, "running": 0, "lost_attempts": 0}
    standing = json.loads(trialfleet("status", "ray.yaml", "--json", cwd=shop))
    assert {c["interim_rate"] for c in standing["conditions"].values()} == {0}


def test_ctrl_c_exits_130_and_resume_goes_on(finished: Path, shop: Path) -> None:
    agent = {"kind": "command", "options": {"argv": ["/usr/bin/sleep", "600"]}, "timeout_s": 900}
    write(shop, "slow.yaml", CAMPAIGN | {"campaign": "slow", "agent": agent, "reps": 1})
    process = subprocess.Popen(
        [sys.executable, "-m", "trialfleet_runner.cli", "run", "slow.yaml", "--no-ray"],
        cwd=shop,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    attempts = shop / "out" / "slow" / "attempts"
    end = time.monotonic() + 100
    while not (attempts.is_dir() and list(attempts.rglob("start.json"))):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=150)
    assert process.returncode == 130, output
    assert "`trialfleet resume` goes on from here" in output
    assert "Traceback" not in output
    assert "goes on" in trialfleet("status", "slow.yaml", cwd=shop)
    assert "cancelled" in trialfleet("cancel", "slow.yaml", cwd=shop)
    assert "cancelled by" in trialfleet("resume", "slow.yaml", "--no-ray", "--no-report", cwd=shop)
    assert len(list(attempts.rglob("start.json"))) <= 2


def test_doctor_and_gc(finished: Path, shop: Path) -> None:
    checks = json.loads(trialfleet("doctor", "campaign.yaml", "--json", cwd=shop))
    assert {check["name"]: check["result"] for check in checks}["store"] == "ok"
    write(shop, "claude.yaml", CAMPAIGN | {"agent": {"kind": "claude-code"}})
    bare = {"PATH": "/nonexistent", "TRIALFLEET_CLAUDE": "", "ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": ""}
    output = trialfleet("doctor", "claude.yaml", cwd=shop, expect=2, env=bare)
    assert "MISSING  git: not on PATH" in output
    assert "MISSING  agent claude-code" in output
    assert "MISSING  credentials: no key for the model provider anthropic" in output
    assert "mend: " in output
    assert "grants of" in trialfleet("gc", str(finished), cwd=shop)
    assert not (finished / "grants").exists()
    assert "complete" in trialfleet("status", str(finished), cwd=shop)


def test_a_missing_agent_is_refused_before_anything_is_planned(finished: Path, shop: Path) -> None:
    write(shop, "claude.yaml", CAMPAIGN | {"campaign": "never", "agent": {"kind": "claude-code"}})
    env = {"PATH": "/usr/bin:/bin", "TRIALFLEET_CLAUDE": str(shop / "no-such-program")}
    output = trialfleet("run", "claude.yaml", "--no-ray", cwd=shop, expect=2, env=env)
    assert "way out" in output
    assert not (shop / "out" / "never").exists()


def test_scratch_below_a_repository_is_refused_where_nothing_hides_it(finished: Path, shop: Path) -> None:
    write(shop, "repository/conftest.py", "raise SystemExit\n")
    env = {"TRIALFLEET_SCRATCH": str(shop / "repository" / "scratch"), "TRIALFLEET_ISOLATION": "subreaper"}
    write(shop, "below.yaml", CAMPAIGN | {"campaign": "below"})
    for command in (("run", "below.yaml", "--no-ray"), ("resume", str(finished)), ("validate", "task.yaml")):
        output = trialfleet(*command, cwd=shop, expect=2, env=env)
        assert f"{shop}/repository/conftest.py lies above every workspace" in output
        assert "way out" in output
    assert not (shop / "out" / "below").exists()


SOME_MODEL = {"kind": "command", "model": "m-1", "options": {"argv": ["/bin/true"], "needs_model": True}}
MONEY = CAMPAIGN["limits"] | {"cost_usd": {"trial": 0.5}}


@pytest.mark.parametrize(
    ("key", "words"),
    [("", "no key for the model provider anthropic"), ("k", "the price of 'm-1' is not known")],
)
def test_what_a_model_needs_is_asked_before_anything_is_frozen(
    finished: Path, shop: Path, key: str, words: str
) -> None:
    write(shop, "model.yaml", CAMPAIGN | {"campaign": "model", "agent": SOME_MODEL, "limits": MONEY})
    env = {"ANTHROPIC_API_KEY": key, "ANTHROPIC_AUTH_TOKEN": ""}
    for command in (("run", "model.yaml", "--no-ray"), ("plan", "model.yaml", "--freeze")):
        output = trialfleet(*command, cwd=shop, expect=2, env=env)
        assert words in output
        assert "way out" in output
    assert not (shop / "out" / "model").exists()
    said = trialfleet("doctor", "model.yaml", cwd=shop, expect=None, env=env)
    assert ("credentials: there is a key for anthropic" in said) == bool(key)
    assert "at most 2 USD" in trialfleet("plan", "model.yaml", cwd=shop, env=env)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"reps": 0}, ("reps", "greater than or equal to 1")),
        ({"rep": 1}, ("rep: unknown key", "did you mean reps")),
        ({"conditions": ["none", "flat"]}, ("no condition is called 'flat'",)),
        ({"conditions": ["placebo"]}, ("the task has no context 'placebo'", "contexts.placebo")),
        ({"conditions": {"x": {"fail_fast": True}}, "agent": {"kind": "search"}}, ("search cannot be given",)),
        ({"agent": {"kind": "gpt"}}, ("no agent is called 'gpt'", "claude-code")),
        ({"tasks": ["task.yaml", "twin.yaml"]}, ("'shop-total' is already used",)),
        ({"tasks": ["nothing.yaml"]}, ("nothing.yaml: no such file",)),
        ({"limits": {"memory": "4096Gi"}}, ("limits: memory", "this machine has")),
        ({"limits": {"cost_usd": {"trial": 5, "campaign": 9}}}, ("one block is 2 trials", "at least 10")),
        ({"store": "gopher://x"}, ("'gopher://x' is not a store",)),
    ],
)
def test_bad_input_exits_2_with_a_way_out(
    finished: Path, shop: Path, change: dict[str, Any], words: tuple[str, ...]
) -> None:
    write(shop, "twin.yaml", (shop / "task.yaml").read_text())
    write(shop, "bad.yaml", CAMPAIGN | {"campaign": "bad"} | change)
    output = trialfleet("run", "bad.yaml", "--no-ray", cwd=shop, expect=2)
    for word in (*words, "way out: "):
        assert word in output
    assert not (shop / "out" / "bad").exists(), "something was planned"


def test_a_campaign_that_is_nowhere(shop: Path) -> None:
    for command in ("status", "resume", "cancel"):
        assert "way out" in trialfleet(command, "nowhere", cwd=shop, expect=2)
        assert "no campaign 'x'" in trialfleet(command, "x", "--store", "out", cwd=shop, expect=2)
