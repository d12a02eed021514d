"""Events as JSON lines: one object each, without secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trialfleet_controller.dispatch.events import LOG_VARIABLE, CampaignEvent, EventKind, json_log, line
from trialfleet_controller.hosting.place import Hosts
from trialfleet_ledger.errors import OperatorError


def test_a_line_says_who_and_what() -> None:
    event = CampaignEvent(12.3456, EventKind.LAUNCHED, "trial", 2, {"latency_s": 0.25}, shard=1)
    assert json.loads(line(event, "c")) == {
        "at": 12.346,
        "event": "launched",
        "campaign": "c",
        "shard": 1,
        "trial": "trial",
        "attempt": 2,
        "latency_s": 0.25,
    }


def test_signatures_and_passwords_are_left_out() -> None:
    said = "PUT https://AK:hush@s3.example/b/k?X-Amz-Signature=abc&X-Amz-Credential=AK answered 500"
    found = line(CampaignEvent(0, EventKind.LOST, detail={"message": said}), "c")
    assert "hush" not in found
    assert "X-Amz" not in found
    assert "s3.example/b/k" in found
    assert "answered 500" in found


def test_line_breaks_do_not_make_lines() -> None:
    assert "\n" not in line(CampaignEvent(0, EventKind.MESSAGE, detail={"message": "a\nb"}), "c")


def test_a_file_grows(tmp_path: Path) -> None:
    for number in (1, 2):
        with json_log(str(tmp_path / "log"), "c") as note:
            note(CampaignEvent(number, EventKind.MESSAGE))
    assert [json.loads(row)["at"] for row in (tmp_path / "log").read_text().splitlines()] == [1, 2]


def test_a_file_that_cannot_be_written_is_the_operators(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="No such file"), json_log(str(tmp_path / "no" / "log"), "c"):
        pass


def test_by_environment_it_goes_to_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(LOG_VARIABLE, "json")
    hosts = Hosts.asked(ray=None, ray_address=None, log=None, local=True)
    with json_log(hosts.log, "c") as note:
        note(CampaignEvent(1, EventKind.HALTED, detail={"task": None, "reason": "why"}))
    said = capsys.readouterr()
    assert said.out == ""
    assert json.loads(said.err)["reason"] == "why"


@pytest.mark.parametrize(("ray", "local"), [(False, False), (None, True)])
def test_an_address_of_ray_that_nobody_uses_is_refused(ray: bool | None, local: bool) -> None:
    with pytest.raises(OperatorError, match="--ray-address"):
        Hosts.asked(ray=ray, ray_address="10.0.0.1:6379", log=None, local=local)
