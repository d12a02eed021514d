"""`python -m trialfleet_controller.hosting.ray_head FD OPTIONS`: a controller's Ray, in a separate process.

It starts while the controller prepares, writes one JSON object to the descriptor FD (where it is, or why it did
not start), and waits to be killed.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
from importlib import import_module
from typing import Any

from trialfleet_controller.hosting.private_ray import quietly

NODE_WITHIN_S = 400


def main() -> None:
    answer, options = int(sys.argv[1]), json.loads(sys.argv[2])
    os.set_inheritable(answer, False)  # the controller reads to the end: no daemon of Ray may hold it open
    said = _started(options)
    os.write(answer, json.dumps(said).encode())
    os.close(answer)
    if "address" in said:
        signal.pause()


def _started(options: dict[str, Any]) -> dict[str, str]:
    ray = quietly()
    _wait_longer()
    if options["_metrics_export_port"] is None:
        _leave_exporter_out()
        _leave_observers_out()
    try:
        ray.init(
            address="local", include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR, **options
        )
    except Exception as error:
        return {"error": str(error) or type(error).__name__}
    return {"address": ray.get_runtime_context().gcs_address}


def _wait_longer() -> None:
    """Ray gives its node 30 s to appear, by a number that nothing sets; a machine with other work takes longer."""
    services: Any = import_module("ray._private.services")
    get_node = services.get_node

    def wait_for_node(*args: object, **options: object) -> object:
        until = time.monotonic() + NODE_WITHIN_S
        while True:
            try:
                return get_node(*args, **options)
            except RuntimeError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    services.get_node = wait_for_node


def _leave_exporter_out() -> None:
    """Start Ray's agent as where the exporter's packages are not installed. Nobody asks for what it would serve,
    and Ray then needs two thirds of the core time to start."""
    utils: Any = import_module("ray._private.utils")
    utils.get_dashboard_dependency_error = lambda: ImportError("no port for metrics was given")


def _leave_observers_out() -> None:
    """No API server, autoscaler or log monitor: Ray starts them also where nobody asks for a dashboard, for nodes
    or for logs, and they take a third of the core time of a start."""
    node: Any = import_module("ray._private.node").Node
    for name in ("start_api_server", "start_monitor", "start_log_monitor"):
        setattr(node, name, _start_nothing)


def _start_nothing(*_: object, **__: object) -> None:
    """In the place of what Ray would start."""


if __name__ == "__main__":
    main()
