"""Which agents crashed: those that never began to work."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import records
from trialfleet_ledger.records.measurements import Delivery
from trialfleet_ledger.records.verdicts import Stop, Verdict
from trialfleet_runner.attempt import patch_record
from trialfleet_runner.attempt.crash import has_crashed
from trialfleet_runner.metrics import verdict
from trialfleet_sandbox.protocol import Exit

Cause = Literal["itself", "timeout", "memory", "disk", "stopped"]
CAUSES: tuple[Cause, ...] = ("itself", "timeout", "memory", "disk", "stopped")


def ended(cause: Cause, code: int) -> Exit:
    return Exit(code, cause, 1.0, None)


@given(st.sampled_from(CAUSES), st.integers(0, 255), st.integers(0, 3), st.booleans())
def test_an_agent_with_a_model_crashed_only_without_a_request(
    cause: Cause, code: int, requests: int, acted: bool
) -> None:
    """Neither its exit code nor what it says it did can tell."""
    crashed = has_crashed(ended(cause, code), requests=requests, acted=acted)
    assert crashed == (requests == 0 and cause in ("itself", "timeout"))


@given(st.sampled_from(CAUSES), st.integers(0, 255), st.booleans())
def test_an_agent_without_a_gateway_crashed_only_by_an_error_before_it_acted(
    cause: Cause, code: int, acted: bool
) -> None:
    crashed = has_crashed(ended(cause, code), requests=None, acted=acted)
    assert crashed == (cause == "itself" and code != 0 and not acted)


@pytest.mark.parametrize("requests", [None, 0, 1])
def test_what_runs_nothing_never_crashes(requests: int | None) -> None:
    assert not has_crashed(None, requests=requests, acted=False)


@given(st.booleans(), st.booleans())
def test_a_crash_is_a_failure_even_if_the_tests_pass(passed: bool, late: bool) -> None:
    assert verdict(Stop.CRASHED, passed=passed, tests_timed_out=late) is Verdict.FAILED


@pytest.mark.parametrize(("requests", "stop"), [(0, Stop.CRASHED), (1, Stop.ERROR), (None, Stop.ERROR)])
def test_an_agent_that_left_what_cannot_be_read_crashed_by_the_same_rule(requests: int | None, stop: Stop) -> None:
    intent = records.intent()
    grants: Any = SimpleNamespace(
        plan=intent.plan, trial=records.trial(), attempt=intent.attempt, intent_nonce=intent.nonce
    )
    gateway = None if requests is None else SimpleNamespace(received=requests, throttled_s=0.0)
    run: Any = SimpleNamespace(exit=ended("itself", 1), gateway=gateway, stop=Stop.ERROR)
    ready: Any = SimpleNamespace(composed=SimpleNamespace(delivery=Delivery()))
    assert patch_record.empty_patch(grants, ready, run).stop is stop
