"""What programs in a sandbox try against the kernel; each attack acts without the sandbox (its control)."""

from __future__ import annotations

import errno
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_sandbox_contract import Bench, bench, ground
from tests.integration.test_sandbox_limits import LOCAL
from trialfleet_sandbox import bubblewrap, syscall_filter
from trialfleet_sandbox.supervisor import leave_session_keyring

__all__ = ["bench", "ground"]  # fixtures

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the programs hold numbers of x86_64")

KEYS = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*given):
    result = libc.syscall(*given)
    return result if result >= 0 else -ctypes.get_errno()
def add(name, value):
    return call(248, b"user", name, value, len(value), -3)
def read(name):
    key, text = call(250, 10, -3, b"user", name, 0), ctypes.create_string_buffer(99)
    if key >= 0:
        call(250, 11, key, text, 99)
    return key if key < 0 else text.value
"""
READ_AND_LEAVE = f"""{KEYS}
listed = "".join(open("/proc/keys")) if len(sys.argv) < 2 else ""
print(read(b"of-the-operator"), read(b"of-a-trial"), add(b"of-a-trial", b"left"), "of-the-operator" in listed)
"""


@pytest.fixture
def keys() -> dict[str, Any]:
    """The functions of `KEYS`, in this process: it has a session keyring, as after a login."""
    functions: dict[str, Any] = {}
    exec(KEYS, functions)
    if functions["call"](250, 1, None) < 0:
        pytest.skip("this machine refuses keyrings")
    functions["add"](b"of-the-operator", b"secret")
    return functions


def test_no_key_of_the_operator_or_of_another_trial_is_read(bench: Bench, keys: dict[str, Any]) -> None:
    command = ["/usr/bin/python3", "-c", READ_AND_LEAVE]
    control = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    again = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert control.startswith(f"b'secret' {-errno.ENOKEY} ")
    assert control.endswith(" True\n")
    assert again.startswith("b'secret' b'left' ")
    keys["call"](250, 1, None)
    keys["add"](b"of-the-operator", b"secret")
    for _ in range(2):
        bench.sandbox.run(bench.job(*command, "without /proc/keys, which bubblewrap hides"))
    refused = f"{-errno.ENOSYS} {-errno.ENOSYS} {-errno.ENOSYS} False\n"
    assert (bench.out, bench.err) == (2 * refused, "")
    assert keys["read"](b"of-a-trial") == -errno.ENOKEY


def test_the_session_keyring_is_another_one(keys: dict[str, Any]) -> None:
    """Also where no filter refuses keyring calls."""
    child = os.fork()
    if child == 0:
        leave_session_keyring()
        os._exit(0 if keys["read"](b"of-the-operator") == -errno.ENOKEY else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert keys["read"](b"of-the-operator") == b"secret"


CALLS = {  # name: number, arguments; each works, or fails for its arguments alone, without a filter
    "io_uring_setup": "425, 1, None",
    "bpf": "321, 0, None, 0",
    "perf_event_open": "298, None, 0, -1, -1, 0",
    "userfaultfd": "323, 0",
    "keyctl": "250, 0, -3, 0",
    "request_key": "249, b'user', b'x', None, 0",
    "unshare": "272, 0x10000000",
    "setns": "308, -1, 0",
    "mount": "165, None, None, None, 0, None",
    "memfd_secret": "447, 0xff",
    "a call of a later kernel": "4000",
    "x32": "0x40000000 + 39",
}
TRY = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(*given):
    result = libc.syscall(*given)
    return 0 if result >= 0 else ctypes.get_errno()
"""


def test_calls_that_are_not_on_the_list_do_not_exist(bench: Bench) -> None:
    script = TRY + "".join(f"print({name!r}, call({given}))\n" for name, given in CALLS.items())
    plain = subprocess.run(["/usr/bin/python3", "-c", script], capture_output=True, text=True, check=True).stdout
    acting = [line for line in plain.splitlines() if not line.endswith(f" {errno.ENOSYS}")]
    assert len(acting) >= 6, plain
    bench.sandbox.run(bench.job("/usr/bin/python3", "-c", script))
    assert bench.out.splitlines() == [f"{name} {errno.ENOSYS}" for name in CALLS], bench.err


NAMESPACES = """
import os
print(call(56, 0x10000000 | 17, None, None, None, None) or 'a user of its own', flush=True)
os._exit(0)
"""
FAMILIES = """
import socket
for number in range(1, 46):
    for kind in (1, 2, 3, 5):
        try:
            socket.socket(number, kind).close()
        except OSError:
            continue
        print(number)
        break
"""


def test_sockets_are_of_four_families(bench: Bench) -> None:
    plain = subprocess.run(["/usr/bin/python3", "-c", FAMILIES], capture_output=True, text=True, check=True).stdout
    if set(plain.split()) <= {"1", "2", "10", "16"}:
        pytest.skip("this kernel has no other families")
    bench.sandbox.run(bench.job("/usr/bin/python3", "-c", FAMILIES))
    assert set(bench.out.split()) <= {"1", "2", "10", "16"}
    assert {"1", "2"} <= set(bench.out.split()), bench.err


def test_no_program_makes_a_user_namespace(bench: Bench) -> None:
    bench.sandbox.run(bench.job("/usr/bin/python3", "-c", TRY + NAMESPACES))
    assert bench.out == f"{errno.EPERM}\n"


@LOCAL
def test_programs_run_where_the_kernel_has_no_filters(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syscall_filter, "has_filters", lambda: False)
    bubblewrap.usable_filters.cache_clear()
    try:
        ended = bench.sandbox.run(bench.job("/bin/grep", "Seccomp_filters:", "/proc/self/status"))
    finally:
        bubblewrap.usable_filters.cache_clear()
    assert ended.code == 0, bench.err
    assert bench.out in Path("/proc/self/status").read_text(encoding="utf-8")
