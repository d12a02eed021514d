"""Which files a commit changed, predicted from its message: each method beside its baselines, on the same commits.

    TRIALFLEET_BENCH_REPOSITORIES=FOLDER [TRIALFLEET_BENCH_CACHE=FOLDER] python -m tests.bench targets

FOLDER holds clones or bare mirrors, with full history, of the repositories that `targets_split.json` reports.
Nothing was learnt or tuned on them. The cache keeps what was read of them and each commit's answers.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tests.bench.figure import Figure
from tests.bench.targets_repositories import listed, split
from trialfleet_targets.default.features import NAMES
from trialfleet_targets.default.ranking import MAX_RANKED
from trialfleet_targets.default.weights import Confidence, FeatureWeights, ShippedWeights, shipped, softmax
from trialfleet_targets.evaluation.cases import EvaluationCase
from trialfleet_targets.evaluation.metrics import CaseScore, Difference, measures, paired
from trialfleet_targets.evaluation.run import CaseResult, evaluate
from trialfleet_targets.repository import Repository

FOLDER, CACHE = "TRIALFLEET_BENCH_REPOSITORIES", "TRIALFLEET_BENCH_CACHE"
ABLATIONS = Path(__file__).with_name("targets_ablations.json")
RIVALS = ("i′", "clarte")


def measure() -> list[Figure]:
    """The issue's goals; the whole table is printed before."""
    below = os.environ.get(FOLDER)
    if not below or not (repositories := list(listed("report", Path(below)))):
        names = ", ".join(name for own in split()["report"].values() for name in own)
        return [Figure("localisation", None, "", note=f"set {FOLDER} to a folder with full clones of {names}")]
    with tempfile.TemporaryDirectory() as scratch:
        cache = Path(os.environ.get(CACHE) or scratch)
        most = split()["commits_per_report_repository"]
        answers: list[CaseResult] = []
        for one in repositories:
            answers += _answers(one.name, one.language, one.folder, most, cache)
    return figures(answers)


def _answers(name: str, language: str, folder: Path, most: int, cache: Path) -> list[CaseResult]:
    kept = cache / f"{name.replace('/', '+')}.{most}.answers"
    if not kept.exists():
        found = list(evaluate(Repository.open(folder), name, most=most, language=language, cache=cache))
        kept.write_bytes(pickle.dumps(found))
    return pickle.loads(kept.read_bytes())


def figures(answers: Sequence[CaseResult]) -> list[Figure]:
    """Of all answers and of those whose message names no file."""
    unnamed = [answer for answer in answers if not names_a_file(answer.case)]
    _localisation(answers, "all messages")
    _localisation(unnamed, "messages that name no file")
    _by_repository(answers)
    _ablation(answers)
    _calibration(answers)
    own = measures([weighed(answer, shipped()) for answer in answers])
    other = measures([weighed(answer, shipped()) for answer in unnamed])
    assert own is not None
    assert other is not None
    found = [
        Figure("localisation, commits", own.cases, "", floor=150),
        Figure("hit@1", own.hit_at_1, "", floor=0.72),
        Figure("hit@5", own.hit_at_5, "", floor=0.92),
        Figure("MRR", own.mrr, "", floor=0.80),
        Figure("no file named: hit@1", other.hit_at_1, "", note=f"{other.cases} commits"),
        Figure("no file named: hit@5", other.hit_at_5, ""),
        Figure("no file named: MRR", other.mrr, ""),
    ]
    for rival in RIVALS:
        for label, chosen in (("MRR above", answers), ("no file named: MRR above", unnamed)):
            gain = _gain(chosen, rival)
            note = f"95 % interval {gain.low:+.3f} to {gain.high:+.3f}, paired; its lower end is the figure"
            found.append(Figure(f"{label} {rival}", gain.low, "", floor=0.0001, note=note))
    return found


def names_a_file(case: EvaluationCase) -> bool:
    """Whether the message has the stem of a true file, however it is written: "path parser" is `path_parser`."""
    message, *stems = (
        re.sub(r"[^a-z0-9]", "", text.lower()) for text in (case.prompt, *(Path(path).stem for path in case.truth))
    )
    return any(stem in message for stem in stems if stem)


def weighed(answer: CaseResult, weights: FeatureWeights) -> CaseScore:
    """The outcome that the method `default` would have had with these weights."""
    order = np.argsort(-weights.scores(answer.candidates.values), kind="stable")[:MAX_RANKED]
    places = [at for at, candidate in enumerate(order.tolist(), 1) if answer.true[candidate]]
    found = sum(at <= 5 for at in places) / len(answer.case.truth)
    return CaseScore(answer.case.repository, places[0] if places else None, found)


def confidence(answer: CaseResult, weights: FeatureWeights) -> float:
    """How sure the method `default` would have been with these weights."""
    scores = weights.scores(answer.candidates.values)
    order = np.argsort(-scores, kind="stable")
    cover = float(answer.candidates.values[order[0], NAMES.index("cover")])
    return weights.hit_probability(softmax(scores)[order], cover, answer.files)


def _outcomes(answers: Sequence[CaseResult], name: str) -> list[CaseScore]:
    if name == "default":
        return [weighed(answer, shipped()) for answer in answers]
    return [answer.outcomes[name] for answer in answers]


def _gain(answers: Sequence[CaseResult], rival: str) -> Difference:
    return _paired(_outcomes(answers, "default"), _outcomes(answers, rival))


def _paired(ones: Sequence[CaseScore], others: Sequence[CaseScore]) -> Difference:
    return paired(
        [one.reciprocal for one in ones], [one.reciprocal for one in others], [one.repository for one in ones]
    )


def _localisation(answers: Sequence[CaseResult], title: str) -> None:
    table = Table(
        "", "hit@1", "hit@5", "recall@5", "MRR", "default − this: MRR", title=f"{title} ({len(answers)})"
    )
    names = ["random", "BM25 path + content", "i′", "clarte", "default"]
    for name in names:
        found = measures(_outcomes(answers, name))
        if found is None:
            continue
        gain = "" if name == "default" else _said(_gain(answers, name))
        cells = (found.hit_at_1, found.hit_at_5, found.recall_at_5, found.mrr)
        table.add_row(name, *(f"{cell:.3f}" for cell in cells), gain)
    _print(table)


def _by_repository(answers: Sequence[CaseResult]) -> None:
    table = Table("repository", "commits", "files", "hit@1", "hit@5", "MRR", "MRR of i′", "MRR of clarte")
    for name in dict.fromkeys(answer.case.repository for answer in answers):
        own = [answer for answer in answers if answer.case.repository == name]
        found = {method: measures(_outcomes(own, method)) for method in ("default", "i′", "clarte")}
        best = found["default"]
        assert best is not None
        table.add_row(
            name, str(len(own)), str(max(answer.files for answer in own)), f"{best.hit_at_1:.3f}",
            f"{best.hit_at_5:.3f}", *(f"{one.mrr:.3f}" for one in found.values() if one),
        )  # fmt: skip
    _print(table)


def _ablation(answers: Sequence[CaseResult]) -> None:
    if not ABLATIONS.exists():
        return
    variants: Mapping[str, Mapping[str, float]] = json.loads(ABLATIONS.read_text("utf-8"))
    table = Table(
        "without", "hit@1", "hit@5", "MRR", "all of it − this: MRR", title="each part taken out, learnt anew"
    )
    own = _outcomes(answers, "default")
    for part, weights in variants.items():
        outcomes = [weighed(answer, _weights(weights)) for answer in answers]
        found = measures(outcomes)
        if found is not None:
            cells = (found.hit_at_1, found.hit_at_5, found.mrr)
            table.add_row(part, *(f"{cell:.3f}" for cell in cells), _said(_paired(own, outcomes)))
    _print(table)


def _weights(by_feature: Mapping[str, float]) -> FeatureWeights:
    none = Confidence(intercept=0, mass=0, cover=0, files=0, abstains_below=0)
    return FeatureWeights.of(ShippedWeights(weights=by_feature, confidence=none, trained={}))


def _calibration(answers: Sequence[CaseResult]) -> None:
    """How often the first five held a true file, by how sure the method said it was."""
    pairs = [(confidence(answer, shipped()), weighed(answer, shipped()).hit(5)) for answer in answers]
    table = Table("confidence", "commits", "said", "found", title="calibration")
    for low, high in ((0.0, 0.5), (0.5, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 0.95), (0.95, 1.01)):
        own = [(said, hit) for said, hit in pairs if low <= said < high]
        if own:
            said, hit = (sum(column) / len(own) for column in zip(*own, strict=True))
            table.add_row(f"{low:.2f} to {min(high, 1):.2f}", str(len(own)), f"{said:.3f}", f"{hit:.3f}")
    brier = sum((said - hit) ** 2 for said, hit in pairs) / max(len(pairs), 1)
    table.caption = f"Brier score {brier:.3f}"
    _print(table)


def _said(one: Difference) -> str:
    return f"{one.mean:+.3f} ({one.low:+.3f} to {one.high:+.3f})"


def _print(table: Table) -> None:
    Console(width=max(Console().width, 110)).print(table)
