"""The list of trials: filters, order, CSV; and who may ask."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.ledgers import lifelike, lifelike_plan, write
from tests.unit.analysis.parsed_page import Page
from trialfleet_analysis.tables.export import to_csv
from trialfleet_analysis.tables.read import open_campaign
from trialfleet_analysis.tables.table import Table
from trialfleet_analysis.viewer.access import Access, Admission
from trialfleet_analysis.viewer.addresses import ServedAddresses
from trialfleet_analysis.viewer.answer_process import computed
from trialfleet_analysis.viewer.campaign_state import WatchedCampaign
from trialfleet_analysis.viewer.site import CampaignSite
from trialfleet_analysis.viewer.trial_list import (
    ALWAYS,
    COLUMNS,
    TrialQuery,
    query_of,
    rows_of_page,
    selected,
    shown,
)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Table:
    store = write(tmp_path_factory.mktemp("list"), lifelike_plan(reps=4), lifelike())
    return open_campaign(store, "preamble-vs-pull", verify=False).trials


def values(found: Table, name: str) -> list[object]:
    return found.listed(name)


def test_filters_keep_what_they_say(rows: Table) -> None:
    found = selected(rows, TrialQuery(task="pdm-lock-groups-order", condition="none", outcome="passed"))
    assert 0 < found.num_rows <= 4
    assert set(values(found, "task")) == {"pdm-lock-groups-order"}
    assert set(values(found, "verdict")) == {"passed"}
    evicted = selected(rows, TrialQuery(loss="evicted"))
    assert evicted.num_rows == sum("evicted" in losses for losses in rows.listed("losses"))
    lost = selected(rows, TrialQuery(outcome="lost"))
    assert lost.num_rows == rows.listed("verdict").count(None)


def test_sorted_by_a_column_with_missing_values_last(rows: Table) -> None:
    for order in ("up", "down"):
        turns = values(selected(rows, query_of({"sort": "turns", "order": order})), "turns")
        known = [one for one in turns if isinstance(one, int)]
        assert known == sorted(known, reverse=order == "down")
        assert turns[: len(known)] == known
    assert values(selected(rows, TrialQuery()), "trial") == values(rows, "trial")
    tasks = values(selected(rows, TrialQuery(sort="task")), "task")
    assert tasks == sorted(tasks, key=str)


def test_an_address_round_trips() -> None:
    query = TrialQuery(task="a", outcome="failed", sort="turns", order="down")
    assert query_of(query.parameters()) == query
    assert TrialQuery().parameters() == {}


def test_chosen_columns_are_in_page_csv_and_parquet(tmp_path: Path) -> None:
    store = write(tmp_path, lifelike_plan(reps=2), lifelike())
    site = CampaignSite(WatchedCampaign(store, "preamble-vs-pull", computed), ServedAddresses())
    asked = {"columns": "tool_calls,losses,nonsense", "sort": "tool_calls", "order": "down", "condition": "none"}
    columns = [*ALWAYS, "losses", "tool_calls"]
    assert next(csv.reader(io.StringIO(site.table(asked).decode()))) == columns
    read = pq.read_table(pa.BufferReader(site.parquet(asked)))
    assert read.column_names == columns
    assert read.num_rows == len(site.table(asked).splitlines()) - 1
    turned = pq.read_table(pa.BufferReader(site.parquet({"order": "down"})))
    assert turned.num_rows == len(site.table({"order": "down"}).splitlines()) - 1
    page = Page(site.trials(asked))
    assert [one.rstrip(" ↓") for one in page.tables["Trials"][0][4:]] == ["Losses", "Tool calls"]
    assert len(page.tables["Trials"]) == read.num_rows + 1
    assert "columns=losses%2Ctool_calls" in site.trials(asked)


def test_csv_has_every_row_of_the_query(rows: Table) -> None:
    query = TrialQuery(condition="none", sort="cost_usd")
    read = list(csv.DictReader(io.StringIO(to_csv(shown(selected(rows, query), query)).decode())))
    assert len(read) == selected(rows, query).num_rows
    assert tuple(read[0]) == COLUMNS
    assert [one["trial"] for one in read] == values(selected(rows, query), "trial")


def test_no_text_of_the_csv_is_a_formula(rows: Table) -> None:
    evil = rows.take(slice(1)).replaced(rows.column("missing"), ["=cmd()"])
    assert b'"\'=cmd()"' in to_csv(evil)


def test_pages_of_a_long_list(rows: Table) -> None:
    assert len(rows_of_page(rows, TrialQuery())) == rows.num_rows
    assert rows_of_page(rows, TrialQuery(start=10**8)) == []


@pytest.mark.parametrize(
    ("host", "origin", "token", "cookie", "expected"),
    [
        ("127.0.0.1:80", None, "right", None, Admission.ENTERING),
        ("localhost:80", None, None, "right", Admission.ADMITTED),
        ("127.0.0.1:80", "http://127.0.0.1:80", None, "right", Admission.ADMITTED),
        ("127.0.0.1:80", None, "wrong", "right", Admission.REFUSED),
        ("127.0.0.1:80", None, None, None, Admission.REFUSED),
        ("127.0.0.1:80", None, None, "wröng", Admission.REFUSED),
        ("127.0.0.1:81", None, None, "right", Admission.REFUSED),
        ("evil.example", None, None, "right", Admission.REFUSED),
        ("127.0.0.1:80", "http://evil.example", None, "right", Admission.REFUSED),
        ("127.0.0.1:80", "null", None, "right", Admission.REFUSED),
        ("", None, None, "right", Admission.REFUSED),
    ],
)
def test_who_is_admitted(
    host: str, origin: str | None, token: str | None, cookie: str | None, expected: Admission
) -> None:
    assert Access(80, "right").judge(host=host, origin=origin, token=token, cookie=cookie) is expected


def test_a_token_is_never_the_same() -> None:
    one, other = Access(1), Access(1)
    assert one.token != other.token
    assert one.token not in repr(one)
    assert len(one.token) >= 32
