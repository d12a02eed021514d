"""No behaviour of an agent is a loss or a halt while its provider is healthy; the control is one that is not."""

from __future__ import annotations

import random
from pathlib import Path

from tests.support.agent_behaviours import draw_behaviour, healthy_provider, loss_of
from trialfleet_ledger.records.verdicts import HaltScope, LossClass

BEHAVIOURS = 100  # `python -m tests.bench behaviours` plays 10,000


def test_no_behaviour_is_a_loss(tmp_path: Path) -> None:
    with healthy_provider() as provider:
        for seed in range(BEHAVIOURS):
            behaviour = draw_behaviour(random.Random(seed))
            loss = loss_of(behaviour, provider, tmp_path / str(seed))
            assert loss is None, (seed, loss, behaviour)


def test_a_provider_that_refuses_everybody_is_a_loss_with_any_behaviour(tmp_path: Path) -> None:
    """The control: the same behaviours, and a key that the provider has revoked."""
    seen = 0
    with healthy_provider((401, "authentication_error")) as provider:
        for seed in range(20):
            behaviour = draw_behaviour(random.Random(seed))
            loss = loss_of(behaviour, provider, tmp_path / str(seed))
            if loss is not None:
                assert (loss.loss, loss.halt) == (LossClass.PROVIDER, HaltScope.CAMPAIGN)
                seen += 1
    assert seen > 5
