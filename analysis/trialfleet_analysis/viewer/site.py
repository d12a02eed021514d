"""The viewer's pages of one campaign, made from what its store has now."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.etree.ElementTree import tostring

from trialfleet_analysis.tables.export import to_csv
from trialfleet_analysis.tables.parquet import to_parquet
from trialfleet_analysis.tables.read import CampaignTables
from trialfleet_analysis.tables.table import Table
from trialfleet_analysis.viewer.addresses import Addresses
from trialfleet_analysis.viewer.campaign_state import WatchedCampaign
from trialfleet_analysis.viewer.discordant import discordant
from trialfleet_analysis.viewer.pages.activity_section import activity_section
from trialfleet_analysis.viewer.pages.first_screen import first_screen
from trialfleet_analysis.viewer.pages.list_page import ListedTrials, list_page, rows_section
from trialfleet_analysis.viewer.pages.pair_page import pair_page
from trialfleet_analysis.viewer.pages.scaffold import message_page
from trialfleet_analysis.viewer.pages.trial_page import output_section, trial_page
from trialfleet_analysis.viewer.text_search import SearchProgress, TextSearches
from trialfleet_analysis.viewer.trial_list import (
    TrialQuery,
    query_of,
    rows_of_page,
    selected,
    shown,
    with_text,
)
from trialfleet_analysis.viewer.trial_record import TrialReader, TrialRecord
from trialfleet_ledger.plan import PlannedTask

TRIAL = re.compile(r"[a-z2-7]{26}")
ANSWER_WAIT_S = 0.3  # an answer that is kept is part of the first page
SEARCH_S = 1.0  # of one request: bundles are read for a page of the list


class NoSuchPage(Exception):
    """Nothing is at this address."""


@dataclass(frozen=True)
class CampaignSite:
    """Each method gives one page's HTML. Raises `NoSuchPage`, `OperatorError` and `StoreError`."""

    watched: WatchedCampaign
    to: Addresses
    answer_wait_s: float | None = ANSWER_WAIT_S  # None: until it is there
    searches: TextSearches = field(default_factory=TextSearches)

    def home(self, parameters: Mapping[str, str]) -> str:
        campaign = self.watched.campaign
        if not self.watched.counts().exists:
            where = self.watched.store.url
            words = f"There is no campaign {campaign} in {where} yet. This page shows it once it exists."
            return message_page("Waiting", words, self.to, refresh=True)
        state = self.watched.state()
        sides = sides_of(state.tables, parameters.get("a", ""), parameters.get("b", ""))
        names = [row.task for row in state.tables.tasks]
        fault = None
        try:
            answer = state.answer.get(self.answer_wait_s)
        except Exception as error:  # a bug in the analysis must not hide grid and trials; the page names it
            answer, fault = None, f"{type(error).__name__}: {error}"
        return first_screen(
            state.tables,
            state.cells,
            state.losses,
            answer,
            discordant(state.tables.trials, names, *sides) if sides else (),
            sides,
            self.to,
            stamp=state.stamp,
            answer_fault=fault,
        )

    def now(self) -> str:
        """The section alone."""
        return activity_section(self.watched.activity(), self.to)

    def output(self, trial: str, attempt: int) -> str:
        """The section alone: what a running attempt has printed."""
        return tostring(output_section(self.record(trial, attempt)), encoding="unicode", method="html")

    def trials(self, parameters: Mapping[str, str]) -> str:
        tables, query = self.watched.state().tables, query_of(parameters)
        names = [row.task for row in tables.tasks], tables.frame.conditions
        listed = self._listed(query, SEARCH_S)
        return list_page(self.watched.title(), listed, query, names, self.to, interim=tables.interim)

    def found(self, parameters: Mapping[str, str]) -> str:
        """The section alone: the trials that a search has found until now."""
        query = query_of(parameters)
        made = rows_section(self._listed(query, SEARCH_S), query, self.to)
        return tostring(made, encoding="unicode", method="html")

    def table(self, parameters: Mapping[str, str]) -> bytes:
        return to_csv(self._shown(parameters))

    def parquet(self, parameters: Mapping[str, str]) -> bytes:
        """The same rows and columns as `table`, with their types."""
        return to_parquet(self._shown(parameters), {"campaign": self.watched.campaign})

    def _shown(self, parameters: Mapping[str, str]) -> Table:
        query = query_of(parameters)
        return shown(self._kept(query, None)[0], query)

    def _listed(self, query: TrialQuery, seconds: float | None) -> ListedTrials:
        found, search = self._kept(query, seconds)
        rows = rows_of_page(found, query) if self.to.served else found.to_pylist()
        return ListedTrials(rows, found.num_rows, search)

    def _kept(self, query: TrialQuery, seconds: float | None) -> tuple[Table, SearchProgress | None]:
        """`seconds`: for the search for a text, where the query has one; None: until every trial is searched."""
        found = selected(self.watched.state().tables.trials, query)
        if not query.text:
            return found, None
        search = self.searches.of(query.text)
        progress = search.among(self.watched.store, self.watched.campaign, found, seconds)
        return with_text(found, progress.turns), progress

    def trial(self, trial: str, attempt: int | None = None) -> str:
        record = self.record(trial, attempt)
        return trial_page(self.watched.title(), record, self._task(record), self.to)

    def pair(self, a: str, b: str) -> str:
        pair = self.record(a), self.record(b)
        tasks = [self._task(one) for one in pair]
        same = tasks[0] is not None and tasks[1] is not None and tasks[0].order.id == tasks[1].order.id
        return pair_page(self.watched.title(), pair, tasks[0] if same else None, self.to)

    def file(self, trial: str, attempt: int, path: str) -> bytes:
        self.watched.record_look()
        found = self._reader().file(trial, attempt, path) if TRIAL.fullmatch(trial) else None
        if found is None:
            raise NoSuchPage(path)
        return found

    def record(self, trial: str, attempt: int | None = None) -> TrialRecord:
        self.watched.record_look()
        found = self._reader().read(trial, attempt) if TRIAL.fullmatch(trial) else None
        if found is None:
            raise NoSuchPage(trial)
        return found

    def _reader(self) -> TrialReader:
        tasks = self.watched.tasks()
        prompts = {name: task.order.prompt for name, task in tasks.items()}
        return TrialReader(self.watched.store, self.watched.campaign, prompts, self.watched.planned)

    def _task(self, record: TrialRecord) -> PlannedTask | None:
        return self.watched.tasks().get(record.trial.task) if record.trial else None


def sides_of(found: CampaignTables, a: str, b: str) -> tuple[str, str] | None:
    """The conditions that pairs are of: those that were asked for, else of a declared contrast, else the last
    and the first; None: there is one alone."""
    names = found.frame.conditions
    if a in names and b in names and a != b:
        return a, b
    declared = found.frame.plan.declared
    if declared is not None and len(declared.sides) == 2:
        treatment, control = declared.sides.values()
        return treatment, control
    return (names[-1], names[0]) if len(names) > 1 else None
