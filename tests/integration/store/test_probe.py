"""A store that does not keep its promises is refused before anything is run."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stores import REAL, Place, admin, bucket_at
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.store.open import open_store
from trialfleet_ledger.store.probe import examine, probe
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.store.retry_policy import Patience


def test_the_probe_passes_and_leaves_nothing(place: Place, store: Store) -> None:
    report = probe(store, signatures=place.signs or place.kind == "directory")
    assert not report.broken
    assert len(report.checks) >= 11
    assert list(store.list("")) == []


def test_the_probe_refuses_a_server_that_checks_no_signatures(moto: str) -> None:
    store = open_store(f"s3://{bucket_at(moto)}/root", endpoint=moto)
    with pytest.raises(OperatorError, match="without its condition is refused: HTTP 200"):
        probe(store)
    assert [check.name for check in examine(store).broken] == ["a grant without its condition is refused"]


LIFECYCLE = {
    "Rules": [{"ID": "old-runs", "Status": "Enabled", "Filter": {"Prefix": "root/"}, "Expiration": {"Days": 30}}]
}


@pytest.mark.parametrize("server", ["moto", pytest.param("radosgw", marks=pytest.mark.needs("s3"))])
def test_the_probe_refuses_a_bucket_whose_objects_expire(server: str, request: pytest.FixtureRequest) -> None:
    endpoint = request.getfixturevalue("moto") if server == "moto" else os.environ[REAL[server]]
    bucket = bucket_at(endpoint)
    admin(endpoint).put_bucket_lifecycle_configuration(  # type: ignore[attr-defined]
        Bucket=bucket, LifecycleConfiguration=LIFECYCLE
    )
    signatures = server != "moto"
    with pytest.raises(OperatorError, match="nothing expires: lifecycle rule old-runs"):
        probe(open_store(f"s3://{bucket}/root", endpoint=endpoint), signatures=signatures)
    assert not probe(open_store(f"s3://{bucket}/other", endpoint=endpoint), signatures=signatures).broken


@pytest.fixture(scope="module")
def rclone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server that accepts conditional writes and ignores them."""
    folder = tmp_path_factory.mktemp("rclone")
    program = Path(sys.executable).with_name("rclone")
    argv = [program, "serve", "s3", "--addr", "127.0.0.1:0", "--auth-key", "testkey,testsecret", folder]
    server = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env={"HOME": str(folder)})
    try:
        yield _address(server)
    finally:
        server.kill()
        server.wait()


def _address(server: subprocess.Popen[str]) -> str:
    assert server.stderr is not None
    for line in server.stderr:
        if "http://127.0.0.1:" in line:
            port = line.rsplit("http://127.0.0.1:", 1)[1].split("/", 1)[0].strip('\n]" ')
            threading.Thread(target=server.stderr.read, daemon=True).start()  # its pipe must not fill
            return f"http://127.0.0.1:{port}"
    raise AssertionError("rclone did not start")


def test_the_probe_refuses_a_store_that_ignores_conditions(rclone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testkey")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testsecret")
    store = open_store(f"s3://{bucket_at(rclone)}/root", endpoint=rclone, patience=Patience(total_s=20))
    broken = {check.name: check.detail for check in examine(store).broken}
    assert "creates once" in broken
    assert "a grant creates once" in broken
    assert "a create has one winner" in broken
    with pytest.raises(OperatorError, match="is refused as a store"):
        probe(store)
