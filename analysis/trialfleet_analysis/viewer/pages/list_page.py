"""The list of trials: filters, order and a table; every control is a link or a form, so that it works without a
script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.html.markup import Node, breakable, frame, h
from trialfleet_analysis.viewer.addresses import Addresses
from trialfleet_analysis.viewer.pages.scaffold import document, main, notice, top, way_back
from trialfleet_analysis.viewer.text_search import SearchProgress
from trialfleet_analysis.viewer.trial_list import CHOICES, FOUND, LONGEST_TEXT, OUTCOMES, PAGE, SORTS, TrialQuery
from trialfleet_designs.document.figures import NOTHING, quantity
from trialfleet_ledger.display_text import visible
from trialfleet_ledger.metric_table import BY_NAME
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.verdicts import LossClass

HEADS = (("launch", "Trial"), ("task", "Task"), ("condition", "Condition"), ("verdict", "Outcome"))
NAMES = {"losses": "Losses", "attempts": "Attempts", "first_edit_turn": "First edit", "cost_usd": "Cost"}


@dataclass(frozen=True)
class ListedTrials:
    """`rows`: of this page; `total`: of the query, as far as `search` has come. `search` None: for no text."""

    rows: Sequence[Mapping[str, Any]]
    total: int
    search: SearchProgress | None = None


def list_page(
    campaign: str,
    listed: ListedTrials,
    query: TrialQuery,
    names: tuple[Sequence[str], Sequence[str]],
    to: Addresses,
    *,
    interim: bool = False,
) -> str:
    """`names`: all tasks and all conditions of the campaign. `interim`: trials are missing."""
    form = _form(query, names) if to.served else h("p", id="kept", hidden="", role="status")
    caution = (
        "Interim: these are all trials that have ended, also outside of complete blocks. Make no rates of them."
    )
    content = [
        notice(caution) if interim else None,
        form,
        h("p", id="away", class_="banner bad", role="status", hidden="") if to.served else None,
        rows_section(listed, query, to),
    ]
    body = [top("trialfleet view", "Trials"), way_back(campaign, to), main(content)]
    return document(f"Trials · {campaign}", body, to, scripts=("refresh.js",) if to.served else ("kept.js",))


def rows_section(listed: ListedTrials, query: TrialQuery, to: Addresses) -> Element:
    """Until a search for a text has read every trial, a script asks for this again."""
    csv = h("a", "CSV of these", href=to.table(query.parameters()))
    parquet = h("a", "Parquet", href=to.table(query.parameters(), "parquet"))
    searching = listed.search is not None and not listed.search.complete
    links: list[Node] = [] if searching else [" · ", csv, " · ", parquet]
    made = h(
        "section",
        _search_words(listed.search, query, to) if listed.search else None,
        h("p", plural(listed.total, "trial"), " so far" if searching else None, links, role="status"),
        _table(listed.rows, query, to, searching=searching),
        _pages(listed.total, query, to),
        id="rows",
        aria_label="Trials",
    )
    if searching:
        made.set("data-refresh", to.found(query.parameters(start=str(query.start) if query.start else "")))
        made.set("data-pause", "200")
    return made


def _search_words(search: SearchProgress, query: TrialQuery, to: Addresses) -> Element:
    """How much of the campaign the search has covered."""
    about = f"“{visible(query.text)}” in the recorded steps of the agents: "
    if search.complete:
        said: list[Node] = [about, f"all {plural(search.total, 'trial')} searched."]
    else:
        onward = h("a", "continue", href=to.trials(query.parameters()))
        progress = f"{search.searched:,} of {plural(search.total, 'trial')} searched so far, by this page: "
        said = [about, progress, onward]
    unread = f" {plural(search.unread, 'trial')} without a whole trajectory that can be read may hold it too."
    return h("p", said, unread if search.unread else None, class_="banner note", role="note")


def _form(query: TrialQuery, names: tuple[Sequence[str], Sequence[str]]) -> Element:
    tasks, conditions = names
    lists = [
        _select("Task", "task", tasks, query.task),
        _select("Condition", "condition", conditions, query.condition),
        _select("Outcome", "outcome", OUTCOMES, query.outcome),
        _select("Loss", "loss", [str(loss) for loss in LossClass], query.loss),
    ]
    order = [h("input", type="hidden", name=name, value=getattr(query, name)) for name in ("sort", "order")]
    reset = h("a", "Reset", href="/trials")
    words = h("input", type="search", name="text", value=visible(query.text), maxlength=LONGEST_TEXT)
    return h(
        "form",
        lists,
        h("label", "Text in steps ", words),
        order,
        _columns(query),
        h("button", "Filter", type="submit"),
        reset,
        action="/trials",
        method="get",
        class_="filters",
    )


def _columns(query: TrialQuery) -> Element:
    boxes = [
        h(
            "label",
            h("input", type="checkbox", name="columns", value=name, checked="" if name in query.columns else None),
            f" {_name(name)}",
        )
        for name in CHOICES
    ]
    return h("details", h("summary", "Columns"), h("div", boxes, class_="kinds"))


def _name(column: str) -> str:
    return NAMES.get(column) or BY_NAME[column].label


def _select(label: str, name: str, words: Sequence[str], chosen: str) -> Element:
    options = [h("option", "any", value="")]
    options += [h("option", word, value=word, selected="" if word == chosen else None) for word in words]
    return h("label", f"{label} ", h("select", options, name=name))


def _table(
    rows: Sequence[Mapping[str, Any]], query: TrialQuery, to: Addresses, *, searching: bool = False
) -> Element:
    if not rows:
        return h("p", "No trial yet." if searching else "No trial is like this.")
    found = [("", "Found in")] if query.text else []
    heads = [*HEADS, *found, *((name if name in SORTS else "", _name(name)) for name in query.columns)]
    head = h("tr", [_head(sort, name, query, to) for sort, name in heads])
    return frame("Trials", head, [_row(row, query, to) for row in rows], class_="tall")


def _head(sort: str, name: str, query: TrialQuery, to: Addresses) -> Element:
    current = sort == query.sort
    order = "down" if current and query.order == "up" else ""
    link = (
        to.trials(query.parameters(sort="" if sort == "launch" else sort, order=order))
        if sort and to.served
        else ""
    )
    said = ("descending" if query.order == "down" else "ascending") if current else None
    shown: Node = h("a", name, href=link) if link else name
    arrow = {"ascending": " ↑", "descending": " ↓"}.get(said or "")
    kind = "text" if name in ("Task", "Condition", "Outcome", "Losses") else None
    return h("th", shown, arrow, scope="col", aria_sort=said, class_=kind)


def _row(row: Mapping[str, Any], query: TrialQuery, to: Addresses) -> Element:
    words = row["missing"] or str(row["verdict"]).replace("_", " ")
    kind = "bad" if row["missing"] else "good" if row["verdict"] == "passed" else ""
    link = h("a", f"{row['trial'][:8]}…", href=to.trial(row["trial"]), title=row["trial"])
    return h(
        "tr",
        h("th", link, h("small", f" rep {row['rep']}"), scope="row"),
        h("td", breakable(row["task"]), class_="text long"),
        h("td", row["condition"], class_="text"),
        h("td", words, class_=f"text {kind} {'long' if row['missing'] else ''}".strip()),
        _turn(row, to) if query.text else None,
        [_chosen(row[name], name) for name in query.columns],
        data_task=row["task"],
        data_condition=row["condition"],
        data_loss=" ".join(row["losses"]),
    )


def _turn(row: Mapping[str, Any], to: Addresses) -> Element:
    words = f"turn {row[FOUND]}"
    return h("td", h("a", words, href=f"{to.trial(row['trial'])}#turn-{row[FOUND]}"), class_="text")


def _chosen(value: Any, name: str) -> Element:  # Any: of any column
    if name == "losses":
        return h("td", ", ".join(value) or NOTHING, class_="text")
    if name == "attempts":
        return h("td", value)
    words = {True: "yes", False: "no"}[value] if isinstance(value, bool) else quantity(value, BY_NAME[name].unit)
    return h("td", words)


def _pages(total: int, query: TrialQuery, to: Addresses) -> Node:
    links = list(_page_links(total, query, to))
    return h("p", links, class_="pages") if to.served and len(links) > 1 else None


def _page_links(total: int, query: TrialQuery, to: Addresses) -> Iterator[Node]:
    if query.start:
        yield h("a", "← Earlier", href=to.trials(query.parameters(start=str(max(0, query.start - PAGE)))))
    yield f" {query.start + 1:,} to {min(query.start + PAGE, total):,} "
    if query.start + PAGE < total:
        yield h("a", "Later →", href=to.trials(query.parameters(start=str(query.start + PAGE))))
