"""One pod's life: what its runner writes into the store, what its kubelet says about it."""

from __future__ import annotations

import threading
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from tests.cluster.simulated import statuses
from tests.cluster.simulated.agenda import Agenda
from tests.cluster.simulated.fates import Behaviour, Fate
from tests.cluster.simulated.records import Runner, last_words
from tests.cluster.simulated.wire import MERGE, Api, Keys, Refused
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.records.attempt import End
from trialfleet_ledger.records.grants import GRANTS_URL, Grants
from trialfleet_ledger.records.verdicts import LossClass

Json = dict[str, Any]

LATE_S = 1.0
SECOND = "an end came second"  # the controller had ended the attempt
DOUBLED = "a record was written twice"  # must not be
TROUBLE = "the simulation failed"  # must not be


@dataclass(frozen=True)
class Ward:
    """What all pods of the node share. `counts`: fates that came true, and trouble that must not be."""

    api: Api
    keys: Keys
    agenda: Agenda
    behaviour: Behaviour
    node: str
    image_id: str
    counts: Counter[str] = field(default_factory=Counter[str])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, what: str) -> None:
        with self.lock:
            self.counts[what] += 1


class Life:
    """From the binding to the end. `gone` is set when the pod is no more: then nothing is said about it."""

    def __init__(self, pod: Json, ward: Ward) -> None:
        self._pod, self._ward = pod, ward
        labels = pod["metadata"]["labels"]
        self._trial, self._attempt = labels["trialfleet.dev/trial"], int(labels["trialfleet.dev/attempt"])
        self._fate = ward.behaviour.fate(self._trial, self._attempt)
        self._stopped = False
        self._begun: Runner | None = None
        self.gone = False

    def begin(self) -> None:
        self._bear(self._begin)

    def _begin(self) -> None:
        """The containers start; unless something is in the way, the runner claims its attempt."""
        if self._stopped or self.gone:
            return None
        self._ward.count(self._fate)
        if self._fate is Fate.EVICTED_EARLY:
            return self._say(statuses.evicted(self._pod, self._ward.image_id))
        if self._fate is not Fate.UNSEEN:
            self._say(statuses.running(self._pod, self._ward.image_id))
        runner = self._runner()
        if not self._create("start", runner.start(), runner):
            return self._exit(3)
        self._begun = runner
        if self._fate is Fate.TWICE and self._create("start", replace(runner, pid=2).start(), runner):
            self._ward.count(DOUBLED)
        seconds = self._ward.behaviour.runs_s(self._trial, self._attempt)
        return self._ward.agenda.after(seconds, lambda: self._bear(self._finish))

    def stop(self) -> None:
        """SIGTERM: a runner that has begun says so, then the kubelet removes the pod."""
        if self._stopped:
            return
        self._stopped = True
        if self._begun is not None and not self.gone:
            end = self._begun.lost(LossClass.TERMINATED, agent_started=True)
            self._create("end", canonical_json(end), self._begun)
        self._remove()

    def _bear(self, work: Callable[[], object]) -> None:
        """One pod's trouble is not the others': its campaign goes on, and `TROUBLE` is counted."""
        try:
            work()
        except Exception:
            traceback.print_exc()
            self._ward.count(TROUBLE)
            self._exit(70)

    # --- the runner ---------------------------------------------------------------------------------

    def _runner(self) -> Runner:
        runner = next(one for one in self._pod["spec"]["containers"] if one["name"] == statuses.RUNNER)
        url = next(one["value"] for one in runner["env"] if one["name"] == GRANTS_URL)
        grants = Grants.model_validate_json(self._ward.keys.read(url))
        head = self._pod["metadata"]
        created = datetime.fromisoformat(head["creationTimestamp"]).timestamp()
        return Runner(grants, head["uid"], self._ward.node, created)

    def _create(self, name: str, data: bytes, runner: Runner) -> bool:
        return self._ward.keys.create(getattr(runner.grants, name), data)

    def _finish(self) -> None:
        runner = self._begun
        if self._stopped or self.gone or runner is None:
            return None
        match self._fate:
            case Fate.KILLED:
                return self._exit(137, reason="Error")
            case Fate.OOM:
                return self._exit(137, reason="OOMKilled")
            case Fate.EVICTED:
                return self._say(statuses.evicted(self._pod, self._ward.image_id))
            case Fate.DELETED:
                return self._remove()
            case Fate.LATE:
                self._say(statuses.evicted(self._pod, self._ward.image_id))
                return self._ward.agenda.after(LATE_S, lambda: self._bear(lambda: self._commit(runner)))
            case _:
                return self._leave(runner)

    def _leave(self, runner: Runner) -> None:
        end = self._commit(runner)
        if self._fate is Fate.REFUSED:
            return self._exit(1, reason="Error", message=last_words(end))
        return self._exit(0)

    def _commit(self, runner: Runner) -> End:
        """Patch, bundle, end; the end is returned, and not written where the store is to refuse it."""
        end = self._loss(runner) or self._scored(runner)
        if self._fate is not Fate.REFUSED and not self._create("end", canonical_json(end), runner):
            self._ward.count(SECOND)
        other = end.model_copy(update={"at": end.at + 1})
        if self._fate is Fate.TWICE and self._create("end", canonical_json(other), runner):
            self._ward.count(DOUBLED)
        return end

    def _loss(self, runner: Runner) -> End | None:
        scores_only = runner.grants.prior_patch is not None
        match self._fate:
            case Fate.LOST_EARLY:
                return runner.lost(LossClass.HOST_FULL, agent_started=False)
            case Fate.LOST:
                return runner.lost(LossClass.OVERUSE, agent_started=not scores_only)
            case Fate.SCORING:
                if not scores_only:
                    self._create("patch", runner.patch(), runner)
                return runner.lost(LossClass.SCORING, agent_started=not scores_only, patched=not scores_only)
            case _:
                return None

    def _scored(self, runner: Runner) -> End:
        if self._ward.behaviour.patch and runner.grants.prior_patch is None:
            self._create("patch", runner.patch(), runner)
        bundle = runner.bundle()
        self._create("bundle", bundle + (b"torn" if self._fate is Fate.TORN else b""), runner)
        return runner.scored(bundle)

    # --- the kubelet --------------------------------------------------------------------------------

    @property
    def _path(self) -> str:
        head = self._pod["metadata"]
        return f"/api/v1/namespaces/{head['namespace']}/pods/{head['name']}"

    def _exit(self, code: int, *, reason: str = "", message: str = "") -> None:
        reason = reason or ("Error" if code else "Completed")
        self._say(statuses.ended(self._pod, self._ward.image_id, code=code, reason=reason, message=message))

    def _say(self, status: Json) -> None:
        if self.gone:
            return
        body = {"metadata": {"uid": self._pod["metadata"]["uid"]}, "status": status}
        try:
            said = self._ward.api.call("PATCH", f"{self._path}/status", body, kind=MERGE)
        except Refused as error:
            if error.status not in (404, 409):
                raise
            self.gone = True
        else:
            self._pod = said

    def _remove(self) -> None:
        self.gone = True
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": self._pod["metadata"]["uid"]}}
        try:
            self._ward.api.call("DELETE", self._path, {"apiVersion": "v1", "kind": "DeleteOptions", **options})
        except Refused as error:
            if error.status not in (404, 409):
                raise
