"""Refuses provider keys that could be an ordinary text: they would be masked wherever a bundle shows that text."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from trialfleet_ledger.bundle import SHORTEST_SECRET
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.secret_values import looks_random

SHORTEST_KEY = 16  # characters; no provider issues shorter ones


def check_length(keys: Iterable[str], address: str) -> None:
    """Raises `OperatorError` if one of the keys for the server at `address` (a URL) is short. A server on
    this machine may take any text as its key."""
    short = min(map(len, keys), default=SHORTEST_KEY)
    if short < SHORTEST_KEY and not _on_this_machine(address):
        raise OperatorError(
            f"the model provider's key has {short} characters: it could be a word, which bundles would mask",
            where="environment: the provider's key",
            hint=f"set a key of {SHORTEST_KEY} characters or more; a gateway of your own can be given one",
        )


def check_words(plan: Plan, objects: Objects) -> None:
    """Raises `OperatorError` if a key occurs in a task's files or fix. One that looks random cannot."""
    for name, key in _keys(plan.agent_specs):
        for task in plan.tasks:
            order = task.order
            if any(key.encode() in objects.get(digest) for digest in (order.workspace, order.pristine, order.fix)):
                raise OperatorError(
                    f"the key {name} of the model provider is a text of the task {order.id}",
                    where="environment: the provider's key",
                    hint="set another key: wherever bundles show this text, it would be masked",
                )


def _keys(specs: tuple[AgentSpec, ...]) -> Iterator[tuple[str, str]]:
    for spec in specs:
        if spec.model is None:
            continue
        from trialfleet_runner.model_access import key_names, upstream  # with the gateway

        try:
            provider = upstream(spec)
        except OperatorError:  # a preview needs no key
            continue
        for name, key in key_names(spec, provider).items():
            if len(key) >= SHORTEST_SECRET and not looks_random(key):
                yield name, key


def _on_this_machine(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
