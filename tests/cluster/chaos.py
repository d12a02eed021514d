"""Random kills while a campaign runs: `python -m tests.cluster.chaos [--kills 20] [--seed N]`.

Controllers, the API server, the store, the simulated node, what etcd remembers and pods are struck in an order
that the seed gives; at the end every trial is accounted once. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable

from tests.cluster.cluster import done, kubectl
from tests.cluster.faults import CAMPAIGN, Victim, inflict, victim
from tests.cluster.simulated_rig import start_kubelet
from tests.support.audit import records
from tests.support.waiting import wait_until
from trialfleet_ledger.records.verdicts import LossClass

BEHAVIOUR = ("--run-s", "2", "--spread", "0.5", "--patch")
TRIALS_PER_KILL = 15
WIDTH = 8


class Storm:
    """Strikes one campaign. `struck`: how often each kind was; `before`: the records that were there then."""

    def __init__(self, made: Victim, seed: int) -> None:
        self.made, self.rng = made, random.Random(seed)
        self.controller = made.controller()
        self.struck: Counter[str] = Counter()
        self.before: dict[str, bytes] = {}
        self.strikes: dict[str, Callable[[], None]] = {
            "controller": self._controller,
            "controller twice": self._twice,
            "pods": self._pods,
            "node": self._node,
            "kube-apiserver": lambda: inflict("kube-apiserver", str(self.rng.randint(0, 5))),
            "radosgw": lambda: inflict("radosgw", str(self.rng.randint(0, 15))),
            "etcd's memory": self._compact,
        }

    def reach(self, share: float) -> None:
        """Waits until this share of the trials is over."""

        def there() -> bool:
            assert self.controller.poll() in (None, 0), f"a controller gave up: {self.controller.communicate()[0]}"
            return self.made.outcomes() >= share * self.made.trials

        wait_until(there, within_s=240)

    def strike(self) -> None:
        """One of them, chosen among those that came least, so that few kills are of many kinds."""
        least = min(self.struck[name] for name in self.strikes)
        name = self.rng.choice([name for name in self.strikes if self.struck[name] == least])
        print(f"chaos: {name}, with {self.made.outcomes()} of {self.made.trials} trials over", flush=True)
        self.strikes[name]()
        self.struck[name] += 1
        now = records(self.made.store, CAMPAIGN)
        assert self.before.items() <= now.items(), f"{name}: a record was changed or lost"
        self.before = now

    def _controller(self) -> None:
        self.controller.kill()
        self.controller.communicate()
        self.controller = self.made.controller()

    def _twice(self) -> None:
        """Killed again before it has taken stock."""
        self._controller()
        time.sleep(self.rng.uniform(0, 4))
        self._controller()

    def _pods(self) -> None:
        """Some are deleted by hand."""
        namespace = self.made.rig.namespace
        running = ("get", "pods", "-n", namespace, "--field-selector=status.phase=Running", "-o", "name")
        found = done(kubectl(*running)).split()
        for pod in self.rng.sample(found, min(3, len(found))):
            done(kubectl("delete", pod, "-n", namespace, "--wait=false", "--ignore-not-found"))

    def _node(self) -> None:
        """The kubelet is killed, and its pods' runners with it; both go on once it is back."""
        made = self.made.rig
        assert made.kubelet is not None
        made.kubelet.kill()
        made.kubelet.communicate()
        start_kubelet(made, BEHAVIOUR)

    def _compact(self) -> None:
        inflict("compact")
        inflict("kube-apiserver")


def storm(*, kills: int, seed: int) -> Counter[str]:
    """How often each kind struck. Fails when the campaign does not end as it must."""
    print(f"chaos: seed {seed}, {kills} kills", flush=True)
    with victim(*BEHAVIOUR, tasks=3, reps=max(4, TRIALS_PER_KILL * kills // 15), width=WIDTH) as made:
        rage = Storm(made, seed)
        for kill in range(kills):
            rage.reach((kill + 0.5) / (kills + 1))
            rage.strike()
        made.complete(rage.controller)
        outcomes, _ = made.audited(rage.before)
        losses = Counter(loss for outcome in outcomes for loss in outcome.losses)
        print(f"chaos: {len(outcomes)} trials, each once; losses: {dict(losses)}", flush=True)
        assert losses.keys() <= {LossClass.TERMINATED}, "a loss that nothing here causes"
        assert losses.total() <= 3 * rage.struck["pods"], "more losses than pods that were taken away"
        return rage.struck


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    options = parser.parse_args()
    try:
        struck = storm(kills=options.kills, seed=options.seed)
    except (AssertionError, subprocess.SubprocessError) as error:
        sys.exit(f"chaos: seed {options.seed}: {error}")
    print(json.dumps({"seed": options.seed, "struck": struck}))


if __name__ == "__main__":
    main()
