"""Runs one program so that nothing of it outlives its caller: a separate script, standard library only.

    python -I -S supervisor.py --lifeline FD --status FD [--uid N] [--inherited FD,FD] [--filter FD] [--group DIR]
        --cwd DIR -- ARGV...

The caller alone holds the other end of the lifeline. A "T" on it means SIGTERM to the program; "K" or its end
(the caller is dead, also by SIGKILL) means SIGKILL to everything. As a child subreaper it inherits daemons
that left their session, so it finds all of them below itself. It ends only when nothing is left, and writes
one status line when the program was executed (`started PID` or `error TEXT`) and one at the end (`exit CODE
CORE_SECONDS PEAK_BYTES`). Only the program keeps the descriptors that it inherits: a program of the same user can
open none of them here, nor any other descriptor of this process. The program alone enters the cgroup `--group`,
which is removed here if the caller is dead.

It imports little: json, argparse and typing would double its start-up time, which every job pays.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
import time
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# execvpe imports it, when another user may no longer be able to read the library.
_PRELOADED = (warnings,)
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
REAP_S, REAP_AT_ONCE = 1.0, 256
REMOVALS = 50
REPORT_FD = 3  # of the gateway's forwarder, in a container
INSTRUCTION_BYTES = 8  # struct sock_filter
KEYCTL = {"x86_64": 250, "aarch64": 219}  # the system call's number
KEYCTL_JOIN_SESSION_KEYRING = 1
LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]


def prctl(option: int, value: object, third: object = 0) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, third, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


class FilterProgram(ctypes.Structure):
    """struct sock_fprog"""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def filter_calls(program: bytes) -> None:
    """From now on, this process and those that it starts have only the system calls that the filter allows, and
    cannot gain privileges."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    described = FilterProgram(len(program) // INSTRUCTION_BYTES, program)
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(described))


def leave_session_keyring() -> None:
    """Replace the keyring that a login gave to all processes of its session by an empty one. Where that fails (an
    account's quota of keys), the filter of system calls still refuses every use of keys."""
    number = KEYCTL.get(os.uname().machine)
    if number is not None:
        ctypes.CDLL(None).syscall(number, KEYCTL_JOIN_SESSION_KEYRING, None)


def enter_group(folder: str) -> None:
    """Move this process into a cgroup."""
    with open(f"{folder}/cgroup.procs", "wb", buffering=0) as file:  # noqa: PTH123
        file.write(b"0")


def remove_group(folder: str) -> None:
    """Remove an empty cgroup. A process that was collected just now may still be counted in it."""
    for _ in range(REMOVALS):
        with contextlib.suppress(OSError):
            os.rmdir(folder)  # noqa: PTH106
            return
        time.sleep(0.02)


def hide_process() -> None:
    """From now on no other process of this user reads this one's memory, environment or open files, or traces it.
    A program that is executed later is visible again."""
    prctl(PR_SET_DUMPABLE, 0)


def ignore_signals(but: tuple[int, ...] = ()) -> None:
    """Ignore every signal that a process of the same user may send, except SIGKILL and SIGSTOP."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, *but}:
        signal.signal(number, signal.SIG_IGN)


def hear_signals() -> None:
    """Restore the default handlers: an ignored signal would stay ignored in the executed program."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)


def limits() -> list[tuple[int, int]]:
    """This process's resource limits. A process of the same user may lower them until the kernel ends this one."""
    return [resource.getrlimit(kind) for kind in LIMITS]


def original_environment() -> dict[bytes, bytes]:
    """As it was given, before the interpreter added its locale."""
    with open("/proc/self/environ", "rb") as file:  # noqa: PTH123 - pathlib costs start-up time
        pairs = [item.partition(b"=") for item in file.read().split(b"\0") if b"=" in item]
    return {name: value for name, _, value in pairs}


def descendants() -> list[int]:
    found: list[int] = []
    todo = [os.getpid()]
    while todo:
        pid = todo.pop()
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
                with open(f"/proc/{pid}/task/{task}/children", "rb") as file:  # noqa: PTH123
                    below = [int(child) for child in file.read().split()]
                found += below
                todo += below
    return found


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def kill_user(uid: int) -> None:
    """SIGKILL to every process of the user in one system call, which a fork bomb cannot outrun."""
    child = os.fork()
    if child == 0:
        os.setresuid(uid, uid, uid)
        send(-1, signal.SIGKILL)
        os._exit(0)
    os.waitpid(child, 0)


def kill_everything(uid: int | None, statuses: dict[int, int]) -> None:
    while True:
        if os.getpid() == 1:  # of a container: everyone else in it, in one system call
            send(-1, signal.SIGKILL)
        else:
            kill_descendants()
        if uid is not None:
            kill_user(uid)
        if not reap(statuses):
            return
        time.sleep(0.002)


def kill_descendants() -> None:
    for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first: what is stopped does not fork
        for pid in descendants():
            send(pid, number)


def reap(statuses: dict[int, int]) -> bool:
    """Collect some dead children: a fork bomb makes them faster than they can be collected. Returns whether any
    child is left."""
    try:
        for _ in range(REAP_AT_ONCE):
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            statuses[pid] = status
    except ChildProcessError:
        return False
    return True


def start(
    argv: list[str],
    cwd: str,
    uid: int | None,
    environment: dict[bytes, bytes],
    report: int | None = None,
    calls: bytes = b"",
    group: str | None = None,
) -> tuple[int, str | None]:
    """The program's pid, and why it could not be executed. `report`: a descriptor that it inherits as
    `REPORT_FD`. `calls`: a filter of system calls; empty: none. `group`: the cgroup that it enters."""
    failed_read, failed_write = os.pipe()
    first = os.getpid() == 1
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            if group is not None:
                enter_group(group)
            leave_session_keyring()
            if report is not None:
                failed_write = os.dup(failed_write)  # may be REPORT_FD
                os.dup2(report, REPORT_FD)
                os.set_inheritable(REPORT_FD, True)
            if first:  # in a container of its own this costs it nothing, and a fork bomb cannot starve us
                os.nice(19)
            if uid is not None:
                for fd in (1, 2):
                    os.fchown(fd, uid, uid)  # so that /dev/stdout can be opened
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                prctl(PR_SET_NO_NEW_PRIVS, 1)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            hear_signals()
            os.chdir(cwd)
            if calls:
                filter_calls(calls)
            os.execvpe(argv[0], argv, environment)  # noqa: S606 - no shell is the point
        except BaseException as error:
            os.write(failed_write, f"{argv[0]}: {error}".encode(errors="replace"))
        os._exit(127)
    os.close(failed_write)
    with open(failed_read, "rb") as file:  # noqa: PTH123
        return child, file.read().decode(errors="replace") or None


def supervise(main: int, lifeline: int, uid: int | None, spoilt: Callable[[], bool] = lambda: False) -> int:
    """The program's wait status; nothing of it is left alive. `spoilt` is called once a second: True ends it."""
    statuses: dict[int, int] = {}
    with contextlib.suppress(ProcessLookupError):
        exited = os.pidfd_open(main)
        while main not in statuses:
            ready, _, _ = select.select([lifeline, exited], [], [], REAP_S)
            if lifeline in ready:
                said = os.read(lifeline, 16)
                if not said or b"K" in said:  # behind a "T" as well: they may be found at once
                    break
                send(main, signal.SIGTERM)
            reap(statuses)
            if not ready and spoilt():
                break
    kill_everything(uid, statuses)
    return statuses[main]


def say(fd: int, line: str) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(fd, line.encode() + b"\n")


def named(options: list[str]) -> dict[str, str]:
    return dict(zip(options[::2], options[1::2], strict=True))


def core_s() -> float:
    """CPU seconds of all collected children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def accounted(status: int, before_s: float = 0.0) -> str:
    """The record of an end: code, core seconds without those `before_s`, most bytes of one process so far."""
    code, peak = os.waitstatus_to_exitcode(status), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return f"exit {code if code >= 0 else 128 - code} {core_s() - before_s:.6f} {peak}"


def read_all(descriptor: str | None) -> bytes:
    """What a descriptor holds, which is closed; nothing without one."""
    if descriptor is None:
        return b""
    with open(int(descriptor), "rb") as file:  # noqa: PTH123
        return file.read()


def run(given: list[str]) -> int:
    split = given.index("--")
    options, argv = named(given[:split]), given[split + 1 :]
    lifeline, report = int(options["--lifeline"]), int(options["--status"])
    uid = int(options["--uid"]) if "--uid" in options else None
    for fd in (lifeline, report):
        os.set_inheritable(fd, False)
    environment = original_environment()
    hide_process()
    ignore_signals()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    before, caller, group = limits(), os.getppid(), options.get("--group")
    calls = read_all(options.get("--filter"))
    main, error = start(argv, options["--cwd"], uid, environment, calls=calls, group=group)
    for number in filter(None, options.get("--inherited", "").split(",")):
        os.close(int(number))
    if error is not None:
        say(report, "error " + error.replace("\n", " "))
        return 127
    say(report, f"started {main}")
    say(report, accounted(supervise(main, lifeline, uid, lambda: limits() != before)))
    if group is not None and os.getppid() != caller:
        remove_group(group)
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
