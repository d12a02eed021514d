"""Writes the table of docs/reference/agents.md from what the adapters declare:
`python -m trialfleet_controller.commands.agents_reference PAGE`. A test compares both."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from trialfleet_agents.agent_check.agent_tables import reference_table

BEGIN = "<!-- Generated from the adapters by `make cli-reference`. Do not edit this table. -->"
END = "<!-- End of the generated table. -->"
_TABLE = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)


def renewed(page: str) -> str:
    """The page with the table as it is today. Raises `ValueError` for a page without its marks."""
    if not _TABLE.search(page):
        raise ValueError(f"the page has no line {BEGIN!r}, or no {END!r} after it")
    return _TABLE.sub(lambda _: f"{BEGIN}\n\n{reference_table()}\n\n{END}", page)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")
