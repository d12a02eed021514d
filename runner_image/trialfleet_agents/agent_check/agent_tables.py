"""What agents can be given, as tables: for a terminal, and for the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialfleet_agents.agent_check.delivery_matrix import CheckedDelivery, DeliveryMatrix, declared
from trialfleet_agents.agent_check.known_agents import KnownAgent
from trialfleet_agents.agent_check.tool_calls import TOOL_CALLS
from trialfleet_agents.protocol import Reach
from trialfleet_agents.registry import agent

NONE = "–"


def deliveries(reach: Reach) -> dict[str, str]:
    """Each delivery, and whether an agent of this reach can be given it.

    >>> deliveries(Reach(root_file="AGENTS.md", mcp=True))["root file"]
    'AGENTS.md'
    """
    root = "in the prompt" if reach.root_in_prompt else reach.root_file or "as named"
    found = {
        "nested on read": reach.nested,
        "hook after": reach.hook_after,
        "hook before": reach.hook_before,
        "rules": reach.hook_after,
        "fail_fast": reach.fail_fast,
        "preflight": reach.preflight,
        "system": reach.system,
        "inline": True,
        "mcp": reach.mcp,
    }
    named = {name: "yes" if given else NONE for name, given in found.items()}
    return {"root file": root, "skills": reach.skills or NONE, **named}


def listing(agents: Sequence[KnownAgent]) -> str:
    """A row for each kind; below, how to get what is not here in its pinned version."""
    rows = [
        {
            "agent": one.kind,
            "here": _here(one),
            "pinned": one.pinned or NONE,
            **deliveries(one.reach),
            "measured": one.measurement or NONE,
        }
        for one in agents
    ]
    wanted = [one for one in agents if one.install and one.installed != one.pinned]
    hints = [("", "not here in the pinned version:")] if wanted else []
    hints += [(f"  {one.kind}", one.install or "") for one in wanted]
    return "\n".join([*_aligned([list(rows[0]), *(list(row.values()) for row in rows)]), *_said(hints)])


def _here(one: KnownAgent) -> str:
    return one.installed or (NONE if one.missing else "any program")


def _said(hints: Sequence[tuple[str, str]]) -> Iterator[str]:
    for name, text in hints:
        yield f"{name}  {text}" if name else f"\n{text}"


def comparison(matrix: DeliveryMatrix, reach: Reach) -> str:
    """A row for each delivery: what was measured, and whether the adapter declares the same."""
    differing, stated = matrix.differing(reach), declared(reach)
    rows = [["delivery", "measured", "declared", ""]]
    for name in CheckedDelivery:
        measured, expected = _reaches(matrix.reached[name]), _reaches(stated[name])
        if name is CheckedDelivery.ROOT_FILE:
            measured, expected = ", ".join(matrix.root_files) or measured, reach.root_file or expected
        rows.append([name.value, measured, expected, "differs" if name in differing else "as declared"])
    return "\n".join(_aligned(rows))


def _reaches(given: bool) -> str:
    return "reaches" if given else "does not reach"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def reference_table() -> str:
    """The documentation's table of every kind that `trialfleet agents check` can measure."""
    return markdown({kind: agent(kind).reach for kind in TOOL_CALLS})


def markdown(reaches: dict[str, Reach]) -> str:
    """The documentation's table: a column for each kind.

    >>> print(markdown({"codex": Reach(root_file="AGENTS.md")}).splitlines()[2])
    | root file | AGENTS.md |
    """
    columns = [deliveries(reach) for reach in reaches.values()]
    head = ["", *(f"`{kind}`" for kind in reaches)]
    rows = [[name, *(column[name] for column in columns)] for name in columns[0]]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)
