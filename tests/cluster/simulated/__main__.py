"""`python -m tests.cluster.simulated NODE [options]`: prints "ready", then at SIGTERM what it has played, as JSON.

The API server is that of $KUBECONFIG; stores are reached by the URLs that pods carry.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time

from tests.cluster.simulated.agenda import Agenda
from tests.cluster.simulated.fates import Behaviour, Fate
from tests.cluster.simulated.kubelet import Kubelet
from tests.cluster.simulated.life import Ward
from tests.cluster.simulated.wire import Api, Keys

THREADS = 16


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("node")
    parser.add_argument("--image-id", required=True)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--run-s", type=float, default=1.0)
    parser.add_argument("--spread", type=float, default=0.0)
    parser.add_argument("--startup-s", type=float, default=0.0)
    parser.add_argument("--patch", action="store_true")
    parser.add_argument("--fault", action="append", default=[], metavar="FATE=SHARE")
    parser.add_argument("--faulty", type=int, default=2, help="attempts of a trial that faults may befall")
    options = parser.parse_args()
    faults = dict(fault.split("=") for fault in options.fault)
    behaviour = Behaviour(
        seed=options.seed,
        run_s=options.run_s,
        spread=options.spread,
        startup_s=options.startup_s,
        patch=options.patch,
        faults={Fate(name): float(share) for name, share in faults.items()},
        faulty=options.faulty,
    )
    ward = Ward(
        Api(threads=THREADS),
        Keys(threads=THREADS),
        Agenda(THREADS),
        behaviour,
        options.node,
        options.image_id,
    )
    kubelet = Kubelet(ward)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    threading.Thread(target=kubelet.run, args=(lambda: print("ready", flush=True),), daemon=True).start()
    ended.wait()
    kubelet.stop()
    used = time.process_time()
    print(json.dumps({"counts": dict(ward.counts), "core_s": used}), flush=True)
    sys.stdout.flush()
    os._exit(0)  # threads in the middle of a pod's life are not waited for


if __name__ == "__main__":
    main()
