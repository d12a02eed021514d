"""A filter of system calls for every program in a sandbox: what is not on the list does not exist.

`system_calls.tsv` has the allowed calls with their numbers. Its reference is the profile of calls that Docker
allows a container without capabilities, without io_uring and without memory that no account shows
(`memfd_secret`). All other calls, also of the 32-bit and x32 interfaces, fail with ENOSYS, as on a kernel that
lacks them: libraries then use their older way. Standard library only: a pod's supervisor imports it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

TABLE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "system_calls.tsv")  # noqa: PTH118, PTH120
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # linux/audit.h
SOCKET_FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK
PERSONALITIES = (0, 8, 0x20000, 0x20008, 0xFFFFFFFF)  # as Docker: Linux with its variants, and "which one is it"
CLONE_FILES, CLONE_THREAD, CLOSE_RANGE_UNSHARE = 0x400, 0x10000, 2
NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
SHARED_MEMORY_BYTES = 2**14  # of one System V segment; a namespace has at most 4,096, and no account shows them
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data, little endian
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # linux/bpf_common.h
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000  # linux/seccomp.h


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _fail(number: int) -> bytes:
    return _instruction(_RETURN, _ERRNO | number)


_ALLOWED = _instruction(_RETURN, _ALLOW)


def usable_program() -> bytes:
    """The filter for this machine; empty where the kernel has no filters, or the table lacks the processor."""
    return filter_program(os.uname().machine) if has_filters() else b""


def has_filters() -> bool:
    """Whether this kernel has filters of system calls. It then refuses no filter at all as a bad address."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, None, 0, 0)
    return ctypes.get_errno() == errno.EFAULT


def filter_program(machine: str) -> bytes:
    """The filter as an array of `struct sock_filter`; empty for a machine whose numbers are not in the table."""
    if machine not in AUDIT_ARCH or sys.maxsize < 2**32:
        return b""
    numbers = read_table(machine)
    return b"".join(
        [
            _instruction(_LOAD, _ARCHITECTURE),
            _instruction(_EQUAL, AUDIT_ARCH[machine], if_true=1),
            _fail(errno.ENOSYS),
            _instruction(_LOAD, _NUMBER),
            *_by_argument(numbers),
            *_search(_boundaries(numbers.values()), allowed=False),
        ]
    )


def read_table(machine: str) -> dict[str, int]:
    """Allowed calls with their numbers on this machine."""
    with open(TABLE, encoding="ascii") as file:  # noqa: PTH123
        names, *rows = (line.split() for line in file)
    column = names.index(machine)
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


def _by_argument(numbers: dict[str, int]) -> list[bytes]:
    """Calls that are allowed with some arguments alone."""
    blocks = {
        "socket": [_argument(0), *_one_of(SOCKET_FAMILIES, errno.EAFNOSUPPORT)],
        "socketpair": [_argument(0), *_one_of(SOCKET_FAMILIES, errno.EAFNOSUPPORT)],
        "personality": [_argument(0), *_one_of(PERSONALITIES, errno.EPERM)],
        "clone": _clone(),
        # No thread has a table of files of its own: /proc shows that of a process's first thread.
        "close_range": [
            _argument(2),
            _instruction(_ANY_BIT, CLOSE_RANGE_UNSHARE, if_false=1),
            _fail(errno.EINVAL),
            _ALLOWED,
        ],
        "shmget": _at_most(SHARED_MEMORY_BYTES, errno.EINVAL),
    }
    program: list[bytes] = []
    for name, block in blocks.items():
        program += [_instruction(_EQUAL, numbers[name], if_false=len(block)), *block]
    return program


def _argument(index: int, *, upper: bool = False) -> bytes:
    """Load the lower or the upper half of an argument."""
    return _instruction(_LOAD, _ARGUMENTS + 8 * index + 4 * upper)


def _clone() -> list[bytes]:
    """Allowed without new namespaces, and for threads that share the table of files."""
    return [
        _argument(0),
        _instruction(_ANY_BIT, NEW_NAMESPACES, if_false=1),
        _fail(errno.EPERM),
        _instruction(_ANY_BIT, CLONE_THREAD, if_false=2),
        _instruction(_ANY_BIT, CLONE_FILES, if_true=1),
        _fail(errno.EINVAL),
        _ALLOWED,
    ]


def _at_most(value: int, otherwise: int) -> list[bytes]:
    """Allowed if the second argument is not above `value`; else the call fails with this error."""
    return [
        _argument(1, upper=True),
        _instruction(_EQUAL, 0, if_false=2),
        _argument(1),
        _instruction(_AT_LEAST, value + 1, if_false=1),
        _fail(otherwise),
        _ALLOWED,
    ]


def _one_of(values: tuple[int, ...], otherwise: int) -> list[bytes]:
    """Allowed if the argument is one of `values`; else the call fails with this error."""
    tests = [_instruction(_EQUAL, value, if_true=len(values) - at) for at, value in enumerate(values)]
    return [*tests, _fail(otherwise), _ALLOWED]


def _boundaries(numbers: Iterable[int]) -> list[int]:
    """Where the answer changes, in order; below the first, nothing is allowed.

    >>> _boundaries([0, 1, 2, 5])
    [0, 3, 5, 6]
    """
    allowed = set(numbers)
    return sorted(allowed ^ {number + 1 for number in allowed})


def _search(boundaries: list[int], *, allowed: bool) -> list[bytes]:
    """A binary search for the call's number. `allowed`: the answer below the first boundary."""
    if not boundaries:
        return [_ALLOWED if allowed else _fail(errno.ENOSYS)]
    middle = len(boundaries) // 2
    below = _search(boundaries[:middle], allowed=allowed)
    above = _search(boundaries[middle + 1 :], allowed=allowed ^ (middle % 2 == 0))
    return [_instruction(_AT_LEAST, boundaries[middle], if_true=len(below)), *below, *above]
