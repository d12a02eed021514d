"""Which addresses a pod reaches that its NetworkPolicy should refuse."""

from __future__ import annotations

import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Literal

from trialfleet_runner.pod_report import CanaryAddress

CONNECT_S = 3.0
AGAIN_S = 0.5


def addresses_of(text: str) -> tuple[str, ...]:
    """host:port, separated by spaces or commas.

    >>> addresses_of("10.0.0.1:443, node:10250"), addresses_of(" ")
    (('10.0.0.1:443', 'node:10250'), ())
    """
    return tuple(filter(None, re.split(r"[,\s]+", text)))


def reached(
    addresses: tuple[str, ...], *, patience_s: float = 0.0, connect_s: float = CONNECT_S
) -> tuple[CanaryAddress, ...]:
    """Try all addresses concurrently. An address that answers is tried again for `patience_s`: plug-ins that
    follow the API server isolate a pod only after they learn its address."""
    if not addresses:
        return ()
    with ThreadPoolExecutor(len(addresses)) as pool:
        return tuple(pool.map(partial(_reach_until_cut, patience_s, connect_s), addresses))


def verdict(canary: tuple[CanaryAddress, ...]) -> Literal["enforced", "unenforced"] | None:
    """None: nothing was tried.

    >>> verdict((CanaryAddress(address="a:1", answer="timeout"), CanaryAddress(address="b:1", answer="connected")))
    'unenforced'
    """
    tried = [one for one in canary if one.answer != "unresolved"]
    if not tried:
        return None
    return "unenforced" if any(one.answer == "connected" for one in tried) else "enforced"


def _reach_until_cut(patience_s: float, connect_s: float, address: str) -> CanaryAddress:
    until = time.monotonic() + patience_s
    last = first = _reach(address, connect_s)
    while last.answer == "connected" and time.monotonic() < until:
        time.sleep(AGAIN_S)
        last = _reach(address, connect_s)
    return last.model_copy(update={"at_first": first.answer == "connected" != last.answer})


def _reach(address: str, connect_s: float) -> CanaryAddress:
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        return CanaryAddress(address=address, answer="unresolved")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=connect_s):
            return CanaryAddress(address=address, answer="connected")
    except (socket.gaierror, ValueError):  # a name that cannot be encoded, a port above 65535
        return CanaryAddress(address=address, answer="unresolved")
    except TimeoutError:
        return CanaryAddress(address=address, answer="timeout")
    except OSError:
        return CanaryAddress(address=address, answer="refused")
