"""Deletes pods: at once, when their attempts are settled, or when nobody wants to look at them any more."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from trialfleet_controller.backend import AttemptId
from trialfleet_controller.kube.chores import Chores
from trialfleet_controller.kube.client import Client
from trialfleet_controller.kube.errors import ApiError, Conflict, Forbidden, NotFound
from trialfleet_controller.kube.leftovers import Left, Leftovers

AGAIN_S = 5.0  # before a delete that failed is tried again


class Sweeper:
    """Safe from any thread."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        chores: Chores,
        *,
        keep_failed: int,
        tell: Callable[[str], None],
    ) -> None:
        self._client, self._namespace, self._chores, self._tell = client, namespace, chores, tell
        self._leftovers = Leftovers(keep_failed=keep_failed)
        self._lock = threading.Lock()

    def over(self, left: Left, *, failed: bool) -> None:
        """As `Leftovers.add`, now."""
        with self._lock:
            self._leftovers.add(left, now=time.monotonic(), failed=failed)

    def settled(self, attempt: AttemptId) -> None:
        with self._lock:
            self._leftovers.settled(attempt)

    def sweep(self, *, last: bool = False) -> None:
        """Begin to delete what is due. `last`: whatever may go."""
        with self._lock:
            due = self._leftovers.rest() if last else self._leftovers.due(time.monotonic())
        for left in due:
            self.later(left)

    def later(self, left: Left, *, grace_s: int | None = None) -> None:
        self._chores.do(self.delete, left, grace_s=grace_s)

    def delete(self, left: Left, *, grace_s: int | None = None) -> None:
        """In this thread. What does not answer is asked again later."""
        try:
            self._client.delete_pod(self._namespace, left.name, uid=left.uid, grace_s=grace_s)
        except (NotFound, Conflict):
            return  # it has gone, or another has its name
        except ApiError as error:
            if isinstance(error, Forbidden):
                self._tell(f"pod {left.name} cannot be deleted: {error}")
            with self._lock:
                self._leftovers.again(left, time.monotonic() + AGAIN_S)
