"""What a trial's page says of each receipt."""

from __future__ import annotations

from xml.etree import ElementTree

from trialfleet_analysis.viewer.pages.receipts_table import render_receipts
from trialfleet_ledger.records.receipts import (
    Arrival,
    ByteRange,
    FileRole,
    ImportReceipt,
    Receipt,
    Receipts,
    ScriptReceipt,
    TextChange,
)

FOUND = Receipts(
    requests=3,
    unread=5000,
    receipts=(
        Receipt(
            name="files",
            channel="files",
            path="AGENTS.md",
            size=40_000,
            arrival=Arrival.IN_PART,
            share=0.8,
            received=(ByteRange(first=0, last=32_767),),
            imports=(ImportReceipt(path="docs/gone.md", present=False),),
        ),
        Receipt(
            name="files:b.md",
            channel="files",
            path="b<script>.md",
            arrival=Arrival.CHANGED,
            changes=(TextChange.COMMENT, TextChange.BYTE_ORDER_MARK),
            copies=2,
        ),
        Receipt(
            name="files:run.sh",
            channel="files",
            path="run.sh",
            script=ScriptReceipt(present=True, executable=False),
        ),
        Receipt(
            name="files:s",
            channel="files",
            path="SKILL.md",
            role=FileRole.SKILL,
            arrival=Arrival.NOT_SENT,
            listed=True,
            opened=False,
        ),
    ),
)


def rows_of(found: Receipts | None) -> list[str]:
    elements = render_receipts(found)
    rows = [row for element in elements for row in element.iter("tr")]
    assert "<script>" not in "".join(ElementTree.tostring(row, encoding="unicode") for row in rows)
    return [" | ".join("".join(cell.itertext()) for cell in row) for row in rows]


def test_every_receipt_has_a_row() -> None:
    assert rows_of(FOUND)[1:] == [
        "AGENTS.md | 40,000 | in part: bytes 0 to 32,767 | @docs/gone.md: dangling",
        "b<script>.md | 0 | whole, but for comment, byte order mark | 2 copies in one request",
        "run.sh | 0 | unknown | present; not executable; unknown whether it ran",
        "SKILL.md | 0 | not sent | listed; not opened",
    ]
    lead = "".join(render_receipts(FOUND)[0].itertext())
    assert lead.startswith("From 3 answered requests. 5,000 characters of them were not searched")


def test_a_trial_without_receipts_says_why() -> None:
    assert "No receipts" in "".join(render_receipts(None)[0].itertext())
