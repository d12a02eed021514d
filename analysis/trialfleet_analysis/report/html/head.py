"""The top of the page: name, state, and the answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.document import Report
from trialfleet_analysis.report.document.contrasts import Contrast, Declared, Equivalence
from trialfleet_analysis.report.document.missing import Robustness
from trialfleet_analysis.report.figures import (
    ESTIMANDS,
    NOTHING,
    bare_p,
    bare_points,
    decimals,
    level,
    plural,
    point_limits,
)
from trialfleet_analysis.report.html.contrasts import strip
from trialfleet_analysis.report.html.markup import Node, breakable, h
from trialfleet_analysis.report.html.table import section

OPEN = 8  # cautions that are not folded away


def heading(report: Report) -> Element:
    """Name, state, and the banner that nobody may overlook."""
    progress = report.progress
    state = "interim" if progress.interim else "final"
    chips = [
        h("li", state, class_=f"chip {state}"),
        h("li", f"{progress.terminal:,} of {plural(progress.planned, 'trial')}", class_="chip"),
        h("li", f"{progress.complete_blocks:,} of {plural(progress.blocks, 'block')} complete", class_="chip"),
        h("li", "bundles verified" if report.verified else "bundles not verified", class_="chip"),
    ]
    return h(
        "header",
        h("p", "trialfleet report", class_="kicker"),
        h("h1", breakable(report.campaign)),
        h("ul", chips, class_="chips"),
        h("p", report.banner, class_="banner", role="note") if report.banner else None,
    )


def answer(report: Report) -> Element:
    first, *rest = report.answer
    headline, declared = report.headline, report.analysis.declared
    return section(
        "answer",
        "What was found",
        h("p", _unbroken(first), class_="answer"),
        _facts(report, headline, declared) if headline and declared else None,
        [h("p", sentence) for sentence in rest],
        _cautions(report.cautions),
    )


def _unbroken(sentence: str) -> list[Node]:
    """No line ends inside a p-value or before a limit."""
    pieces = re.split(r"(p [=<] [\d.]+|[+−][\d.]+ to [+−]?[\d.]+)", sentence)
    return [h("span", piece, class_="whole") if n % 2 else piece for n, piece in enumerate(pieces)]


def _cautions(found: Sequence[str]) -> Node:
    """The weightiest are always open; a campaign with many conditions has many of the others."""
    if not found:
        return None
    rest = found[OPEN:]
    more = h("details", h("summary", f"{len(rest)} more"), _list(rest)) if rest else None
    return [h("h3", "Before you believe it"), _list(found[:OPEN]), more]


def _list(sentences: Sequence[str]) -> Element:
    return h("ul", [h("li", one) for one in sentences], class_="cautions")


def _facts(report: Report, headline: Contrast, declared: Declared) -> Node:
    facts = h("dl", list(_each(report, headline, declared)), class_="facts")
    return h("div", facts, strip(headline), class_="card")


def _each(report: Report, headline: Contrast, declared: Declared) -> Iterator[Element]:
    on_these = declared.estimand == "these_tasks"
    part = headline.these_tasks if on_these else headline.tasks_like_these
    difference = part.difference
    of = f"{headline.treatment} − {headline.control}, on {ESTIMANDS[declared.estimand]}"
    yield _fact("Difference, points", bare_points(difference.estimate), of, class_="effect")
    yield _fact(
        f"{level(difference.level)} interval", point_limits(difference) or NOTHING, difference.reason or ""
    )
    monitored = "not valid under monitoring" if report.analysis.monitored else f"declared alpha {declared.alpha:g}"
    yield _fact("p", bare_p(part.test.p_value), part.test.reason or monitored)
    robust = next((one for one in report.analysis.robustness if one.estimand == declared.estimand), None)
    yield _fact("Lost runs", *_robust(robust))
    yield from (_margin(one) for one in report.analysis.equivalence if one.estimand == declared.estimand)
    seen = next((one for one in report.analysis.outlook.detectable if one.estimand == declared.estimand), None)
    if seen is not None:
        least = NOTHING if seen.mde is None else f"{decimals(100 * seen.mde, 1)}"
        yield _fact("Detectable, points", least, seen.reason or f"true difference, {100 * seen.power:g}% power")


def _margin(found: Equivalence) -> Element:
    says = {True: "yes", False: "not shown", None: NOTHING}
    note = found.reason or f"equivalent; not worse by that much: {says[found.non_inferior]}"
    return _fact(f"Within ±{decimals(100 * found.margin, 1)} points", says[found.equivalent], note)


def _robust(found: Robustness | None) -> tuple[str, str]:
    if found is None:
        return NOTHING, "not known"
    lost = found.missing_treatment + found.missing_control
    if not lost:
        return "none", "no first run was lost"
    if found.robust:
        return "robust", f"{plural(lost, 'lost first run')} cannot change the decision"
    point = "some" if found.tipping_point is None else f"{found.tipping_point:,}"
    few = "" if found.tipping_exhaustive or found.tipping_point is None else "at most "
    return "not robust", f"{few}{point} of {plural(lost, 'lost first run')} could change the decision"


def _fact(name: str, value: str, note: str, *, class_: str | None = None) -> Element:
    return h("div", h("dt", name), h("dd", value, class_=class_), h("dd", note, class_="muted"))
