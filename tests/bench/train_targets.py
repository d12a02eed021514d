"""Learns the weights that the method `default` ships, from older commits of the training repositories.

    python -m tests.bench.train_targets FOLDER --cache FOLDER [--commits N]

FOLDER holds the repositories of `targets_split.json`. Everything that is learnt comes from their commits alone;
each is asked for with an index of its parent. Two steps: features of each commit's candidates (kept in the cache,
so that a second run is quick), then the weights. The listwise likelihood is maximised: a file that was changed is
drawn first, by a softmax over the candidates of its commit, each commit counting once.
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from tests.bench.bench_targets import ABLATIONS, names_a_file
from tests.bench.targets_repositories import Listed, listed, split
from trialfleet_targets.arrays import Stored
from trialfleet_targets.default.features import NAMES, PARTS, FeatureExtractor
from trialfleet_targets.default.prepare import prepare
from trialfleet_targets.default.weights import log_odds, softmax
from trialfleet_targets.errors import TargetsError
from trialfleet_targets.evaluation.cases import EvaluationCase, cases, family
from trialfleet_targets.evaluation.metrics import paired
from trialfleet_targets.repository import Repository
from trialfleet_targets.snapshot import Snapshot
from trialfleet_targets.snapshot_reader import snapshot_at

Floats = npt.NDArray[np.float64]
RIDGE = 0.01
OFF = frozenset(PARTS["names"])  # features that did not help
ABSTAINS_BELOW = 0.5  # more likely wrong than right
BINS = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)


@dataclass(frozen=True)
class Asked:
    """One commit: features of its candidates and which of them it changed."""

    case: EvaluationCase
    values: npt.NDArray[np.float32]
    true: npt.NDArray[np.bool_]
    candidates: int


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--commits", type=int, default=split()["commits_per_train_repository"])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--ablate", action="store_true", help="what each part brings, by language")
    chosen = parser.parse_args(arguments)
    for repository in listed("train", chosen.folder):
        if not chosen.only or repository.name in chosen.only:
            kept = chosen.cache / f"{repository.name.replace('/', '+')}.features"
            if not kept.exists():
                began = time.perf_counter()
                found = list(asked(repository, chosen.commits, chosen.cache))
                kept.write_bytes(pickle.dumps(found))
                print(f"{repository.name}: {len(found)} commits, {time.perf_counter() - began:.0f} s", flush=True)
    features = [one for path in sorted(chosen.cache.glob("*.features")) for one in pickle.loads(path.read_bytes())]
    if chosen.ablate:
        by_language(features)
    if chosen.out:
        chosen.out.write_text(json.dumps(learnt(features), indent=1) + "\n", "utf-8")
        ABLATIONS.write_text(json.dumps(ablations(features), indent=1) + "\n", "utf-8")
    return 0


def asked(listed: Listed, most: int, cache: Path) -> Iterable[Asked]:
    """The newest commits of a repository that may be asked for, oldest first: each index grows out of the last."""
    repository = Repository.open(listed.folder)
    before: Stored | None = None
    for case in reversed(cases(repository, listed.name, most, language=listed.language)):
        try:
            read = snapshot_at(repository, case.parent, cache=cache)
        except TargetsError:  # a partial clone without some of the files
            continue
        files = {path: file for path, file in read.files.items() if family(path) == case.language}
        before = prepare(Snapshot(read.commit, read.time, files, (), read.history), before)
        extractor = FeatureExtractor(before)
        candidates = extractor.candidates(case.prompt)
        true = np.array([extractor.paths[file] in case.truth for file in candidates.files])
        yield Asked(case, candidates.values.astype(np.float32), true, len(extractor.paths))


def learnt(rows: Sequence[Asked]) -> dict[str, Any]:
    """What `weights.json` holds. The confidence is fitted on commits of repositories that were left out."""
    scored = left_out(rows)
    report(scored)
    reliability(scored)
    weights = fit(rows)
    return {
        "trained": {
            "repositories": sorted({row.case.repository for row in rows}),
            "commits": len(rows),
            "ridge": RIDGE,
        },
        "weights": _named(weights),
        "confidence": confidence(scored),
    }


def left_out(rows: Sequence[Asked], *, without: frozenset[str] = frozenset()) -> list[tuple[Asked, Floats]]:
    """Scores of each commit's candidates, with weights of all repositories but its own; by repository."""
    scored: list[tuple[Asked, Floats]] = []
    for repository in sorted({row.case.repository for row in rows}):
        weights = fit([row for row in rows if row.case.repository != repository], without=without)
        scored += [(row, row.values @ weights) for row in rows if row.case.repository == repository]
    return scored


def by_language(rows: Sequence[Asked]) -> None:
    """What each part brings where: a part that helps on no language is to be off."""
    whole = left_out(rows)
    languages = [row.case.language for row, _ in whole]
    for part, names in PARTS.items():
        if OFF.issuperset(names):
            continue
        less = left_out(rows, without=frozenset(names))
        said = [f"all {_gain(whole, less)}"]
        for language in sorted(set(languages)):
            own = [at for at, one in enumerate(languages) if one == language]
            said.append(f"{language} {_gain([whole[at] for at in own], [less[at] for at in own])}")
        print(f"{part:10}", "; ".join(said), flush=True)


def _gain(ones: Sequence[tuple[Asked, Floats]], others: Sequence[tuple[Asked, Floats]]) -> str:
    """Of MRR."""
    found = paired(
        *(list(map(_reciprocal, scored)) for scored in (ones, others)), [r.case.repository for r, _ in ones]
    )
    return f"{found.mean:+.3f} ({found.low:+.3f} to {found.high:+.3f})"


def _reciprocal(scored: tuple[Asked, Floats]) -> float:
    row, scores = scored
    at = first(row.true, scores)
    return 1 / at if at else 0.0


def ablations(rows: Sequence[Asked]) -> dict[str, dict[str, float]]:
    """By part that is on, the weights that are learnt without it; the bench holds them against all of them."""
    return {
        part: _named(fit(rows, without=frozenset(names)))
        for part, names in PARTS.items()
        if not OFF.issuperset(names)
    }


def _named(weights: Floats) -> dict[str, float]:
    return {name: round(float(weight), 5) for name, weight in zip(NAMES, weights, strict=True) if weight}


def fit(rows: Sequence[Asked], *, without: frozenset[str] = frozenset()) -> Floats:
    """Weights by feature that maximise the mean log likelihood of drawing a true file, less the ridge."""
    used = [row for row in rows if row.true.any()]
    values = np.concatenate([row.values for row in used]).astype(np.float64)
    scale = values.std(axis=0)
    kept = np.array([name not in OFF | without for name in NAMES]) & (scale > 0)
    scaled = np.where(kept, values / np.where(scale > 0, scale, 1.0), 0.0)
    true = np.concatenate([row.true for row in used]).astype(np.float64)
    sizes = np.array([len(row.true) for row in used])
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    owner = np.repeat(np.arange(len(used)), sizes)

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = scaled @ weights
        raised = np.exp(scores - np.maximum.reduceat(scores, starts)[owner])
        drawn = raised / np.add.reduceat(raised, starts)[owner]
        right = np.maximum(np.add.reduceat(drawn * true, starts), 1e-12)
        slope = scaled.T @ (drawn - drawn * true / right[owner]) / len(used)
        return float(-np.log(right).mean() + RIDGE * weights @ weights), slope + 2 * RIDGE * weights

    found = minimize(loss, np.zeros(len(NAMES)), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    return np.where(kept, found.x / np.where(scale > 0, scale, 1.0), 0.0)


def confidence(scored: Sequence[tuple[Asked, Floats]]) -> dict[str, float]:
    """Logistic regression of a hit among the first five."""
    found = _logistic(*_outcomes(scored))
    names = ("intercept", "mass", "cover", "files")
    return dict(zip(names, (round(float(one), 4) for one in found), strict=True)) | {
        "abstains_below": ABSTAINS_BELOW
    }


def reliability(scored: Sequence[tuple[Asked, Floats]]) -> None:
    """What confidences say and how often it is so, each fitted without the repository that it is asked about."""
    owners = np.array([row.case.repository for row, _ in scored])
    inputs, hits = _outcomes(scored)
    said = np.zeros(len(hits))
    for name in sorted(set(owners.tolist())):
        own = owners == name
        said[own] = 1 / (1 + np.exp(-inputs[own] @ _logistic(inputs[~own], hits[~own])))
    for low, high in pairwise(BINS):
        own = (said >= low) & (said < high)
        if own.any():
            print(
                f"{low:.2f} to {high:.2f}  n {own.sum()} said {said[own].mean():.3f} found {hits[own].mean():.3f}"
            )
    print(f"Brier score {np.mean((said - hits) ** 2):.3f}", flush=True)


def _outcomes(scored: Sequence[tuple[Asked, Floats]]) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Of each commit what its confidence is made of, (commit, input), and whether the first five had a hit."""
    inputs: list[tuple[float, float, float, float]] = []
    hits: list[bool] = []
    for row, scores in scored:
        order = np.argsort(-scores, kind="stable")
        mass = log_odds(float(softmax(scores)[order[:5]].sum()))
        cover = float(row.values[order[0], NAMES.index("cover")])
        inputs.append((1.0, mass, cover, float(np.log1p(row.candidates))))
        hits.append(bool(row.true[order[:5]].any()))
    return np.array(inputs), np.array(hits)


def _logistic(inputs: Floats, hits: npt.NDArray[np.bool_]) -> Floats:
    sign = np.where(hits, 1.0, -1.0)

    def loss(weights: Floats) -> float:
        return float(np.logaddexp(0, -sign * (inputs @ weights)).mean() + 1e-4 * weights[1:] @ weights[1:])

    return np.asarray(minimize(loss, np.zeros(inputs.shape[1]), method="L-BFGS-B").x, dtype=np.float64)


def report(scored: Sequence[tuple[Asked, Floats]]) -> None:
    """The trained order beside the first stage's, on repositories that were left out."""
    column = NAMES.index("first_stage")
    for label, chosen in (
        ("all", scored),
        ("no name", [pair for pair in scored if not names_a_file(pair[0].case)]),
    ):
        _print(f"{label:8} first stage", [first(row.true, row.values[:, column]) for row, _ in chosen])
        _print(f"{label:8} learnt     ", [first(row.true, scores) for row, scores in chosen])


def _print(label: str, firsts: Sequence[int | None]) -> None:
    figures = (
        np.mean([at == 1 for at in firsts]),
        np.mean([at is not None and at <= 5 for at in firsts]),
        np.mean([1 / at if at else 0 for at in firsts]),
    )
    print(label, f"n {len(firsts)} hit@1 {figures[0]:.3f} hit@5 {figures[1]:.3f} MRR {figures[2]:.4f}", flush=True)


def first(true: npt.NDArray[np.bool_], scores: npt.NDArray[np.floating[Any]]) -> int | None:
    """Rank of the first true file, from 1."""
    places = np.flatnonzero(true[np.argsort(-scores, kind="stable")])
    return int(places[0]) + 1 if len(places) else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
