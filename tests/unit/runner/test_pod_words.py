"""Last words: whatever happened fits into what the kubelet keeps, and says the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.support import records
from trialfleet_analysis.evidence import repeats_result
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.records.attempt import End, LastWords
from trialfleet_ledger.records.measurements import Delivery, Metrics
from trialfleet_ledger.records.verdicts import HaltScope, Loss, LossClass, Scored, Stop, Verdict
from trialfleet_runner.pod.words import LIMIT, fitted, leave

TEXT = st.text(st.characters(codec="utf-8"), max_size=2000)
NUMBER = st.none() | st.integers(0, 2**53) | st.floats(0, 1e12)
COUNTS = dict.fromkeys(Metrics.model_fields, NUMBER)
CLAIMS = [name for name, field in Metrics.model_fields.items() if "bool" in str(field.annotation)]


def metrics(values: Mapping[str, object]) -> Metrics:
    """Any numbers, of the kinds that the fields hold."""
    whole = {name for name, field in Metrics.model_fields.items() if "int" in str(field.annotation)}
    kept = {
        name: int(value) if name in whole and isinstance(value, float) else value for name, value in values.items()
    }
    return Metrics.model_validate(kept | {name: None if values[name] is None else True for name in CLAIMS})


METRICS = st.fixed_dictionaries(COUNTS).map(metrics)
DELIVERY = st.builds(
    Delivery,
    files=st.lists(TEXT, max_size=5).map(tuple),
    inline_tokens=st.none() | st.integers(0, 10**6),
    node=st.none() | TEXT,
    tokenizer=st.none() | TEXT,
    reached_model=st.dictionaries(st.sampled_from(["files", "inline", "hook"]), st.none() | st.booleans()),
    first_request_sha256=st.none() | st.just("f" * 64),
)
SCORED = st.builds(
    Scored,
    verdict=st.sampled_from(Verdict),
    stop=st.sampled_from(Stop),
    tests_passed=st.booleans(),
    needed=st.lists(TEXT, max_size=5).map(tuple),
    unsteady=st.booleans(),
    metrics=METRICS,
    delivery=DELIVERY,
)
LOSS = st.builds(
    Loss,
    loss=st.sampled_from(LossClass),
    message=TEXT,
    agent_started=st.booleans(),
    patched=st.booleans(),
    halt=st.sampled_from(HaltScope),
)


def end(scored: Scored | None, loss: Loss | None) -> End:
    return End(
        trial="a" * 26,
        attempt=10,
        nonce="f" * 32,
        at=1_800_000_000.123456,
        by="runner",
        scored=scored,
        loss=loss,
        bundle="0" * 64,
        bundle_bytes=2**40,
    )


ENDS = SCORED.map(lambda scored: end(scored, None)) | LOSS.map(lambda loss: end(None, loss))
WORDS = st.builds(
    LastWords,
    state=st.sampled_from(["committed", "refused", "another", "unanswered", "stopped"]),
    end_sha256=st.none() | st.just("f" * 64),
    end=st.none() | ENDS,
    message=TEXT,
    program=st.sampled_from([None, "agent", "tests"]),
    over_limits=st.booleans(),
)


@given(WORDS)
def test_what_fits_says_how_it_ended(words: LastWords) -> None:
    raw = fitted(words)
    assert len(raw) <= LIMIT
    read = LastWords.model_validate_json(raw)
    assert (read.state, read.end_sha256) == (words.state, words.end_sha256)
    assert (read.program, read.over_limits) == (words.program, words.over_limits)
    assert (read.end is None) == (words.end is None)
    if read.end is None or words.end is None:
        return
    assert read.end.model_copy(update={"scored": None, "loss": None}) == words.end.model_copy(
        update={"scored": None, "loss": None}
    )
    if words.end.loss is not None:
        assert read.end.loss is not None
        assert read.end.loss.model_copy(update={"message": ""}) == words.end.loss.model_copy(
            update={"message": ""}
        )
        assert words.end.loss.message.startswith(read.end.loss.message)
    if words.end.scored is not None:
        assert read.end.scored is not None
        given_, kept = words.end.scored, read.end.scored
        assert (kept.verdict, kept.stop, kept.tests_passed) == (given_.verdict, given_.stop, given_.tests_passed)
        for name in Metrics.model_fields:  # left out, never altered
            assert getattr(kept.metrics, name) in (None, getattr(given_.metrics, name))
        assert repeats_result(kept, canonical_json(given_))  # it does not contradict its bundle


def test_what_is_small_is_whole() -> None:
    scored = records.scored(
        metrics=Metrics(turns=12, tool_calls=30, cost_usd=0.25, agent_s=81.5, target_hit=True),
        delivery=Delivery(files=("CLAUDE.md",), inline_tokens=700, reached_model={"files": True}),
    )
    words = LastWords(state="refused", end=end(scored, None), message="HTTP 403 AccessDenied")
    assert LastWords.model_validate_json(fitted(words)) == words


def test_money_goes_last() -> None:
    numbers = dict.fromkeys(Metrics.model_fields, 10**15) | dict.fromkeys(CLAIMS, True)
    files = tuple(f"a/{n}/AGENTS.md" for n in range(9))
    scored = records.scored(metrics=Metrics.model_validate(numbers), delivery=Delivery(files=files))
    read = LastWords.model_validate_json(fitted(LastWords(state="refused", end=end(scored, None))))
    assert read.end is not None
    assert read.end.scored is not None
    assert read.end.scored.metrics.lines_added is None
    assert read.end.scored.metrics.cost_usd == 10**15


def test_a_missing_file_is_no_reason_to_fail(tmp_path: Path) -> None:
    leave(LastWords(state="stopped"), tmp_path / "no" / "such")
    leave(LastWords(state="stopped"), tmp_path / "log")
    assert LastWords.model_validate_json((tmp_path / "log").read_bytes()).state == "stopped"
