"""One row per trial and per attempt: what is in it, and that nothing is lost through Arrow and Parquet."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import ledgers as made
from tests.support.ledgers import Fate
from trialfleet_analysis.evidence import read_evidence
from trialfleet_analysis.ledger import read_ledger
from trialfleet_analysis.tables.columns import known, numbers, some, texts, words
from trialfleet_analysis.tables.kept_bytes import NotThese, pack_table, unpack_table
from trialfleet_analysis.tables.made_of_rows import attempts_table, evidence_of, trials_table
from trialfleet_analysis.tables.parquet import ABOUT, to_parquet
from trialfleet_analysis.tables.read import CampaignTables, open_campaign
from trialfleet_analysis.tables.rows import (
    TaskRow,
    TrialRow,
    Use,
    attempt_rows,
    task_rows,
    trial_rows,
    usable_blocks,
)
from trialfleet_analysis.tables.schema import ATTEMPT_COLUMNS, COUNT, METRIC_COLUMNS, TRIAL_COLUMNS, Column
from trialfleet_analysis.tables.table import table_of
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.base import LARGEST_COUNT
from trialfleet_ledger.records.measurements import Coverage, Delivery, Metrics
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import LossClass, Stop, Verdict
from trialfleet_ledger.store.directory import DirectoryStore

PLAN = made.plan(reps=3)
TRIALS_OF_PLAN = made.trials(PLAN)


@pytest.fixture(scope="module")
def lifelike(tmp_path_factory: pytest.TempPathFactory) -> DirectoryStore:
    """Losses, abandoned trials, deliveries, an unfinished block, a damaged bundle."""
    plan = made.lifelike_plan(reps=6)
    fate, last = made.lifelike(3), made.trials(plan)[-1]
    store = made.write(tmp_path_factory.mktemp("lifelike"), plan, lambda t: None if t == last else fate(t))
    victim = next(t for t in made.trials(plan) if fate(t).verdict is not None)
    bundle = next((store.root / plan.campaign / "attempts" / victim.id).glob("*/bundle.tar.zst"))
    bundle.write_bytes(b"broken")
    return store


def test_rows_losses_and_evidence_come_back_as_they_were(lifelike: DirectoryStore) -> None:
    ledger = read_ledger(lifelike, "preamble-vs-pull")
    evidence = read_evidence(lifelike, ledger, verify=True)
    tasks = task_rows(ledger)
    rows = trial_rows(ledger, evidence, usable_blocks(ledger))
    trials = trials_table(rows, tasks)
    attempts = attempts_table(attempt_rows(ledger, evidence))
    assert unpack_table(pack_table(trials, {}), TRIAL_COLUMNS).to_pylist() == trials.to_pylist()
    assert [row.trial for row in made.rows_of(trials)] == [row.trial for row in rows]
    assert any(row.fault for row in rows)
    assert any(row.abandoned for row in rows)
    refused = {row.trial for row in rows if row.fault}
    back = unpack_table(pack_table(attempts, {}), ATTEMPT_COLUMNS)
    lost = {(row.trial, row.attempt): row for row in made.rows_of(back) if row.loss and not row.fault}
    assert sorted(lost) == sorted((item.trial, item.attempt) for item in ledger.lost)
    for item in ledger.lost:
        row = lost[item.trial, item.attempt]
        assert (row.loss, row.stage, row.message) == (item.loss, item.stage, item.message)
        assert (row.elapsed_s, row.host, row.score_only) == (item.elapsed_s, item.run.host, item.run.score_only)
    assert evidence_of(back) == evidence
    assert attempts.num_rows == sum(row.attempts for row in rows)
    assert set(texts(some(back, known(back, "fault")), "trial")) == refused


def test_a_refused_trial_is_missing_data_in_every_column(lifelike: DirectoryStore) -> None:
    campaign = open_campaign(lifelike, "preamble-vs-pull")
    refused = some(campaign.trials, known(campaign.trials, "fault"))
    assert refused.num_rows == 1
    for name in ("verdict", "passed", "stop", "tests_passed", "coverage", *(c.name for c in METRIC_COLUMNS)):
        assert not known(refused, name).any(), name
    assert numbers(refused, "verified").tolist() == [0]
    [trial] = texts(refused, "trial")
    last = [row for row in campaign.attempts.to_pylist() if row["trial"] == trial][-1]
    assert (last["loss"], last["verdict"], last["stage"]) == ("quarantined", None, "after_patch")


def test_an_attempt_says_who_ran_it_and_when(tmp_path: Path) -> None:
    fate = Fate(losses=(made.BEFORE_AGENT, made.MID_RUN))
    campaign = open_campaign(made.write(tmp_path, PLAN, lambda trial: fate), "demo")
    first, second, third = campaign.attempts.to_pylist()[:3]
    assert [row["attempt"] for row in (first, second, third)] == [1, 2, 3]
    assert (first["loss"], first["started_at"], first["message"]) == ("image_pull", None, "ErrImagePull")
    assert (second["loss"], second["stage"], second["elapsed_s"]) == ("evicted", "mid_run", 30)
    assert (third["verdict"], third["elapsed_s"], third["isolation"]) == ("passed", 60, "bubblewrap")
    assert third["ended_at"].timestamp() == made.NOW + 60
    assert third["versions"] == [{"name": "trialfleet", "version": "0.1.0"}]
    row = made.rows_of(campaign.trials)[0]
    assert (row.started_at.timestamp(), row.ended_at.timestamp()) == (made.NOW, made.NOW + 60)
    assert (row.host, row.mid_run_losses) == ("node", 1)


def test_lost_attempts_of_unfinished_trials_are_rows_without_a_cell(tmp_path: Path) -> None:
    store = made.write(tmp_path, PLAN, lambda trial: None if trial == TRIALS_OF_PLAN[-1] else Fate())
    made.write_loss(store, "demo", TRIALS_OF_PLAN[-1], 1, made.MID_RUN)
    campaign = open_campaign(store, "demo")
    assert campaign.interim
    last = campaign.attempts.to_pylist()[-1]
    assert (last["trial"], last["task"], last["loss"]) == (TRIALS_OF_PLAN[-1].id, None, "evicted")
    assert campaign.attempts.num_rows == campaign.trials.num_rows + 1


@pytest.mark.parametrize(("score_only", "stage"), [(True, "after_patch"), (False, "mid_run")])
def test_a_patch_counts_unless_it_came_after_the_next_intent(tmp_path: Path, score_only: bool, stage: str) -> None:
    store = made.write(tmp_path, PLAN, lambda trial: None if trial == TRIALS_OF_PLAN[-1] else Fate())
    made.write_loss(store, "demo", TRIALS_OF_PLAN[-1], 1, made.MID_RUN, patched=True, by="runner")
    made.write_loss(store, "demo", TRIALS_OF_PLAN[-1], 2, made.BEFORE_AGENT, score_only=score_only)
    first, _ = open_campaign(store, "demo").attempts.to_pylist()[-2:]
    assert (first["attempt"], first["stage"]) == (1, stage)


def test_an_empty_campaign_has_empty_tables(tmp_path: Path) -> None:
    campaign = open_campaign(made.write_plan(tmp_path, PLAN), "demo")
    assert (campaign.trials.num_rows, campaign.attempts.num_rows, campaign.blocks) == (0, 0, 0)
    assert campaign.trials.columns == TRIAL_COLUMNS
    assert words(campaign.trials, "task").used() == set()
    assert numbers(campaign.trials, "turns").shape == (0,)
    assert unpack_table(pack_table(campaign.trials, {}), TRIAL_COLUMNS).num_rows == 0


def test_same_campaign_same_bytes(lifelike: DirectoryStore) -> None:
    one, two = (open_campaign(lifelike, "preamble-vs-pull") for _ in range(2))
    assert to_parquet(one.trials, {"a": 1}) == to_parquet(two.trials, {"a": 1})
    assert to_parquet(one.attempts, {"a": 1}) == to_parquet(two.attempts, {"a": 1})
    assert pack_table(one.trials, {"a": 1}) == pack_table(two.trials, {"a": 1})
    back = unpack_table(pack_table(one.attempts, {"b": 2}), ATTEMPT_COLUMNS)
    assert to_parquet(back, {"a": 1}) == to_parquet(one.attempts, {"a": 1}), (
        "kept tables are written as fresh ones"
    )


def test_a_file_says_what_it_is(lifelike: DirectoryStore) -> None:
    raw = to_parquet(open_campaign(lifelike, "preamble-vs-pull").trials, {"campaign": "x"})
    about = pq.read_schema(pa.BufferReader(raw)).metadata[ABOUT.encode()]
    assert json.loads(about) == {"campaign": "x", "tables": 11}


@pytest.mark.parametrize("value", [2**63, float("inf"), float("nan")])
def test_a_number_that_cannot_be_counted_names_its_record(value: float) -> None:
    metrics = Metrics.model_construct(**{**Metrics().__dict__, "turns" if value == 2**63 else "cost_usd": value})
    row = _row_with(Metrics(), Delivery(), Verdict.PASSED, Stop.FINISHED)
    bad = dataclasses.replace(row, metrics=metrics)
    with pytest.raises(OperatorError, match=r"turns|cost_usd") as caught:
        trials_table([row, bad], _TASKS)
    assert caught.value.where == f"attempts/{row.trial}/1/end.json"


@pytest.mark.parametrize("name", ["campaign", "outcomes", "amendments", "halts", "quarantine", "start"])
def test_a_record_of_another_version_is_named(name: str, tmp_path: Path) -> None:
    store = made.write(tmp_path, PLAN, lambda trial: Fate())
    keys = {
        "campaign": "demo/campaign.json",
        "outcomes": f"demo/outcomes/{TRIALS_OF_PLAN[4].id}.json",
        "start": f"demo/attempts/{TRIALS_OF_PLAN[4].id}/1/start.json",
    }
    path = store.root / keys.get(name, f"demo/{name}/x/1.json" if name == "quarantine" else f"demo/{name}/1.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    record = json.loads(path.read_bytes()) if path.exists() else {}
    path.write_text(json.dumps(record | {"schema_version": 2}))
    if name == "start":
        end = path.with_name("end.json")  # it names the start that its runner wrote
        end.write_bytes(canonical_json(json.loads(end.read_bytes()) | {"start": sha256(path.read_bytes())}))
    with pytest.raises(OperatorError, match="record of this version") as caught:
        open_campaign(store, "demo")
    assert str(caught.value.where) == str(path)


def test_a_copied_outcome_is_never_counted_twice(tmp_path: Path) -> None:
    store = made.write(tmp_path, PLAN, lambda trial: Fate())
    one = store.root / f"demo/outcomes/{TRIALS_OF_PLAN[0].id}.json"
    (one.parent / f"{'z' * 26}.json").write_bytes(one.read_bytes())
    with pytest.raises(OperatorError, match="a second outcome"):
        open_campaign(store, "demo")


def test_another_trial_of_the_same_cell_and_rep_is_no_second_one(tmp_path: Path) -> None:
    store = made.write(tmp_path, PLAN, lambda trial: Fate())
    one = store.root / f"demo/outcomes/{TRIALS_OF_PLAN[0].id}.json"
    record = json.loads(one.read_bytes())
    record["trial"]["id"] = "z" * 26
    (one.parent / f"{'z' * 26}.json").write_text(json.dumps(record))
    with pytest.raises(OperatorError, match="a second outcome"):
        open_campaign(store, "demo")


def test_outcomes_that_the_plan_has_no_place_for_are_named_and_left_out(tmp_path: Path) -> None:
    store = made.write(tmp_path, PLAN, lambda trial: Fate())
    stray = TRIALS_OF_PLAN[0].model_copy(update={"id": "z" * 26, "condition": "other"})
    made.put(store, f"demo/outcomes/{stray.id}.json", Outcome(trial=stray, attempts=0, abandoned=LossClass.SETUP))
    campaign = open_campaign(store, "demo")
    assert campaign.unplanned == (stray.id,)
    assert stray.id not in texts(campaign.trials, "trial")
    assert not (store.root / "demo/tables").exists()


def test_what_is_null_and_what_is_not_is_in_the_schema() -> None:
    required = {column.name for column in TRIAL_COLUMNS if not column.null}
    assert {"trial", "task", "condition", "in_blocks", "verified", "losses"} <= required
    assert not required & {"verdict", "passed", "turns", "cost_usd"}
    assert all(column.meaning for column in TRIAL_COLUMNS)
    with pytest.raises(NotThese, match="other columns"):
        unpack_table(pack_table(table_of([Column("a", COUNT, "")], {"a": [1]}), {}), TRIAL_COLUMNS)


_TASKS = (TaskRow("alpha", Use.PRIMARY, None, True, "failing_test"),)


def _row_with(metrics: Metrics, delivery: Delivery, verdict: Verdict, stop: Stop) -> TrialRow:
    return TrialRow(
        trial="a" * 26, task="alpha", condition="none", rep=0, block=0, position=0, in_blocks=True,
        verdict=verdict, passed=verdict is Verdict.PASSED, stop=stop, tests_passed=True, missing=None, attempts=1,
        losses=(), mid_run_losses=0, interrupted_runs=0, bundle=None, bundle_sha256=None, verified=True,
        core_s=None, metrics=metrics, delivery=delivery,
    )  # fmt: skip


_counts = st.none() | st.integers(0, LARGEST_COUNT)
_reals = st.none() | st.floats(allow_nan=False, allow_infinity=False)
_words = st.text(st.characters(codec="utf-8"), max_size=9)
_METRICS = st.builds(
    Metrics,
    **{
        column.name: {"int64": _counts, "float64": _reals, "bool": st.none() | st.booleans()}[column.type]
        for column in METRIC_COLUMNS
    },
)
_DELIVERIES = st.builds(
    Delivery,
    files=st.lists(_words, max_size=3).map(tuple),
    inline_tokens=st.none() | st.integers(0, 2**53),
    inline_truncated=st.booleans(),
    node=st.none() | _words,
    coverage=st.sampled_from(Coverage),
    tokenizer=st.none() | _words,
    reached_model=st.dictionaries(st.sampled_from(["files", "hook"]), st.booleans()),
    first_request_sha256=st.none() | st.just("0a" * 32),
)


@settings(max_examples=25, deadline=None)
@given(_METRICS, _DELIVERIES, st.sampled_from(Verdict), st.sampled_from(Stop))
def test_any_metrics_and_delivery_come_back(m: Metrics, d: Delivery, verdict: Verdict, stop: Stop) -> None:
    row = _row_with(m, d, verdict, stop)
    [back] = made.rows_of(unpack_table(pack_table(trials_table([row], _TASKS), {}), TRIAL_COLUMNS))
    assert {name: vars(back)[name] for name in Metrics.model_fields} == vars(m)
    assert (back.verdict, back.stop, back.coverage, back.tokenizer) == (verdict, stop, d.coverage, d.tokenizer)
    assert (back.context_files, back.inline_tokens, back.inline_truncated, back.covering_node) == (
        list(d.files), d.inline_tokens, d.inline_truncated, d.node,
    )  # fmt: skip
    assert back.first_request_sha256 == d.first_request_sha256
    assert (back.reached_files, back.reached_hook) == (d.reached_model.get("files"), d.reached_model.get("hook"))


def test_columns_as_arrays(tmp_path: Path) -> None:
    def fate(trial: Trial) -> Fate:
        if trial.task == "beta":
            return Fate(verdict=None, losses=(made.MID_RUN,) * 3)
        return Fate(metrics=Metrics(turns=trial.rep))

    campaign: CampaignTables = open_campaign(made.write(tmp_path, PLAN, fate), "demo")
    task = words(campaign.trials, "task")
    np.testing.assert_array_equal(np.isnan(numbers(campaign.trials, "turns")), task.are("beta"))
    np.testing.assert_array_equal(known(campaign.trials, "verdict"), ~task.are("beta"))
    assert task.used() == {"alpha", "beta"}
    assert not task.are("gamma").any()
    assert words(campaign.trials, "verdict").codes[task.are("beta")].tolist() == [-1] * 6
    with pytest.raises(ValueError, match="no column of words"):
        words(campaign.trials, "turns")
