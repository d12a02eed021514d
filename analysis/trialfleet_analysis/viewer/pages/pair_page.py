"""Two trials side by side."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.html.markup import Node, breakable, h, section
from trialfleet_analysis.viewer.addresses import Addresses
from trialfleet_analysis.viewer.bundle_parts import BundleParts
from trialfleet_analysis.viewer.pages import parts
from trialfleet_analysis.viewer.pages.patch import patch
from trialfleet_analysis.viewer.pages.scaffold import block, document, main, top, way_back
from trialfleet_analysis.viewer.pages.trajectory import trajectory
from trialfleet_analysis.viewer.pages.trial_page import chips, name_of, scored_metrics, warnings_of
from trialfleet_analysis.viewer.trial_record import TrialRecord
from trialfleet_ledger.plan import PlannedTask

SECTIONS = ("Prompts", "Patches", "Tests", "Trajectories", "Metrics")


def pair_page(
    campaign: str, pair: tuple[TrialRecord, TrialRecord], task: PlannedTask | None, to: Addresses
) -> str:
    """`task`: that both are of, as the plan has it; None: they are not of one, or it is not known."""
    shown = compared(pair, task)
    body = [
        top("trialfleet view · two trials side by side", _title(pair), h("div", _sides(pair, to), class_="sides")),
        way_back(campaign, to, *(h("a", name, href=f"#{name.lower()}") for name in SECTIONS)),
        main([section(name.lower(), shown[name][0], shown[name][1]) for name in SECTIONS]),
    ]
    return document(f"{' / '.join(_heads(pair))} · {campaign}", body, to, scripts=("steps.js",))


def compared(pair: tuple[TrialRecord, TrialRecord], task: PlannedTask | None) -> dict[str, tuple[str, Node]]:
    """Title and content of each of `SECTIONS`."""
    names = _heads(pair)
    found = tuple(one.parts for one in pair)
    shows_bug = task.order.fail_to_pass if task else ()
    return {
        "Prompts": ("Prompts", _prompts(found, names)),
        "Patches": ("Patches", _patches(found, names)),
        "Tests": ("Tests", _tests(found, names, shows_bug)),
        "Trajectories": ("Trajectories by turn", _trajectories(found, names)),
        "Metrics": ("Metrics and cost", parts.metrics([scored_metrics(one) for one in pair], names)),
    }


def _title(pair: tuple[TrialRecord, TrialRecord]) -> Node:
    a, b = (one.trial for one in pair)
    if a is None or b is None or a.task != b.task:
        return "Two trials"
    rep = f", rep {a.rep}" if a.rep == b.rep else ""
    return breakable(f"{a.task}{rep}")


def _heads(pair: tuple[TrialRecord, TrialRecord]) -> tuple[str, str]:
    a, b = (one.trial.condition if one.trial else one.id for one in pair)
    return f"A: {a}", f"B: {b}"


def _sides(pair: tuple[TrialRecord, TrialRecord], to: Addresses) -> list[Element]:
    return [
        h(
            "div",
            h("h2", f"{letter}: ", h("a", breakable(name_of(one)), href=to.trial(one.id)), class_="side"),
            h("ul", chips(one), class_="chips"),
            warnings_of(one),
        )
        for letter, one in zip("AB", pair, strict=True)
    ]


def _missing(label: str) -> Element:
    return h("p", f"{label}: nothing can be shown.", class_="bad")


def _prompts(found: Sequence[BundleParts | None], names: tuple[str, str]) -> list[Node]:
    a, b = (one.prompt if one else None for one in found)
    if a is None or b is None:
        shown = [
            _missing(name) if content is None else block(content, f"Prompt of {name}")
            for content, name in zip((a, b), names, strict=True)
        ]
        return [h("div", shown, class_="sides")]
    words = "Both prompts are the same." if a == b else "Marked: lines that the other prompt does not have."
    systems = [one.system if one else None for one in found]
    more = [
        h("details", h("summary", f"System prompt that {name} added"), block(content, f"System prompt of {name}"))
        for content, name in zip(systems, names, strict=True)
        if content
    ]
    return [h("p", words, class_="muted"), parts.two_prompts(a, b, names), more]


def _patches(found: Sequence[BundleParts | None], names: tuple[str, str]) -> Element:
    shown = [
        h("div", h("h3", name), patch(one.patch, f"Patch of {name}") if one else _missing(name))
        for one, name in zip(found, names, strict=True)
    ]
    return h("div", shown, class_="sides")


def _tests(found: Sequence[BundleParts | None], names: tuple[str, str], shows_bug: Sequence[str]) -> list[Node]:
    outputs = [
        h("details", h("summary", f"Output of the tests, {name}"), block(one.test_output, f"Output, {name}"))
        for one, name in zip(found, names, strict=True)
        if one and one.test_output
    ]
    return [parts.tests([one.tests if one else None for one in found], names, shows_bug), outputs]


def _trajectories(found: Sequence[BundleParts | None], names: tuple[str, str]) -> Element:
    firings = [one.firings if one else () for one in found]
    return trajectory([one.steps if one else () for one in found], names, firings)
