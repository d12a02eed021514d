"""docs/reference/tables.md says what the tables hold, and its examples run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

from tests.support import ledgers as made
from trialfleet_analysis.tables.columns import known, numbers, words
from trialfleet_analysis.tables.export import write_tables
from trialfleet_analysis.tables.kept_tables import SAMPLE
from trialfleet_analysis.tables.parquet import arrow_table
from trialfleet_analysis.tables.read import CampaignTables, open_campaign
from trialfleet_analysis.tables.schema import ATTEMPT_COLUMNS, TRIAL_COLUMNS, Column

PAGE = (Path(__file__).parents[3] / "docs/reference/tables.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("heading", "columns"), [("trials", TRIAL_COLUMNS), ("attempts", ATTEMPT_COLUMNS)])
def test_every_column_is_on_the_page_as_it_is(heading: str, columns: tuple[Column, ...]) -> None:
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    told = [line for line in section.splitlines() if line.startswith("| `")]
    assert told == [f"| `{c.name}` | {c.type} | {c.unit} | {c.meaning} | {c.null} |" for c in columns]


def test_the_sample_is_as_large_as_the_page_says() -> None:
    assert f"| {SAMPLE} outcomes drawn at random give their rows |" in PAGE


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> CampaignTables:
    store = made.write(tmp_path_factory.mktemp("store"), made.lifelike_plan(reps=5), made.lifelike(4))
    return open_campaign(store, "preamble-vs-pull")


def ran(example: str, campaign: CampaignTables, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    write_tables(campaign, folder, "parquet")
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    exec(compile(example, "tables.md", "exec"), names)
    return names


def primary(campaign: CampaignTables) -> dict[tuple[str, str], list[bool]]:
    cells: dict[tuple[str, str], list[bool]] = {}
    uses = {row.task: row.use for row in campaign.tasks}
    for row in made.rows_of(campaign.trials):
        if row.in_blocks and row.passed is not None and uses[row.task] == "primary":
            cells.setdefault(row.cell, []).append(row.passed)
    return cells


def test_duckdb(campaign: CampaignTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rates = ran(EXAMPLES[0], campaign, tmp_path, monkeypatch)["rates"]
    cells = primary(campaign)
    assert {(task, condition): valid for task, condition, valid, _, _ in rates} == {
        cell: len(passes) for cell, passes in cells.items()
    }
    for task, condition, _, rate, _ in rates:
        assert rate == pytest.approx(sum(cells[task, condition]) / len(cells[task, condition]))


def test_pandas(campaign: CampaignTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    means = ran(EXAMPLES[1], campaign, tmp_path, monkeypatch)["means"]
    cells = primary(campaign)
    for condition in {condition for _, condition in cells}:
        rates = [sum(passes) / len(passes) for (_, name), passes in cells.items() if name == condition]
        assert means[condition] == pytest.approx(sum(rates) / len(rates))


def test_polars(campaign: CampaignTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = ran(EXAMPLES[2], campaign, tmp_path, monkeypatch)["lost"]
    assert lost["attempts"].sum() == np.count_nonzero(known(campaign.attempts, "loss")) > 0


def test_python(campaign: CampaignTables) -> None:
    names: dict[str, Any] = {"campaign": campaign, "numbers": numbers, "words": words}
    lines = [line for line in EXAMPLES[3].splitlines() if "open_" not in line]
    exec(compile("\n".join(lines), "tables.md", "exec"), names)
    assert len(names["turns"]) == campaign.trials.num_rows


def test_the_readers_see_the_types(campaign: CampaignTables, tmp_path: Path) -> None:
    write_tables(campaign, tmp_path, "parquet")
    path = tmp_path / "trials.parquet"
    frame = pd.read_parquet(path)
    assert str(frame.condition.dtype) == "category"
    assert str(frame.started_at.dt.tz) == "UTC"
    polars = pl.read_parquet(path)
    assert polars["condition"].dtype == pl.Categorical
    assert polars["started_at"].dtype == pl.Datetime("us", "UTC")
    described = dict(duckdb.sql(f"SELECT column_name, column_type FROM (DESCRIBE FROM '{path}')").fetchall())
    assert (described["turns"], described["losses"]) == ("BIGINT", "VARCHAR[]")
    assert described["started_at"] == "TIMESTAMP WITH TIME ZONE"
    attempts = duckdb.sql(f"SELECT versions[1].name FROM '{tmp_path}/attempts.parquet' WHERE verified").fetchall()
    assert {name for (name,) in attempts} == {"trialfleet"}


def test_the_readers_take_a_table_without_a_file(campaign: CampaignTables) -> None:
    assert pl.DataFrame(arrow_table(campaign.attempts))["versions"].to_list() == campaign.attempts.listed(
        "versions"
    )


def test_csv_says_the_same(campaign: CampaignTables, tmp_path: Path) -> None:
    write_tables(campaign, tmp_path, "csv")
    frame = pd.read_csv(tmp_path / "trials.csv")
    assert len(frame) == campaign.trials.num_rows
    assert frame.turns.sum() == pytest.approx(pd.Series(numbers(campaign.trials, "turns")).sum())
    assert frame.passed.isna().sum() == np.count_nonzero(~known(campaign.trials, "passed"))
