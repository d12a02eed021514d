"""What the model received of a trial's files and texts, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.html.markup import frame, h
from trialfleet_designs.document.figures import NOTHING
from trialfleet_ledger.display_text import visible
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.receipts import Arrival, Receipt, Receipts

_WORDS = {
    Arrival.WHOLE: "whole",
    Arrival.CHANGED: "whole, but for",
    Arrival.IN_PART: "in part",
    Arrival.NOT_SENT: "not sent",
}


def render_receipts(found: Receipts | None) -> list[Element]:
    """One row per file or text, in the order of the record."""
    if found is None:
        return [
            h("p", "No receipts: no model was asked, or the attempt only scored an earlier one.", class_="muted")
        ]
    head = h(
        "tr", [h("th", name, scope="col", class_="text") for name in ("Text", "Bytes", "Received", "Further")]
    )
    rows = [
        h(
            "tr",
            h("th", visible(one.path or one.name), scope="row"),
            h("td", f"{one.size:,}"),
            h("td", describe_arrival(one), class_="text"),
            h("td", visible("; ".join(_describe_rest(one))) or NOTHING, class_="text long"),
        )
        for one in found.receipts
    ]
    lead = f"From {plural(found.requests, 'answered request')}."
    if found.unread:
        lead += f" {found.unread:,} characters of them were not searched: what was not seen whole is unknown."
    return [h("p", lead, class_="muted"), frame("What the model received", head, rows, class_="tall")]


def describe_arrival(one: Receipt) -> str:
    """
    >>> describe_arrival(Receipt(name="files", channel="files", arrival=Arrival.NOT_SENT))
    'not sent'
    """
    if one.arrival is None:
        return "unknown"
    words = _WORDS[one.arrival]
    if one.arrival is Arrival.CHANGED:
        return f"{words} {', '.join(change.value for change in one.changes)}"
    if one.arrival is Arrival.IN_PART and one.received:
        spans = "; ".join(f"{span.first:,} to {span.last:,}" for span in one.received[:3])
        return f"{words}: bytes {spans}{' …' if len(one.received) > 3 else ''}"
    return words


def _describe_rest(one: Receipt) -> Iterator[str]:
    if one.copies > 1:
        yield f"{one.copies} copies in one request"
    if one.listed is not None:
        yield "listed" if one.listed else "not listed"
    if one.opened is not None:
        yield "opened" if one.opened else "not opened"
    if (script := one.script) is not None:
        yield "present" if script.present else "absent"
        yield "executable" if script.executable else "not executable"
        yield {True: "ran", False: "did not run", None: "unknown whether it ran"}[script.ran]
    for imported in one.imports:
        arrived = "dangling" if not imported.present else f"{imported.arrival or 'unknown'}".replace("_", " ")
        yield f"@{imported.path}: {arrived}"
