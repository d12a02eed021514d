"""The model gateway: key, counts, budget, breaker and canary of one attempt."""

from trialfleet_runner.gateway.account import Budget
from trialfleet_runner.gateway.canary import Canaries
from trialfleet_runner.gateway.gateway import Gateway, url_at
from trialfleet_runner.gateway.prices import Price
from trialfleet_runner.gateway.report import GatewayReport, ProviderError
from trialfleet_runner.gateway.upstream import Upstream

__all__ = ["Budget", "Canaries", "Gateway", "GatewayReport", "Price", "ProviderError", "Upstream", "url_at"]
