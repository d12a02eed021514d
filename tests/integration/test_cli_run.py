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

from tests.support.package_index import with_pytest
from tests.support.real_campaign import ran
from tests.support.waiting import wait_until
from trialfleet_controller.dispatch import epochs
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.output_files import RECORD
from trialfleet_ledger.store.directory import DirectoryStore

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
    """What the command prints, on both streams; as JSON, on its standard output."""
    ended = ran(*args, cwd=cwd, expect=expect, env=env)
    return ended.stdout if "--json" in args else ended.stdout + ended.stderr


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
    assert "these tasks are not validated: shop-total" in refused
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
    assert {path.name for path in report.iterdir()} == {RECORD, "report.html", "report.md", "report.json"}


def test_run_again_is_a_resume_and_another_plan_is_refused(finished: Path, shop: Path) -> None:
    before = sorted(path.name for path in (finished / "attempts").iterdir())
    assert "shop exists: continuing it" in trialfleet("run", "campaign.yaml", "--no-ray", "--no-report", cwd=shop)
    assert sorted(path.name for path in (finished / "attempts").iterdir()) == before
    write(shop, "other.yaml", CAMPAIGN | {"seed": 6})
    refused = trialfleet("run", "other.yaml", "--no-ray", cwd=shop, expect=2)
    assert "differ in: seed" in refused
    write(shop, "more.yaml", CAMPAIGN | {"reps": 4})
    more = trialfleet("run", "more.yaml", "--no-ray", cwd=shop, expect=2)
    assert f"`trialfleet resume --reps 4 {finished}`" in more


def test_a_dry_run_needs_no_key_and_leaves_the_campaign_alone(finished: Path, shop: Path) -> None:
    before = sorted(path.relative_to(shop) for path in finished.rglob("*"))
    agents = {"none": {"model": "claude-opus-4-1"}, "flat_llm": {"agent": "codex", "files": "flat"}}
    change = {"agent": {"kind": "claude-code", "model": "claude-sonnet-4-6"}, "conditions": agents, "reps": 1}
    write(shop, "real.yaml", CAMPAIGN | change)
    said = trialfleet("run", "real.yaml", "--agent", "oracle", "--no-ray", cwd=shop)
    dry = shop / "out" / "_dry-run-oracle" / "shop"
    assert "Dry run: the agent oracle runs in place of claude-code and codex." in " ".join(said.split())
    assert "view out/_dry-run-oracle/shop" in said
    assert trialfleet("status", str(dry), cwd=shop).startswith("Dry run of shop: complete")
    shown = json.loads(trialfleet("show", str(dry), "shop-total/none/0", "--json", cwd=shop))
    assert (shown["dry_run"], shown["manifest"]["agent"]["dry_run_of"]) == (True, "claude-code")
    assert (dry.parent / "shop-report/report.md").read_text().startswith("# Dry run of shop")
    assert sorted(path.relative_to(shop) for path in finished.rglob("*")) == before
    mixed = trialfleet("run", "campaign.yaml", "--store", "out/_dry-run-oracle", "--no-ray", cwd=shop, expect=2)
    assert "a different campaign of this name" in mixed


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
    assert "A test in this repository fails" in trialfleet(
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
    assert "not copied, not a file of a campaign: 'shop/surprise'" in output
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
    driver = epochs.claim(store, "shop", epochs.HeartbeatConfig())  # this process lives
    refused = trialfleet("resume", str(finished), "--reps", "9", "--no-ray", cwd=shop, expect=2)
    assert f"another controller drives this campaign: process {os.getpid()}" in refused
    assert Ledger(store, "shop").directives.amendments() == ()
    driver.end()


def test_an_extension_after_the_end_is_labelled(finished: Path, shop: Path) -> None:
    assert "reps can only grow" in trialfleet("resume", str(finished), "--reps", "2", cwd=shop, expect=2)
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
    assert "does not match its end record" in trialfleet("show", str(folder / "shop"), trial, cwd=shop)


def test_a_few_trials_run_without_ray(finished: Path, shop: Path) -> None:
    write(shop, "poison/ray/__init__.py", "raise RuntimeError('Ray was imported')")
    write(shop, "few.yaml", CAMPAIGN | {"campaign": "few", "agent": {"kind": "nop"}, "reps": 1})
    path = os.pathsep.join(filter(None, (str(shop / "poison"), os.environ.get("PYTHONPATH"))))
    for command in ("run", "resume"):
        said = trialfleet(command, "few.yaml", "--no-report", cwd=shop, env={"PYTHONPATH": path})
        assert "2/2 trials" in said


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_under_ray_with_json_lines(finished: Path, shop: Path) -> None:
    write(shop, "ray.yaml", CAMPAIGN | {"campaign": "ray", "agent": {"kind": "nop"}, "reps": 1})
    ended = ran("run", "ray.yaml", "--ray", "--json", cwd=shop)
    events = [json.loads(line) for line in ended.stdout.splitlines()]
    assert events[-1] == {"event": "ended", "ending": "complete"}
    assert events[-2]["total"] == {
        "planned": 2,
        "measured": 2,
        "abandoned": 0,
        "running": 0,
        "pending": 0,
        "lost_attempts": 0,
        "interrupted": 0,
    }
    standing = json.loads(trialfleet("status", "ray.yaml", "--json", cwd=shop))
    assert {c["interim_rate"] for c in standing["conditions"].values()} == {0}


def test_ctrl_c_exits_130_and_resume_goes_on(finished: Path, shop: Path) -> None:
    agent = {"kind": "command", "options": {"argv": ["/usr/bin/sleep", "600"]}, "timeout_s": 900}
    write(shop, "slow.yaml", CAMPAIGN | {"campaign": "slow", "agent": agent, "reps": 1})
    process = subprocess.Popen(
        [sys.executable, "-m", "trialfleet_runner.console", "run", "slow.yaml", "--no-ray"],
        cwd=shop,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    attempts = shop / "out" / "slow" / "attempts"
    wait_until(lambda: attempts.is_dir() and list(attempts.rglob("start.json")), by=process)
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(1.5)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=150)
    assert process.returncode == 130, output
    assert "may finish within 30 min. Ctrl-C again stops at once" in output
    assert "interrupted by you: " in output
    assert f"trialfleet: interrupted; `trialfleet resume {shop}/out/slow` continues from here" in output
    assert "Traceback" not in output
    shown = trialfleet("status", "slow.yaml", cwd=shop)
    assert "slow: incomplete" in shown
    assert "`trialfleet resume` continues" in shown
    assert "no attempt was lost" in shown
    assert "interrupted by you: " in shown
    assert "cancelled" in trialfleet("cancel", "slow.yaml", cwd=shop)
    for command in ("resume", "run"):
        over = trialfleet(command, "slow.yaml", "--no-ray", "--no-report", cwd=shop, expect=3)
        assert "cancelled by" in over
        assert "over and not complete" in over
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
    assert "fix: " in output
    assert "grants of" in trialfleet("gc", str(finished), cwd=shop)
    assert not (finished / "grants").exists()
    assert "complete" in trialfleet("status", str(finished), cwd=shop)


def test_a_missing_agent_is_refused_before_anything_is_planned(finished: Path, shop: Path) -> None:
    write(shop, "claude.yaml", CAMPAIGN | {"campaign": "never", "agent": {"kind": "claude-code"}})
    env = {"PATH": "/usr/bin:/bin", "TRIALFLEET_CLAUDE": str(shop / "no-such-program")}
    output = trialfleet("run", "claude.yaml", "--no-ray", cwd=shop, expect=2, env=env)
    assert "fix: " in output
    assert not (shop / "out" / "never").exists()


def test_scratch_below_a_repository_is_refused_where_nothing_hides_it(finished: Path, shop: Path) -> None:
    write(shop, "repository/conftest.py", "raise SystemExit\n")
    env = {"TRIALFLEET_SCRATCH": str(shop / "repository" / "scratch"), "TRIALFLEET_ISOLATION": "subreaper"}
    write(shop, "below.yaml", CAMPAIGN | {"campaign": "below"})
    for command in (("run", "below.yaml", "--no-ray"), ("resume", str(finished)), ("validate", "task.yaml")):
        output = trialfleet(*command, cwd=shop, expect=2, env=env)
        assert f"{shop}/repository/conftest.py is in a folder above every workspace" in output
        assert "fix: " in output
    assert not (shop / "out" / "below").exists()


SOME_MODEL = {"kind": "command", "model": "m-1", "options": {"argv": ["/bin/true"], "needs_model": True}}
MONEY = CAMPAIGN["limits"] | {"cost_usd": {"trial": 0.5}}


@pytest.mark.parametrize(
    ("key", "words"),
    [("", "no key for the model provider anthropic"), ("k" * 20, "the price of 'm-1' is not known")],
)
def test_what_a_model_needs_is_asked_before_anything_is_frozen(
    finished: Path, shop: Path, key: str, words: str
) -> None:
    write(shop, "model.yaml", CAMPAIGN | {"campaign": "model", "agent": SOME_MODEL, "limits": MONEY})
    env = {"ANTHROPIC_API_KEY": key, "ANTHROPIC_AUTH_TOKEN": ""}
    for command in (("run", "model.yaml", "--no-ray"), ("plan", "model.yaml", "--freeze")):
        output = trialfleet(*command, cwd=shop, expect=2, env=env)
        assert words in output
        assert "fix: " in output
    assert not (shop / "out" / "model").exists()
    said = trialfleet("doctor", "model.yaml", cwd=shop, expect=None, env=env)
    assert ("credentials: a key for anthropic is set" in said) == bool(key)
    preview = trialfleet("plan", "model.yaml", cwd=shop, expect=2, env=env)
    assert "the price of 'm-1' is not known" in preview, "a preview needs no key, and a price"
    uncapped = CAMPAIGN | {"campaign": "model", "agent": SOME_MODEL}
    write(shop, "uncapped.yaml", uncapped)
    trialfleet("plan", "uncapped.yaml", cwd=shop, env=env)
    text = env | {"ANTHROPIC_API_KEY": "sum(items)"}
    assert "is a text of the task" in trialfleet("plan", "uncapped.yaml", cwd=shop, expect=2, env=text)
    misspelt = CAMPAIGN | {
        "campaign": "model",
        "agent": SOME_MODEL | {"model": "claude-sonet-4-6"},
        "limits": MONEY,
    }
    write(shop, "misspelt.yaml", misspelt)
    assert "did you mean claude-sonnet-4-6" in trialfleet("plan", "misspelt.yaml", cwd=shop, expect=2, env=env)


@pytest.mark.parametrize(
    ("store", "env", "words"),
    [
        ("lock.txt", {}, ("lock.txt is a file, not a folder", "fix: name a folder")),
        ({"url": "s3://bucket/x", "endpoint": "http://127.0.0.1:9"}, {}, ("set $AWS_ACCESS_KEY_ID",)),
        (
            {"url": "s3://bucket/x", "endpoint": "http://127.0.0.1:9"},
            {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"},
            ("no answer within 5 s", "fix: start the store"),
        ),
    ],
    ids=["file", "no credentials", "dead"],
)
def test_a_plan_warns_of_a_store_that_a_run_would_refuse(
    finished: Path, shop: Path, store: object, env: dict[str, str], words: tuple[str, ...]
) -> None:
    write(shop, "stored.yaml", CAMPAIGN | {"campaign": "stored", "store": store})
    bare = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true"}
    nobody = {"AWS_SHARED_CREDENTIALS_FILE": os.devnull, "AWS_CONFIG_FILE": os.devnull}
    said = trialfleet("plan", "stored.yaml", cwd=shop, env=nobody | bare | env)
    for word in (*words, "warning: ", "stored.yaml:14: store", "2 cells"):
        assert word in said
    assert "warning" not in trialfleet("plan", "stored.yaml", "--offline", cwd=shop, env=nobody | bare | env)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rep": 1}, ("rep: unknown key", "did you mean reps")),
        ({"conditions": ["placebo"]}, ("the task has no context 'placebo'", "contexts.placebo")),
        ({"conditions": {"x": {"fail_fast": True}}, "agent": {"kind": "search"}}, ("search does not support",)),
        ({"agent": {"kind": "command"}}, ("bad.yaml:9: agent.options.argv: is required", "argv: [program")),
        ({"agent": {"kind": "gpt"}}, ("no agent is called 'gpt'", "claude-code")),
        ({"tasks": ["task.yaml", "twin.yaml"]}, ("'shop-total' is already used",)),
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
    for word in (*words, "fix: "):
        assert word in output
    assert not (shop / "out" / "bad").exists(), "something was planned"


def test_a_campaign_that_is_nowhere(shop: Path) -> None:
    for command in ("status", "resume", "cancel"):
        assert "fix: " in trialfleet(command, "nowhere", cwd=shop, expect=2)
        said = trialfleet(command, "x", "--store", "out", cwd=shop, expect=2)
        assert "no campaign 'x'" in said
        assert ("`trialfleet run` starts" in said) is (command != "cancel")
        assert ("to cancel" in said) is (command == "cancel")


def test_the_wall_clock_limit_drains_is_named_and_a_higher_one_continues(finished: Path, shop: Path) -> None:
    del finished  # its task is validated
    agent = {"kind": "command", "options": {"argv": ["/bin/sh", "-c", "sleep 4"]}}
    limits = {**CAMPAIGN["limits"], "parallel": 1, "wall_clock_s": 10}
    changed = {"campaign": "timed", "conditions": ["none"], "reps": 4, "agent": agent, "limits": limits}
    write(shop, "timed.yaml", {**CAMPAIGN, **changed})
    assert "wall clock  10 s" in trialfleet("plan", "timed.yaml", cwd=shop)
    said = trialfleet("run", "timed.yaml", "--no-ray", "--out", "timed-report", cwd=shop, expect=3)
    assert "the campaign's wall-clock limit is reached: nothing more starts" in said
    assert "trialfleet resume --wall-clock SECONDS" in said
    ledger = Ledger(DirectoryStore(shop / "out"), "timed")
    assert 0 < len(list(ledger.attempts.outcome_ids())) < 4
    assert all(
        attempt.end is not None for trial in ledger.survey().open for attempt in ledger.attempts.chain(trial)
    )
    report = json.loads((shop / "timed-report" / "report.json").read_text())
    assert report["cautions"][0].startswith("Interim. The campaign's wall-clock limit is reached: ")
    assert "the wall-clock limit is reached; " in trialfleet("status", "timed.yaml", cwd=shop)
    assert "have passed since" in trialfleet("resume", "timed.yaml", "--wall-clock", "5", cwd=shop, expect=2)
    trialfleet("resume", "timed.yaml", "--no-ray", "--no-report", cwd=shop, expect=3)  # still in force
    said = trialfleet("resume", "timed.yaml", "--wall-clock", "9000", "--no-ray", cwd=shop)
    assert "amended: wall-clock limit 9000 s" in said
    assert "4/4 trials" in said
