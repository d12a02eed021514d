"""A Ray cluster that is there already: join it, and leave it as it was."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from trialfleet_controller import guard
from trialfleet_controller.hosting.on_ray import NAMESPACE
from trialfleet_controller.private_ray import OBJECT_STORE_BYTES, Guard, quietly
from trialfleet_runner.errors import OperatorError

JOINING_S = 60.0


class JoinedRay:
    """`address`: as Ray takes it. For HOST:PORT this process needs a node of Ray beside it; where there is none,
    one without CPUs is started, and ended with this process. Raises `OperatorError` when it cannot join."""

    def __init__(self, address: str) -> None:
        self._guard: Guard | None = None
        self.ray = quietly()
        _heed_token()
        try:
            self._join(address)
        except Exception as error:
            self.close()
            raise OperatorError(
                f"the Ray cluster cannot be joined: {error}",
                where=f"--ray-address {address}",
                hint="the same versions of Ray and Python there, its token in $RAY_AUTH_TOKEN here, the address "
                "of its head (HOST:6379); or leave --ray-address out: Ray then starts here",
            ) from error

    def close(self) -> None:
        self.ray.shutdown()
        if self._guard is not None:
            self._guard.end()

    def _join(self, address: str) -> None:
        try:
            self._connect(address)
        except (ConnectionError, RuntimeError, ValueError):
            if "://" in address or ":" not in address:
                raise
            self._start_node(address)

    def _connect(self, address: str) -> None:
        self.ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)

    def _start_node(self, address: str) -> None:
        self.ray.shutdown()
        self._guard = Guard()
        log = Path(self._guard.folder) / "node.log"
        with log.open("wb") as output:
            node = subprocess.Popen(
                _command(address),
                env={**os.environ, guard.VARIABLE: self._guard.folder},
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        until = time.monotonic() + JOINING_S
        while True:
            try:
                return self._connect(address)
            except (ConnectionError, RuntimeError, ValueError) as error:
                if node.poll() is not None or time.monotonic() > until:
                    said = log.read_text(errors="replace").strip()[-500:]
                    raise RuntimeError(f"{error}; the node beside it said: {said}") from error
                time.sleep(1)


def _heed_token() -> None:
    """Of itself, Ray does not use a token with a cluster whose address is given."""
    if os.environ.get("RAY_AUTH_TOKEN") and "RAY_AUTH_MODE" not in os.environ:
        os.environ["RAY_AUTH_MODE"] = "token"
        settings: Any = import_module("ray._raylet")
        settings.Config.initialize("")  # Ray has read its environment already


def _command(address: str) -> list[str]:
    program = Path(sys.executable).with_name("ray")
    options = ("--num-cpus=0", f"--object-store-memory={OBJECT_STORE_BYTES}", "--disable-usage-stats", "--block")
    return [str(program), "start", f"--address={address}", *options]
