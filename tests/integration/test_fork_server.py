"""Runners that are forked from one process: each begins as if it had been executed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.processes import alive
from tests.support.waiting import wait_until
from trialfleet_controller.backends.local import processes
from trialfleet_controller.backends.local.process_backend import ProcessBackend
from trialfleet_controller.backends.protocol import AttemptId, Order
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.local_launch import LAST_WORDS

# Its "grants" name what the runner does: it writes what it finds, then spoils all that another could inherit.
SERVER = """
import functools, json, os, random, resource, signal, socket, sys, tempfile, threading, time
from pathlib import Path
from trialfleet_runner.attempt import fork_server

@functools.cache
def once(): return os.getpid()
spoilt = []

def run(path):
    word = path.name
    if word == "exit": return 7
    if word == "sleep": time.sleep(250)
    where = {int(fd): os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
             if os.path.exists(f"/proc/self/fd/{fd}")}
    print(json.dumps({
        "environ": dict(os.environ), "cwd": os.getcwd(), "umask": os.umask(0o22), "files": where,
        "mask": len(signal.pthread_sigmask(signal.SIG_BLOCK, [])), "threads": threading.active_count(),
        "term": signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, "leads": os.getsid(0) == os.getpid(),
        "random": random.random(), "name": next(tempfile._get_candidate_names()), "cached": once() == os.getpid(),
        "spoilt": spoilt, "path": sys.path, "nice": os.nice(0), "argv": sys.argv[1:],
        "limits": [resource.getrlimit(limit) for limit in range(16)],
    }), flush=True)
    os.environ["SPOILT"] = "1"; os.chdir("/"); os.umask(0o777); spoilt.append(1); random.seed(1)
    os.set_inheritable(os.open("/etc/passwd", os.O_RDONLY), True); sys.path.append("spoilt"); os.nice(5)
    signal.signal(signal.SIGTERM, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (99, 99))
    threading.Thread(target=time.sleep, args=(0.1,)).start()
    return 0

fork_server.local_runner.main = run
sys.exit(fork_server.main(int(sys.argv[1])))
"""


@pytest.fixture
def launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[processes.RunnerLauncher]:
    monkeypatch.setattr(processes, "FORK_SERVER", (sys.executable, "-c", SERVER))
    launcher = processes.create_launcher(None, tmp_path)
    yield launcher
    launcher.close()


def server_of(runner: processes.RunnerProcess) -> int:
    return int(Path(f"/proc/{runner.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])


def ended(runner: processes.RunnerProcess) -> int | None:
    assert processes.wait_any([runner.pidfd], 60) == {runner.pidfd}
    return runner.reap()


def report(launcher: processes.RunnerLauncher, log: Path, *, last_words: Path | None = None) -> dict[str, Any]:
    assert ended(launcher.start(Path("report"), log, last_words=last_words)) == 0, log.read_text(encoding="utf-8")
    value: dict[str, Any] = json.loads(log.read_bytes())
    return value


def test_nothing_leaks_from_one_runner_to_the_next(launcher: processes.RunnerLauncher, tmp_path: Path) -> None:
    first = report(launcher, tmp_path / "1.log", last_words=tmp_path / "words")
    assert first["environ"].pop(LAST_WORDS) == str(tmp_path / "words")
    others = [report(launcher, tmp_path / f"{number}.log") for number in (2, 3)]
    for own in ("random", "name"):
        assert len({runner.pop(own) for runner in (first, *others)}) == 3, own
    for number, runner in enumerate((first, *others), 1):
        files = {int(fd): path for fd, path in runner.pop("files").items()}
        log = str(tmp_path / f"{number}.log")
        assert files == {0: "/dev/null", 1: log, 2: log}
    assert others == [first, first]
    assert (first["cwd"], first["nice"], first["threads"], first["mask"]) == (str(Path.cwd()), os.nice(0), 1, 0)
    assert first["term"]
    assert first["leads"]
    assert first["cached"]
    here = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    assert {name: first["environ"].get(name) for name in here} == here


def test_an_end_is_seen_as_that_of_an_executed_runner(launcher: processes.RunnerLauncher, tmp_path: Path) -> None:
    assert ended(launcher.start(Path("exit"), tmp_path / "log")) == 7
    for number in (signal.SIGTERM, signal.SIGKILL) * 5:
        runner = launcher.start(Path("sleep"), tmp_path / "log")
        signal.pidfd_send_signal(runner.pidfd, number)  # at once: none is lost before the runner is ready
        assert ended(runner) == -number


def test_runners_die_with_the_process_that_forked_them(launcher: processes.RunnerLauncher, tmp_path: Path) -> None:
    running = launcher.start(Path("sleep"), tmp_path / "log")
    server = server_of(running)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        os.kill(server, number)  # as an agent of the same user can
    assert ended(launcher.start(Path("exit"), tmp_path / "log")) == 7
    os.kill(server, signal.SIGKILL)
    assert ended(running) is None
    assert ended(launcher.start(Path("exit"), tmp_path / "log")) == 7, "another serves"
    launcher.close()
    wait_until(lambda: not alive(server), "the end")


def test_the_reason_of_a_server_that_cannot_start_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "FORK_SERVER", (sys.executable, "-c", "raise SystemExit('no such module')"))
    broken = processes.create_launcher(None, tmp_path)
    with pytest.raises(OperatorError, match="no such module"):
        broken.start(Path("exit"), tmp_path / "log")


def test_a_server_ends_with_its_clients_connection() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    argv = [*processes.FORK_SERVER, str(theirs.fileno())]
    with theirs, subprocess.Popen(argv, pass_fds=[theirs.fileno()]) as server:
        theirs.close()
        ours.close()
        assert server.wait(60) == 0


def test_a_fork_that_fails_costs_no_other_runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = SERVER.replace("fork_server.local_runner.main = run", FAILS_ONCE)
    monkeypatch.setattr(processes, "FORK_SERVER", (sys.executable, "-c", broken))
    launcher = processes.create_launcher(None, tmp_path)
    running = launcher.start(Path("sleep"), tmp_path / "log")
    for _ in range(2):
        with pytest.raises(BlockingIOError):
            launcher.start(Path("exit"), tmp_path / "log")
    assert ended(launcher.start(Path("exit"), tmp_path / "log")) == 7
    assert alive(running.pid)
    processes.send_signal(running.pidfd, signal.SIGKILL)
    assert ended(running) == -signal.SIGKILL
    launcher.close()


# The second process and the third's pidfd: the machine has no more for a moment.
FAILS_ONCE = """
def failing(call, at, seen=[]):
    def tried(*args):
        seen.append(call)
        if seen.count(call) == at: raise BlockingIOError(11, "Resource temporarily unavailable")
        return call(*args)
    return tried
os.fork, os.pidfd_open = failing(os.fork, 2), failing(os.pidfd_open, 2)
fork_server.local_runner.main = run
"""


def test_a_server_that_somebody_stops_is_replaced(
    launcher: processes.RunnerLauncher, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert ended(launcher.start(Path("exit"), tmp_path / "log")) == 7
    launcher.close()
    monkeypatch.setattr(processes, "ANSWER_S", 8.0)
    monkeypatch.setattr(processes, "ENDS_WITHIN_S", 1.0)
    running = launcher.start(Path("sleep"), tmp_path / "log")
    os.kill(server_of(running), signal.SIGSTOP)
    assert ended(launcher.start(Path("exit"), tmp_path / "log")) == 7
    assert ended(running) is None


def test_a_backend_outlives_its_fork_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sleeping = SERVER.replace("word = path.name", "word = 'sleep'")
    monkeypatch.setattr(processes, "FORK_SERVER", (sys.executable, "-c", sleeping))
    backend = ProcessBackend(slots=2, work=tmp_path)
    order = Order(AttemptId("a-trial", 1), b"{}")
    backend.launch(order)
    (server,) = (child for child in psutil.Process().children() if sleeping in child.cmdline())
    (running,) = server.children()
    server.kill()
    psutil.wait_procs([running], timeout=60)
    backend.stop([order.id], grace_s=0)
    (finished,) = backend.poll(5)
    assert finished.departure.code is None
    backend.close()


@pytest.mark.needs("root")
def test_the_server_is_hidden_from_its_own_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Like its runners: what could write its memory could change every later one."""
    become = "os.setgid(65534); os.setuid(65534); prctl(PR_SET_DUMPABLE, 1); sys.exit("
    script = SERVER.replace("sys.exit(", become) + "\n"
    imports = "from trialfleet_sandbox.supervisor import PR_SET_DUMPABLE, prctl\n"
    monkeypatch.setattr(processes, "FORK_SERVER", (sys.executable, "-c", imports + script))
    launcher = processes.create_launcher(None, tmp_path)
    running = launcher.start(Path("sleep"), tmp_path / "log")
    for pid in (running.pid, server_of(running)):
        assert Path(f"/proc/{pid}/mem").stat().st_uid == 0, "the kernel gives a hidden process's files to root"
    launcher.close()
