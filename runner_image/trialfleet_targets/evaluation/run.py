"""Every method and baseline on the same commits of one repository."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from trialfleet_targets.arrays import Floats
from trialfleet_targets.default.features import Candidates, FeatureExtractor
from trialfleet_targets.default.ranking import MAX_RANKED, Default
from trialfleet_targets.errors import TargetsError
from trialfleet_targets.evaluation.baselines import BASELINES
from trialfleet_targets.evaluation.cases import EvaluationCase, cases, family
from trialfleet_targets.evaluation.metrics import CaseScore, outcome
from trialfleet_targets.index import Index, build
from trialfleet_targets.methods import ranker
from trialfleet_targets.prediction import METHODS
from trialfleet_targets.repository import Repository
from trialfleet_targets.snapshot import Snapshot
from trialfleet_targets.snapshot_reader import snapshot_at


@dataclass(frozen=True)
class CaseResult:
    """`outcomes`: by method or baseline; each ranking ends after 20. `files`: number of possible targets.
    `candidates`: the candidates of the method `default`; `true`: which of them are true files."""

    case: EvaluationCase
    files: int
    outcomes: Mapping[str, CaseScore]
    candidates: Candidates
    true: Sequence[bool]


def evaluate(
    repository: Repository,
    name: str,
    *,
    most: int,
    language: str | None = None,
    cache: Path | None = None,
) -> Iterator[CaseResult]:
    """Evaluate the newest commits of a repository, at most `most`, each with an index of its parent; nothing later
    is read. Candidates are the files of the repository's main language. A parent that cannot be read (a partial
    clone) is left out. Oldest first. Raises `TargetsError` for a repository without commits."""
    before: Index | None = None
    for case in reversed(cases(repository, name, most, language=language)):
        try:
            snapshot = of_language(snapshot_at(repository, case.parent, cache=cache), case.language)
        except TargetsError:
            continue
        before = build(snapshot, methods=METHODS, previous=before)
        yield _answer(before, case)


def of_language(snapshot: Snapshot, language: str) -> Snapshot:
    """Without the files of other languages."""
    return replace(
        snapshot, files={path: file for path, file in snapshot.files.items() if family(path) == language}
    )


def _answer(index: Index, case: EvaluationCase) -> CaseResult:
    """The result of one case, from the index of its parent."""
    extractor = Default(index).extractor
    rankings = {
        method: [target.path for target in ranker(method, index).rank(case.prompt)] for method in METHODS
    } | {name: _best(extractor, score(extractor, case.prompt)) for name, score in BASELINES.items()}
    truth = set(case.truth)
    candidates = extractor.candidates(case.prompt)
    return CaseResult(
        case,
        len(extractor.paths),
        {name: outcome(case.repository, ranked, truth) for name, ranked in rankings.items()},
        candidates,
        [extractor.paths[int(file)] in truth for file in candidates.files],
    )


def _best(extractor: FeatureExtractor, scores: Floats) -> list[str]:
    order = np.argsort(-scores, kind="stable")[:MAX_RANKED]
    return [extractor.paths[int(file)] for file in order]
