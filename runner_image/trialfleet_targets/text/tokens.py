"""Words of code, of paths and of requests, made comparable.

`validateJWTToken`, `validate_jwt_token` and "validate the JWT token" share their words; a name that a stop word
would tear apart ("getUser" keeps only "user") stays findable as a compound ("getuser").
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib import resources
from types import MappingProxyType
from typing import Protocol, cast

SHORTEST = 2
SHORTEST_COMPOUND = 4
LONGEST = 64  # longer words are hashes, encoded data or minified code
SYNONYM_WEIGHT = 0.3
REMEMBERED = 1 << 18  # words whose parts are cached; a full cache is cleared

_STOP_WORDS = """
a about after all also an and any are as at be because been before being but by can cannot could did do does
doing done each even for from get gets getting had has have having he her here his how i if in into is it its
just let like make may me might more most my need needs new no not now of off on only or other our out over own
please same set she should so some such than that the their them then there these they this those to too under
until up us use used uses using very want was we were what when where which while who why will with without
would you your
add added adds bug bugs fix fixed fixes fixing issue issues problem
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English function words, and verbs that occur in every request and in every getter."""


def _by_word() -> Mapping[str, tuple[str, ...]]:
    groups = resources.files("trialfleet_targets.text").joinpath("synonyms.txt").read_text("utf-8")
    others: dict[str, dict[str, None]] = {}
    for line in groups.splitlines():
        words = line.split()
        for word in words:
            others.setdefault(word, {}).update({other: None for other in words if other != word})
    return MappingProxyType({word: tuple(found) for word, found in others.items()})


SYNONYMS = _by_word()
"""From a word in lower case to the words that may be meant by it: "login" in a request may be about `auth/`. One
line of `synonyms.txt` is one group, in which every word stands for every other."""

_IDENTIFIER = re.compile(r"\w+")
_BETWEEN_PARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802 (the library's name)


@cache
def _english() -> _Stemmer:
    import snowballstemmer

    return cast(_Stemmer, snowballstemmer.stemmer("english"))  # pyright: ignore[reportUnknownMemberType]


@lru_cache(REMEMBERED)
def _stem(part: str) -> str:
    """Parts recur in many words."""
    return _english().stemWord(part)


class Tokenizer:
    """Turns text into terms: lower-case parts of words, at least two characters, without stop words.

    `stem`: parts are reduced to their English stem (Snowball); compounds and identifiers are not.
    `identifiers`: a name of several parts is a term of its own as well, written without underscores
    ("parse_body" and "parseBody" are both "parsebody"), so that a request that spells it finds it first.

    >>> Tokenizer().terms("fix getUserName in the HTTPServer")
    ['user', 'name', 'getusername', 'http', 'server']
    >>> Tokenizer(stem=True, identifiers=True).terms("parse_bodies")
    ['pars', 'bodi', 'parsebodies']
    """

    def __init__(
        self, *, stem: bool = False, identifiers: bool = False, stop_words: frozenset[str] = STOP_WORDS
    ) -> None:
        self.stem, self.identifiers, self.stop_words = stem, identifiers, stop_words
        self._remembered: dict[str, tuple[str, ...]] = {}

    def terms(self, text: str) -> list[str]:
        """The terms of a text in its order, repetitions included."""
        return [term for word in _IDENTIFIER.findall(text) for term in self._of_word(word)]

    def count(self, texts: Iterable[str]) -> Counter[str]:
        """How often each term occurs in all texts together; each distinct word is split once."""
        words: Counter[str] = Counter()
        for text in texts:
            words.update(_IDENTIFIER.findall(text))
        terms: dict[str, int] = {}
        known = self._remembered.get  # called millions of times for a large repository
        for word, times in words.items():
            for term in known(word) or self._of_word(word):
                terms[term] = terms.get(term, 0) + times
        return Counter(terms)

    def query(self, text: str) -> dict[str, float]:
        """Terms of a request with their weights: 1, and .3 for terms that only a synonym adds."""
        terms = list(dict.fromkeys(self.terms(text)))
        added = {other: SYNONYM_WEIGHT for term in terms for other in SYNONYMS.get(term, ())}
        return dict.fromkeys(terms, 1.0) | {other: weight for other, weight in added.items() if other not in terms}

    def _of_word(self, word: str) -> tuple[str, ...]:
        found = self._remembered.get(word)
        if found is None:
            if len(self._remembered) >= REMEMBERED:
                self._remembered.clear()
            found = self._remembered[word] = tuple(self._split(word))
        return found

    def _split(self, word: str) -> list[str]:
        terms: list[str] = []
        pieces = 0
        for chunk in word.split("_"):
            if len(chunk) > LONGEST:
                continue
            parts = [part.lower() for part in _BETWEEN_PARTS.split(chunk) if part]
            content = [part for part in parts if part not in self.stop_words]
            terms += [self._stemmed(part) for part in content if len(part) >= SHORTEST]
            compound = "".join(parts)
            if 1 < len(parts) != len(content) and len(compound) >= SHORTEST_COMPOUND and not self.identifiers:
                terms.append(compound)
            pieces += len(parts)
        whole = word.replace("_", "").lower()
        if self.identifiers and pieces > 1 and SHORTEST_COMPOUND <= len(whole) <= LONGEST:
            terms.append(whole)
        return terms

    def _stemmed(self, part: str) -> str:
        return _stem(part) if self.stem else part
