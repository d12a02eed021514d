"""What a pod's runner says of grants that it cannot read: signed addresses are in them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from trialfleet_runner.attempt.__main__ import UNANSWERED
from trialfleet_runner.pod.places import Volumes
from trialfleet_runner.pod.run import GRANTS_URL, Runner
from trialfleet_runner.sandbox.gate import Gate

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
    assert (code, words.state) == (UNANSWERED, "unanswered")
    assert said in words.message
    assert "no grants that this image can read" in words.message
    assert "5ec7e7" not in words.model_dump_json()
