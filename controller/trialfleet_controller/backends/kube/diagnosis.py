"""What the cluster can still say about a failed pod: its events, the end of its runner's output, its lost owner.
Best effort."""

from __future__ import annotations

from dataclasses import replace

from trialfleet_controller.backends.kube import names, signals
from trialfleet_controller.backends.kube.api_requests import pod_events, pod_log
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.backends.kube.errors import ApiError
from trialfleet_controller.backends.kube.owner import CampaignOwner
from trialfleet_controller.backends.kube.pods import Doing
from trialfleet_controller.backends.kube.signals import PodEvent
from trialfleet_controller.backends.kube.tracker import Tracked
from trialfleet_controller.backends.runner_termination import RunnerTermination
from trialfleet_ledger.records.verdicts import MESSAGE_CHARS

_LOG_LINES, _LOG_BYTES = 20, 8192
_EVENTS = 4
_NOISE = frozenset({"MissingClusterDNS"})  # about the cluster, in every pod of it
_EVENT_CHARS = 600  # characters of events in a message


class PodDiagnosis:
    """Safe from any thread. A question that the API server does not answer adds nothing."""

    def __init__(self, client: Client, namespace: str, owner: CampaignOwner) -> None:
        self._client, self._namespace, self._owner = client, namespace, owner

    def explain(self, tracked: Tracked, termination: RunnerTermination) -> RunnerTermination:
        """`termination` with what the cluster adds."""
        pod = tracked.pod
        if pod is not None and tracked.vanished and self._owner.is_gone(pod.owner):
            termination = replace(termination, named=signals.orphaned(self._owner.now.name))
        if tracked.uid is None:
            return termination
        events = self.events(tracked.uid) or tracked.events
        ran = pod is not None and pod.container(names.RUNNER).doing is not Doing.WAITING
        log = self._log(tracked.name) if ran and not tracked.deleted else ""
        return explained(termination, events, log)

    def events(self, uid: str) -> tuple[PodEvent, ...]:
        """The pod's warnings, the newest last."""
        try:
            raw = self._client.page(pod_events(self._namespace, uid)).items
        except ApiError:
            return ()
        warnings = [one for one in raw if one.get("type") == "Warning" and one.get("reason") not in _NOISE]
        warnings.sort(key=lambda one: str(one.get("lastTimestamp") or one.get("eventTime") or ""))
        return tuple(PodEvent(str(one.get("reason") or ""), str(one.get("message") or "")) for one in warnings)

    def _log(self, name: str) -> str:
        tail = pod_log(self._namespace, name, container=names.RUNNER, lines=_LOG_LINES, limit_bytes=_LOG_BYTES)
        try:
            return self._client.text(tail).strip()
        except ApiError:
            return ""


def explained(termination: RunnerTermination, events: tuple[PodEvent, ...], log: str) -> RunnerTermination:
    """`termination` with what its message lacks."""
    told = _joined(events)
    if termination.named is None:
        words = "\n".join(part for part in (termination.words, log, told) if part)
        return replace(termination, words=words[-MESSAGE_CHARS:])
    message = termination.named.message
    extra = [part for part in (told, termination.words) if part and part not in message]
    whole = "; ".join((message, *extra))[:MESSAGE_CHARS]
    return replace(termination, named=termination.named.model_copy(update={"message": whole}))


def _joined(events: tuple[PodEvent, ...]) -> str:
    newest = list(dict.fromkeys(f"{event.reason}: {event.message}" for event in events))[-_EVENTS:]
    return f"events: {' | '.join(newest)}"[:_EVENT_CHARS] if newest else ""
