"""Answers, silence and the ways to connect."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import scripted_api as s
from tests.support.scripted_api import Api
from trialfleet_controller.backends.kube.api_requests import PODS
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.backends.kube.errors import Expired, Forbidden, NotFound, Throttled, Unreachable
from trialfleet_ledger.errors import OperatorError


def test_answers_become_typed_errors(api: Api, client: Client) -> None:
    rows: list[tuple[s.Fault, type[Exception]]] = [
        (s.refuse(404, "NotFound"), NotFound),
        (s.refuse(410, "Gone"), Expired),
        (s.refuse(429), Throttled),
        (s.refuse(503, retry_after="1"), Throttled),
        (s.refuse(502), Unreachable),
        (s.refuse(401, "Unauthorized"), Forbidden),
        (s.drop, Unreachable),
    ]
    for fault, error in rows:
        api.faults["get"].append(fault)
        with pytest.raises(error):
            client.call(PODS.get("trials", "a"))


def test_a_wait_that_the_server_asks_for_holds_for_every_caller(api: Api, client: Client) -> None:
    assert client.throttled_s == 0
    api.faults["get"].append(s.refuse(429, retry_after="60"))
    with pytest.raises(Throttled):
        client.call(PODS.get("trials", "a"))
    assert 50 < client.throttled_s <= 60


def test_a_server_that_says_nothing_is_given_up(api: Api, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trialfleet_controller.backends.kube.client.READ_S", 0.3)
    api.faults["get"].append(s.hang(60))
    with pytest.raises(Unreachable):
        client.call(PODS.get("trials", "a"))


def test_a_kubeconfig_with_a_token(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config"
    config.write_text(
        f"""
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{api.url}"}}}}]
users: [{{name: u, user: {{token: "s3cr3t-token"}}}}]
contexts: [{{name: here, context: {{cluster: c, user: u}}}}]
current-context: here
"""
    )
    monkeypatch.setenv("KUBECONFIG", str(config))
    heard: list[str] = []

    def hear(handler: s.Handler) -> None:
        heard.append(handler.headers["Authorization"])
        handler.answer(200, {})

    api.faults["get"].append(hear)
    client = Client.connect("here")
    client.call(PODS.get("trials", "a"))
    assert heard == ["Bearer s3cr3t-token"]
    api.faults["get"].append(s.refuse(500, "InternalError", "boom"))
    with pytest.raises(Unreachable) as caught:
        client.call(PODS.get("trials", "a"))
    assert "s3cr3t" not in f"{caught.value!r} {caught.value} {client!r} {vars(client)}"
    with pytest.raises(OperatorError, match="there is no context 'there'"):
        Client.connect("there")


@pytest.mark.parametrize("text", [None, "", "not: a kubeconfig"])
def test_without_a_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    config = tmp_path / "config"
    if text is not None:
        config.write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(config))
    with pytest.raises(OperatorError, match="KUBECONFIG"):
        Client.connect()
