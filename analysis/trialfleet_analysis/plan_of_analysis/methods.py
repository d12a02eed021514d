"""Which method made which number."""

from __future__ import annotations

from trialfleet_analysis.plan_of_analysis.columns import Scheme
from trialfleet_analysis.report.document.outlook import Method

METHODS: tuple[tuple[str, str], ...] = (
    ("a cell's rate", "Wilson's score interval; Clopper and Pearson's exact one beside it"),
    (
        "a condition's rate, these tasks",
        "mean of the tasks' rates; Wilson's interval at the effective sample size",
    ),
    ("a condition's rate, tasks like these", "hierarchical beta-binomial model, flat priors, summed on a grid"),
    ("a contrast, these tasks", "exact conditional test with tasks as strata, central mid-p"),
    ("its difference", "stratified Miettinen-Nurminen interval, equal weights"),
    ("its odds ratio", "conditional maximum likelihood, mid-p limits"),
    ("its companion by block", "McNemar's mid-p test over complete task × block pairs"),
    ("a contrast, tasks like these", "paired t-test on the tasks' differences"),
    ("other contrasts, interactions", "Holm's correction in the named family"),
    ("heterogeneity", "moment estimate of the effect's SD; Breslow and Day; Gail and Simon"),
    ("subgroups", "exact conditional interaction test, mid-p; Welch's t on task differences"),
    ("equivalence", "two one-sided tests: Miettinen and Nurminen's score at the margin; paired t-tests"),
    ("each task", "Fisher's exact test, Benjamini and Hochberg's correction after Tarone's exclusion"),
    ("losses", "complete case, lost as failed, worst and best case on first agent-started attempts"),
    ("loss rates by condition", "Freeman and Halton's exact test"),
    ("metrics, these tasks", "permutation of ranks within tasks; percentile bootstrap over reps"),
    ("metrics, tasks like these", "exact signed-rank test (Pratt) and Hodges and Lehmann's estimate over tasks"),
    ("cost per pass", "ratio of sums; percentile bootstrap of the log ratio"),
    ("time to a pass", "cumulative incidence with failure competing; restricted mean, failures at the limit"),
    ("first edit, phases", "median over tasks' medians, bootstrap over trials; mean share with Satterthwaite's t"),
    ("turns after the first edit", "regression with task and condition effects; HC3; jackknife over tasks"),
    ("drift", "Cochran-Mantel-Haenszel by halves; Kruskal and Wallis; lag-1 autocorrelation by permutation"),
    ("what could be detected", "normal approximation from variance components"),
    ("power at the declared effect", "simulation with the test that analyses"),
    ("pass@k, pass^k", "unbiased per task, t interval over tasks"),
)


def methods(scheme: Scheme) -> tuple[Method, ...]:
    """In the order of the report; the seed that all chance in it comes from is the campaign's."""
    found = tuple(Method(number, method) for number, method in METHODS)
    return (*found, Method("resampling", f"seeds derived from the campaign's seed, {scheme.seed}"))
