"""One outcome out of two: every failure is worse than the worst pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trialfleet_analysis.continuous.samples import coded, measured
from trialfleet_analysis.estimates import Floats


def worst_rank(values: ArrayLike, passed: ArrayLike, *, larger_is_better: bool = False) -> Floats:
    """Scores that rank trials by `values` among passes and put all failures, tied, behind the worst of them.

    `values`: shape (n,), a cost, a duration, a number of turns; what a failure has there is not read, and may be
    NaN. `passed`: 0 or 1. The answer: the passes' dense ranks from 1, ties sharing one, and for failures one more
    than the largest (0 when `larger_is_better`): order is all they mean. Give them to
    `stratified_permutation(…, statistic="rank")`: "better" is then a pass rather than a failure, and the cheaper
    of two passes. A condition that fails fast does not look quick. Source: Lachin 1999.

    Raises `ValueError` for a pass whose value is not finite.

    >>> worst_rank([30.0, 12.0, float("nan"), 30.0], [1, 1, 0, 1]).tolist()
    [2.0, 1.0, 3.0, 2.0]
    """
    of = np.asarray(values)
    is_pass = coded(passed, "passed", 2, of.size) == 1
    known = measured(of[is_pass], "values of passes")
    levels, rank = np.unique(known, return_inverse=True)
    scores = np.full(of.shape, 0.0 if larger_is_better else levels.size + 1.0)
    scores[is_pass] = rank + 1.0
    return scores
