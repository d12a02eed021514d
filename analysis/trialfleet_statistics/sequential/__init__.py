"""Looking at a campaign while it grows: exact group-sequential tests, futility, estimates after a stop, and bets.

Counts come as in `comparisons`: a the treatment, b the control, one stratum per entry. A campaign declares its
looks before anything runs; between them nothing may be stopped on unblinded results.
"""

from trialfleet_statistics.sequential.betting import (
    Bets,
    Pairs,
    anytime_p,
    at_all_looks,
    confidence_sequence,
    log_evidence,
    log_evidence_at,
    mean_margin,
    planned_stake,
)
from trialfleet_statistics.sequential.betting_power import BettingPower, betting_power
from trialfleet_statistics.sequential.betting_stages import BettingStages, betting_stages
from trialfleet_statistics.sequential.design import FEWEST_TASKS, SequentialDesign, Spending, spent
from trialfleet_statistics.sequential.exact import SequentialLook, least_stagewise_p, monitor, sequential_p
from trialfleet_statistics.sequential.futility import (
    Futility,
    conditional_power,
    futile,
    futility_power,
    predictive_power,
)
from trialfleet_statistics.sequential.margins import (
    MarginPower,
    MarginScores,
    margin_bounds,
    margin_power,
    margin_scores,
    paired_margin_power,
)
from trialfleet_statistics.sequential.normal import (
    crossing_probabilities,
    drift_estimate,
    normal_bounds,
    stopping_probabilities,
    upper_tail,
)
from trialfleet_statistics.sequential.permuted_means import (
    PATHS,
    MeanLook,
    MeanStage,
    PermutedMeans,
    permute_means,
)
from trialfleet_statistics.sequential.planning import SequentialPower, sequential_power
from trialfleet_statistics.sequential.reestimation import reestimated_reps
from trialfleet_statistics.sequential.revision import Revision
from trialfleet_statistics.sequential.stages import SequentialStage, stage
from trialfleet_statistics.sequential.stopped import stagewise_difference, stagewise_odds_ratio

__all__ = [
    "FEWEST_TASKS",
    "PATHS",
    "Bets",
    "BettingPower",
    "BettingStages",
    "Futility",
    "MarginPower",
    "MarginScores",
    "MeanLook",
    "MeanStage",
    "Pairs",
    "PermutedMeans",
    "Revision",
    "SequentialDesign",
    "SequentialLook",
    "SequentialPower",
    "SequentialStage",
    "Spending",
    "anytime_p",
    "at_all_looks",
    "betting_power",
    "betting_stages",
    "conditional_power",
    "confidence_sequence",
    "crossing_probabilities",
    "drift_estimate",
    "futile",
    "futility_power",
    "least_stagewise_p",
    "log_evidence",
    "log_evidence_at",
    "margin_bounds",
    "margin_power",
    "margin_scores",
    "mean_margin",
    "monitor",
    "normal_bounds",
    "paired_margin_power",
    "permute_means",
    "planned_stake",
    "predictive_power",
    "reestimated_reps",
    "sequential_p",
    "sequential_power",
    "spent",
    "stage",
    "stagewise_difference",
    "stagewise_odds_ratio",
    "stopping_probabilities",
    "upper_tail",
]
