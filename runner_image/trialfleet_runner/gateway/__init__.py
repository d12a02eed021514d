"""The model gateway: key, counts, budget, breaker and canary of one attempt."""

from trialfleet_ledger.prices import Price
from trialfleet_runner.gateway.budget import TrialBudget
from trialfleet_runner.gateway.canary import Canaries
from trialfleet_runner.gateway.gateway import Gateway, url_at
from trialfleet_runner.gateway.tally import GatewayReport, ProviderError
from trialfleet_runner.gateway.upstream import Upstream

__all__ = ["Canaries", "Gateway", "GatewayReport", "Price", "ProviderError", "TrialBudget", "Upstream", "url_at"]
