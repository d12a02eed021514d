"""One contract for bubblewrap, another uid, the plain subreaper and another container."""

from __future__ import annotations

import json
import os
import re
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.support.local_pod import ContainerEach
from tests.support.ports import reserved_port
from tests.support.processes import processes_with, unique_seconds
from tests.support.waiting import wait_until
from trialfleet_sandbox.choose import choose
from trialfleet_sandbox.processes import disown, kill_adopted, owned, read
from trialfleet_sandbox.protocol import (
    Exit,
    InterpreterMissing,
    Job,
    Mount,
    Sandbox,
    SandboxError,
    inside,
    placed,
)
from trialfleet_sandbox.supervised import SUPERVISOR

KINDS = [
    pytest.param("bubblewrap", marks=pytest.mark.needs("bwrap")),
    pytest.param("uid", marks=pytest.mark.needs("root")),
    pytest.param("subreaper"),
    pytest.param("container"),
    pytest.param("container-as-pid-1", marks=pytest.mark.needs("root")),
]
PATH = "/usr/local/bin:/usr/bin:/bin"
GOING = 30.0  # seconds that killed processes may take to go on a busy machine; these sleep for years


@dataclass
class Bench:
    """A sandbox, a writable folder `work`, a read-only folder `given`, and where the output goes."""

    sandbox: Sandbox
    root: Path

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def given(self) -> Path:
        return self.root / "given"

    @property
    def mounts(self) -> tuple[Mount, ...]:
        work = placed(self.sandbox, self.work, "/workspace", writable=True)
        return (work, placed(self.sandbox, self.given, "/given"))

    def job(self, *argv: str, **changes: object) -> Job:
        job = Job(
            argv=argv,
            env={"PATH": PATH},
            cwd=inside(self.work, self.mounts),
            mounts=self.mounts,
            stdout=self.root / "out",
            stderr=self.root / "err",
            timeout_s=120,
            grace_s=1,
        )
        return replace(job, **changes)  # type: ignore[arg-type]

    def shell(self, script: str, **changes: object) -> Exit:
        return self.sandbox.run(self.job("sh", "-c", script, **changes))

    @property
    def out(self) -> str:
        return (self.root / "out").read_text()

    @property
    def err(self) -> str:
        return (self.root / "err").read_text()


def prepared(root: Path) -> Path:
    (root / "work").mkdir()
    (root / "given").mkdir()
    (root / "given" / "file").write_text("given\n")
    return root


@pytest.fixture
def ground() -> Iterator[Path]:
    """A folder that another user can walk to: pytest's own temporary folders are closed to others."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="trialfleet-test-") as folder:
        root = Path(folder)
        root.chmod(0o755)
        yield prepared(root)


@pytest.fixture(params=KINDS)
def bench(request: pytest.FixtureRequest, ground: Path) -> Bench:
    return Bench(sandbox_of(request.param, ground), ground)


def sandbox_of(kind: str, ground: Path) -> Sandbox:
    if kind.startswith("container"):
        return ContainerEach(first=kind == "container-as-pid-1", name=kind, above=ground)
    return choose(kind)


def not_before(there: Path) -> Callable[[], float]:
    """Extra time for a job until its program has made `there`: however long its start takes here, its time-out
    finds it ready."""
    return lambda: 0.0 if there.exists() else 120.0


def test_exit_code_output_and_exact_environment(bench: Bench) -> None:
    ended = bench.shell("echo out; echo err >&2; pwd; exit 7")
    assert (ended.code, ended.cause) == (7, "itself")
    assert bench.out.splitlines()[0] == "out"
    assert bench.err == "err\n"
    bench.shell("env -u PWD", env={"PATH": PATH, "A": "b=c\nd", "EMPTY": ""})
    assert set(bench.out.splitlines()[2:]) - {"SHLVL=0", "_=/usr/bin/env"} == {
        f"PATH={PATH}",
        "A=b=c",
        "d",
        "EMPTY=",
    }


def test_a_signal_reads_as_128_plus_its_number(bench: Bench) -> None:
    assert bench.shell("kill -TERM $$").code == 128 + signal.SIGTERM


def test_paths_map_and_mounts_are_there(bench: Bench) -> None:
    assert bench.shell(f"cat {inside(bench.given / 'file', bench.mounts)} && echo made > made").code == 0
    assert bench.out == "given\n"
    assert (bench.work / "made").read_text() == "made\n"


def test_a_program_that_does_not_exist_is_the_sandboxs_failure(bench: Bench) -> None:
    with pytest.raises(SandboxError, match="nosuchprogram"):
        bench.sandbox.run(bench.job("nosuchprogram"))
    with pytest.raises(SandboxError):
        bench.sandbox.run(bench.job("true", cwd="/no/such/folder"))


def test_a_program_that_exits_127_by_itself_is_no_failure_of_the_sandbox(bench: Bench) -> None:
    assert bench.shell("exit 127").code == 127


def test_stdin_arrives_whole_and_ends(bench: Bench) -> None:
    data = os.urandom(300_000)
    assert bench.sandbox.run(bench.job("cat", stdin=data)).code == 0
    assert (bench.root / "out").read_bytes() == data
    assert bench.sandbox.run(bench.job("cat")).code == 0  # no stdin: at its end at once


def test_large_stdin_that_nobody_reads_blocks_nothing(bench: Bench) -> None:
    assert bench.sandbox.run(bench.job("true", stdin=b"x" * 5_000_000)).cause == "itself"


def test_output_arrives_while_the_program_runs(bench: Bench) -> None:
    """It waits for somebody who has read its first words."""
    seen: list[bytes] = []

    def hear(chunk: bytes) -> None:
        seen.append(chunk)
        (bench.work / "heard").touch()

    ended = bench.shell("echo one; while [ ! -e heard ]; do sleep 0.05; done; echo two", on_output=hear)
    assert ended.cause == "itself"
    assert b"".join(seen) == b"one\ntwo\n"
    assert seen[0] == b"one\n"
    assert bench.out == "one\ntwo\n"


def test_output_is_capped_and_its_end_kept(bench: Bench) -> None:
    bench.shell("head -c 70000000 /dev/zero | tr '\\0' x; echo; echo the last line")
    size = (bench.root / "out").stat().st_size
    assert 64 * 2**20 < size < 66 * 2**20
    assert (bench.root / "out").read_bytes().endswith(b"xx\nthe last line\n")


def test_dev_stdout_can_be_opened(bench: Bench) -> None:
    assert bench.shell("echo hello > /dev/stdout").code == 0
    assert bench.out == "hello\n"


def test_time_out_terminates_first_and_then_kills(bench: Bench) -> None:
    loop = "touch ready; while :; do sleep 0.05; done"
    ready = bench.work / "ready"
    polite = bench.shell(
        f"trap 'echo bye; exit 0' TERM; {loop}", timeout_s=0.5, grace_s=60, extra_time_s=not_before(ready)
    )
    assert (polite.cause, bench.out) == ("timeout", "bye\n")
    assert 0.5 <= polite.wall_s < 50, "who goes is not waited for"
    ready.unlink()
    stubborn = bench.shell(f"trap '' TERM; {loop}", timeout_s=0.3, grace_s=0.5, extra_time_s=not_before(ready))
    assert (stubborn.cause, stubborn.code) == ("timeout", 137)
    assert stubborn.wall_s >= 0.8


def test_two_orders_that_a_supervisor_finds_at_once_are_both_obeyed(tmp_path: Path) -> None:
    """On a busy machine it may have no turn between SIGTERM's order and SIGKILL's."""
    lifeline_read, lifeline = os.pipe()
    stubborn = ["sh", "-c", "trap '' TERM; touch ready; exec sleep 300"]
    with (tmp_path / "status").open("wb") as status:
        told = ["--lifeline", str(lifeline_read), "--status", str(status.fileno()), "--cwd", str(tmp_path), "--"]
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(SUPERVISOR), *told, *stubborn],
            pass_fds=[lifeline_read, status.fileno()],
        )
    os.close(lifeline_read)
    try:
        wait_until((tmp_path / "ready").exists, within_s=60)
        process.send_signal(signal.SIGSTOP)
        assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
        os.write(lifeline, b"T")
        os.write(lifeline, b"K")
        process.send_signal(signal.SIGCONT)
        assert process.wait(60) == 0
    finally:
        os.close(lifeline)
        process.wait()
    assert "exit 137 " in (tmp_path / "status").read_text()


def test_throttled_time_is_added_to_the_budget(bench: Bench) -> None:
    assert bench.shell("sleep 0.8", timeout_s=0.3, extra_time_s=lambda: 60.0).cause == "itself"
    late = bench.shell("sleep 60", timeout_s=0.3, extra_time_s=lambda: 0.3)
    assert (late.cause, late.wall_s < 30) == ("timeout", True)


def test_another_thread_stops_it(bench: Bench) -> None:
    stop = threading.Event()

    def stop_it() -> None:
        wait_until((bench.work / "begun").exists, within_s=60)
        stop.set()

    threading.Thread(target=stop_it).start()
    ended = bench.shell("touch begun; sleep 60", stop=stop, timeout_s=60)
    assert ended.cause == "stopped"
    assert ended.wall_s < 30


def test_core_time_counts_the_whole_tree(bench: Bench) -> None:
    ended = bench.shell("(i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done) & wait; times")
    spent = sum(float(seconds) for _, seconds in re.findall(r"(\d+)m([\d.]+)s", bench.out.splitlines()[1]))
    assert spent > 0.1
    assert ended.core_s is not None
    assert spent - 0.02 <= ended.core_s < spent + 0.3


def test_core_time_of_what_was_killed_counts_too(bench: Bench) -> None:
    spin = "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; touch spun; while :; do :; done"
    ended = bench.shell(f"({spin}) & sleep 200", timeout_s=0.3, extra_time_s=not_before(bench.work / "spun"))
    assert ended.cause == "timeout"
    assert ended.core_s is not None
    assert ended.core_s > 0.1


@pytest.mark.parametrize("bench", KINDS[:-2], indirect=True)  # a container has its own limit of memory
def test_memory_of_the_whole_tree_is_limited(bench: Bench) -> None:
    eat = "(head -c 70000000 /dev/zero; sleep 60) | tail -c 70000000 >/dev/null"  # tail holds them all
    ended = bench.shell(f"({eat}) & ({eat}) & wait", memory_bytes=100 * 2**20, timeout_s=60)
    assert (ended.cause, ended.code) == ("memory", 137)
    alone = bench.shell(eat.replace("60", "1"), memory_bytes=100 * 2**20, timeout_s=60)
    assert alone.cause == "itself"


def test_disk_is_limited_while_it_runs_and_at_the_end(bench: Bench) -> None:
    (bench.work / "before").write_bytes(os.urandom(3_000_000))
    fill = "head -c 8000000 /dev/urandom > big; sync big"
    running = bench.shell(f"{fill}; sleep 100", disk_bytes=5_000_000, timeout_s=100)
    assert running.cause == "disk"
    (bench.work / "big").unlink()
    assert bench.shell(fill, disk_bytes=5_000_000).cause == "disk"  # however soon it ends
    (bench.work / "big").unlink()
    assert bench.shell("echo little > little; rm before", disk_bytes=5_000_000).cause == "itself"


DAEMON = "(setsid sh -c 'sleep {token} & sleep {token}' >/dev/null 2>&1 </dev/null &) ; "


def test_nothing_survives_a_normal_end(bench: Bench) -> None:
    token = unique_seconds()
    ended = bench.shell(DAEMON.format(token=token) + "sleep 0.3; exit 0")
    assert ended.code == 0
    assert processes_with(token) == []


def test_a_daemon_that_holds_the_output_open_delays_nothing(bench: Bench) -> None:
    token = unique_seconds()
    ended = bench.shell(f"setsid sleep {token} & echo done", timeout_s=60)
    assert (ended.cause, ended.wall_s < 30) == ("itself", True)
    assert bench.out == "done\n"
    assert processes_with(token) == []


def test_nothing_survives_a_time_out(bench: Bench) -> None:
    token = unique_seconds()
    ended = bench.shell(f"trap '' TERM; {DAEMON.format(token=token)} sleep {token}", timeout_s=0.5, grace_s=0.2)
    assert ended.cause == "timeout"
    assert processes_with(token) == []


def test_nothing_survives_an_exception_of_the_caller(bench: Bench) -> None:
    token = unique_seconds()

    def broken(chunk: bytes) -> None:
        raise RuntimeError("the caller's own")

    with pytest.raises(RuntimeError, match="the caller's own"):
        bench.shell(f"{DAEMON.format(token=token)} echo x; sleep {token}", on_output=broken)
    assert processes_with(token) == []


CALLER = """
import json, sys
from pathlib import Path
from tests.integration.test_sandbox_contract import sandbox_of
from trialfleet_sandbox.protocol import Job, placed
name, root, script = sys.argv[1:]
root = Path(root)
sandbox = sandbox_of(name, root)
mounts = (placed(sandbox, root / "work", "/workspace", writable=True),)
sandbox.run(Job(argv=("sh", "-c", script), env={"PATH": "/usr/bin:/bin"},
    cwd=mounts[0].target, mounts=mounts, stdout=root / "out", stderr=root / "err",
    timeout_s=60))
"""


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_survives_the_callers_death(bench: Bench, by: signal.Signals) -> None:
    token = unique_seconds()
    script = f"trap '' TERM; {DAEMON.format(token=token)} setsid sleep {token} & sleep {token}"
    caller = subprocess.Popen([sys.executable, "-c", CALLER, bench.sandbox.name, str(bench.root), script])
    wait_until(lambda: len(processes_with(f"sleep\0{token}")) == 4, within_s=60)
    caller.send_signal(by)
    caller.wait()
    wait_until(lambda: processes_with(token) == [], within_s=GOING)


@pytest.mark.parametrize("after_ms", [0, 8, 16, 30])
def test_nothing_survives_a_caller_that_dies_while_the_sandbox_is_set_up(bench: Bench, after_ms: int) -> None:
    """Bubblewrap's own death with its parent takes hold only after its set-up: here it left a whole sandbox
    running in half of the tries."""
    token = unique_seconds()
    script = f"setsid sleep {token} & sleep {token}"
    program = CALLER.replace("sandbox.run(", "print(flush=True); sandbox.run(")
    argv = [sys.executable, "-c", program, bench.sandbox.name, str(bench.root), script]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as caller:
        assert caller.stdout is not None
        caller.stdout.readline()
        time.sleep(after_ms / 1000)
        caller.kill()
    time.sleep(0.2)  # what is still starting must not be taken for dead
    wait_until(lambda: processes_with(token) == [], within_s=GOING)


def test_no_descriptor_but_the_three_reaches_the_program(bench: Bench) -> None:
    with (bench.root / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        bench.shell("ls -l /proc/self/fd | sed 's/.* \\([0-9]* ->\\)/\\1/' | grep -v /proc/")
    assert {line.split()[0] for line in bench.out.splitlines() if "->" in line} == {"0", "1", "2"}


def test_many_at_once_from_threads(bench: Bench, tmp_path: Path) -> None:
    codes: dict[int, int] = {}

    def one(n: int) -> None:
        (bench.root / str(n)).mkdir()
        own = Bench(bench.sandbox, prepared(bench.root / str(n)))  # a job's writable folders are its own
        job = own.job("sh", "-c", f"setsid sleep 50 & sleep 0.2; exit {n}", stdout=tmp_path / f"out{n}")
        codes[n] = own.sandbox.run(job).code

    threads = [threading.Thread(target=one, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == {n: n for n in range(6)}


def test_another_threads_end_spares_what_is_just_starting() -> None:
    """A job that ends kills the orphans that came to this process: a supervisor that another thread has started
    and not named yet is none."""

    def start() -> subprocess.Popen[bytes]:
        process = subprocess.Popen(["sleep", unique_seconds()], start_new_session=True)
        other.start()
        other.join(0.3)
        return process

    other = threading.Thread(target=kill_adopted)
    process = owned(start)
    other.join()
    assert process.poll() is None
    disown(process.pid)
    kill_adopted()
    assert read(process.pid) is None


def test_a_program_that_kills_its_supervisor_leaves_nothing_behind(ground: Path) -> None:
    bench = Bench(choose("subreaper"), ground)
    token = unique_seconds()
    ended = bench.shell(f"{DAEMON.format(token=token)} sleep 0.2; kill -9 $PPID; sleep {token}")
    assert ended.code == 137
    wait_until(lambda: processes_with(token) == [], within_s=GOING)


SEND_ALL = """
import os, re, signal, time
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    try:
        os.kill(os.getppid(), number)
    except PermissionError:
        pass
time.sleep(1.5)
ignored = int(re.search("SigIgn:\\t(.*)", open("/proc/self/status").read())[1], 16)
# Python ignores two by itself. The C library's own, which no program can ask for, are ignored below GNU make.
ours = signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}
print(ignored & sum(1 << number - 1 for number in ours))
raise SystemExit(7)
"""


def test_no_signal_that_can_be_ignored_ends_a_supervisor(bench: Bench) -> None:
    ended = bench.sandbox.run(bench.job("python3", "-c", SEND_ALL))
    assert (ended.code, ended.cause, bench.err) == (7, "itself", "")
    assert bench.out == "0\n", "a program is started with no signal ignored"


LOWER = """
import os, re, resource, sys, time
for name in sorted(name for name in dir(resource) if re.fullmatch(sys.argv[1], name)):
    try:
        resource.prlimit(os.getppid(), getattr(resource, name), (0, 0))
    except PermissionError:
        os._exit(7)
time.sleep(9)
raise SystemExit(7)
"""


def test_lower_limits_of_a_supervisor_are_its_programs_own_doing(bench: Bench) -> None:
    ended = bench.sandbox.run(bench.job("python3", "-c", LOWER, "RLIMIT_(?!CPU).*", timeout_s=60))
    assert ended.cause == "itself"
    assert ended.code in (7, 137), bench.err
    assert ended.wall_s < 30


def test_a_supervisor_without_cpu_time_ends_its_program(bench: Bench) -> None:
    """The kernel ends it at the first tick that finds it running: in about one run of thirty before it has looked
    at its limits, and what ended a container is then not known."""
    ended = bench.sandbox.run(bench.job("python3", "-c", LOWER, "RLIMIT_CPU", timeout_s=60))
    assert ended.cause == "itself" or (ended.cause == "memory" and bench.sandbox.capabilities.separate_container)
    assert ended.code in (7, 137), bench.err
    assert ended.wall_s < 30


def test_a_supervisor_that_is_stopped_ends_with_its_programs_time(ground: Path) -> None:
    bench = Bench(choose("subreaper"), ground)
    token = unique_seconds()
    ended = bench.shell(f"kill -STOP $PPID; sleep {token}", timeout_s=1)
    assert (ended.cause, ended.code) == ("timeout", 137)
    wait_until(lambda: processes_with(token) == [], within_s=GOING)


@pytest.mark.needs("root")
def test_uid_owns_its_workspace_and_nothing_else(ground: Path) -> None:
    bench = Bench(choose("uid"), ground)
    (bench.work / "own").write_text("x")
    (bench.root / "mine").write_text("secret")
    (bench.root / "mine").chmod(0o600)
    link = bench.work / "link"
    link.symlink_to(bench.root / "mine")
    bench.shell(f"id -u; id -G; echo y > own; cat link; cat {bench.root}/mine; grep NoNewPrivs /proc/self/status")
    uid, groups, new_privileges = bench.out.splitlines()
    assert int(uid) >= 20000
    assert groups == uid
    assert new_privileges.split() == ["NoNewPrivs:", "1"]
    assert (bench.root / "mine").stat().st_uid == 0
    assert bench.err.count("Permission denied") == 2


class Greeting(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.recv(100)
        self.request.sendall(b"from the gateway\n")


@contextmanager
def gateway(path: Path) -> Generator[None]:
    """Answers on a unix socket."""
    with socketserver.UnixStreamServer(str(path), Greeting) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def test_the_gateway_is_reached_at_its_port(bench: Bench) -> None:
    path = bench.root / "gateway.sock"
    with reserved_port() as port, gateway(path):
        ask = f"exec 3<>/dev/tcp/127.0.0.1/{port}; echo hello >&3; head -1 <&3; exit 5"
        ended = bench.sandbox.run(bench.job("bash", "-c", ask, gateway=path, gateway_port=port))
    assert (ended.code, bench.out) == (5, "from the gateway\n"), bench.err


def test_behind_the_gateway_signals_arrive_and_a_missing_program_is_told(bench: Bench) -> None:
    path = bench.root / "gateway.sock"
    with reserved_port() as port, gateway(path):
        changes = {"gateway": path, "gateway_port": port}
        times = {"timeout_s": 0.3, "grace_s": 60, "extra_time_s": not_before(bench.work / "ready")}
        polite = bench.shell("trap 'echo bye; exit 0' TERM; touch ready; sleep 300 & wait", **times, **changes)
        assert (polite.cause, bench.out) == ("timeout", "bye\n")
        assert polite.wall_s < 50, "who goes is not waited for"
        with pytest.raises(SandboxError, match="nosuchprogram"):
            bench.sandbox.run(bench.job("nosuchprogram", **changes))


FORGERY = """
import glob, os, sys, time
time.sleep(0.0 if sys.argv[1:] else 0.5)  # its parents have closed what they close after a start
above, pids = os.getppid(), sys.argv[1:]
while above > 1 and len(pids) < 2:  # the forwarder and the supervisor
    pids.append(str(above))
    above = int(open(f"/proc/{above}/stat").read().rpartition(")")[2].split()[1])
for name in (name for pid in pids for name in glob.glob(f"/proc/{pid}/fd/*")):
    try:
        if "/proc/self/" not in name and os.readlink(name).startswith("pipe:"):
            fd = os.open(name, os.O_WRONLY | os.O_NONBLOCK)
            os.write(fd, b"no such program")
    except OSError:
        pass
os.write(2, b"forwarder: python3: No such file or directory\\n")
os._exit(127)
"""


def test_a_program_cannot_forge_that_it_was_never_executed(bench: Bench) -> None:
    """Not by an exit code, by what it prints, or by a pipe of its parents: that would be a loss and a second
    try."""
    apart = bench.sandbox.capabilities.isolates_network or bench.sandbox.capabilities.other_uid
    whose = ("*", "*") if apart else ()  # else it may write into the runner's pipes, but not into its parents'
    path = bench.root / "gateway.sock"
    with reserved_port() as port, gateway(path):
        changes = {"gateway": path, "gateway_port": port}
        ended = bench.sandbox.run(bench.job("python3", "-c", FORGERY, *whose, **changes))
    if apart or os.geteuid():  # else root writes into its supervisor's other pipes, too
        assert ended.code == 127
        assert "No such file" in bench.err


def test_a_forwarder_that_never_executes_the_program_is_no_crash_of_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hangs, or what it needs is missing: the agent has done nothing."""
    script = bench.work / "agent.sh"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    path, slow = bench.root / "gateway.sock", bench.root / "forwarder.py"
    for module in ("supervised", "bubblewrap"):
        monkeypatch.setattr(f"trialfleet_sandbox.{module}.FORWARDER", slow)
    for text, timeout_s, why in (
        ("import time; time.sleep(99)", 1, "did not execute it within the time limit"),
        ("raise SystemExit('No such file or directory')", 60, "ended before it: No such file"),
    ):
        slow.write_text(text)
        with reserved_port() as port, gateway(path):
            changes = {"gateway": path, "gateway_port": port, "timeout_s": timeout_s, "grace_s": 0.1}
            with pytest.raises(SandboxError, match=why) as caught:
                bench.sandbox.run(bench.job(inside(script, bench.mounts), **changes))
        assert not isinstance(caught.value, InterpreterMissing)
        path.unlink()


@pytest.mark.parametrize("served", [False, True], ids=["alone", "behind the gateway"])
def test_a_missing_interpreter_is_told_from_a_missing_program(bench: Bench, *, served: bool) -> None:
    script = bench.work / "agent.sh"
    script.write_text("#!/no/such/interpreter -x\necho never\n")
    script.chmod(0o755)
    path = bench.root / "gateway.sock"
    with reserved_port() as port, gateway(path):
        changes = {"gateway": path, "gateway_port": port} if served else {}
        with pytest.raises(InterpreterMissing, match="#!/no/such/interpreter -x"):
            bench.sandbox.run(bench.job(inside(script, bench.mounts), **changes))
        with pytest.raises(SandboxError) as caught:
            bench.sandbox.run(bench.job(inside(bench.work / "no-agent.sh", bench.mounts), **changes))
    assert not isinstance(caught.value, InterpreterMissing)


def test_choose_reports_and_refuses() -> None:
    from trialfleet_ledger.errors import OperatorError
    from trialfleet_sandbox.choose import isolation_report

    report = isolation_report()
    assert [line.name for line in report] == ["bubblewrap", "uid", "subreaper"]
    assert choose().name == next(line.name for line in report if line.available)
    assert all(line.hint for line in report if not line.available)
    with pytest.raises(OperatorError, match="one of: bubblewrap"):
        choose("jail")
    json.dumps([line.name for line in report])
