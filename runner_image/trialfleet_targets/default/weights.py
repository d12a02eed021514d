"""The weights that were trained on other repositories, shipped as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from pydantic import BaseModel

from trialfleet_targets.arrays import Floats
from trialfleet_targets.default.features import NAMES

FILE = "weights.json"


class Confidence(BaseModel, frozen=True, extra="forbid"):
    """Logistic regression of "a true file is among the first five" on properties of the ranking, fitted on commits
    of repositories that are not in the training set of the weights."""

    intercept: float
    mass: float  # of the log-odds of the first five together
    cover: float  # of the share of the request's words that the first file has
    files: float  # of the logarithm of how many files there were
    abstains_below: float


class ShippedWeights(BaseModel, frozen=True, extra="forbid"):
    """`weights`: by feature; one that is missing counts nothing. `trained`: on what, for a reader."""

    weights: Mapping[str, float]
    confidence: Confidence
    trained: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class FeatureWeights:
    """`by_feature`: in the order of the features' names."""

    by_feature: Floats
    confidence: Confidence

    @classmethod
    def of(cls, shipped: ShippedWeights) -> FeatureWeights:
        """Raises ValueError for a weight of no feature."""
        unknown = shipped.weights.keys() - set(NAMES)
        if unknown:
            raise ValueError(f"{FILE}: no such feature: {', '.join(sorted(unknown))}")
        return cls(np.array([shipped.weights.get(name, 0.0) for name in NAMES]), shipped.confidence)

    def scores(self, values: Floats) -> Floats:
        """One score for each row of features."""
        return np.asarray(values @ self.by_feature, dtype=np.float64)

    def hit_probability(self, probabilities: Floats, cover: float, files: int) -> float:
        """The calibrated probability that a true file is among the first five. `probabilities`: of each file to be
        the true one, best first. `cover`: of the first. `files`: that could have been named."""
        fitted = self.confidence
        odds = (
            fitted.intercept
            + fitted.mass * log_odds(float(probabilities[:5].sum()))
            + fitted.cover * cover
            + fitted.files * float(np.log1p(files))
        )
        return float(1 / (1 + np.exp(-odds)))


def log_odds(probability: float) -> float:
    """Log-odds of a probability, clipped away from 0 and 1."""
    inside = min(max(probability, 1e-3), 1 - 1e-3)
    return float(np.log(inside / (1 - inside)))


def softmax(scores: Floats) -> Floats:
    """
    >>> softmax(np.array([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """
    raised = np.exp(scores - scores.max(initial=-np.inf))
    return np.asarray(raised / raised.sum(), dtype=np.float64)


@cache
def shipped() -> FeatureWeights:
    """Those in the package."""
    text = resources.files("trialfleet_targets.default").joinpath(FILE).read_text("utf-8")
    return FeatureWeights.of(ShippedWeights.model_validate_json(text))
