"""Whole attempts by the real runner on a small real project."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from tests.support.attempts import SIGNALS, Lab, Left
from tests.support.waiting import wait_until
from trialfleet_ledger.bundle import MEMBER_CAP
from trialfleet_ledger.records.agent import AgentSpec, Limits
from trialfleet_ledger.records.verdicts import LossClass, Stop, Verdict

NOP, ORACLE = AgentSpec(kind="nop"), AgentSpec(kind="oracle")
ISOLATION = [
    pytest.param("bubblewrap", marks=pytest.mark.needs("bwrap")),
    pytest.param("uid", marks=pytest.mark.needs("root")),
    pytest.param("subreaper"),
]


def shell(script: str, **options: object) -> AgentSpec:
    return AgentSpec.model_validate({"kind": "command", "options": {"argv": ["/bin/sh", "-c", script]}, **options})


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    tmp_path.chmod(0o755)
    return Lab(tmp_path)


@pytest.mark.parametrize("isolation", ISOLATION)
def test_the_oracle_passes_and_doing_nothing_fails(
    tmp_path_factory: pytest.TempPathFactory, isolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIALFLEET_ISOLATION", isolation)
    for agent, verdict in ((ORACLE, Verdict.PASSED), (NOP, Verdict.FAILED)):
        lab = Lab(tmp_path_factory.mktemp(agent.kind))
        left = lab.run(lab.grants(agent))
        assert left.end.scored is not None, left.end
        assert left.end.scored.verdict is verdict
        assert left.end.scored.stop is Stop.FINISHED
        assert left.bundle.manifest.isolation == isolation
        assert bool(left.bundle.manifest.warnings) == (isolation != "bubblewrap")
        assert left.code == 0
        assert lab.left_attempts() == []


@pytest.mark.parametrize("isolation", ISOLATION)
def test_signals_to_whoever_runs_a_program_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, isolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the agent, and by the code that it leaves while the tests run."""
    monkeypatch.setenv("TRIALFLEET_ISOLATION", isolation)
    lab = Lab(tmp_path_factory.mktemp("signals"))
    script = f"{SIGNALS}\nwith open('shop/pricing/rules.py', 'a') as file: file.write({SIGNALS!r})"
    left = lab.run(lab.grants(AgentSpec(kind="command", options={"argv": ["python", "-c", script]})))
    assert left.end.scored is not None, left.end.loss
    assert (left.end.scored.verdict, left.end.scored.stop) == (Verdict.FAILED, Stop.FINISHED)
    assert b"ZeroDivisionError" in left.bundle.files["tests/output.log"], "the tests ran to their end"


def test_a_pass_names_every_test_and_its_cost(lab: Lab) -> None:
    left = lab.run(lab.grants(ORACLE))
    scored = left.end.scored
    assert scored is not None
    assert {r["outcome"] for r in json.loads(left.bundle.files["tests/results.json"])} == {"passed"}
    assert scored.metrics.target_hit is True
    assert (scored.metrics.lines_added, scored.metrics.lines_removed) == (1, 1)
    assert scored.metrics.first_edit_turn == 1
    assert (scored.metrics.overhead_core_s or 0) > 0
    assert b"test_discount" in left.bundle.files["prompt.txt"]


def test_edits_of_an_agent_without_a_model_are_seen_when_they_happen(lab: Lab) -> None:
    """The second turn edits, the third undoes it; what the program says of edits decides nothing."""
    step = 'echo \'{{"turn": {}, "kind": "{}", "path": "shop/pricing/rules.py"}}\''
    turns = (
        step.format(1, "read") + "; " + step.format(1, "edit") + "; echo 'a > b'; echo x > /tmp/x; sleep 0.4",
        step.format(2, "run")
        + "; cp shop/pricing/rules.py /tmp/y; echo '# z' >> shop/pricing/rules.py; sleep 0.4",
        step.format(3, "run") + "; cp /tmp/y shop/pricing/rules.py; sleep 0.4",
        step.format(4, "message"),
    )
    scored = lab.run(lab.grants(shell("; ".join(turns)))).end.scored
    assert scored is not None
    metrics = scored.metrics
    assert (metrics.edits, metrics.files_changed, metrics.target_hit) == (2, 0, True)
    assert (metrics.exploration_turns, metrics.edit_turns, metrics.tail_turns) == (1, 2, 1)
    assert 0.4 <= (metrics.first_edit_s or 0) <= (metrics.agent_s or 0) - 0.8


def test_edits_of_an_agent_that_says_nothing_have_a_time_and_no_turn(lab: Lab) -> None:
    left = lab.run(lab.grants(shell("sleep 0.3; echo '# z' >> shop/pricing/rules.py")))
    assert left.end.scored is not None
    metrics = left.end.scored.metrics
    assert (metrics.edits, metrics.first_edit_turn, metrics.exploration_turns) == (1, None, None)
    assert 0.3 <= (metrics.first_edit_s or 0) <= (metrics.agent_s or 0)


def test_edits_by_search_are_seen(lab: Lab) -> None:
    left = lab.run(lab.grants(AgentSpec(kind="search", max_turns=40, timeout_s=120)))
    assert left.end.scored is not None
    metrics = left.end.scored.metrics
    steps = [json.loads(line) for line in left.bundle.files["trajectory.jsonl"].splitlines()]
    assert metrics.first_edit_turn == next(step["turn"] for step in steps if step["kind"] == "edit")
    assert metrics.first_edit_turn == next(step["turn"] for step in steps if step["kind"] == "change")
    assert (metrics.edits or 0) >= 1


@pytest.mark.parametrize("isolation", ISOLATION)
def test_the_agent_finds_the_projects_metadata(lab: Lab, isolation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIALFLEET_ISOLATION", isolation)
    left = lab.run(lab.grants(shell("python -c 'import importlib.metadata as m; print(m.version(\"shop\"))'")))
    assert left.bundle.files["agent/stdout.log"] == b"1.7\n"


def test_the_task_comes_first_and_no_condition_changes_its_words(lab: Lab) -> None:
    """A runner that counted the tokens of the inline text would take half a core second more."""
    prompts: dict[str, bytes] = {}
    for attempt, name in enumerate(["none", "placebo", "flat_llm", "intent_layer", "preamble_only"], start=1):
        env = {"PYTHONPROFILEIMPORTTIME": "1"} if name == "preamble_only" else {}
        left = lab.run(lab.grants(NOP, name, attempt=attempt), env=env)
        prompts[name] = left.bundle.files["prompt.txt"]
    imported = {line.rpartition("|")[2].strip() for line in left.errors.splitlines()}
    assert "trialfleet_deliveries.delivery" in imported
    assert imported.isdisjoint({"tiktoken", "regex", "trialfleet_deliveries.tokens"})
    assert prompts["placebo"] == prompts["none"]
    assert all(prompt.startswith(prompts["none"]) for prompt in prompts.values())
    assert b"tenth of a percent" in prompts["preamble_only"]
    delivery = json.loads(left.bundle.files["scored.json"])["delivery"]
    assert delivery["node"] == "shop/pricing/AGENTS.md"
    assert delivery["tokenizer"].startswith("tiktoken")
    assert 0 < delivery["inline_tokens"] <= 1500
    assert b"CLAUDE.md" in prompts["flat_llm"]


def test_an_attempt_of_another_runner_is_left_alone(lab: Lab) -> None:
    grants = lab.grants(NOP)
    first = lab.run(grants)
    again = lab.run(grants)
    assert again.code == 3
    assert again.end == first.end


def test_two_campaigns_with_equal_cells_run_at_once(lab: Lab) -> None:
    """Equal cells make equal trial ids; the campaigns' intents differ."""
    slow = lab.grants(shell("sleep 250"), attempt=70)
    other = lab.grants(shell("true"), attempt=71).model_copy(update={"attempt": 70, "intent_nonce": "other"})
    first = lab.start(slow)
    try:
        wait_until(lambda: Left(lab, 70, 0, "").start, by=first)
        second = lab.run(other)
        assert second.code == 0, second.errors
        assert first.poll() is None
    finally:
        first.terminate()
        first.wait(60)


def test_an_agent_that_crashes_is_scored(lab: Lab) -> None:
    left = lab.run(lab.grants(shell("echo half >&2; exit 9")))
    assert left.end.scored is not None
    assert (left.end.scored.verdict, left.end.scored.stop) == (Verdict.FAILED, Stop.CRASHED)
    assert left.bundle.files["agent/stderr.log"] == b"half\n"


@pytest.mark.parametrize(
    ("argv", "stop"),
    [
        (["./agent.sh"], Stop.CRASHED),  # its first line names an interpreter that is not there
        (["/bin/sh", "-c", "exec /usr/bin/env no-such-python"], Stop.CRASHED),
        (["python", "-I", "-c", "import no_such_module"], Stop.CRASHED),
        (["/bin/sh", "-c", "echo a > note.txt; exit 3"], Stop.ERROR),  # it has acted
        (["/bin/sh", "-c", "exit 0"], Stop.FINISHED),
    ],
    ids=["interpreter", "env", "import", "acted", "finished"],
)
def test_an_agent_without_a_model_crashes_by_an_error_of_its_own_start(
    lab: Lab, argv: list[str], stop: Stop
) -> None:
    tool = lab.root / "tool"
    tool.mkdir(mode=0o755)
    script = tool / "agent.sh"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    argv = [str(script) if word == "./agent.sh" else word for word in argv]
    spec = AgentSpec(kind="command", options={"argv": argv, "mounts": [str(tool)]})
    left = lab.run(lab.grants(spec))
    assert left.end.scored is not None, left.end.loss
    assert (left.end.scored.verdict, left.end.scored.stop) == (Verdict.FAILED, stop)
    if argv[0] == str(script):
        assert (
            b"names an interpreter that is not there: #!/no/such/interpreter"
            in left.bundle.files["agent/stderr.log"]
        )


def test_a_fix_that_comes_too_late_stays_timed_out(lab: Lab) -> None:
    script = "sed -i 's,/ 0$,/ 100,' shop/pricing/rules.py; echo fixed; sleep 250"
    for attempt, timeout_s in enumerate((5, 60), start=1):  # a busy machine may not have come to the fix
        grants = lab.grants(shell(script, timeout_s=timeout_s), attempt=attempt, limits=Limits(stop_grace_s=0.2))
        left = lab.run(grants)
        if left.bundle.files["agent/stdout.log"] == b"fixed\n":
            break
    assert left.end.scored is not None
    assert left.end.scored.tests_passed
    assert (left.end.scored.verdict, left.end.scored.stop) == (Verdict.TIMED_OUT, Stop.TIMEOUT)


def test_an_agent_that_eats_memory_is_exhausted_not_lost(lab: Lab) -> None:
    script = "python -c 'x = bytearray(600 * 2**20); import time; time.sleep(30)'"
    left = lab.run(lab.grants(shell(script), limits=Limits(memory_bytes=200 * 2**20, disk_bytes=2**28)))
    assert left.end.scored is not None
    assert (left.end.scored.verdict, left.end.scored.stop) == (Verdict.EXHAUSTED, Stop.MEMORY)


def test_an_agent_that_fills_its_disk_is_exhausted_not_lost(lab: Lab) -> None:
    script = "dd if=/dev/zero of=big bs=1M count=300 2>/dev/null; sleep 30"
    left = lab.run(lab.grants(shell(script), limits=Limits(disk_bytes=50 * 2**20)))
    assert left.end.scored is not None
    assert (left.end.scored.verdict, left.end.scored.stop) == (Verdict.EXHAUSTED, Stop.DISK)


def test_sigterm_is_a_loss_that_says_how_far_it_came(lab: Lab) -> None:
    process = lab.start(lab.grants(shell("echo on; touch here; sleep 250"), limits=Limits(stop_grace_s=0.2)))
    wait_until(lambda: list(lab.attempts.glob("*/workspace/here")), by=process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143
    left = lab.run(lab.grants(NOP))  # only reads what is there
    assert left.end.loss is not None
    assert left.end.loss.loss is LossClass.TERMINATED
    assert left.end.loss.agent_started
    assert not left.end.loss.patched
    assert left.bundle.files["agent/stdout.log"] == b"on\n"


def test_sigterm_while_scoring_leaves_a_patch_that_only_needs_scoring(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    slow = "echo 'import time; time.sleep(250)' >>shop/pricing/rules.py"
    process = lab.start(lab.grants(shell(slow), limits=Limits(stop_grace_s=0.2)))
    wait_until(lambda: lab.store.get("lab/attempts/" + "a" * 26 + "/1/patch.json"), by=process)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143
    left = lab.run(lab.grants(NOP))  # only reads what is there
    assert left.end.loss is not None
    assert (left.end.loss.loss, left.end.loss.patched) == (LossClass.TERMINATED, True)


def test_a_patch_is_scored_again_without_its_agent(lab: Lab) -> None:
    first = lab.run(lab.grants(ORACLE))
    again = lab.run(lab.grants(AgentSpec(kind="oracle"), attempt=2, score_patch_of=1))
    assert first.end.scored is not None
    assert again.end.scored is not None
    assert again.end.scored.verdict is Verdict.PASSED
    assert again.patch is None
    assert again.bundle.files["patch.diff"] == first.bundle.files["patch.diff"]


def test_a_patch_that_is_too_long_for_the_bundle_is_cut_and_named(lab: Lab) -> None:
    fix = "sed -i 's,/ 0$,/ 100,' shop/pricing/rules.py"
    fill = "for n in 1 2; do head -c 5000000 /dev/zero | tr '\\0' x | fold > shop/$n.txt; done"
    left = lab.run(lab.grants(shell(f"{fill}; {fix}")))
    assert left.end.scored is not None
    assert left.end.scored.verdict is Verdict.PASSED, "what is scored is whole"
    cut = {file.path: file.left_out for file in left.bundle.manifest.files if file.left_out}
    assert list(cut) == ["patch.diff"]
    assert left.patch is not None
    kept, note = left.bundle.files["patch.diff"], f"\n[… {cut['patch.diff']} bytes left out …]\n".encode()
    assert note in kept
    assert len(kept) <= MEMBER_CAP
    assert len(kept) - len(note) + cut["patch.diff"] == len(left.patch.diff.encode())


def test_the_live_log_can_be_read_while_the_agent_runs(lab: Lab) -> None:
    from backports import zstd

    limits = Limits(live_interval_s=0.2, stop_grace_s=0.2)
    process = lab.start(lab.grants(shell("echo early; sleep 250"), limits=limits))
    data = wait_until(lambda: lab.store.get("lab/attempts/" + "a" * 26 + "/1/live.log.zst"))
    process.terminate()
    process.wait(60)
    assert zstd.ZstdDecompressor().decompress(data) == b"early\n"
