"""Bubblewrap: own process, network, user and mount namespaces; only what a job names is visible."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath

from trialfleet_sandbox import processes
from trialfleet_sandbox.drive import Descriptors, memory_file
from trialfleet_sandbox.interpreter import FORWARDER, forwarded, last_line, own_interpreter, site_packages
from trialfleet_sandbox.protocol import Exit, Job, Mount, SandboxCapabilities
from trialfleet_sandbox.supervised import Launch, report_pipe, supervise
from trialfleet_sandbox.syscall_filter import usable_program

CAPABILITIES = SandboxCapabilities(maps_paths=True, isolates_network=True, hides_host_folders=True)
UID = GID = 1000
TMP_BYTES = 2**30  # limit of /tmp and of /dev/shm, which are memory
_INSIDE = "/run/trialfleet"
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# No folder that holds private keys (/etc/ssl/private, /etc/pki/tls/private): root inside reads what root owns.
_ETC = (
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "nsswitch.conf",
    "ssl/certs",
    "ssl/openssl.cnf",
    "ca-certificates.conf",
    "pki/ca-trust/extracted",
    "pki/tls/certs",
    "alternatives",
    "localtime",
    "timezone",
    "services",
    "protocols",
    "mime.types",
    "maven/m2.conf",
    "maven/logging",
    "java-17-openjdk",
    "java-21-openjdk",
)
_FILES = {
    "/etc/passwd": f"agent:x:{UID}:{GID}::/home/agent:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
    "/etc/group": f"agent:x:{GID}:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
}
_NAMESPACES = (
    *("--unshare-all", "--unshare-user", "--disable-userns", "--uid", str(UID), "--gid", str(GID)),
    *("--die-with-parent", "--new-session", "--hostname", "sandbox", "--cap-drop", "ALL", "--clearenv"),
)


def bind(mount: Mount) -> list[str]:
    return ["--bind" if mount.writable else "--ro-bind", str(mount.source), mount.target]


def masks(prefix: Path) -> list[str]:
    """Hide the packages of a base interpreter."""
    arguments: list[str] = []
    for folder in site_packages(prefix):
        arguments += ["--size", "4096", "--tmpfs", str(folder), "--remount-ro", str(folder)]
    return arguments


@cache
def system_binds() -> tuple[str, ...]:
    """Read-only mounts of the system: programs, libraries and the few files of /etc that they read."""
    arguments: list[str] = []
    for folder in map(Path, _SYSTEM):
        if folder.is_symlink():
            arguments += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            arguments += ["--ro-bind", str(folder), str(folder)]
    for name in _ETC:
        if (Path("/etc") / name).exists():
            arguments += ["--ro-bind", f"/etc/{name}", f"/etc/{name}"]
    for prefix in (Path("/usr"), Path("/usr/local")):
        arguments += masks(prefix)
    arguments += _distribution_packages()
    return tuple(arguments)


def _distribution_packages() -> list[str]:
    """Debian keeps packages in /usr/lib/python3, outside every interpreter's own folder."""
    folder = Path("/usr/lib/python3/dist-packages")
    already = folder in site_packages(Path("/usr"))
    return ["--tmpfs", str(folder), "--remount-ro", str(folder)] if folder.is_dir() and not already else []


_FORWARDER_INSIDE, _SOCKET_INSIDE = f"{_INSIDE}/forwarder.py", f"{_INSIDE}/gateway.sock"


def shown_mounts(job: Job) -> tuple[Mount, ...]:
    """The job's mounts, with those of the gateway's forwarder when there is a gateway."""
    if job.gateway is None:
        return job.mounts
    _, mounts = own_interpreter()
    covered = [m for m in mounts if m.target not in {given.target for given in job.mounts}]
    return (*covered, *job.mounts, Mount(FORWARDER, _FORWARDER_INSIDE), Mount(job.gateway, _SOCKET_INSIDE))


def wrapped(job: Job, report: int | None) -> tuple[str, ...]:
    """The job's argv, behind the gateway's forwarder when there is a gateway. `report`: of `report_pipe`."""
    if report is None:
        return job.argv
    python, _ = own_interpreter()
    return forwarded(job, python=python, script=_FORWARDER_INSIDE, socket=_SOCKET_INSIDE, report=report)


def arguments(job: Job, files: dict[str, int]) -> list[str]:
    """Bubblewrap's options for a job. `files`: path inside -> descriptor of its text.

    Mounts go from the outer to the inner folder. The root, /dev and /proc are read-only at the end: as root on
    the host, a program inside is the host's user 0 to /proc/sys, which asks for no capability.
    """
    found = [*_NAMESPACES, *(_network() if job.network else ()), *system_binds()]
    for path, fd in files.items():
        found += ["--ro-bind-data", str(fd), path]
    found += ["--proc", "/proc", "--dev", "/dev", "--dir", "/var/tmp"]  # noqa: S108 - a folder inside
    for folder in ("/tmp", "/dev/shm"):  # noqa: S108
        found += ["--perms", "1777", "--size", str(TMP_BYTES), "--tmpfs", folder]
    for mount in sorted(shown_mounts(job), key=lambda m: len(PurePosixPath(m.target).parts)):
        found += bind(mount)
        if not mount.writable and mount.source.is_dir() and str(mount.source) == mount.target:
            found += masks(mount.source)
    for name in ("/proc/keys", "/proc/key-users"):  # of the host's user, who is ours
        found += ["--ro-bind-try", os.devnull, name]
    found += ["--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/"]
    for name, value in job.env.items():
        found += ["--setenv", name, value]
    return [*found, "--chdir", job.cwd]


def _network() -> list[str]:
    """The host's network, and the file that says who resolves names."""
    resolver = Path("/etc/resolv.conf")
    shown = ["--ro-bind", str(resolver.resolve()), str(resolver)] if resolver.exists() else []
    return ["--share-net", *shown]


@dataclass
class _Namespace:
    """Bubblewrap's status messages, one JSON object a line."""

    status_fd: int
    _said: bytearray = field(default_factory=bytearray)

    def _values(self, key: str) -> list[int]:
        self._said += processes.read_available(self.status_fd)
        lines = bytes(self._said).splitlines(keepends=True)
        said = [json.loads(line) for line in lines if line.endswith(b"\n")]
        return [line[key] for line in said if key in line]

    def executed(self) -> bool:
        """Whether the program itself was executed: bubblewrap reports an exit code only then."""
        return bool(self._values("exit-code"))

    def terminate(self) -> bool:
        """SIGTERM to the program, which is the first child of the namespace's pid 1 (to bubblewrap itself it
        would be the end of everything, without grace). The gateway's forwarder passes it on."""
        program = [child for init in self._values("child-pid") for child in processes.children(init)[:1]]
        for pid in program:
            processes.send(pid, signal.SIGTERM)
        return bool(program)


@dataclass(frozen=True)
class Bubblewrap:
    """Own pid, network, ipc, uts, cgroup, user and mount namespaces; every capability dropped."""

    program: str
    name: str = "bubblewrap"
    capabilities: SandboxCapabilities = CAPABILITIES
    warnings: tuple[str, ...] = ()

    def run(self, job: Job) -> Exit:
        with Descriptors() as held:
            files = {path: held.keep(memory_file(path, text.encode())) for path, text in _FILES.items()}
            told = b"".join(os.fsencode(a) + b"\0" for a in arguments(job, files))
            given = held.keep(memory_file("arguments", told))
            status, status_write = held.pipe()
            os.set_blocking(status, False)
            namespace = _Namespace(status)
            report, forwarders = report_pipe(job, held)
            calls = [held.keep(memory_file("filter", program)) for program in usable_filters()]
            fds = (*files.values(), given, status_write, *calls, *forwarders)
            argv = wrapped(job, forwarders[0] if forwarders else None)
            command = self._command(given, status_write, calls, argv)
            launch = Launch(command, {}, "/", None, fds, namespace.terminate)

            def failure() -> str | None:
                return None if namespace.executed() else last_line(job.stderr)

            return supervise(job, launch, held, report, failure)

    def _command(self, given: int, status: int, calls: list[int], argv: tuple[str, ...]) -> tuple[str, ...]:
        """Arguments travel in a descriptor, and the environment is empty: pid 1 inside is bubblewrap itself, and
        its command line and environment can be read there."""
        options = ("--args", str(given), "--json-status-fd", str(status), *_filtered(calls))
        return (self.program, *options, "--", *argv)


def bubblewrap_program() -> str:
    """Path of bubblewrap, or its bare name when it is not installed."""
    return shutil.which("bwrap") or "bwrap"


def _filtered(calls: list[int]) -> list[str]:
    return [word for fd in calls for word in ("--seccomp", str(fd))]


@cache
def probe() -> str | None:
    """Why bubblewrap cannot be used on this machine; None: it works. Runs it once per process."""
    return None if usable_filters() else _problem(b"")


@cache
def usable_filters() -> tuple[bytes, ...]:
    """The filter of system calls; none where bubblewrap cannot install it. Runs bubblewrap once per process."""
    program = usable_program()
    return (program,) if program and _problem(program) is None else ()


def _problem(calls: bytes) -> str | None:
    """Why bubblewrap does not run with this filter; empty: without one."""
    program = bubblewrap_program()
    if not shutil.which(program):
        return "bubblewrap is not installed"
    command = [program, *_NAMESPACES, *system_binds(), "--proc", "/proc", "--dev", "/dev"]
    with Descriptors() as held:
        fds = [held.keep(memory_file("filter", calls))] if calls else []
        return _failure_of([*command, *_filtered(fds), "--", "true"], fds)


def _failure_of(command: list[str], fds: list[int]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, env={}, timeout=20, check=False, pass_fds=fds)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not run: {error}"
    if done.returncode != 0:
        return f"bubblewrap is installed, but: {done.stderr.decode(errors='replace').strip()[-300:]}"
    return None
