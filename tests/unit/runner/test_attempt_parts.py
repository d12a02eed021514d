"""The pure parts of an attempt: why an agent stopped, what is claimed of its context, what a failure means."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from trialfleet_agents.oracle_and_nop import Nop
from trialfleet_deliveries.hook_log import Firing, HookLog
from trialfleet_deliveries.registry import gather_claims
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_ledger.records.measurements import Delivery
from trialfleet_ledger.records.receipts import Arrival, Receipt, Receipts
from trialfleet_ledger.records.verdicts import HaltScope, LossClass, Stop
from trialfleet_ledger.trajectory import Parsed
from trialfleet_runner.attempt.agent_run import refuse_witnessed, stopped
from trialfleet_runner.attempt.deadline import within
from trialfleet_runner.attempt.loss import Lost, from_exception
from trialfleet_runner.attempt.parsed_output import parse_output
from trialfleet_runner.attempt.patch_record import delivered, without
from trialfleet_runner.gateway.tally import GatewayReport
from trialfleet_runner.model_access import upstream
from trialfleet_sandbox.protocol import Exit

NO_HOOK = HookLog((), 0)


def report(**given: object) -> GatewayReport:
    base: dict[str, object] = dict.fromkeys(
        (
            *("received", "requests", "answered", "turns", "side_requests", "input_tokens", "output_tokens"),
            *("cache_read_tokens", "cache_write_tokens", "estimated_output_tokens", "error_count"),
            *("unauthorised", "interrupted", "throttled_s"),
        ),
        0,
    )
    base |= dict.fromkeys(("models", "foreign_models", "errors", "refused", "undeclared", "own_files"), ())
    base |= dict.fromkeys(
        ("cost_usd", "main_model", "provider_error", "halt", "stop", "first_request_s", "last_answer_s")
    )
    return GatewayReport.model_validate(
        {**base, "prices_as_of": "", "reached": {}, "provider_gave_up": False, **given}
    )


def exited(cause: str = "itself", code: int = 0) -> Exit:
    return Exit(code, cause, 1.0, 1.0)  # type: ignore[arg-type]


# --- what others have seen ------------------------------------------------------------------------------

CAUSES = ("itself", "timeout", "memory", "disk", "stopped")
WITNESSED: list[tuple[dict[str, object], dict[str, tuple[LossClass, HaltScope]]]] = [
    ({}, {}),
    ({"provider_error": "529 busy"}, {}),
    (
        {"provider_error": "529 busy", "provider_gave_up": True},
        {"itself": (LossClass.PROVIDER, HaltScope.NONE)},
    ),
    (
        {"provider_error": "401 no", "halt": "401 no"},
        dict.fromkeys(("itself", "timeout"), (LossClass.PROVIDER, HaltScope.CAMPAIGN)),
    ),
]


@pytest.mark.parametrize("code", [0, 1, 127, 137])
@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize(("said", "losses"), WITNESSED, ids=["nothing", "failing", "gave up", "refused"])
def test_only_what_others_have_seen_is_a_loss(
    said: dict[str, object], losses: dict[str, tuple[LossClass, HaltScope]], cause: str, code: int
) -> None:
    """With any exit code; what the program's limits ended has its verdict."""
    expected = losses.get(cause)
    if cause == "stopped":
        expected = (LossClass.TERMINATED, HaltScope.NONE)
    if expected is None:
        refuse_witnessed(report(**said), exited(cause, code), "none")
        return
    with pytest.raises(Lost) as caught:
        refuse_witnessed(report(**said), exited(cause, code), "none")
    assert (caught.value.loss, caught.value.halt) == expected


def test_output_that_breaks_its_adapter_counts_nothing(tmp_path: Path) -> None:
    class Broken(Nop):
        def parse(self, record: Path, exit: Exit | None, workspace: Path) -> Parsed:
            raise RecursionError("too deep")

    parsed, caution = parse_output(Broken(), tmp_path, exited(), tmp_path)
    assert parsed == Parsed()
    assert "RecursionError: too deep" in (caution or "")
    assert parse_output(Nop(), tmp_path, None, tmp_path)[1] is None


# --- why it stopped -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ended", "gateway", "said", "why"),
    [
        (exited("timeout", 143), Stop.COST, Stop.ERROR, Stop.TIMEOUT),
        (exited("memory", 137), Stop.COST, None, Stop.MEMORY),
        (exited(code=1), Stop.MAX_TURNS, Stop.ERROR, Stop.MAX_TURNS),
        (exited(code=1), None, Stop.MAX_TURNS, Stop.MAX_TURNS),
        (exited(code=137), None, None, Stop.ERROR),
        (exited(), None, Stop.ERROR, Stop.ERROR),
        (exited(), None, None, Stop.FINISHED),
    ],
)
def test_the_sandbox_speaks_first_then_the_gateway_then_the_agent(
    ended: Exit, gateway: Stop | None, said: Stop | None, why: Stop
) -> None:
    assert stopped(ended, report(stop=gateway), Parsed(stop=said)) is why


# --- what reached the model -----------------------------------------------------------------------------


def claimed(planned: Delivery, hook: HookLog, seen: GatewayReport | None, **shares: float) -> Delivery:
    """`shares`: of the texts `files`, `inline`, and `node`, which is the hook's."""
    order = ConditionOrder(name="c", digest="0" * 64)
    texts = tuple(
        Receipt(
            name=name.replace("node", "hook:a/AGENTS.md"),
            channel=name,
            size=100,
            share=share,
            arrival=Arrival.WHOLE if share == 1 else Arrival.IN_PART if share else Arrival.NOT_SENT,
        )
        for name, share in shares.items()
    )
    return delivered(planned, gather_claims(order, planned, hook), seen, Receipts(requests=1, receipts=texts))


def test_every_part_is_claimed_by_its_own_texts() -> None:
    planned = Delivery(files=("CLAUDE.md",), inline_tokens=9)
    hook = HookLog((Firing(1.0, "Read", "a/b.py", "a/AGENTS.md", True, 10),), 0)
    found = claimed(planned, hook, report(answered=1, turns=1), files=1.0, inline=0.25, node=0.0)
    assert found.reached_model == {"files": True, "inline": False, "hook": False}
    assert found.sent_share == {"files": 1.0, "inline": 0.25, "hook": 0.0}


def test_without_a_model_or_an_answer_nothing_is_claimed() -> None:
    planned = Delivery(files=("CLAUDE.md",))
    for gateway in (None, report(requests=3)):
        assert claimed(planned, NO_HOOK, gateway, files=1.0).reached_model == {"files": None}


def test_files_without_a_word_prove_nothing() -> None:
    found = claimed(Delivery(files=("a.png",)), NO_HOOK, report(answered=1, turns=1))
    assert (found.reached_model, found.sent_share) == ({"files": None}, {})


def test_a_forged_hook_log_claims_nothing() -> None:
    hook = HookLog((Firing(1.0, "Read", "x", "no/such/AGENTS.md", True, 1),), 0)
    assert claimed(Delivery(), hook, report(answered=1, turns=1)).reached_model == {"hook": None}


def test_a_secret_in_a_diff_is_masked_line_by_line() -> None:
    diff = "@@ -0,0 +1,2 @@\n+TOKEN=tf-0123456789\n+x\n"
    assert without({"tf-0123456789"}, diff) == "@@ -0,0 +1,2 @@\n+TOKEN=[redacted]\n+x\n"


# --- what a failure means -------------------------------------------------------------------------------


def _cp_without_room() -> Exception:
    return subprocess.CalledProcessError(1, "cp", stderr="cp: write error: No space left on device")


@pytest.mark.parametrize(
    ("error", "loss", "halt"),
    [
        (OSError(28, "No space left on device"), LossClass.HOST_FULL, HaltScope.NONE),
        (_cp_without_room(), LossClass.HOST_FULL, HaltScope.NONE),
        (Lost(LossClass.SETUP, "uv: No space left on device", halt=HaltScope.TASK), LossClass.HOST_FULL, "none"),
        (Lost(LossClass.PROVIDER, "500 No space left on device"), LossClass.PROVIDER, HaltScope.NONE),
        (Lost(LossClass.SETUP, "no such tree", halt=HaltScope.TASK), LossClass.SETUP, HaltScope.TASK),
        (OperatorError("/out: Permission denied"), LossClass.SETUP, HaltScope.CAMPAIGN),
        (KeyError("x"), LossClass.RUNNER, HaltScope.NONE),
    ],
)
def test_a_failure_is_the_loss_that_it_stands_for(error: Exception, loss: LossClass, halt: HaltScope) -> None:
    found = from_exception(error, agent_started=True)
    assert (found.loss, found.halt) == (loss, halt)


def test_a_runner_that_breaks_before_the_agent_halts() -> None:
    assert from_exception(KeyError("x"), agent_started=False).halt is HaltScope.CAMPAIGN


def test_a_message_can_be_stored_whatever_it_names() -> None:
    found = from_exception(ValueError("bad name \udcff"), agent_started=False)
    assert found.message.encode().endswith(b"bad name \\udcff")


def test_a_set_up_that_hangs_is_interrupted_and_leaves_no_alarm() -> None:
    began = time.monotonic()
    with pytest.raises(Lost, match="longer than"), within(0.1, threading.Event()):
        subprocess.run(["sleep", "30"], check=True)
    assert time.monotonic() - began < 10
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    with within(30, threading.Event()):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


ANTHROPIC = AgentSpec(kind="claude-code")
OPENAI = AgentSpec(kind="command", options={"provider": "openai"})


def test_a_mounted_secret_is_a_file_per_variable(tmp_path: Path) -> None:
    (tmp_path / "ANTHROPIC_API_KEY").write_text("from-file\n")
    (tmp_path / "OPENAI_API_KEY").write_text("other")
    keys = {"TRIALFLEET_KEYS": str(tmp_path)}
    assert (upstream(ANTHROPIC, keys).key, upstream(ANTHROPIC, keys).auth) == ("from-file", "x-api-key")
    assert (upstream(OPENAI, keys).key, upstream(OPENAI, keys).auth) == ("other", "bearer")
    assert upstream(ANTHROPIC, keys | {"ANTHROPIC_API_KEY": "mine"}).key == "mine"


def test_googles_key_has_two_names_and_one_header(tmp_path: Path) -> None:
    (tmp_path / "GEMINI_API_KEY").write_text("first")
    google, keys = AgentSpec(kind="command", options={"provider": "google"}), {"TRIALFLEET_KEYS": str(tmp_path)}
    assert upstream(google, keys | {"GOOGLE_API_KEY": "second"}).key == "first"
    found = upstream(google, {"TRIALFLEET_KEYS": str(tmp_path / "none"), "GOOGLE_API_KEY": "second"})
    assert (found.key, found.auth) == ("second", "x-goog-api-key")
    assert found.base_url == "https://generativelanguage.googleapis.com"


def test_the_address_comes_with_the_environment(tmp_path: Path) -> None:
    (tmp_path / "ANTHROPIC_AUTH_TOKEN").write_text("token")
    told = {"TRIALFLEET_KEYS": str(tmp_path), "ANTHROPIC_BASE_URL": "http://gateway.internal:4000"}
    found = upstream(ANTHROPIC, told)
    assert (found.base_url, found.key, found.auth) == ("http://gateway.internal:4000", "token", "bearer")


def test_no_key_anywhere_names_the_variable(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="ANTHROPIC_API_KEY"):
        upstream(ANTHROPIC, {"TRIALFLEET_KEYS": str(tmp_path)})
