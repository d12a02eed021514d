"""A request as weighted search terms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from trialfleet_targets.default.output import without_runner
from trialfleet_targets.text.tokens import Tokenizer

TOKENIZER = Tokenizer(stem=True, identifiers=True)
LONGEST_READ = 64_000  # characters; of a longer request its two ends
LONGEST_SUBJECT = 1000  # characters
LONGEST_BODY = 8000  # characters; of a longer one its two ends

_KIND = re.compile(
    r"^(?:fix|feat|feature|chore|refactor|docs?|perf|style|tests?|build|ci|types?|revert|bug|dx|workflow|wip)"
    r"(?:\(([^)]*)\))?!?:\s*",
    re.I,
)
_AREA = re.compile(r"^\[?([\w./,@ -]{2,40}?)\]?:\s")
_QUOTED = re.compile(r"`([^`\n]{2,80})`|'([\w.:()-]{2,60})'|\"([\w.:()-]{2,60})\"")
_WORD = re.compile(r"[A-Za-z]+")
_NAME = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Request:
    """Weights by term. `all`: of the whole text, the first line before the rest; `subject`: of the first line with
    its area; `core`: of the first line without it; `area`: "router" in "fix(router): …" and in "router: …";
    `whole`: names of several parts, as one; `joined`: neighbouring words taken for such a name ("parse body" for
    `parseBody`); `quoted`: text in quotes or backticks."""

    all: Mapping[str, float]
    subject: Mapping[str, float]
    core: Mapping[str, float]
    area: Mapping[str, float]
    whole: Mapping[str, float]
    joined: Mapping[str, float]
    quoted: Mapping[str, float]

    @classmethod
    def of(cls, text: str) -> Request:
        """
        >>> request = Request.of("fix(router): parse body twice\\n\\nSee `parseBody`")
        >>> sorted(request.area), sorted(request.core), sorted(request.whole)
        (['router'], ['bodi', 'pars', 'twice'], ['parsebody'])
        """
        text = without_runner(_ends(text.lstrip(), LONGEST_READ)).lstrip()
        first, _, rest = text.partition("\n")
        first, rest = first[:LONGEST_SUBJECT], _ends(rest, LONGEST_BODY)
        area, core = _parted(first)
        core_terms, area_terms = _once(core), _once(area)
        body_terms = _once(rest)
        every = dict.fromkeys(core_terms, 1.0) | dict.fromkeys(area_terms, 1.0)
        for term in body_terms:
            every[term] = every[term] + 0.25 if term in every else 0.5
        for term in area_terms:
            every[term] += 0.5
        whole = _whole(f"{first} {rest}")
        return cls(
            all=every,
            subject=dict.fromkeys((*core_terms, *area_terms), 1.0),
            core=core_terms,
            area=area_terms,
            whole={term: weight for term, weight in every.items() if term in whole},
            joined=dict.fromkeys(_joined(f"{core} . {rest[:1000]}"), 1.0),
            quoted=_once(" ".join(part for found in _QUOTED.findall(f"{first}\n{rest}") for part in found)),
        )


def _ends(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest // 2]}\n{text[-longest // 2 :]}"


def _parted(first: str) -> tuple[str, str]:
    """The area that a first line names before its colon, and the rest of the line."""
    found = _KIND.match(first) or _AREA.match(first)
    return (found[1] or "", first[found.end() :]) if found else ("", first)


def _once(text: str) -> dict[str, float]:
    return dict.fromkeys(TOKENIZER.terms(text), 1.0)


def _whole(text: str) -> set[str]:
    """Terms that represent a whole name of several parts."""
    found: set[str] = set()
    for name in set(_NAME.findall(text)):
        terms = TOKENIZER.terms(name)
        whole = name.replace("_", "").lower()
        if len(terms) > 1 and terms[-1] == whole:
            found.add(whole)
    return found


def _joined(text: str) -> Iterable[str]:
    words = [word.lower() for word in _WORD.findall(text)]
    pairs = list(pairwise(words))
    yield from dict.fromkeys(one + two for one, two in pairs)
    yield from dict.fromkeys(one + two + three for (one, two), (_, three) in pairwise(pairs))
