"""Creates inspection pods outside the cluster's queue where the cluster allows it, and removes them on SIGTERM."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from trialfleet_controller.backends.kube.admission import DenialDuration
from trialfleet_controller.backends.kube.api_requests import PODS, Json
from trialfleet_controller.backends.kube.client import Client
from trialfleet_controller.backends.kube.errors import Forbidden, Invalid
from trialfleet_ledger.campaign_spec import QUEUE_LABEL, KubernetesSpec


def unqueued(kube: KubernetesSpec) -> KubernetesSpec:
    """`kube` without the queue's label."""
    return kube.model_copy(update={"labels": {key: kube.labels[key] for key in kube.labels if key != QUEUE_LABEL}})


def create_outside_queue(client: Client, namespace: str, pod: Json, queue: str | None) -> Json:
    """The created pod. A cluster may refuse pods that name no queue: there the pod waits in `queue`. Raises
    `ApiError`."""
    try:
        return client.call(PODS.create(namespace, pod))
    except (Forbidden, Invalid) as error:
        if queue is None or (isinstance(error, Forbidden) and error.denial.lasts is DenialDuration.UNTIL_ROOM):
            raise
    pod["metadata"]["labels"][QUEUE_LABEL] = queue
    return client.call(PODS.create(namespace, pod))


@contextmanager
def ended_by_sigterm() -> Generator[None]:
    """SIGTERM leaves the block like an exception, so that its clean-up runs. Outside the main thread it does
    nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: FrameType | None) -> None:
        del frame
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
