"""The first screen: the answer, the grid of rates, losses, and the pairs that differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from trialfleet_analysis.cells import CellCount
from trialfleet_analysis.kept_answer import CampaignAnswer
from trialfleet_analysis.losses import UNASSIGNED, LossCount
from trialfleet_analysis.report.html.markup import Node, breakable, frame, h, section
from trialfleet_analysis.report.html.sentences import (
    IN_ONE_MINUTE,
    NEXT,
    below_title,
    cautions_list,
    in_one_minute,
)
from trialfleet_analysis.tables.read import CampaignTables
from trialfleet_analysis.tables.rows import TaskRow, Use
from trialfleet_analysis.viewer.addresses import Addresses
from trialfleet_analysis.viewer.discordant import TaskPairs, TrialPair
from trialfleet_analysis.viewer.pages.activity_section import placeholder
from trialfleet_analysis.viewer.pages.scaffold import chip, document, main, notice, top
from trialfleet_designs.document.figures import NOTHING, percent
from trialfleet_ledger.designs.looks import stopped
from trialfleet_ledger.plurals import plural

STEPS = 20  # of colour
MOST_LINKS = 100  # pairs of a task that are linked in each direction
TALL = 14  # rows above which a table scrolls in its frame


def first_screen(
    found: CampaignTables,
    cells: Sequence[CellCount],
    losses: Sequence[LossCount],
    answer: CampaignAnswer | None,
    pairs: Sequence[TaskPairs],
    sides: tuple[str, str] | None,
    to: Addresses,
    *,
    stamp: str = "",
    answer_fault: str | None = None,
) -> str:
    """`answer` None: it is not computed yet, or `answer_fault` says why it cannot be. `sides`: the conditions A
    and B that `pairs` are of; None: the campaign has one condition alone."""
    campaign = found.frame.plan.title
    parts = [
        _answer(found, answer, answer_fault),
        placeholder() if found.interim and to.served else None,
        section("grid", "Pass rates", _grid(found, cells, to)),
        section("pairs", "Where the two differ", _pairs(found, pairs, sides, to)) if sides else None,
        section("losses", "Losses", _losses(losses, to)),
    ]
    data = {"stamp": stamp, "answered": "" if answer is None and answer_fault is None else "yes"}
    return document(
        f"{campaign} · trialfleet",
        [_top(found, answer, to), main(parts)],
        to,
        scripts=("live.js", "refresh.js") if to.served else (),
        data=data,
    )


def _top(found: CampaignTables, answer: CampaignAnswer | None, to: Addresses) -> Element:
    frame_, planned = found.frame, found.frame.planned
    banner = answer.banner if answer else frame_.plan.banner
    chips = [
        _state(found),
        h("li", f"{found.trials.num_rows:,} of {plural(planned, 'trial')} over", class_="chip", id="counts"),
        chip(f"{found.blocks:,} of {plural(frame_.reps, 'block')} complete"),
        chip("bundles verified" if found.verified else "bundles not verified"),
        chip("cancelled", "interim") if frame_.cancel else None,
    ]
    interim = "Interim: rates, pairs and the answer are made of complete blocks alone. This look is recorded."
    halts = [notice(f"Halted: {halt.scope}: {halt.reason}", "bad") for halt in frame_.halts]
    return top(
        "trialfleet view",
        breakable(frame_.plan.title),
        h("ul", chips, class_="chips"),
        h("p", h("a", "Show the newer results", href=to.home()), id="newer", class_="banner", hidden=""),
        h("p", id="away", class_="banner bad", role="status", hidden=""),
        h("nav", _contents(to), aria_label="Contents"),
        halts,
        notice(interim) if found.interim else None,
        notice(banner) if banner else None,
    )


def _state(found: CampaignTables) -> Element:
    end, amendments = stopped(found.frame.decisions), len(found.frame.amendments)
    if not found.interim:
        return chip("final", "final")
    return chip("decided", "final") if end and amendments <= end.amendments else chip("interim", "interim")


def _contents(to: Addresses) -> list[Node]:
    anchors = (("answer", "Answer"), ("grid", "Rates"), ("pairs", "Pairs"), ("losses", "Losses"))
    return [
        *(h("a", name, href=f"#{anchor}") for anchor, name in anchors),
        h("a", "All trials", href=to.trials({})),
    ]


def _answer(found: CampaignTables, answer: CampaignAnswer | None, fault: str | None) -> Element:
    if fault is not None:
        return section("answer", IN_ONE_MINUTE, notice(f"The answer cannot be computed: {fault}", "bad"))
    if answer is None:
        words = "The answer is being computed. This page shows it as soon as it is there."
        if not found.blocks:
            words = f"No answer yet: 0 of {plural(found.frame.reps, 'block')} are complete."
        return section("answer", IN_ONE_MINUTE, h("p", words, class_="answer", role="status"))
    folded = h("details", h("summary", "Before you rely on it"), cautions_list(answer.cautions))
    return in_one_minute(
        answer.sentences, below_title(NEXT, answer.next_step), folded if answer.cautions else None
    )


def _grid(found: CampaignTables, cells: Sequence[CellCount], to: Addresses) -> Element:
    names = found.frame.conditions
    by_task: dict[str, list[CellCount]] = {}
    for cell in cells:
        by_task.setdefault(cell.task, []).append(cell)
    rows = [_row(task, by_task.get(task.task, []), to) for task in found.tasks]
    head = h("tr", h("th", "Task", scope="col"), [h("th", breakable(name), scope="col") for name in names])
    caption = "Pass rate of each task under each condition"
    words = "Passed of valid trials. Each leads to its trials. Deeper colour: higher rate."
    kinds = f"heat{' tall' if len(rows) > TALL else ''}"
    return h("figure", frame(caption, head, rows, class_=kinds), h("figcaption", words))


def _row(task: TaskRow, cells: Sequence[CellCount], to: Addresses) -> Element:
    apart = {Use.NO_ORACLE: "apart", Use.HALTED: "halted"}.get(task.use)
    note = h("small", f" {apart}: {task.reason or ''}") if apart else None
    return h("tr", h("th", breakable(task.task), note, scope="row"), [_cell(cell, to) for cell in cells])


def _cell(cell: CellCount, to: Addresses) -> Element:
    rate = cell.rate
    kind = "cell empty" if rate is None else f"cell r{round(STEPS * rate)}"
    link = to.trials({"task": cell.task, "condition": cell.condition})
    count = f"{cell.passes}/{cell.valid}" if cell.valid else NOTHING
    label = f"{count}: {cell.task}, {cell.condition}, {percent(rate)}"
    return h(
        "td",
        h("a", count, href=link, class_="count", aria_label=label),
        h("small", f" {cell.lost} lost", class_="bad") if cell.lost else None,
        class_=kind,
    )


def _pairs(
    found: CampaignTables, pairs: Sequence[TaskPairs], sides: tuple[str, str] | None, to: Addresses
) -> Iterator[Node]:
    assert sides is not None
    a, b = sides
    yield h(
        "p",
        "Trials of one task and one rep, A under ",
        h("strong", a),
        " and B under ",
        h("strong", b),
        ". A number is the rep: it opens both trials side by side.",
        class_="muted",
    )
    yield _chooser(found.frame.conditions, sides, to)
    rows = [_pair_row(one, to) for one in pairs if one.only_a or one.only_b]
    if not rows:
        same = "No pair differs: in every complete block, both passed or both did not."
        first = f"No block is complete yet: pairs appear after the first of {found.frame.reps:,}."
        yield h("p", same if found.blocks else first)
        return
    words = ("A passed, B did not", "B passed, A did not", "both passed", "neither", "one lost")
    head = h("tr", h("th", "Task", scope="col"), [h("th", one, scope="col", class_="text") for one in words])
    yield frame("Pairs with different outcomes", head, rows, class_="tall" if len(rows) > TALL else None)


def _pair_row(one: TaskPairs, to: Addresses) -> Element:
    counts = [h("td", count) for count in (one.both, one.neither, one.apart)]
    links = [h("td", _links(one.task, some, to), class_="text long") for some in (one.only_a, one.only_b)]
    return h("tr", h("th", breakable(one.task), scope="row"), links, counts)


def _links(task: str, some: Sequence[TrialPair], to: Addresses) -> Node:
    links: list[Node] = [
        [h("a", one.rep, href=to.pair(one.a, one.b), class_="rep", aria_label=f"{task}, rep {one.rep}"), " "]
        for one in some[:MOST_LINKS]
    ]
    rest = len(some) - MOST_LINKS
    return [*links, h("small", f"and {rest:,} more")] if rest > 0 else links or "–"


def _chooser(conditions: Sequence[str], sides: tuple[str, str], to: Addresses) -> Node:
    """Two lists of conditions; nothing where no process answers, or there is nothing to choose."""
    if len(conditions) < 3 or not to.served:
        return None
    lists = [
        h(
            "label",
            f"{letter} ",
            h(
                "select",
                [h("option", name, value=name, selected="" if name == chosen else None) for name in conditions],
                name=letter.lower(),
            ),
        )
        for letter, chosen in zip("AB", sides, strict=True)
    ]
    return h(
        "form", lists, h("button", "Compare", type="submit"), action="/#pairs", method="get", class_="filters"
    )


def _losses(losses: Sequence[LossCount], to: Addresses) -> Element:
    if not losses:
        return h("p", "No attempt was lost.")
    words = ("Condition", "Loss", "Reached")
    heads = [h("th", one, scope="col", class_="text") for one in words]
    head = h("tr", heads, h("th", "Attempts", scope="col"))
    rows = [
        h(
            "tr",
            h("th", breakable(one.condition), scope="row"),
            h("td", _loss_link(one, to), class_="text"),
            h("td", str(one.stage).replace("_", " "), class_="text"),
            h("td", f"{one.attempts:,}"),
        )
        for one in losses
    ]
    return frame("Lost attempts by condition", head, rows, class_="tall" if len(rows) > TALL else None)


def _loss_link(one: LossCount, to: Addresses) -> Node:
    if one.condition == UNASSIGNED:
        return one.loss.words
    return h("a", one.loss.words, href=to.trials({"condition": one.condition, "loss": str(one.loss)}))
