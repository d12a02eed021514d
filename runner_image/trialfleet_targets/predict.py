"""Predict at most five files for a prompt, or abstain with a reason."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from trialfleet_targets.default.ranking import Default
from trialfleet_targets.default.weights import shipped
from trialfleet_targets.index import Index
from trialfleet_targets.methods import ranker
from trialfleet_targets.prediction import Abstention, Target, TargetPrediction

SHORTEST = 10  # characters
LONGEST_TRIVIAL = 100  # characters
MOST = 5
SELECTED_FROM = 0.05  # of the first file's probability
READ_FOR_NAMES = 50_000  # characters
LOOKED_BACK = 60  # characters before a name in which a negation counts

_TRIVIAL = re.compile(
    r"(?:(?:hi|hello|hey|there|everyone|thanks?(?: you)?|ok(?:ay)?|yes|no|sure|please|great|good(?: job)?|continue"
    r"|go on|go ahead|proceed|next|done|stop|retry|try again|again|help(?: me)?|undo|commit(?: it| this)?|lgtm"
    r"|push(?: it)?|run (?:the |all )?tests|what(?:'s| is) (?:this|next)|looks good(?: to me)?|do it|that's all"
    r"|and|now|so much)"
    r"[\s,.!?]*)+",
    re.I,
)
_FILE = re.compile(r"[\w@.$()+/\\-]{1,200}\.[A-Za-z]{1,4}\b")
_NEGATED = re.compile(
    r"\b(?:not|never|without|except|avoid|ignore|leave|besides|unlike|other than|instead of|rather than"
    r"|don'?t|must ?n'?t|should ?n'?t|no changes? (?:to|in))\b[^.!?\n;]*$",
    re.I,
)


def predict(index: Index, prompt: str, *, method: str = "default") -> TargetPrediction:
    """At most five files that the prompt wants edited, best first, or none and the reason.

    Raises KeyError when the index was built without the method, ValueError for one that does not exist.
    """
    text = prompt.strip()

    def abstain(reason: Abstention, why: str, confidence: float | None = None) -> TargetPrediction:
        return TargetPrediction(method, index.commit, (), reason, confidence, why)

    if len(text) < SHORTEST:
        return abstain(Abstention.TOO_SHORT, f"fewer than {SHORTEST} characters")
    if len(text) <= LONGEST_TRIVIAL and _TRIVIAL.fullmatch(text):
        return abstain(Abstention.TRIVIAL, "it asks for no change")
    can_be_targets = [path for path, test in zip(index.paths, index.tests.tolist(), strict=True) if not test]
    if not can_be_targets:
        return abstain(Abstention.NO_SOURCE, "no file in a language with a grammar that is not a test")
    already, ruled_out = named(text, can_be_targets)
    if already is not None:
        return abstain(Abstention.NAMES_A_TARGET, f"it names {already}")
    targets, confidence, floor = _ranked(index, text, method, ruled_out)
    if not targets:
        return abstain(Abstention.NOTHING_MATCHES, "no word of it is known here")
    if confidence is not None and confidence < floor:
        why = f"{confidence:.0%} sure, less than {floor:.0%}"
        return abstain(Abstention.LOW_CONFIDENCE, why, confidence)
    return TargetPrediction(method, index.commit, targets, confidence=confidence)


def named(text: str, paths: Sequence[str]) -> tuple[str | None, frozenset[str]]:
    """The first of the paths that a text names, and those that it rules out: by the path, its end, or its file
    name. A name that several files share names none of them, but rules all of them out.

    >>> named("Fix the cache in app/session.py", ["app/session.py", "app/core.py"])
    ('app/session.py', frozenset())
    >>> named("Fix the cache, but do not touch session.py", ["app/session.py"])
    (None, frozenset({'app/session.py'}))
    """
    mentions = [(at, _plain(name)) for at, name in _files(text)]
    by_name: dict[str, list[str]] = {PurePosixPath(name).name: [] for _, name in mentions}
    for path in paths if mentions else ():
        if (own := path.rpartition("/")[2]) in by_name:
            by_name[own].append(path)
    first, ruled_out = None, set[str]()
    for at, name in mentions:
        found = _called(name, by_name)
        if _NEGATED.search(text[max(0, at - LOOKED_BACK) : at]):
            ruled_out.update(found)
        elif len(found) == 1:
            first = first or found[0]
    return first, frozenset(ruled_out)


def _plain(name: str) -> str:
    """As git writes it."""
    return PurePosixPath(name.replace("\\", "/")).as_posix().removeprefix("./")


def _called(wanted: str, by_name: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """The paths that a name may refer to."""
    sharing = by_name.get(PurePosixPath(wanted).name, ())
    if wanted in sharing:
        return (wanted,)
    return [path for path in sharing if path.endswith(f"/{wanted}") or wanted.endswith(f"/{path}")]


def _files(text: str) -> Iterator[tuple[int, str]]:
    """Position and text of everything that looks like a file name."""
    for found in _FILE.finditer(text[:READ_FOR_NAMES]):
        yield found.start(), found[0].strip("()")


def _ranked(
    index: Index, text: str, method: str, ruled_out: Collection[str]
) -> tuple[tuple[Target, ...], float | None, float]:
    """The selected targets, the confidence, and the least confidence at which the method does not abstain."""
    chosen = ranker(method, index)
    if not isinstance(chosen, Default):
        from trialfleet_targets.clarte.method import select

        return select(one for one in chosen.rank(text) if one.path not in ruled_out), None, 0.0
    found = chosen.ranking(text)
    pairs = [
        pair for pair in zip(found.targets, found.probabilities, strict=True) if pair[0].path not in ruled_out
    ]
    best = pairs[0][1] if pairs else 0.0
    likely = tuple(target for target, probability in pairs[:MOST] if probability >= SELECTED_FROM * best)
    return likely, found.confidence, shipped().confidence.abstains_below
