"""What the model received of each file and text that a condition declares, as the requests of an attempt show."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from trialfleet_ledger.records.base import Count, Frozen, Ordinal, Probability, Sha256

RECEIPTS = "receipts.json"  # in the bundle


class Arrival(StrEnum):
    """How much of a text was in requests that the model answered."""

    WHOLE = "whole"
    CHANGED = "changed"  # all but what agents strip or rewrite, which `Receipt.changes` names
    IN_PART = "in_part"
    NOT_SENT = "not_sent"

    @property
    def is_complete(self) -> bool:
        return self in (Arrival.WHOLE, Arrival.CHANGED)


class TextChange(StrEnum):
    """What an agent strips from a text or rewrites in it."""

    COMMENT = "comment"
    FRONT_MATTER = "front matter"
    BYTE_ORDER_MARK = "byte order mark"
    AT_WORD = "@word"


class FileRole(StrEnum):
    """What an agent takes a declared text for."""

    TEXT = "text"  # of the prompt, or of a hook, a rule, a tool's description
    INSTRUCTIONS = "instructions"
    SKILL = "skill"
    SUBAGENT = "subagent"
    COMMAND = "command"
    SCRIPT = "script"
    OTHER = "other"


class ByteRange(Frozen):
    """Both are counted from 0 and belong to it."""

    first: Count
    last: Count


class ImportReceipt(Frozen):
    """An `@path` of a file. `present`: the workspace has that file; else the import is dangling. `arrival`: of the
    imported text; None: it is absent, or cannot be told."""

    path: str
    present: bool
    arrival: Arrival | None = None


class ScriptReceipt(Frozen):
    """A script as the agent found it, and whether it ran: a command of the model names it. It did not if nothing
    opened it. None: a program opened it, and what for is not known, or it is not known whether one did."""

    present: bool
    executable: bool
    ran: bool | None = None


class Receipt(Frozen):
    """One file or text. `channel`: the delivery that carries it. `arrival` None: it has no words that could be
    recognised, or no model answered. `share`: of its words, without those that agents strip. `received`: where in
    its bytes what was received stands, the first 20 places. `copies`: in the one request that had most of them.
    `first_request`: number of the first answered request that had any of it. `listed`: its description was
    received; `opened`: its text was; None: nothing of the kind."""

    name: str
    channel: str
    path: str | None = None
    role: FileRole = FileRole.TEXT
    size: Count = 0
    arrival: Arrival | None = None
    share: Probability | None = None
    received: tuple[ByteRange, ...] = ()
    changes: tuple[TextChange, ...] = ()
    copies: Count = 0
    first_request: Ordinal | None = None
    listed: bool | None = None
    opened: bool | None = None
    script: ScriptReceipt | None = None
    imports: tuple[ImportReceipt, ...] = ()

    @property
    def is_complete(self) -> bool:
        return self.arrival is not None and self.arrival.is_complete


class Receipts(Frozen):
    """`receipts.json` of a bundle. `requests`: those that the model answered and that were searched; `unread`:
    characters that were not searched, since the requests had too many: what was not seen whole is then unknown.
    `first_request_sha256`: of the first request of the agent's loop, without what differs between any two runs;
    None: no model answered, or the request is too large or too deep to compare."""

    requests: Count = 0
    unread: Count = 0
    first_request_sha256: Sha256 | None = None
    receipts: tuple[Receipt, ...] = Field(default=())
