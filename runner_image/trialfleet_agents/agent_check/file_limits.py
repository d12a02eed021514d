"""How much of a long context file an agent sends: files of numbered lines, and those that its requests have."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from trialfleet_agents.agent_check.delivery_matrix import BELOW, CheckedDelivery
from trialfleet_deliveries.reach import Reach

_LINES = 2_000  # of 50 characters: three times the smallest limit that is known


def lengthen_files(files: Mapping[str, str], reach: Reach) -> dict[str, str]:
    """`files` with long ones in the place of the root's and of one in a folder, which begin as they did."""
    long = {path: f"{files[path]}\n{_make_lines(name)}" for name, path in _list_long(reach).items()}
    return {**files, **long}


def measure_limits(requests: Sequence[str], reach: Reach) -> dict[CheckedDelivery, int]:
    """Characters of the numbered lines that requests with these strings have, of each file that is cut.

    >>> sent = _make_lines(CheckedDelivery.ROOT_FILE)[:32_780]
    >>> measure_limits([sent], Reach(root_file="AGENTS.md"))[CheckedDelivery.ROOT_FILE]
    32750
    """
    sent = "\n".join(requests)
    found = dict[CheckedDelivery, int]()
    for name in _list_long(reach):
        lines = _make_lines(name).splitlines(keepends=True)
        seen = sum(line.rstrip() in sent for line in lines)
        if 0 < seen < len(lines):
            found[name] = seen * len(lines[0])
    return found


def _list_long(reach: Reach) -> dict[CheckedDelivery, str]:
    if reach.root_file is None:
        return {}
    nested = {CheckedDelivery.NESTED: f"{BELOW}/{posixpath.basename(reach.root_file)}"} if reach.nested else {}
    return {CheckedDelivery.ROOT_FILE: reach.root_file, **nested}


def _make_lines(name: CheckedDelivery) -> str:
    return "".join(
        f"Line {number:04d} of the {name.split(',')[0]}.".ljust(49, ".") + "\n" for number in range(_LINES)
    )
