"""Every method and baseline on the same commits of one repository."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from trialfleet_targets.default.features import NAMES, Candidates, Knowledge
from trialfleet_targets.default.ranking import MOST_RANKED, Default
from trialfleet_targets.default.weights import Weights, softmax
from trialfleet_targets.errors import TargetsError
from trialfleet_targets.evaluation.baselines import BASELINES
from trialfleet_targets.evaluation.cases import Case, cases, family
from trialfleet_targets.evaluation.metrics import Outcome, outcome
from trialfleet_targets.evaluation.parsing import learn_for
from trialfleet_targets.index import Index, build
from trialfleet_targets.kept import Kept
from trialfleet_targets.methods import METHODS, ranker
from trialfleet_targets.reading import snapshot_at
from trialfleet_targets.repository import Repository
from trialfleet_targets.snapshot import Snapshot


@dataclass(frozen=True)
class Answer:
    """`outcomes`: by method or baseline; each ranking ends after 20. `files`: that could be named. `candidates`:
    what the method `default` weighed; `true`: which of them were right."""

    case: Case
    files: int
    outcomes: Mapping[str, Outcome]
    candidates: Candidates
    true: Sequence[bool]


def evaluate(
    repository: Repository,
    name: str,
    *,
    most: int,
    language: str | None = None,
    methods: Sequence[str] = METHODS,
    cache: Path | None = None,
) -> Iterator[Answer]:
    """Asks for the newest commits of a repository, at most `most`, with an index of each one's parent: nothing
    later is read. Candidates are the files of the repository's main language. A parent that cannot be read (a
    partial clone) is left out. Oldest first. Raises `TargetsError` for a repository without commits."""
    before: Index | None = None
    asked = cases(repository, name, most, language=language)
    if cache is not None:
        learn_for(repository, Kept(cache / "facts.sqlite"), asked)
    for case in reversed(asked):
        try:
            snapshot = of_language(snapshot_at(repository, case.parent, cache=cache, processes=1), case.language)
        except TargetsError:
            continue
        before = build(snapshot, methods=sorted({"default", *methods}), previous=before)
        yield answer(before, case, methods)


def of_language(snapshot: Snapshot, language: str) -> Snapshot:
    """Without the files of other languages."""
    return replace(
        snapshot, files={path: file for path, file in snapshot.files.items() if family(path) == language}
    )


def answer(index: Index, case: Case, methods: Sequence[str]) -> Answer:
    """Of one case, from the index of its parent."""
    default = Default(index)
    knowledge = default.knowledge
    rankings = {"default": [target.path for target in default.rank(case.prompt)]} if "default" in methods else {}
    for method in methods:
        if method != "default":
            rankings[method] = [target.path for target in ranker(method, index).rank(case.prompt)]
    rankings |= {name: _best(knowledge, score(knowledge, case.prompt)) for name, score in BASELINES.items()}
    truth = set(case.truth)
    candidates = knowledge.candidates(case.prompt)
    return Answer(
        case,
        len(knowledge.paths),
        {name: outcome(case.repository, ranked, truth) for name, ranked in rankings.items()},
        candidates,
        [knowledge.paths[int(file)] in truth for file in candidates.files],
    )


def weighed(answer: Answer, weights: Weights) -> Outcome:
    """The outcome that the method `default` would have had with these weights."""
    order = np.argsort(-weights.scores(answer.candidates.values), kind="stable")[:MOST_RANKED]
    places = [at for at, candidate in enumerate(order.tolist(), 1) if answer.true[candidate]]
    found = sum(at <= 5 for at in places) / len(answer.case.truth)
    return Outcome(answer.case.repository, places[0] if places else None, found)


def confidence(answer: Answer, weights: Weights) -> float:
    """How sure the method `default` would have been with these weights."""
    scores = weights.scores(answer.candidates.values)
    order = np.argsort(-scores, kind="stable")
    cover = float(answer.candidates.values[order[0], NAMES.index("cover")])
    return weights.sure(softmax(scores)[order], cover, answer.files)


def _best(knowledge: Knowledge, scores: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[str]:
    order = np.argsort(-scores, kind="stable")[:MOST_RANKED]
    return [knowledge.paths[int(file)] for file in order]
