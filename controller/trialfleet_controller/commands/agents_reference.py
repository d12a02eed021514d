"""Writes the tables of docs/reference/agents.md from what the agents declare:
`python -m trialfleet_controller.commands.agents_reference PAGE`. A test compares both."""

from __future__ import annotations

import sys
from pathlib import Path

from trialfleet_agents.agent_check.agent_tables import files_table, reference_table

BEGIN = "<!-- Generated from the adapters by `make cli-reference`. Do not edit this table. -->"
BEGIN_FILES = "<!-- Generated from the agents' files by `make cli-reference`. Do not edit this table. -->"
END = "<!-- End of the generated table. -->"
_TABLES = {BEGIN: reference_table, BEGIN_FILES: files_table}


def renewed(page: str) -> str:
    """The page with the tables as they are today. Raises `ValueError` for a page without its marks."""
    for begin, table in _TABLES.items():
        before, mark, rest = page.partition(begin)
        _, end, after = rest.partition(END)
        if not mark or not end:
            raise ValueError(f"the page has no line {begin!r}, or no {END!r} after it")
        page = f"{before}{begin}\n\n{table()}\n\n{END}{after}"
    return page


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")
