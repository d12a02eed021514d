"""The filter of system calls, run by a small interpreter of its instructions."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest

from trialfleet_sandbox.syscall_filter import AUDIT_ARCH, filter_program, read_table

ALLOW = 0x7FFF0000


def answer(program: bytes, machine: str, number: int, *arguments: int) -> int:
    """0: allowed; else the error."""
    data = struct.pack("=IIQ6Q", number, AUDIT_ARCH[machine], 0, *(*arguments, *(6 * [0]))[:6])
    at = accumulator = 0
    while True:
        code, if_true, if_false, value = struct.unpack_from("=HBBI", program, 8 * at)
        at += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, value)
            case 0x06:
                return 0 if value == ALLOW else value & 0xFFFF
            case _:
                tests = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: accumulator & value != 0}
                at += if_true if tests[code] else if_false


@pytest.mark.parametrize("machine", AUDIT_ARCH)
def test_exactly_the_calls_of_the_table_exist(machine: str) -> None:
    program, numbers = filter_program(machine), read_table(machine)
    allowed = {number for number in range(600) if answer(program, machine, number) != errno.ENOSYS}
    assert allowed == {*numbers.values()}
    assert answer(program, machine, 0x40000000 + numbers["read"]) == errno.ENOSYS
    other = next(name for name in AUDIT_ARCH if name != machine)
    assert answer(program, other, numbers["read"]) == errno.ENOSYS
    assert not {"keyctl", "add_key", "bpf", "io_uring_setup", "userfaultfd", "unshare", "clone3"} & {*numbers}


@pytest.mark.parametrize("machine", AUDIT_ARCH)
def test_arguments_that_decide(machine: str) -> None:
    program, numbers = filter_program(machine), read_table(machine)

    def of(name: str, *arguments: int) -> int:
        return answer(program, machine, numbers[name], *arguments)

    assert [of("socket", family) for family in (1, 2, 10, 16)] == 4 * [0]
    assert {of(name, family) for name in ("socket", "socketpair") for family in (0, 17, 38, 40)} == {
        errno.EAFNOSUPPORT
    }
    assert [of("clone", flags) for flags in (17, 0x3D0F00, 0x10000011, 0x40000011)] == [0, 0, 1, 1]
    assert [of("clone", flags) for flags in (0x10000, 0x10400, 0x400)] == [errno.EINVAL, 0, 0]
    assert [of("close_range", 3, 2**32 - 1, flags) for flags in (0, 4, 2, 6)] == [0, 0, errno.EINVAL, errno.EINVAL]
    sizes = (0, 56, 2**14, 2**14 + 1, 2**30, 2**32, 2**40 + 56)
    assert [of("shmget", 0, size) for size in sizes] == [0, 0, 0, *(4 * [errno.EINVAL])]
    assert [of("personality", value) for value in (0, 8, 0x20008, 0xFFFFFFFF, 0x40000)] == [0, 0, 0, 0, 1]


def test_an_unknown_machine_has_no_filter() -> None:
    assert filter_program("riscv64") == b""


HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


@pytest.mark.parametrize("machine", HEADERS)
def test_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    if not HEADERS[machine].exists():
        pytest.skip("no headers of the kernel")
    defined = dict(re.findall(r"#define (__NR\w+) (\w+)", HEADERS[machine].read_text()))
    table = read_table(machine)
    values = {name: defined.get(f"__NR_{name}", "") for name in table}
    known = {name: int(defined.get(value, value)) for name, value in values.items() if value}
    assert len(known) > 200
    assert known == {name: table[name] for name in known}
