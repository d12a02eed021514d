"""A private Ray on this machine, started by this process and ended with it."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from trialfleet_controller.hosting import ray_reaper
from trialfleet_ledger.child_program import python_module
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.owned_folder import mark_folder

OBJECT_STORE_BYTES = 100 * 2**20  # Ray's floor is 75 MB; nothing of size travels through it
RAY_PARENT = Path("/tmp")  # noqa: S108 - the paths of Ray's sockets must stay short
RAY_FOLDER = "trialfleet-ray-"
_HEAD = "trialfleet_controller.hosting.ray_head"
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_prestart_worker_first_driver": "0",  # workers for a driver that never asks for any
    # Ray would kill a worker when the machine is short of memory: the sandbox holds each agent to its own limit.
    "RAY_memory_monitor_refresh_ms": "0",
    # Ray's workers, and with them the agents, would give way to all other programs: their time is limited.
    "RAY_worker_niceness": "0",
}


def owner_of(folder: Path) -> int | None:
    """The process whose Ray lives in `folder`, by its name; None for another name."""
    pid = folder.name.removeprefix(RAY_FOLDER).partition("-")[0]
    return int(pid) if folder.name.startswith(RAY_FOLDER) and pid.isdecimal() else None


class RayReaper:
    """Ends every process that has `folder` in its environment, and removes the folder, when this process ends or
    calls `end`."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix=f"{RAY_FOLDER}{os.getpid()}-", dir=RAY_PARENT)
        mark_folder(Path(self.folder), "ray")
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", ray_reaper.__file__, self.folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class PrivateRay:
    """A Ray for this process alone, on this machine; a reaper ends all of it even if this process is killed. It
    starts at once in a separate process; `ray` waits for it. `metrics_port`: where it exports metrics for
    Prometheus, on every address of this machine. Raises `OperatorError`."""

    def __init__(self, *, cpus: int, memory_bytes: int | None = None, metrics_port: int | None = None) -> None:
        if metrics_port is not None:
            _check_exporter(metrics_port)
        options = {"num_cpus": cpus, "_memory": memory_bytes, "_metrics_export_port": metrics_port}
        self._head = _Head(options, os.environ)
        self._ray: Any = None

    @property
    def ray(self) -> Any:
        """The module `ray`, connected. Raises `OperatorError` when it does not start."""
        if self._ray is None:
            self._ray = self._head.joined()
        return self._ray

    def close(self) -> None:
        """May be called again."""
        if self._ray is not None:
            self._ray.shutdown()
        self._head.end()


class _Head:
    """The process that starts Ray, and its reaper."""

    def __init__(self, options: Mapping[str, Any], env: Mapping[str, str]) -> None:
        self._reaper = RayReaper()
        folder = self._reaper.folder
        whole = {**options, "_temp_dir": folder, "object_store_memory": OBJECT_STORE_BYTES}
        reading, writing = os.pipe()
        try:
            with (Path(folder) / "head.log").open("wb") as output:
                self._process = subprocess.Popen(
                    [*python_module(_HEAD), str(writing), json.dumps(whole)],
                    env={**env, ray_reaper.VARIABLE: folder},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    pass_fds=(writing,),
                    start_new_session=True,
                )
        except BaseException:
            os.close(reading)
            self._reaper.end()
            raise
        finally:
            os.close(writing)
        self._answer = os.fdopen(reading, "rb")

    def joined(self) -> Any:
        """Raises `OperatorError` when Ray does not start or cannot be joined; then nothing of it is left."""
        with self._answer:
            said: dict[str, str] = json.loads(self._answer.read() or b"{}")
        ray = quietly()
        try:
            use_token()
            if "address" not in said:
                raise ConnectionError(said.get("error", self._last_words()))
            ray.init(
                address=said["address"], job_config=job_config(), log_to_driver=False, logging_level=logging.ERROR
            )
        except Exception as error:
            ray.shutdown()
            self.end()
            raise OperatorError(
                f"Ray did not start: {error}",
                hint="try --no-ray, or see `trialfleet doctor`: /tmp may be full, or loopback may be blocked",
            ) from error
        return ray

    def _last_words(self) -> str:
        return (Path(self._reaper.folder) / "head.log").read_text(errors="replace").strip()[-500:]

    def end(self) -> None:
        self._answer.close()
        self._reaper.end()
        self._process.wait()


def quietly() -> Any:
    """The module `ray`, imported so that it prints nothing: programs may read standard output. With
    `log_to_driver=False` alone it would still print there that a worker died."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    worker: Any = import_module("ray._private.worker")
    worker._worker_logs_enabled = False
    return import_module("ray")


def job_config() -> Any:
    """Of a driver whose current folder, which may be a repository of somebody else, is not the first place where
    Ray's workers look for modules: Ray adds none for a client's job."""
    return import_module("ray.job_config").JobConfig(_client_job=True)


def use_token() -> None:
    """Ray does this itself for a cluster that it starts, and never for one whose address is given."""
    if "RAY_AUTH_MODE" not in os.environ:
        os.environ["RAY_AUTH_MODE"] = "token"
        settings: Any = import_module("ray._raylet")
        settings.Config.initialize("")  # Ray has read its environment already


def _check_exporter(port: int) -> None:
    """Ray reports neither missing packages of its exporter nor a port that is in use. Raises `OperatorError`."""
    try:
        import_module("ray.dashboard.optional_deps")
    except ImportError as error:
        raise OperatorError(
            f"Ray's exporter is not installed: {error}",
            where="--metrics-port",
            hint="pip install 'ray[default]', or leave out the option",
        ) from error
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the exporter does: TIME_WAIT is not taken
        try:
            probe.bind(("", port))
        except OSError as error:
            raise OperatorError(
                f"port {port}: {error.strerror}", where="--metrics-port", hint="choose another port"
            ) from error
