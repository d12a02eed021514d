"""Did the campaign's hours look like its conditions? Time as a cause of its own: of passes, of losses, of balance.

Blocks in random order keep time from aligning with a condition; retries, queues and a busy cluster can undo that.
These tests say whether they did. They are diagnostics: passing them proves nothing, and with few reps they see
only gross drift. The comparison within task × block holds under any drift.

Each takes a campaign's table of trials, of which it uses the rows in complete blocks of primary tasks, or a list
of `DriftTrial`.
"""

from trialfleet_analysis.drift.autocorrelation import autocorrelation
from trialfleet_analysis.drift.balance import BalanceTest, balance
from trialfleet_analysis.drift.halves import HalvesTest, loss_drift, order_effect
from trialfleet_analysis.drift.trials import DriftTrial

__all__ = ["BalanceTest", "DriftTrial", "HalvesTest", "autocorrelation", "balance", "loss_drift", "order_effect"]
