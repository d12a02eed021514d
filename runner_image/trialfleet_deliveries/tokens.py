"""Counting tokens without a network: the vocabulary is a file beside this one, its name in every bundle."""

from __future__ import annotations

import lzma
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiktoken import Encoding

ENCODING = "o200k_base"
VOCABULARY = Path(__file__).with_name("vocabulary") / f"{ENCODING}.xz"
# How the encoding cuts a text into pieces before it joins bytes, as `tiktoken_ext.openai_public` has it.
PIECE = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
_LONGEST_BLANK = 2**19  # characters of white space in a row; the library panics at a million


def read_vocabulary(packed: bytes) -> list[bytes]:
    """The tokens in the order of their ranks. `packed`, after xz: their number (4 bytes, big-endian), the
    length of each (1 byte), their bytes."""
    data = lzma.decompress(packed)
    number = int.from_bytes(data[:4], "big")
    at = 4 + number
    found: list[bytes] = []
    for length in data[4:at]:
        found.append(data[at : at + length])
        at += length
    return found


@cache
def _encoding() -> Encoding:
    from tiktoken import Encoding

    ranks = {token: rank for rank, token in enumerate(read_vocabulary(VOCABULARY.read_bytes()))}
    return Encoding(ENCODING, pat_str=PIECE, mergeable_ranks=ranks, special_tokens={})


@cache
def name() -> str:
    """What bundles record, for example `tiktoken 0.14.0 o200k_base`."""
    return f"tiktoken {version('tiktoken')} {ENCODING}"


def count(text: str) -> int:
    """Tokens of `text`; special tokens are counted as ordinary text."""
    return sum(len(_encoding().encode_ordinary(part)) for part in _countable(text))


def _countable(text: str) -> Iterator[str]:
    """`text`, cut where white space is longer than the library takes: at a multiple of its longest blank token."""
    if len(text) <= _LONGEST_BLANK:
        yield text
        return
    runs = re.finditer(r"\s+", text)
    cuts = [at for run in runs for at in range(run.start() + _LONGEST_BLANK, run.end(), _LONGEST_BLANK)]
    for start, end in pairwise([0, *cuts, len(text)]):
        yield text[start:end]


def truncate(text: str, limit: int) -> str:
    """The longest beginning of `text`, cut between words where that is possible, of at most `limit` tokens.

    >>> truncate("one two three", 2)
    'one two'
    """
    if limit <= 0:
        return ""
    if count(text) <= limit:
        return text
    pieces = _pieces(text)
    kept = _most(len(pieces), lambda n: count("".join(pieces[:n])) <= limit)
    if kept:
        return "".join(pieces[:kept])
    return text[: _most(len(pieces[0]), lambda n: count(text[:n]) <= limit)]


def _pieces(text: str) -> list[str]:
    import regex

    return [match.group() for match in regex.finditer(PIECE, text)]


def _most(upto: int, fits: Callable[[int], bool]) -> int:
    """The largest n <= upto that fits, where fitting is all but monotone (0 fits)."""
    low, high = 0, upto
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    while low and not fits(low):
        low -= 1
    return low
