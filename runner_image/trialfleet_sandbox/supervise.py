"""The first process of the agent's and of the scoring container: waits at its gate for a job, runs it, and exits.

    python -I -S supervise.py agent|score [FOLDER...]

Standard library only. It needs `supervisor.py`, `syscall_filter.py` and its table in the same folder. No
process of its container can read its memory or its environment, and none exists before it has connected to the
gate. The job arrives over a unix socket with six descriptors: stdin, stdout, stderr, lifeline, status, and the
report of the gateway's forwarder (`gate.py` sends them). When the lifeline closes or the job ends, everything here
ends. If another job is to follow, a job comes with a seventh: the connection for the next job. After a program has
run here, no connection is accepted by name. The FOLDERs, which only this container sees, are emptied between jobs.

Exit codes: 0 the job has ended, or the runner is gone; 143 SIGTERM before a runner connected; 4 the runner never
appeared. Only the runner gets the result of the job.
"""

from __future__ import annotations

import _socket as socket  # the full module would double the start-up time
import contextlib
import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trialfleet_sandbox import supervisor, syscall_filter
else:
    _HERE = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120 - pathlib costs start-up time
    sys.path[:0] = [_HERE]
    import supervisor
    import syscall_filter

WAIT_S = 120.0
# Pause between two checks of the gate: an eighth of the wait so far. On a node where a hundred pods start at
# once, a fixed interval took most of a core and delayed the runners.
SHORTEST_S, SHARE, LONGEST_S = 0.05, 1 / 8, 1.0
NEVER_CAME, TOLD_TO_STOP = 4, 143
DESCRIPTORS = 6


def gate(role: str) -> str:
    return f"{os.environ.get('TRIALFLEET_ROOT', '/trialfleet')}/{role}-gate/gate.sock"


def pause(waited: float) -> float:
    """Seconds until the next check, after `waited` seconds.

    >>> pause(0.0), pause(4.0), pause(60.0)
    (0.05, 0.5, 1.0)
    """
    return min(max(SHORTEST_S, SHARE * waited), LONGEST_S)


def come_in(path: str, wait_s: float) -> socket.socket | None:
    """A connection to the runner; None if the runner is gone. Raises `TimeoutError` if it never appeared."""
    began = time.monotonic()
    while (waited := time.monotonic() - began) < wait_s:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(path)
        except FileNotFoundError:
            time.sleep(pause(waited))
            continue
        except ConnectionRefusedError:
            return None
        return connection
    raise TimeoutError(f"{path}: the runner never came")


def receive(connection: socket.socket) -> tuple[list[bytes], list[int]] | None:
    """The job's fields and descriptors; None if the runner is gone without sending a job."""
    try:
        size, control, _, _ = connection.recvmsg(
            4, socket.CMSG_SPACE(4 * DESCRIPTORS + 4), socket.MSG_CMSG_CLOEXEC
        )
        told = b""
        while len(size) == 4 and len(told) < int.from_bytes(size, "big"):
            part = connection.recv(2**16)
            if not part:
                return None
            told += part
    except ConnectionResetError:
        return None
    if not told:
        return None
    ((_, _, packed),) = control
    fds = [int.from_bytes(packed[at : at + 4], sys.byteorder) for at in range(0, len(packed), 4)]
    return told.split(b"\0")[:-1], fds


def oom_kills() -> int:
    """How often the kernel has killed for memory in our cgroup, of either version; 0 where that cannot be read."""
    root, groups = "/sys/fs/cgroup", ["0::/", "0:memory:/"]
    with contextlib.suppress(OSError), open("/proc/self/cgroup", encoding="utf-8") as file:  # noqa: PTH123
        groups[:0] = file.read().split()
    for line in groups:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        name = "memory.oom_control" if controllers else "memory.events"
        found = counted(f"{root}/{controllers}{path}/{name}")
        if found is not None:
            return found
    return 0


def counted(path: str) -> int | None:
    """The counter `oom_kill` of a cgroup's file; None when there is no such file or counter."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            pairs = dict(line.split() for line in file)
    except OSError:
        return None
    return int(pairs["oom_kill"]) if "oom_kill" in pairs else None


def command(fields: list[bytes]) -> tuple[list[str], str, dict[bytes, bytes], bool]:
    """The program with its arguments, its folder and its variables, and whether it inherits the report."""
    cwd, reports, count, *rest = fields
    argv = [os.fsdecode(word) for word in rest[: int(count)]]
    pairs = [pair.partition(b"=") for pair in rest[int(count) :]]
    return argv, os.fsdecode(cwd), {name: value for name, _, value in pairs}, reports == b"1"


def run(fields: list[bytes], fds: list[int], calls: bytes) -> None:
    """Run one job to its end, kill everything that it left, and report over the status descriptor. `calls`: the
    filter of system calls; empty: none."""
    *streams, lifeline, status, report = fds
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    argv, cwd, environment, reports = command(fields)
    before, limits, spent = oom_kills(), supervisor.limits(), supervisor.core_s()

    def spoilt() -> bool:
        if supervisor.limits() != limits:  # reported at once: the kernel may kill this process for them first
            supervisor.say(status, "lowered")
            return True
        return oom_kills() > before

    main, error = supervisor.start(argv, cwd, None, environment, report if reports else None, calls)
    os.close(report)  # from here on, nothing that the program could open holds it
    if error is not None:
        supervisor.say(status, "error " + error.replace("\n", " "))
        return
    supervisor.say(status, f"started {main}")
    ended = supervisor.supervise(main, lifeline, None, spoilt)
    supervisor.say(status, f"{supervisor.accounted(ended, spent)} {max(oom_kills() - before, 0)}")


def run_all(connection: socket.socket | None, folders: list[str], calls: bytes) -> None:
    """Jobs, each over the connection that came with the one before. `folders` are emptied between them."""
    while connection is not None and (job := receive(connection)) is not None:
        fields, fds = job
        run(fields, fds[:DESCRIPTORS], calls)
        if len(fds) == DESCRIPTORS:
            return  # the end of this process hangs up
        let_go(fds[3 : DESCRIPTORS - 1])  # run() has closed the report
        for folder in folders:
            empty(folder)
        connection.close()  # the runner waits for that before it lays out the next job
        connection = socket.socket(fileno=fds[DESCRIPTORS])


def let_go(fds: list[int]) -> None:
    """Close a job's descriptors, so that the reader of its output sees the end."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    for fd in (nothing, *fds):
        os.close(fd)


def empty(root: str) -> None:
    """Remove everything in a folder, after a job; no link is followed. What cannot be removed stays."""
    folders = [root]
    for folder in folders:
        with contextlib.suppress(OSError):
            os.chmod(folder, 0o700)  # noqa: PTH101
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                    continue
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)  # noqa: PTH108
    for folder in reversed(folders[1:]):
        with contextlib.suppress(OSError):
            os.rmdir(folder)  # noqa: PTH106


def told_to_stop(*_: object) -> None:
    os._exit(TOLD_TO_STOP)


def main(role: str, *folders: str) -> int:
    supervisor.hide_process()
    supervisor.prctl(supervisor.PR_SET_CHILD_SUBREAPER, 1)
    supervisor.ignore_signals()
    calls = syscall_filter.usable_program()  # an image that lacks its table fails here, before any agent
    signal.signal(signal.SIGTERM, told_to_stop)
    try:
        connection = come_in(gate(role), float(os.environ.get("TRIALFLEET_GATE_WAIT_S", WAIT_S)))
    except TimeoutError as error:
        print(error, file=sys.stderr)
        return NEVER_CAME
    # From here on the runner, which gets SIGTERM too, decides when this process ends.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    run_all(connection, [*folders], calls)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
