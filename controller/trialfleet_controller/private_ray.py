"""A Ray of this process alone, on this machine: started here, ended with it."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from trialfleet_controller import guard
from trialfleet_runner.errors import OperatorError

OBJECT_STORE_BYTES = 100 * 2**20  # Ray's floor is 75 MB; nothing of size travels through it
RAY_PARENT = Path("/tmp")  # noqa: S108 - the paths of Ray's sockets must stay short
RAY_FOLDER = "trialfleet-ray-"
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
    # Ray would kill a worker when the machine is short of memory: the sandbox holds each agent to its own limit.
    "RAY_memory_monitor_refresh_ms": "0",
}


def owner_of(folder: Path) -> int | None:
    """The process whose Ray lives in `folder`; None when the name is none of ours."""
    pid = folder.name.removeprefix(RAY_FOLDER).partition("-")[0]
    return int(pid) if folder.name.startswith(RAY_FOLDER) and pid.isdecimal() else None


class Guard:
    """Ends every process that carries `folder` in its environment, and removes the folder, once this process has
    gone or says so."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix=f"{RAY_FOLDER}{os.getpid()}-", dir=RAY_PARENT)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, self.folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class PrivateRay:
    """A Ray of this process alone, on this machine; and a guard that ends all of it, whatever becomes of us.
    `metrics_port`: where it exports to Prometheus, on every address of this machine. Raises `OperatorError`."""

    def __init__(self, *, cpus: int, memory_bytes: int | None = None, metrics_port: int | None = None) -> None:
        if metrics_port is not None:
            _check_exporter(metrics_port)
        try:
            self._guard, self.ray = _guarded(cpus, memory_bytes, metrics_port)
        except OperatorError:  # on a busy machine a start takes longer than Ray's own patience, which nothing sets
            self._guard, self.ray = _guarded(cpus, memory_bytes, metrics_port)

    def close(self) -> None:
        self.ray.shutdown()
        self._guard.end()


def _guarded(cpus: int, memory_bytes: int | None, metrics_port: int | None) -> tuple[Guard, Any]:
    """Raises `OperatorError` when it does not start; then nothing of it is left."""
    watcher = Guard()
    try:
        return watcher, _start_ray(watcher.folder, cpus, memory_bytes, metrics_port)
    except BaseException:
        watcher.end()
        raise


def quietly() -> Any:
    """The module `ray`, imported so that it says nothing by itself: what is on standard output machines may read.
    With `log_to_driver=False` it would still print there that a worker died."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    worker: Any = import_module("ray._private.worker")
    worker._worker_logs_enabled = False
    return import_module("ray")


def _start_ray(folder: str, cpus: int, memory_bytes: int | None, metrics_port: int | None) -> Any:
    """Raises `OperatorError` when it does not start."""
    ray = quietly()
    os.environ[guard.VARIABLE] = folder
    try:
        ray.init(
            address="local",
            num_cpus=cpus,
            _memory=memory_bytes,
            object_store_memory=OBJECT_STORE_BYTES,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            _temp_dir=folder,
            _metrics_export_port=metrics_port,
        )
    except Exception as error:
        ray.shutdown()
        raise OperatorError(
            f"Ray did not start: {error}", hint="see `trialfleet doctor`; a full /tmp or a firewall on loopback?"
        ) from error
    finally:
        del os.environ[guard.VARIABLE]  # it marks what Ray starts, and nothing else
    return ray


def _check_exporter(port: int) -> None:
    """Ray says neither that its exporter's packages are missing nor that the port is taken. Raises
    `OperatorError`."""
    try:
        import_module("ray.dashboard.optional_deps")
    except ImportError as error:
        raise OperatorError(
            f"Ray's exporter is not installed: {error}",
            where="--metrics-port",
            hint="pip install 'trialfleet[metrics]', or leave it out",
        ) from error
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the exporter does: TIME_WAIT is not taken
        try:
            probe.bind(("", port))
        except OSError as error:
            raise OperatorError(
                f"port {port}: {error.strerror}", where="--metrics-port", hint="another one"
            ) from error
