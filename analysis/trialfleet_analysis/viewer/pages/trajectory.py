"""Trajectories by turn: to search, to fold by kind, with the context that was read or pushed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.html.markup import Node, frame, h
from trialfleet_analysis.viewer.bundle_parts import HookFiring
from trialfleet_analysis.viewer.pages.parts import TALL
from trialfleet_analysis.viewer.pages.scaffold import text
from trialfleet_deliveries.nodes import NODE_NAMES
from trialfleet_ledger.display_text import visible
from trialfleet_ledger.trajectory import Step


@dataclass(frozen=True)
class MarkedStep:
    """`marks`: what it has to do with the condition's context."""

    step: Step
    marks: tuple[str, ...]


def turns(steps: Sequence[MarkedStep]) -> dict[int, tuple[MarkedStep, ...]]:
    """Steps by turn, in order."""
    found: dict[int, list[MarkedStep]] = {}
    for one in steps:
        found.setdefault(one.step.turn, []).append(one)
    return {turn: tuple(some) for turn, some in sorted(found.items())}


def trajectory(
    sides: Sequence[Sequence[Step]], names: Sequence[str], firings: Sequence[Sequence[HookFiring]]
) -> Element:
    """One row per turn, one column per trial. `names`: heads of the columns. `firings`: of each trial's hooks."""
    if not any(sides):
        return h("p", "No step of the agent is recorded.")
    shown = [marked(steps, fired) for steps, fired in zip(sides, firings, strict=True)]
    return h("div", _finder({step.kind for steps in sides for step in steps}), _table(shown, names))


def _finder(kinds: Iterable[str]) -> Element:
    """A script shows it and makes it work."""
    search = h("label", "Search ", h("input", type="search", id="find-text", autocomplete="off"))
    boxes = [h("label", h("input", type="checkbox", checked="", value=kind), f" {kind}") for kind in sorted(kinds)]
    found = h("output", id="find-count", role="status")
    return h("form", search, h("span", boxes, class_="kinds"), found, id="find", hidden="", class_="filters")


def marked(steps: Sequence[Step], firings: Sequence[HookFiring]) -> list[MarkedStep]:
    """Each firing marks the first step at its file that none has marked."""
    left = [one for one in firings if one.pushed or one.denied]
    found: list[MarkedStep] = []
    for step in steps:
        name = (step.path or "").rpartition("/")[2]
        marks = ["reads context"] if step.kind == "read" and name in NODE_NAMES else []
        fired = next((one for one in left if step.path and _same_file(one.path, step.path)), None)
        if fired is not None:
            left.remove(fired)
            marks.append("hook denied it" if fired.denied else f"hook pushed {fired.node}")
        found.append(MarkedStep(step, tuple(marks)))
    return found


def _same_file(fired: str, path: str) -> bool:
    return fired == path or fired.endswith(f"/{path}")


def _table(sides: Sequence[Sequence[MarkedStep]], names: Sequence[str]) -> Element:
    by_turn = [turns(steps) for steps in sides]
    numbers = sorted({turn for side in by_turn for turn in side})
    head = h("tr", h("th", "Turn", scope="col"), [h("th", name, scope="col", class_="text") for name in names])
    rows = [
        h(
            "tr",
            h("th", turn, scope="row"),
            [h("td", _turn(side.get(turn, ()))) for side in by_turn],
            id=f"turn-{turn}",
        )
        for turn in numbers
    ]
    kinds = ["steps", "two" if len(sides) > 1 else "", "tall" if len(rows) > TALL else ""]
    return frame("Steps of the agent by turn", head, rows, class_=" ".join(filter(None, kinds)))


def _turn(steps: Sequence[MarkedStep]) -> Node:
    """Neighbouring steps of one kind that only look are folded together."""
    shown: list[Node] = []
    for kind, run in groupby(steps, lambda one: one.step.kind):
        some = list(run)
        if len(some) > 3:
            words = h("summary", _kind(kind), f" {len(some)} steps")
            shown.append(h("details", words, [_step(one) for one in some]))
        else:
            shown += [_step(one) for one in some]
    return shown


def _step(marked: MarkedStep) -> Element:
    one = marked.step
    title: list[Node] = [_kind(one.kind), h("b", one.tool) if one.tool else None, " "]
    if one.path:
        title.append(h("code", visible(one.path)))
    title += [h("span", visible(words), class_="mark") for words in marked.marks]
    if not one.detail:
        return h("p", title, class_="step", data_kind=one.kind)
    first, _, rest = visible(one.detail).strip().partition("\n")
    if not rest and len(first) <= 160:
        return h("p", title, " ", h("span", first), class_="step", data_kind=one.kind)
    summary = h("summary", title, " ", first[:120])
    return h("details", summary, text("pre", one.detail), class_="step", data_kind=one.kind)


def _kind(kind: str) -> Element:
    return h("span", kind, class_=f"kind {kind}")
