"""What befalls an attempt: drawn from its identity, so that a campaign meets the same again. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Fate(StrEnum):
    VERDICT = "verdict"
    UNSEEN = "unseen"  # a verdict, and never reported as Running: short pods
    TWICE = "twice"  # a verdict, written by two processes of one pod
    LATE = "late"  # the cluster gives the pod up; its verdict comes a second later
    REFUSED = "refused"  # the store refuses the end, which goes into the termination message
    TORN = "torn"  # the bundle is not what the end says
    LOST_EARLY = "lost_early"  # the runner's own loss, before the agent
    LOST = "lost"  # the runner's own loss, after the agent began
    SCORING = "scoring"  # the runner's own loss, after the patch
    KILLED = "killed"  # the runner dies without a word
    OOM = "oom"  # of the runner
    EVICTED_EARLY = "evicted_early"  # before the start is written
    EVICTED = "evicted"
    DELETED = "deleted"  # the pod is gone, by force


@dataclass(frozen=True)
class Behaviour:
    """`run_s`: median of a log-normal run time, `spread` its sigma; `startup_s` from binding to Running.
    `faults`: probability of each fate but VERDICT, for the first `faulty` attempts of a trial."""

    seed: int = 7
    run_s: float = 1.0
    spread: float = 0.0
    startup_s: float = 0.0
    patch: bool = False
    faults: Mapping[Fate, float] = field(default_factory=dict[Fate, float])
    faulty: int = 2

    def fate(self, trial: str, attempt: int) -> Fate:
        """
        >>> Behaviour(faults={Fate.OOM: 1.0}, faulty=1).fate("a", 1), Behaviour().fate("a", 1)
        (<Fate.OOM: 'oom'>, <Fate.VERDICT: 'verdict'>)
        """
        drawn = self._rng("fate", trial, attempt).random()
        if attempt <= self.faulty:
            for fate, share in self.faults.items():
                if (drawn := drawn - share) < 0:
                    return fate
        return Fate.VERDICT

    def runs_s(self, trial: str, attempt: int) -> float:
        return self._rng("run", trial, attempt).lognormvariate(math.log(self.run_s), self.spread)

    def _rng(self, *what: object) -> random.Random:
        return random.Random(f"{self.seed} {what}")
