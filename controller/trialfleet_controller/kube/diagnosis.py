"""What a failed pod can still tell: its own events and the end of its runner's output. Best effort."""

from __future__ import annotations

from dataclasses import replace

from trialfleet_controller.classify import MESSAGE_LIMIT, Departure
from trialfleet_controller.kube import names
from trialfleet_controller.kube.client import Client
from trialfleet_controller.kube.errors import ApiError
from trialfleet_controller.kube.signals import Event

_LOG_LINES, _LOG_BYTES = 20, 8192
_EVENTS = 4
_NOISE = frozenset({"MissingClusterDNS"})  # about the cluster, in every pod of it
_WORDS = 600  # characters of events in a message


def events_of(client: Client, namespace: str, uid: str) -> tuple[Event, ...]:
    """The pod's warnings, the newest last; none when the cluster does not say."""
    try:
        raw = client.events(namespace, uid=uid)
    except ApiError:
        return ()
    warnings = [one for one in raw if one.get("type") == "Warning" and one.get("reason") not in _NOISE]
    warnings.sort(key=lambda one: str(one.get("lastTimestamp") or one.get("eventTime") or ""))
    return tuple(Event(str(one.get("reason") or ""), str(one.get("message") or "")) for one in warnings)


def log_of(client: Client, namespace: str, name: str) -> str:
    """The tail of the runner's output; empty when there is none to be had."""
    try:
        text = client.pod_log(namespace, name, container=names.RUNNER, lines=_LOG_LINES, limit_bytes=_LOG_BYTES)
    except ApiError:
        return ""
    return text.strip()


def explained(departure: Departure, events: tuple[Event, ...], log: str) -> Departure:
    """`departure` with what its message lacks."""
    told = _joined(events)
    if departure.named is None:
        words = "\n".join(part for part in (departure.words, log, told) if part)
        return replace(departure, words=words[-MESSAGE_LIMIT:])
    message = departure.named.message
    extra = [part for part in (told, departure.words) if part and part not in message]
    whole = "; ".join((message, *extra))[:MESSAGE_LIMIT]
    return replace(departure, named=departure.named.model_copy(update={"message": whole}))


def _joined(events: tuple[Event, ...]) -> str:
    newest = list(dict.fromkeys(f"{event.reason}: {event.message}" for event in events))[-_EVENTS:]
    return f"events: {' | '.join(newest)}"[:_WORDS] if newest else ""
