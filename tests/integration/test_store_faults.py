"""Writers of a directory store killed at random moments: a visible key is always whole."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trialfleet_ledger.store import grants
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.store.key_syntax import TEMPORARY

ROUNDS = 40

# A writer prefixes every value with its SHA-256. `how` is a store's create, a grant's, or (the control) what a
# store must not do: O_EXCL and write, on a disk so slow that most kills strike while it does.
KILL_WRITERS = """
import hashlib, itertools, os, pathlib, random, signal, sys, time
from trialfleet_ledger.store import grants
from trialfleet_ledger.store.directory import DirectoryStore
root, how, rounds = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
store = DirectoryStore(root)
store.create("c/first", hashlib.sha256(b"").hexdigest().encode())

def naive(key, data):
    with open(root / key, "xb", buffering=0) as file:
        part = len(data) // 16 + 1
        for at in range(0, len(data), part):
            file.write(data[at:at + part])
            time.sleep(0.001)

create = {
    "store": store.create,
    "grant": lambda key, data: grants.create(store.grant_put(key, expires_s=60), data),
    "naive": naive,
}[how]

def write(name, ready):
    for n in itertools.count():
        body = os.urandom(random.choice((100, 100_000, 2_000_000)))
        create(f"c/{name}-{n}", hashlib.sha256(body).hexdigest().encode() + body)
        os.write(ready, b".")

for name in range(rounds):
    written, ready = os.pipe()
    child = os.fork()
    if child == 0:
        write(name, ready)
    os.read(written, 1)  # it has written once, whatever else this machine does
    time.sleep(random.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(written), os.close(ready)
"""


def kill_writers(root: Path, how: str) -> None:
    argv = [sys.executable, "-c", KILL_WRITERS, str(root), how, str(ROUNDS)]
    subprocess.run(argv, check=True, timeout=120)


def torn(store: DirectoryStore) -> list[str]:
    """Keys whose value is not what their writer meant."""
    found = []
    for key, value in store.get_many([entry.key for entry in store.list("")]):
        assert value is not None
        if hashlib.sha256(value[64:]).hexdigest().encode() != value[:64]:
            found.append(key)
    return found


@pytest.mark.parametrize("how", ["store", "grant"])
def test_a_killed_writer_leaves_no_torn_value(tmp_path: Path, how: str) -> None:
    store = DirectoryStore(tmp_path / "root")
    kill_writers(store.root, how)
    assert len(list(store.list("c/"))) > ROUNDS
    assert torn(store) == []
    left = list(store.root.rglob(f"{TEMPORARY}*"))
    assert left, "no writer was killed within a write: this test saw nothing"
    assert store.sweep(older_than_s=-1) == len(left)
    assert not list(store.root.rglob(f"{TEMPORARY}*"))
    assert torn(store) == []


def test_the_naive_way_tears(tmp_path: Path) -> None:
    """The control: the same killing finds torn values where they can be."""
    store = DirectoryStore(tmp_path / "root")
    kill_writers(store.root, "naive")
    assert torn(store)


SWEPT = """
import json, sys, time
from trialfleet_ledger.store.directory import DirectoryStore
import pathlib
store = DirectoryStore(pathlib.Path(sys.argv[1]))
won, enough = 0, pathlib.Path(sys.argv[2])
while not enough.exists():
    won += store.create(f"c/{won % 3}/{won}", b"x" * 1000)
    store.put("c/live/beat", b"%d" % won)
    store.delete(f"c/{won % 3}/{won - 2}")
print(json.dumps(won))
"""


def test_sweeping_under_a_writer_breaks_nothing(tmp_path: Path) -> None:
    """`gc` may take a temporary or an empty folder away from a live writer: it starts that write again."""
    store = DirectoryStore(tmp_path / "root")
    store.put("c/live/beat", b"0")
    argv = [sys.executable, "-c", SWEPT, str(store.root), str(tmp_path / "enough")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as writer:
        swept, began = 0, time.monotonic()
        while writer.poll() is None:
            swept += store.sweep(older_than_s=-1)
            time.sleep(0.01)
            passed = time.monotonic() - began
            if passed > (2 if swept else 60):
                (tmp_path / "enough").touch()
        assert writer.stdout is not None
        won = json.loads(writer.stdout.read())
    assert writer.returncode == 0
    assert swept > 0, "nothing was taken away: this test saw nothing"
    assert store.get("c/live/beat") == b"%d" % won


def test_a_killed_writer_does_not_block_the_next(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "root")
    store.create("c/first", b"")
    (store.root / "c" / f"{TEMPORARY}99999-dead").write_bytes(b"half of an end")
    assert store.get("c/end.json") is None
    assert grants.create(store.grant_put("c/end.json", expires_s=60), b"whole")
    assert store.get("c/end.json") == b"whole"
