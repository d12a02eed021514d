"""Listings as values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trialfleet_controller.kube.client import Client
from trialfleet_controller.kube.pods import Pod, parse

Json = dict[str, Any]


def items(client: Client, path: str) -> list[Json]:
    """All objects at a path whose listings are short. Raises `ApiError`."""
    found: list[Json] = client.call("GET", path).get("items") or []
    return found


def pods(client: Client, namespace: str, selector: str) -> Iterator[Pod]:
    """All pods with these labels, page by page. Raises `ApiError`."""
    more: str | None = None
    while True:
        page = client.list_pods(namespace, selector, more=more)
        yield from (parse(raw) for raw in page.items)
        more = page.more
        if more is None:
            return
