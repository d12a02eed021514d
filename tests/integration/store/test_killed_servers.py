"""Servers killed while they are written to lose and double nothing."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.stores import REAL, bucket_at
from trialfleet_ledger.store.open import open_store


@pytest.mark.faults
@pytest.mark.needs("s3", "faults")
@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("server", ["radosgw", "versitygw"])
def test_a_server_killed_under_writers_loses_and_doubles_nothing(server: str) -> None:
    """`$TRIALFLEET_FAULT <server>` kills it with SIGKILL and starts it again."""
    fault = os.environ["TRIALFLEET_FAULT"]
    endpoint = os.environ[REAL[server]]
    store = open_store(f"s3://{bucket_at(endpoint)}/root", endpoint=endpoint)
    stop = threading.Event()

    def write(writer: int) -> dict[str, bytes]:
        won: dict[str, bytes] = {}
        while not stop.is_set():
            key, data = f"k/{len(won):05}-{writer % 2}", b"%d" % writer * 5000
            if store.create(key, data):
                won[key] = data
            else:
                won[key] = b""  # its rival's
        return won

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, n) for n in range(4)]
        time.sleep(1)
        subprocess.run([*fault.split(), server], check=True, timeout=120, capture_output=True)
        time.sleep(1)
        stop.set()
        claims = [writer.result() for writer in writers]
    for key, data in store.get_many(sorted({key for claim in claims for key in claim})):
        holders = [claim[key] for claim in claims if claim.get(key)]
        assert data is not None, f"{key} was acknowledged and is gone"
        assert holders == [data], f"{key}: {len(holders)} were told that they had won"
