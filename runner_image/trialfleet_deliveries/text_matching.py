"""Finds declared texts in other texts by their words, so that a rewrap, an escape, line numbers or an indent do
not matter. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from trialfleet_ledger.records.receipts import TextChange

GRAM = 5  # words of a shingle
_STEP = 8  # words between two shingles of a declared text
_LEAST = 8  # words of a match, if the text has as many: fewer may be anybody's
_CANDIDATES = 4  # places of a shingle in one text: one with more tells nothing
_INSERTED = 8  # words that an agent may put between two of a text
_PROOF = 3  # words that must follow an insertion
_WINDOW, _OVERLAP = 2**19, 2**12  # characters that are split into words at a time

_WORD = re.compile(r"[\w\0]+")
_ESCAPE = re.compile(r"\\+[nrtbf]")
_CODE_POINT = re.compile(r"\\+u([dD][89abAB][0-9a-fA-F]{2})\\+u([dD][c-fC-F][0-9a-fA-F]{2})|\\+u([0-9a-fA-F]{4})")
_ENTITY = re.compile(r"&(?:amp;)*(?:lt|gt|amp|quot|apos|nbsp|#39|#x27|#34);")
_LINE_NUMBER = re.compile(r"^[ \t]*\d{1,7}(?=[\t\u2192|])", re.MULTILINE)
_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(?:.*?\r?\n)?---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_AT_WORD = re.compile(r"(?<![\w.])@[^\s@]+")
_STRIPPED = (
    (TextChange.FRONT_MATTER, _FRONT_MATTER),
    (TextChange.COMMENT, _COMMENT),
    (TextChange.AT_WORD, _AT_WORD),
)
BYTE_ORDER_MARK = "\ufeff"


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _character(found: re.Match[str]) -> str:
    high, low, alone = found.groups()
    code = int(alone, 16) if alone else 0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00
    return chr(code).ljust(len(found[0]), "\0")


def _normalise(text: str) -> str:
    """`text`, at the same length, without what JSON, HTML and line numbers put between or into words."""
    if "\\" in text:
        text = _CODE_POINT.sub(_character, _ESCAPE.sub(_blank, text))
    if "&" in text:
        text = _ENTITY.sub(_blank, text)
    return _LINE_NUMBER.sub(_blank, text)


def split_words(text: str) -> list[str]:
    r"""Its words, in order.

    >>> split_words("  1\tPrices are\\nwhole &lt;cents&gt;, caf\\u00e9s")
    ['Prices', 'are', 'whole', 'cents', 'cafés']
    """
    normal = _normalise(text)
    words: list[str] = _WORD.findall(normal)
    return [word for one in words if (word := one.replace("\0", ""))] if "\0" in normal else words


@dataclass(frozen=True)
class _Optional:
    """Words `first` to `end` (not in it) of a text, which agents strip."""

    first: int
    end: int
    kind: TextChange


class DeclaredWords:
    """A text as words, with their places in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        found = [one for one in _WORD.finditer(_normalise(text)) if one[0].strip("\0")]
        self.words = [one[0].replace("\0", "") for one in found]
        self._starts, self._ends = [one.start() for one in found], [one.end() for one in found]

    @cached_property
    def optional(self) -> tuple[_Optional, ...]:
        """What agents strip, in order; no two overlap."""
        found = [
            _Optional(self._word_at(one.start()), self._word_at(one.end()), kind)
            for kind, pattern in _STRIPPED
            for one in pattern.finditer(self.text)
            if kind is not TextChange.COMMENT or one[0].endswith("-->")  # an open one is text
        ]
        disjoint: list[_Optional] = []
        for one in sorted(found, key=lambda one: one.first):
            if one.first < one.end and (not disjoint or one.first >= disjoint[-1].end):
                disjoint.append(one)
        return tuple(disjoint)

    def _word_at(self, place: int) -> int:
        return bisect_left(self._starts, place)

    @cached_property
    def pieces(self) -> tuple[tuple[int, int], ...]:
        """The words between what agents strip."""
        edges = [0, *(edge for one in self.optional for edge in (one.first, one.end)), len(self.words)]
        return tuple((a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b)

    @cached_property
    def required(self) -> int:
        """Mask of the words that no agent strips; of all, where nothing else is left."""
        whole = mask_of(0, len(self.words))
        for one in self.optional:
            whole &= ~mask_of(one.first, one.end)
        return whole or mask_of(0, len(self.words))

    @property
    def required_words(self) -> list[str]:
        """The words that no agent strips."""
        return [word for first, end in self.pieces for word in self.words[first:end]]

    def byte_ranges(self, mask: int, most: int) -> Iterator[tuple[int, int]]:
        """First and last byte of each of the first `most` runs of words in `mask`."""
        at = 0
        while mask and most:
            skipped = (mask & -mask).bit_length() - 1
            mask >>= skipped
            length = (~mask & (mask + 1)).bit_length() - 1
            start = self._starts[at + skipped] if at + skipped else 0
            last = at + skipped + length - 1
            end = self._ends[last] if last + 1 < len(self.words) else len(self.text)
            first = len(self.text[:start].encode())
            yield first, first + len(self.text[start:end].encode()) - 1
            mask >>= length
            at += skipped + length
            most -= 1


def mask_of(first: int, end: int) -> int:
    """Bits `first` to `end`, without the last."""
    return ((1 << (end - first)) - 1) << first


@dataclass(frozen=True)
class TextMatch:
    """Of declared text number `text`: `mask` of the words that were found at `first` to `end` of what was
    searched. `marked`: what was searched has a byte order mark."""

    text: int
    mask: int
    first: int
    end: int
    marked: bool


class TextIndex:
    """Declared texts by their shingles."""

    def __init__(self, texts: Sequence[DeclaredWords]) -> None:
        self.texts = texts
        self._seeds: dict[int, dict[tuple[str, ...], dict[int, list[int]]]] = {}
        self._before = [{one.end: one.first for one in text.optional} for text in texts]
        self._after = [{one.first: one.end for one in text.optional} for text in texts]
        for number, text in enumerate(texts):
            for size, seeds in _seeds_of(text).items():
                table = self._seeds.setdefault(size, defaultdict(dict))
                for gram, places in seeds.items():
                    table[gram][number] = places
        self._grams = {size: frozenset(table) for size, table in self._seeds.items()}
        self.shortest = min((len("".join(gram)) for table in self._seeds.values() for gram in table), default=0)

    def find_texts(self, text: str) -> tuple[TextMatch, ...]:
        """Every declared text that `text` has a recognisable part of."""
        if not self._seeds or len(text) < self.shortest:
            return ()
        marked = BYTE_ORDER_MARK in text
        if len(text) <= _WINDOW:
            return tuple(self._matches(split_words(text), marked))
        starts = range(0, len(text), _WINDOW - _OVERLAP)
        return tuple(
            match for at in starts for match in self._matches(split_words(text[at : at + _WINDOW]), marked)
        )

    def _matches(self, words: list[str], marked: bool) -> Iterator[TextMatch]:
        ends: dict[int, int] = defaultdict(int)  # text -> where its last match ended
        for at, places in self._hits(words):
            for number, candidates in places.items():
                if at < ends[number]:
                    continue
                mask, first, end = max(
                    (self._align(number, words, at, q, ends[number]) for q in candidates),
                    key=lambda found: found[0].bit_count(),
                )
                ends[number] = end
                if mask.bit_count() >= self._least(number):
                    yield TextMatch(number, mask, first, end, marked)

    def _hits(self, words: list[str]) -> Iterable[tuple[int, dict[int, list[int]]]]:
        found: list[tuple[int, dict[int, list[int]]]] = []
        for size, grams in self._grams.items():
            if grams.isdisjoint(_grams(words, size)):
                continue
            table = self._seeds[size]
            found += [(at, table[gram]) for at, gram in enumerate(_grams(words, size)) if gram in grams]
        return sorted(found, key=lambda hit: hit[0])

    def _least(self, number: int) -> int:
        return min(_LEAST, self.texts[number].required.bit_count())

    def _align(self, number: int, words: list[str], p: int, q: int, floor: int) -> tuple[int, int, int]:
        """The mask of the words of the text that are found around word `p` of `words`, which is word `q` of it;
        and where. Nothing before `floor` belongs to it."""
        mine, skips = self.texts[number].words, self._before[number]
        mask, end = self._forward(number, words, p, q)
        first = p
        while q > 0 and first > floor:
            if words[first - 1] == mine[q - 1]:
                first, q = first - 1, q - 1
                mask |= 1 << q
            elif (before := skips.get(q)) and words[first - 1] == mine[before - 1]:
                q = before
            else:
                break
        return mask, first, end

    def _forward(self, number: int, words: list[str], p: int, q: int) -> tuple[int, int]:
        mine, mask = self.texts[number].words, 0
        while True:
            length = _common_length(words, p, mine, q)
            mask |= mask_of(q, q + length)
            p, q = p + length, q + length
            following = self._after_gap(number, words, p, q)
            if following is None:
                return mask, p
            p, q = following

    def _after_gap(self, number: int, words: list[str], p: int, q: int) -> tuple[int, int] | None:
        """Where both go on, behind words that the agent has put in or stripped; None: nowhere."""
        mine, skips = self.texts[number].words, self._after[number]
        if p >= len(words) or q >= len(mine):
            return None
        places = [q]
        while (after := skips.get(places[-1])) is not None and after < len(mine) and len(places) < _INSERTED:
            places.append(after)
        for inserted in range(_INSERTED + 1):
            for place in places:
                wanted = mine[place : place + _PROOF]
                if words[p + inserted : p + inserted + len(wanted)] == wanted:
                    return p + inserted, place
        return None


def _seeds_of(text: DeclaredWords) -> dict[int, dict[tuple[str, ...], list[int]]]:
    """Size of a shingle -> shingle -> its places in the text, of those that tell where they stand, by how often
    the whole text has them; of the first where none does."""
    if not text.words:
        return {}
    size = min(GRAM, max((end - first for first, end in text.pieces), default=len(text.words)))
    grams = list(_grams(text.words, size))
    often = Counter(grams)
    pieces = [one for one in (text.pieces or ((0, len(text.words)),)) if one[1] - one[0] >= size]
    comments = [(one.first, one.end) for one in text.optional if one.end - one.first >= size]
    places: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for first, end in [*pieces, *comments]:
        last = end - size
        for at in (*range(first, last + 1, _STEP), last):
            near = range(at, min(at + _STEP, last + 1))
            q = next((q for q in near if often[grams[q]] < _CANDIDATES), at)
            if q not in places[grams[q]]:
                places[grams[q]].append(q)
    telling = {gram: found for gram, found in places.items() if often[gram] < _CANDIDATES}
    return {size: telling or {gram: found[:1] for gram, found in places.items()}}


def _grams(words: Sequence[str], size: int) -> Iterable[tuple[str, ...]]:
    return zip(*(words[skip:] for skip in range(size)), strict=False)


def _common_length(one: list[str], p: int, other: list[str], q: int) -> int:
    """How many words are equal from there on."""
    most, length = min(len(one) - p, len(other) - q), 0
    while length < most and one[p + length : p + length + 64] == other[q + length : q + length + 64]:
        length += 64
    length = min(length, most)
    while length < most and one[p + length] == other[q + length]:
        length += 1
    return length
