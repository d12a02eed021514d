"""No behaviour of an agent is a loss or a halt while its provider is healthy; the control is one that is not."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from tests.support.agent_behaviours import (
    CLAIMS,
    Behaviour,
    claiming_call,
    draw_behaviour,
    healthy_provider,
    loss_of,
)
from trialfleet_ledger.records.verdicts import HaltScope, Loss, LossClass
from trialfleet_sandbox.protocol import Exit

BEHAVIOURS = 100  # `python -m tests.bench behaviours` plays 10,000


def test_no_behaviour_is_a_loss(tmp_path: Path) -> None:
    with healthy_provider() as provider:
        for seed in range(BEHAVIOURS):
            behaviour = draw_behaviour(random.Random(seed))
            loss = loss_of(behaviour, provider, tmp_path / str(seed))
            assert loss is None, (seed, loss, behaviour)


def test_honest_trials_beside_them_have_their_verdicts(tmp_path: Path) -> None:
    """At the same provider, at the same time."""
    honest = Behaviour("command", (claiming_call(""),) * 3, b"done\n", b"", Exit(0, "itself", 1.0, 1.0))
    over = threading.Event()
    lost: list[Loss | None] = []

    def work_honestly() -> None:
        while not over.is_set():
            lost.append(loss_of(honest, provider, tmp_path / f"honest-{len(lost)}"))

    with healthy_provider() as provider:
        beside = threading.Thread(target=work_honestly)
        beside.start()
        try:
            for seed in range(BEHAVIOURS // 4):
                loss_of(draw_behaviour(random.Random(f"beside-{seed}")), provider, tmp_path / str(seed))
        finally:
            over.set()
            beside.join(60)
    assert len(lost) >= 5
    assert lost == [None] * len(lost)


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


@pytest.mark.parametrize("first", [True, False], ids=["before any answer", "after the first answer"])
@pytest.mark.parametrize("claim", CLAIMS, ids=range(len(CLAIMS)))
def test_a_claim_of_undeclared_context_counts_before_the_first_answer_only(
    tmp_path: Path, claim: str, *, first: bool
) -> None:
    """Before it, only the agent's program can have sent it. The control is the same claim in its first request."""
    calls = (claiming_call(claim),) if first else (claiming_call(""), claiming_call(claim))
    behaviour = Behaviour("command", calls, b"", b"", Exit(0, "itself", 1.0, 1.0))
    with healthy_provider() as provider:
        loss = loss_of(behaviour, provider, tmp_path)
    assert (loss is not None and loss.loss is LossClass.CONTAMINATED) is first


def test_another_contexts_text_is_a_loss_at_any_time(tmp_path: Path) -> None:
    line = "Vouchers are looked up by their number, and one that was used never again."
    calls = (claiming_call(""), claiming_call(line))
    with healthy_provider() as provider:
        loss = loss_of(Behaviour("command", calls, b"", b"", Exit(0, "itself", 1.0, 1.0)), provider, tmp_path)
    assert loss is not None
    assert loss.loss is LossClass.CONTAMINATED
