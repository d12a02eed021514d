"""Grants that are refused, or cannot be read."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support import records
from tests.support.plans import task_order
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.exit_codes import RunnerExit
from trialfleet_ledger.records.agent import AgentSpec, Limits
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_ledger.records.grants import GRANTS_URL, Grants, PutGrant
from trialfleet_runner.attempt import grant_renewal
from trialfleet_runner.attempt.grant_renewal import Renewal
from trialfleet_runner.pod.run import Runner, Volumes, parse
from trialfleet_sandbox.gate import Gate

ZERO = "0" * 64


def grants(attempt: int = 1, *, signed: str = "old") -> Grants:
    keys = ("start", "live", "patch", "bundle", "end")
    return Grants(
        campaign="c",
        trial=records.trial(),
        attempt=attempt,
        intent_nonce="n",
        agent=AgentSpec(kind="nop"),
        task=task_order(),
        condition=ConditionOrder(name="none", digest=ZERO),
        limits=Limits(),
        texts=ZERO,
        objects={},
        **{key: PutGrant(url=f"https://store.example/{key}?signed={signed}") for key in keys},
    )


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grant_renewal, "LOOK_S", 0.01)


def looks(number: int) -> Callable[[], float]:
    """Time for so many looks."""
    left = iter([1.0] * number)
    return lambda: next(left, 0.0)


def fresh(folder: Path, record: bytes) -> Renewal:
    (folder / "fresh.json").write_bytes(record)
    (folder / "grants").write_text(f"{(folder / 'fresh.json').as_uri()}\n")
    return Renewal(folder / "grants", parse)


def test_other_grants_of_the_same_attempt_are_taken(tmp_path: Path) -> None:
    new = grants(signed="new")
    found = fresh(tmp_path, canonical_json(new)).of(grants(), left_s=looks(1), stop=threading.Event())
    assert found == new


@pytest.mark.parametrize("given", [grants(), grants(2, signed="new")], ids=["the same again", "another attempt's"])
def test_what_does_not_help_is_left(tmp_path: Path, given: Grants) -> None:
    found = fresh(tmp_path, canonical_json(given)).of(grants(), left_s=looks(3), stop=threading.Event())
    assert found is None


def test_nothing_comes_before_the_time_is_over(tmp_path: Path) -> None:
    (tmp_path / "grants").write_text("")  # as a kubelet shows an annotation that is not there
    for file in ("grants", "absent"):
        waiting = Renewal(tmp_path / file, parse)
        assert waiting.of(grants(), left_s=looks(3), stop=threading.Event()) is None


def test_an_address_that_does_not_hold_is_not_the_last(tmp_path: Path) -> None:
    (tmp_path / "grants").write_text((tmp_path / "gone.json").as_uri())
    new, left = grants(signed="new"), looks(3)

    def left_s() -> float:
        seconds = left()
        if seconds and (tmp_path / "looked").exists():
            fresh(tmp_path, canonical_json(new))
        (tmp_path / "looked").touch()
        return seconds

    assert Renewal(tmp_path / "grants", parse).of(grants(), left_s=left_s, stop=threading.Event()) == new


def test_a_runner_that_is_told_to_stop_waits_no_longer(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    assert Renewal(tmp_path / "grants", parse).of(grants(), left_s=lambda: 1e9, stop=stop) is None


SIGNED = "https://store.example/b/k?X-Amz-Signature=5ec7e7"


@pytest.fixture
def runner() -> Iterator[Runner]:
    with tempfile.TemporaryDirectory(prefix="pod-", dir="/var/tmp") as folder:
        volumes = Volumes(Path(folder))
        with closing(Gate(volumes.gate("agent"))) as agent, closing(Gate(volumes.gate("score"))) as score:
            yield Runner(volumes, agent, score)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (f'{{"v": 1, "campaign": "{SIGNED}"}}', "campaign"),
        (f'{{"v": 1, "end": {{"url": "{SIGNED}", "since": "a later version"}}}}', "build the image again"),
        (f'{{"v": 1, "end": "{SIGNED}', "json_invalid"),
    ],
)
def test_grants_of_another_version_are_refused_in_words_without_a_signature(
    runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raw: str, said: str
) -> None:
    grants = tmp_path / "grants.json"
    grants.write_text(raw)
    monkeypatch.setenv(GRANTS_URL, grants.as_uri())
    code, words = runner.run()
    assert (code, words.state) == (RunnerExit.REFUSED, "misconfigured")
    assert said in words.message
    assert "no grants that this image can read" in words.message
    assert "5ec7e7" not in words.model_dump_json()
