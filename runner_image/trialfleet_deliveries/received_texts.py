"""An account of what a model received: which of the declared texts the requests of one attempt carry. Incremental:
a conversation repeats itself in every request, and each of its strings is searched once."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from trialfleet_deliveries.text_matching import BYTE_ORDER_MARK, GRAM, DeclaredWords, TextIndex, TextMatch
from trialfleet_ledger.records.receipts import Arrival, ByteRange, FileRole, Receipt, TextChange

LARGEST = 2 * 2**20  # characters of declared texts that are looked for, all together
MOST_SEARCHED = 64 * 2**20  # characters that are searched in one attempt
_REMEMBERED = 200_000  # strings
_RANGES = 20  # of a receipt
_MORE_THAN_CHANCE = 4  # words around a quotation
_WHOLE_COPY = 0.75  # of a text's words: less is no copy of it


@dataclass(frozen=True)
class DeclaredText:
    """A text of a condition. `name`: unique in it. `channel`: the delivery that carries it. `in_prompt`: it is
    part of the prompt or the system prompt, where others may quote it. `description`: what lists of skills,
    sub-agents and commands show of it. `size`: in bytes."""

    name: str
    text: str
    channel: str = ""
    path: str | None = None
    role: FileRole = FileRole.TEXT
    in_prompt: bool = False
    description: str = ""

    @property
    def size(self) -> int:
        return len(self.text.encode())


@dataclass(frozen=True)
class RequestReading:
    """What one request carries: the matches of each of its strings."""

    matches: tuple[tuple[TextMatch, ...], ...]


@dataclass
class _Received:
    """Of one text. `mask`: of its words; `marked`: with a byte order mark."""

    mask: int = 0
    copies: int = 0
    first_request: int | None = None
    marked: bool = False


@dataclass
class ReceivedTexts:
    """`read_request` when one leaves, and `confirm_request` that reading when the model answers. Thread-safe."""

    declared: Sequence[DeclaredText] = ()
    requests: int = 0
    unread: int = 0
    _searched: int = 0
    _matches: dict[int, tuple[TextMatch, ...]] = field(default_factory=dict[int, tuple[TextMatch, ...]])
    _received: dict[str, _Received] = field(default_factory=dict[str, _Received])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._index_texts()

    def _index_texts(self) -> None:
        """Number 2n of the index is text n, and 2n + 1 its description."""
        texts, left = list[DeclaredWords](), LARGEST
        for one in self.declared:
            text = one.text if len(one.text) <= left else ""  # a large one hides no other
            left -= len(text)
            texts += [DeclaredWords(text), DeclaredWords(one.description)]
        self._index = TextIndex(texts)
        self._matches = {}

    def declare_more(self, more: Iterable[DeclaredText]) -> None:
        """Texts that were not known at first; one of a name that is known takes the other's place."""
        with self._lock:
            known = {one.name: one for one in self.declared}
            added = {one.name: one for one in more}
            for name, one in added.items():
                if name in known and known[name].text != one.text:
                    for part in (name, _name_listing(name)):
                        self._received.pop(part, None)
            self.declared = tuple((known | added).values())
            self._index_texts()

    def read_request(self, strings: Iterable[str]) -> RequestReading:
        """What a request with these strings carries."""
        with self._lock:
            found = [matches for text in strings if (matches := self._matches_in(text))]
        return RequestReading(tuple(found))

    def _matches_in(self, text: str) -> tuple[TextMatch, ...]:
        if len(text) < self._index.shortest:
            return ()
        key = hash(text)
        known = self._matches.get(key)
        if known is not None:
            return known
        if len(self._matches) >= _REMEMBERED:
            self._matches.clear()
        if self._searched + len(text) > MOST_SEARCHED:
            self.unread += len(text)
            self._matches[key] = ()
            return ()
        self._searched += len(text)
        self._matches[key] = found = tuple(self._not_quoted(self._index.find_texts(text)))
        return found

    def _not_quoted(self, matches: Sequence[TextMatch]) -> Iterable[TextMatch]:
        """Without what only the prompt says of another text: that proves the prompt alone."""
        prompts = [one for one in matches if self._is_prompt(one)]
        return (
            one for one in matches if self._is_prompt(one) or not any(self._quotes(each, one) for each in prompts)
        )

    def _quotes(self, prompt: TextMatch, other: TextMatch) -> bool:
        """Whether `other` is a part of the prompt there: of all of it, or of more than `other` itself."""
        around = prompt.end - prompt.first - (other.end - other.first)
        is_whole = not self._index.texts[prompt.text].required & ~prompt.mask
        return (
            prompt.first <= other.first and other.end <= prompt.end and (is_whole or around >= _MORE_THAN_CHANCE)
        )

    def _is_prompt(self, match: TextMatch) -> bool:
        return self.declared[match.text // 2].in_prompt

    def confirm_request(self, reading: RequestReading) -> None:
        """The model has read that request."""
        with self._lock:
            self.requests += 1
            words: dict[int, int] = defaultdict(int)
            for match in (one for matches in reading.matches for one in matches):
                if match.text >= len(self._index.texts):
                    continue
                received = self._received.setdefault(self._part(match.text), _Received())
                received.mask |= match.mask
                received.marked |= match.marked
                received.first_request = received.first_request or self.requests
                words[match.text] += match.mask.bit_count()
            for number, count in words.items():
                received, text = self._received[self._part(number)], self._index.texts[number]
                copies = int(count / text.required.bit_count() + 1 - _WHOLE_COPY)
                received.copies = max(received.copies, copies)

    def _part(self, number: int) -> str:
        name = self.declared[number // 2].name
        return _name_listing(name) if number % 2 else name

    def make_receipts(self) -> tuple[Receipt, ...]:
        """One of each declared text, in their order."""
        with self._lock:
            return tuple(self._receipt(n, one) for n, one in enumerate(self.declared))

    def _receipt(self, number: int, one: DeclaredText) -> Receipt:
        words, listing = self._index.texts[2 * number], self._index.texts[2 * number + 1]
        received = self._received.get(one.name, _Received())
        listed = self._received.get(_name_listing(one.name), _Received())
        plain = Receipt(name=one.name, channel=one.channel, path=one.path, role=one.role, size=one.size)
        is_opened_on_demand = one.role in (FileRole.SKILL, FileRole.SUBAGENT, FileRole.COMMAND)
        can_be_listed = is_opened_on_demand and len(listing.words) >= GRAM  # fewer words stand in any prompt
        if self.requests == 0 or not words.words:
            return plain
        seen = (received.mask & words.required).bit_count()
        share = seen / words.required.bit_count()
        arrival, changes = _judge_arrival(words, received, one.text)
        if self.unread and not arrival.is_complete:
            return plain
        ranges = words.byte_ranges(received.mask, _RANGES) if arrival is Arrival.IN_PART else ()
        return plain.model_copy(
            update={
                "arrival": arrival,
                "share": share,
                "received": tuple(ByteRange(first=first, last=last) for first, last in ranges),
                "changes": changes,
                "copies": received.copies,
                "first_request": received.first_request if seen else None,
                "listed": listed.mask == listing.required if can_be_listed else None,
                "opened": seen > 0 if is_opened_on_demand else None,
            }
        )


def _name_listing(name: str) -> str:
    return f"{name}\0listing"


def _judge_arrival(words: DeclaredWords, received: _Received, text: str) -> tuple[Arrival, tuple[TextChange, ...]]:
    """Of `text`, and what of it was stripped."""
    missing = words.required & ~received.mask
    if received.mask & words.required == 0:
        return Arrival.NOT_SENT, ()
    if missing:
        return Arrival.IN_PART, ()
    changes = [one.kind for one in words.optional if ~received.mask >> one.first & 1]
    if text.startswith(BYTE_ORDER_MARK) and not received.marked:
        changes.append(TextChange.BYTE_ORDER_MARK)
    kinds = tuple(kind for kind in TextChange if kind in changes)
    return (Arrival.CHANGED if kinds else Arrival.WHOLE), kinds
