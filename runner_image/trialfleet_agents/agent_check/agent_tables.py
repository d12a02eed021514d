"""What agents can be given, as tables: for a terminal, and for the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialfleet_agents.agent_check.delivery_matrix import CheckedDelivery, DeliveryMatrix, declared
from trialfleet_agents.agent_check.known_agents import KnownAgent
from trialfleet_agents.agent_kind import AgentFiles
from trialfleet_agents.registry import KINDS, agent, list_tool_calls
from trialfleet_deliveries.reach import Reach

NONE = "–"
_LABELS = {
    CheckedDelivery.NESTED: "nested on read",
    CheckedDelivery.HOOK_AFTER: "hook after",
    CheckedDelivery.HOOK_BEFORE: "hook before",
    CheckedDelivery.RULES: "rules",
    CheckedDelivery.FAIL_FAST: "fail_fast",
    CheckedDelivery.PREFLIGHT: "preflight",
    CheckedDelivery.SYSTEM: "system",
    CheckedDelivery.INLINE: "inline",
    CheckedDelivery.MCP: "mcp",
}


def deliveries(reach: Reach) -> dict[str, str]:
    """Each delivery, and whether an agent of this reach can be given it.

    >>> deliveries(Reach(root_file="AGENTS.md", mcp=True))["root file"]
    'AGENTS.md'
    """
    root = "in the prompt" if reach.root_in_prompt else reach.root_file or "as named"
    stated = declared(reach)
    named = {label: "yes" if stated[name] else NONE for name, label in _LABELS.items()}
    return {"root file": root, "skills": reach.skills or NONE, **named}


def listing(agents: Sequence[KnownAgent]) -> str:
    """Two tables of a row for each kind, in 100 columns: its version and files, then what it can be given; below,
    how to get what is not here in its pinned version."""
    files, given = list[dict[str, str]](), list[dict[str, str]]()
    for one in agents:
        root, skills, *others = deliveries(one.reach).items()
        versions = {"agent": one.kind, "here": _here(one), "pinned": one.pinned or NONE}
        files.append({**versions, **dict((root, skills)), "measured": one.measurement or NONE})
        given.append({"agent": one.kind, **{label.removesuffix(" on read"): said for label, said in others}})
    wanted = [one for one in agents if one.install and one.installed != one.pinned]
    hints = [("", "not here in the pinned version:")] if wanted else []
    hints += [(f"  {one.kind}", one.install or "") for one in wanted]
    return "\n".join([*_titled(files), "", *_titled(given), *_said(hints)])


def _titled(rows: Sequence[dict[str, str]]) -> Iterator[str]:
    return _aligned([list(rows[0]), *(list(row.values()) for row in rows)])


def _here(one: KnownAgent) -> str:
    return one.installed or (NONE if one.missing else "any program")


def _said(hints: Sequence[tuple[str, str]]) -> Iterator[str]:
    for name, text in hints:
        yield f"{name}  {text}" if name else f"\n{text}"


def comparison(matrix: DeliveryMatrix, reach: Reach) -> str:
    """A row for each delivery: what was measured, and whether the adapter declares the same. Below, what it brings
    along into the first request."""
    differing, stated = matrix.differing(reach), declared(reach)
    rows = [["delivery", "measured", "declared", ""]]
    for name in CheckedDelivery:
        measured, expected = _reaches(matrix.reached[name]), _reaches(stated[name])
        if name is CheckedDelivery.ROOT_FILE:
            measured, expected = ", ".join(matrix.root_files) or measured, reach.root_file or expected
        rows.append([name.value, measured, expected, "differs" if name in differing else "as declared"])
    return "\n".join([*_aligned(rows), *_describe_cuts(matrix), *_describe_first_requests(matrix)])


def _describe_cuts(matrix: DeliveryMatrix) -> Iterator[str]:
    for name, sent in matrix.cut.items():
        yield f"\n{name.value}: of a long one, the first {sent:,} characters are sent"


def _describe_first_requests(matrix: DeliveryMatrix) -> Iterator[str]:
    """What else differs in the first request of a run with one delivery."""
    if matrix.control:
        yield "\ntwo runs that are given the same differ in their first requests; the lists below leave that out:"
        yield from (f"  {one}" for one in matrix.control)
    quiet = [name.value for name in CheckedDelivery if matrix.also_differ.get(name) == ()]
    if quiet:
        yield f"\nnothing but the text differs in the first request: {'; '.join(quiet)}"
    for name in CheckedDelivery:
        if matrix.also_differ.get(name):
            yield f"\nwith {name.value}, the first request also differs in"
            yield from (f"  {one}" for one in matrix.also_differ[name])


def _reaches(given: bool) -> str:
    return "reaches" if given else "does not reach"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def reference_table() -> str:
    """The documentation's table of every kind that `trialfleet agents check` can measure."""
    return markdown({kind: agent(kind).reach for kind in list_tool_calls()})


def files_table() -> str:
    """The documentation's table of the files that every such kind reads: a row for each."""
    head = ["kind", "loads by itself", "also reads", "settings are checked", "left out of contexts"]
    rows = [[f"`{kind}`", *_files_row(KINDS[kind].files)] for kind in list_tool_calls()]
    return _markdown_lines([head, ["---"] * len(head), *rows])


def _files_row(files: AgentFiles) -> list[str]:
    also = (*files.names, *(path if path.endswith(".json") else f"{path}/" for path in files.folders))
    return [
        ", ".join(f"`{one}`" for one in each) or NONE
        for each in (files.roots, also, files.settings, files.left_out)
    ]


def markdown(reaches: dict[str, Reach]) -> str:
    """The documentation's table: a column for each kind.

    >>> print(markdown({"codex": Reach(root_file="AGENTS.md")}).splitlines()[2])
    | root file | AGENTS.md |
    """
    columns = [deliveries(reach) for reach in reaches.values()]
    head = ["", *(f"`{kind}`" for kind in reaches)]
    rows = [[name, *(column[name] for column in columns)] for name in columns[0]]
    return _markdown_lines([head, ["---"] * len(head), *rows])


def _markdown_lines(lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)
