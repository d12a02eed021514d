"""How often some of k reps passes, and how often all of them do."""

from __future__ import annotations

from trialfleet_analysis.plan_of_analysis.columns import Counts, Scheme
from trialfleet_analysis.repeats import pass_at_k, pass_hat_k
from trialfleet_analysis.report.document.outlook import Repeats

KS = (1, 3, 5)


def repeats(scheme: Scheme, counts: Counts) -> tuple[Repeats, ...]:
    """For k = 1, 3 and 5, as far as every task with valid trials under the condition has that many."""
    found: list[Repeats] = []
    for place, name in enumerate(scheme.conditions):
        some = counts.valid[:, place] > 0
        passes, valid = counts.passes[some, place], counts.valid[some, place]
        ks = [k for k in KS if valid.size and k <= valid.min()]
        found += [Repeats(name, k, pass_at_k(passes, valid, k), pass_hat_k(passes, valid, k)) for k in ks]
    return tuple(found)
