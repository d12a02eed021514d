"""Comparisons of conditions: exact, stratified, paired over tasks; for these tasks and for tasks like these.

Counts come as passes_a, trials_a, passes_b, trials_b: a the treatment, b the control, effects a − b, and "greater"
means that a passes more often. Tests of one table (`fisher`, `boschloo`, `barnard`, `mcnemar`) are elementwise:
scalars give a `Test`, arrays an `ArrayTest`. All others take one stratum (task) per entry, shape (T,). Raises
`ValueError` for counts that cannot be: negative, fractional, not finite, more passes than trials.
"""

from trialfleet_statistics.comparisons.conditional import (
    StratifiedTest,
    conditional_odds_ratio,
    stratified_exact,
)
from trialfleet_statistics.comparisons.fisher import fisher, fisher_rejects, mcnemar
from trialfleet_statistics.comparisons.heterogeneity import (
    ChiSquared,
    Heterogeneity,
    VarianceComponents,
    breslow_day,
    cochran_mantel_haenszel,
    gail_simon,
    heterogeneity,
    mantel_haenszel_odds_ratio,
    variance_components,
)
from trialfleet_statistics.comparisons.paired import (
    EquivalenceTest,
    PairedT,
    equivalence,
    linear_contrast,
    paired_t_on_tasks,
)
from trialfleet_statistics.comparisons.repositories import (
    Claim,
    RepositoriesTest,
    mean_over_repositories,
)
from trialfleet_statistics.comparisons.unconditional import (
    Convention,
    barnard,
    boschloo,
    boschloo_rejects,
    midp_size,
)

__all__ = [
    "ChiSquared",
    "Claim",
    "Convention",
    "EquivalenceTest",
    "Heterogeneity",
    "PairedT",
    "RepositoriesTest",
    "StratifiedTest",
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
    "mean_over_repositories",
    "midp_size",
    "paired_t_on_tasks",
    "stratified_exact",
    "variance_components",
]
