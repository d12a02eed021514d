"""Joins an existing Ray cluster, and leaves it unchanged."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from trialfleet_controller.hosting import ray_reaper
from trialfleet_controller.hosting.on_ray import NAMESPACE
from trialfleet_controller.hosting.private_ray import OBJECT_STORE_BYTES, RayReaper, job_config, quietly, use_token
from trialfleet_ledger.errors import OperatorError

JOINING_S = 60.0


class JoinedRay:
    """`address`: as Ray takes it. HOST:PORT needs a Ray node on this machine; if there is none, one without CPUs
    is started, and it ends with this process. Raises `OperatorError` if the cluster cannot be joined."""

    def __init__(self, address: str) -> None:
        self._reaper: RayReaper | None = None
        self._node: subprocess.Popen[bytes] | None = None
        self.ray = quietly()
        if os.environ.get("RAY_AUTH_TOKEN"):
            use_token()
        try:
            self._join(address)
        except Exception as error:
            self.close()
            raise OperatorError(
                f"the Ray cluster cannot be joined: {error}",
                where=f"--ray-address {address}",
                hint="the same versions of Ray and Python there, its token in $RAY_AUTH_TOKEN here, the address "
                "of its head (HOST:6379); or leave out --ray-address to start Ray here",
            ) from error

    def cut_off(self) -> bool:
        """Whether the node that was started here has ended. A node ends after a minute without its head, and no
        Ray driver recovers from that."""
        return self._node is not None and self._node.poll() is not None

    def close(self) -> None:
        self.ray.shutdown()
        if self._reaper is not None:
            self._reaper.end()

    def _join(self, address: str) -> None:
        by_head = ":" in address and "://" not in address
        if by_head and not node_here(address):
            return self._start_node(address)
        return self._connect(address)

    def _connect(self, address: str) -> None:
        own = {} if "://" in address else {"job_config": job_config()}  # Ray's client is such a job by itself
        self.ray.init(
            address=address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR, **own
        )

    def _start_node(self, address: str) -> None:
        self.ray.shutdown()
        self._reaper = RayReaper()
        log = Path(self._reaper.folder) / "node.log"
        with log.open("wb") as output:
            self._node = node = subprocess.Popen(
                _command(address),
                env={**os.environ, ray_reaper.VARIABLE: self._reaper.folder},
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
                    raise RuntimeError(f"{error}; its node on this machine said: {said}") from error
                time.sleep(1)


def node_here(address: str) -> bool:
    """Whether a node of the cluster with the head at `address` (HOST:PORT) runs on this machine. Ray itself
    waits a minute before it reports that there is none."""
    services: Any = import_module("ray._private.services")
    named: frozenset[str] = services.find_gcs_addresses()
    return bool(named) and not named.isdisjoint(
        {services.canonicalize_bootstrap_address(address), *_numeric(address)}
    )


def _numeric(address: str) -> set[str]:
    """`address` with the host's IP addresses; empty if its name is not resolved."""
    host, _, port = address.rpartition(":")
    try:
        found = socket.getaddrinfo(host, port, proto=socket.IPPROTO_TCP)
    except OSError:
        return set()
    return {f"{info[4][0]}:{port}" for info in found}


def _command(address: str) -> list[str]:
    program = Path(sys.executable).with_name("ray")
    options = ("--num-cpus=0", f"--object-store-memory={OBJECT_STORE_BYTES}", "--disable-usage-stats", "--block")
    return [str(program), "start", f"--address={address}", *options]
