"""A Ray cluster that asks for a token, joined by its address: $RAY_AUTH_TOKEN alone opens it."""

from __future__ import annotations

import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from trialfleet_controller.hosting.joined_ray import node_here

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(900)]

JOIN = str(Path(__file__).parents[1] / "support/join_ray.py")
TOKEN = secrets.token_hex(32)
STARTED = "Ray runtime started"
RAYS_OWN_WAIT_S = 60  # for a node on this machine, before it says that there is none


def environment(home: str, **more: str) -> dict[str, str]:
    """Without what this process has of Ray, and without the token that Ray keeps in the home."""
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith("RAY_")},
        "HOME": home,
        **more,
    }


@pytest.fixture
def home() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder:  # the paths of Ray's sockets stay short
        yield folder


def head_of(home: str, folder: str, port: int) -> tuple[subprocess.Popen[str], str]:
    """A head of a cluster, and what it said until it had started, or failed to."""
    head = subprocess.Popen(
        [
            str(Path(sys.executable).with_name("ray")), "start", "--head", f"--port={port}", "--num-cpus=1",
            "--include-dashboard=false", "--object-store-memory=80000000", "--disable-usage-stats", "--block",
            f"--temp-dir={home}/{folder}",
        ],
        env=environment(home, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=TOKEN),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip
    assert head.stdout is not None
    said = ""
    for line in head.stdout:
        said += line
        if STARTED in line:
            break
    return head, said


@pytest.fixture
def address(home: str) -> Iterator[str]:
    said = ""
    for folder in "rst":  # on a busy machine a start takes longer than Ray's own patience, which nothing sets
        with socket.socket() as free:
            free.bind(("", 0))
            port = free.getsockname()[1]
        head, said = head_of(home, folder, port)
        if STARTED in said:
            break
        head.communicate()
    else:
        pytest.fail(f"no head: {said}")
    assert head.stdout is not None
    node = re.search(r"Local node IP\D*(\d+(?:\.\d+){3})", re.sub(r"\x1b\[\d+m", "", said))
    assert node is not None, said
    yield f"{node[1]}:{port}"
    below = psutil.Process(head.pid).children(recursive=True)
    head.terminate()
    with suppress(subprocess.TimeoutExpired):
        head.wait(30)
    head.kill()
    for process in below:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    head.wait()
    psutil.wait_procs(below, timeout=60)  # what still goes may write into the folder that is removed next
    head.stdout.close()


def test_the_token_alone_opens_a_cluster(home: str, address: str) -> None:
    program = [sys.executable, JOIN, address]
    env = environment(home, RAY_AUTH_TOKEN=TOKEN)
    joined = subprocess.run(program, env=env, capture_output=True, text=True, timeout=200)
    assert "answer 42" in joined.stdout, joined.stderr
    assert TOKEN not in joined.stdout + joined.stderr


@pytest.mark.needs("root", "unshare")
def test_a_machine_without_a_node_of_the_cluster_joins_without_a_minutes_wait(home: str, address: str) -> None:
    """In a process namespace of its own, where no node is to be seen, as on another machine."""
    program = [sys.executable, JOIN, address]
    apart = ["unshare", "--pid", "--fork", "--mount-proc"]
    env = environment(home, RAY_AUTH_TOKEN=TOKEN)
    joined = subprocess.run([*apart, *program], env=env, capture_output=True, text=True, timeout=300)
    assert "answer 42" in joined.stdout, joined.stderr
    assert float(joined.stdout.split("joined after ")[1].split()[0]) < RAYS_OWN_WAIT_S


def test_a_node_of_another_cluster_is_none_of_this_one(address: str) -> None:
    assert node_here(address)
    host, _, port = address.rpartition(":")
    assert not node_here(f"{host}:{int(port) + 1}")
