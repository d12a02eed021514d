"""Under a money limit, a campaign whose models have no known price is refused before anything starts."""

from __future__ import annotations

from typing import Any

import pytest

from trialfleet_agents.protocol import Identity
from trialfleet_controller.planning.model_check import check_price
from trialfleet_deliveries.reach import Reach
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec, Limits

OWN = {"input": 1, "output": 1, "cache_read": 1, "cache_write": 1, "cache_write_1h": 1}


def check(model: str | None, cost_usd: float | None = 1, **options: Any) -> None:
    identity = Identity(kind="command", version="1", model=model, digest="0" * 64, needs_model=True, reach=Reach())
    check_price(identity, AgentSpec(kind="command", model=model, options=options), Limits(cost_usd=cost_usd))


@pytest.mark.parametrize(
    ("model", "options", "where"),
    [
        ("house-model", {}, "agent: model"),
        ("gpt-5.2", {"model_ids": {"house-model": "x"}}, "agent: options: model_ids"),
        (None, {"model_ids": {"house-model": "x"}}, "agent: options: model_ids"),
    ],
)
def test_a_model_without_a_price_is_refused_where_it_is_named(
    model: str | None, options: dict[str, Any], where: str
) -> None:
    with pytest.raises(OperatorError, match="the price of 'house-model' is not known") as refused:
        check(model, **options)
    assert refused.value.where == where
    check(model, None, **options)
    check(model, **options, prices={"house-model": OWN})
