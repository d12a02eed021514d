"""Comparisons of conditions: exact, stratified, paired over tasks; for these tasks and for tasks like these.

Counts come as passes_a, trials_a, passes_b, trials_b: a the treatment, b the control, effects a − b, and "greater"
means that a passes more often. Tests of one table (`fisher`, `boschloo`, `barnard`, `mcnemar`) are elementwise:
scalars give a `Test`, arrays `Tests`. All others take one stratum (task) per entry, shape (T,). `ValueError` for
counts that cannot be: negative, fractional, not finite, more passes than trials.
"""

from trialfleet_analysis.comparisons.conditional import conditional_odds_ratio, stratified_exact
from trialfleet_analysis.comparisons.contrast import linear_contrast
from trialfleet_analysis.comparisons.equivalence import Equivalence, equivalence
from trialfleet_analysis.comparisons.fisher import fisher, fisher_rejects
from trialfleet_analysis.comparisons.heterogeneity import (
    Heterogeneity,
    VarianceComponents,
    gail_simon,
    heterogeneity,
    variance_components,
)
from trialfleet_analysis.comparisons.mantel_haenszel import (
    ChiSquared,
    breslow_day,
    cochran_mantel_haenszel,
    mantel_haenszel_odds_ratio,
)
from trialfleet_analysis.comparisons.paired import PairedT, paired_t_on_tasks
from trialfleet_analysis.comparisons.pairs import mcnemar
from trialfleet_analysis.comparisons.unconditional import Convention, boschloo, boschloo_rejects
from trialfleet_analysis.comparisons.wald import barnard

__all__ = [
    "ChiSquared",
    "Convention",
    "Equivalence",
    "Heterogeneity",
    "PairedT",
    "VarianceComponents",
    "barnard",
    "boschloo",
    "boschloo_rejects",
    "breslow_day",
    "cochran_mantel_haenszel",
    "conditional_odds_ratio",
    "equivalence",
    "fisher",
    "fisher_rejects",
    "gail_simon",
    "heterogeneity",
    "linear_contrast",
    "mantel_haenszel_odds_ratio",
    "mcnemar",
    "paired_t_on_tasks",
    "stratified_exact",
    "variance_components",
]
