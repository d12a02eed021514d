"""Requests to a gateway as an agent sends them."""

from __future__ import annotations

import http.client
import json
from typing import Any

from trialfleet_runner.gateway import Gateway


def hang_up_after(words: bytes, gateway: Gateway, body: dict[str, Any]) -> None:
    """Ask for a stream and close the connection once these words of it have arrived."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    connection.request("POST", "/v1/messages", json.dumps(body), {"x-api-key": gateway.token})
    answer, text = connection.getresponse(), b""
    while words not in text:
        text += answer.read1()
    connection.close()
