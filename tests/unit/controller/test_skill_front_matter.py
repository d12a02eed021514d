"""Which skills which agents read: the table as measured with the real programs, and the line that is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import plans
from tests.support.plans import planned_task, task_order
from trialfleet_agents.registry import find_kind
from trialfleet_agents.skill_faults import SkillFault
from trialfleet_controller.planning.skill_front_matter import list_refused_skills, read_front_matter
from trialfleet_ledger.canonical import digest
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.plan import Cell
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.condition_order import ConditionOrder, SkillOrder
from trialfleet_repository.trees import TreeEntry, pack

KINDS = ("claude-code", "codex", "copilot", "opencode", "gemini")
HEAD = "---\nname: x\n"
# Text; whether each of KINDS showed the description to its model (+) or not (-); the line
MEASURED = {
    "plain": (f"{HEAD}description: Zebra\n---\nbody\n", "+++++", 0),
    "byte order mark": (f"\ufeff{HEAD}description: Zebra\n---\nbody\n", "+-++-", 1),
    "colon": (f"{HEAD}description: Zebra: stripes\n---\nbody\n", "++-++", 3),
    "no name": ("---\ndescription: Zebra\n---\nbody\n", "+++--", 1),
    "another name": ("---\nname: other\ndescription: Zebra\n---\nbody\n", "+++++", 0),
    "CR LF": (f"{HEAD}description: Zebra\n---\nbody\n".replace("\n", "\r\n"), "+++++", 0),
    "long": (f"{HEAD}description: Zebra {'word ' * 300}\n---\nbody\n", "++-++", 3),
    "unclosed": (f"{HEAD}description: Zebra\nbody\n", "-----", 1),
    "blank line before": (f"\n{HEAD}description: Zebra\n---\nbody\n", "-----", 1),
    "at": (f"{HEAD}description: @Zebra\n---\nbody\n", "++--+", 3),
    "folded": (f"{HEAD}description: >-\n  Zebra\n  stripes\n---\nbody\n", "+++++", 0),
    "argument hint": (f"{HEAD}description: Zebra\nargument-hint: [a] [b]\n---\nbody\n", "++--+", 4),
    "twice": (f"---\nname: x\n{HEAD[4:]}description: Zebra\n---\nbody\n", "+---+", 3),
    "open quote": (f'{HEAD}description: "Zebra\n---\nbody\n', "----+", 3),
    "tab": (f"{HEAD}description: >\n\tZebra\n---\nbody\n", "----+", 4),
    "list": (f"{HEAD}description: [Zebra]\n---\nbody\n", "----+", 3),
}


@pytest.mark.parametrize("case", MEASURED)
def test_the_table_is_what_was_measured(case: str) -> None:
    text, shown, line = MEASURED[case]
    found = read_front_matter(text.encode())
    for kind, said in zip(KINDS, shown, strict=True):
        refused = [at for fault, at in found.faults if fault in find_kind(kind).files.refused_skills]
        assert bool(refused) == (said == "-"), (kind, found)
        assert refused in ([], [line]), (kind, found)
    assert "Zebra" in found.description or "+" not in shown[:3]


# Likewise of sub-agents, of the kinds that load those of a workspace
SUBAGENTS = {
    "plain": ("++", 0),
    "byte order mark": ("++", 1),
    "colon": ("+-", 3),
    "no name": ("-+", 1),
    "CR LF": ("++", 0),
    "long": ("++", 3),
    "twice": ("+-", 3),
    "open quote": ("--", 3),
    "list": ("--", 3),
    "blank line before": ("--", 1),
    "no description": ("--", 1),
}


@pytest.mark.parametrize("case", SUBAGENTS)
def test_the_table_of_subagents_is_what_was_measured(case: str) -> None:
    shown, line = SUBAGENTS[case]
    found = read_front_matter(MEASURED.get(case, (f"{HEAD}---\nbody\n",))[0].encode())
    for kind, said in zip(("claude-code", "copilot"), shown, strict=True):
        refused = [at for fault, at in found.faults if fault in find_kind(kind).files.refused_subagents]
        assert refused == ([line] if said == "-" else []), (kind, found)


@pytest.mark.parametrize(
    "text", ["", "---", "---\n---\n", "---\n[1]\n---\n", "---\n&a [*a]\n---\n", "\0", "---\n" * 9]
)
def test_odd_files_are_read_without_an_error(text: str) -> None:
    assert read_front_matter(text.encode()).description == ""


@pytest.mark.parametrize("key", ["{{ name }}", "[a, b]", "? [a]\n", "{a: b}"])
def test_a_key_that_is_no_text_is_invalid(key: str) -> None:
    found = read_front_matter(f"{HEAD}description: Zebra\n{key}: x\n---\nbody\n".encode())
    assert found.faults == ((SkillFault.INVALID, 4),)


@given(st.text(st.sampled_from("ab:{}[]?&*!|>-'\"#%@` ,\n\t\\0x<=~\ufeff\x85\ud7ff"), max_size=40))
def test_no_front_matter_raises_an_error(text: str) -> None:
    found = read_front_matter(f"---\n{text}\n---\n".encode())
    assert all(1 <= line <= text.count("\n") + 3 for _, line in found.faults)


def test_a_plan_names_skill_line_and_fault(tmp_path: Path) -> None:
    objects = Objects(tmp_path)
    colon = TreeEntry(MEASURED["colon"][0].encode())
    files = objects.put(pack({".agents/skills/x/SKILL.md": colon, ".claude/skills/y/SKILL.md": colon}))
    skill = SkillOrder(tree=objects.put(pack({"SKILL.md": colon})), description="Zebra: stripes")
    order = ConditionOrder(name="own", digest=digest("own"), files=files, skills={"z": skill})
    tasks = [planned_task(name, order=task_order(name)) for name in ("a", "b")]
    cells = tuple(Cell(task=task, condition=order) for task in ("a", "b"))
    for kind, paths in (("copilot", (".agents/skills/x/SKILL.md", "skills.z/SKILL.md")), ("claude-code", ())):
        agent = AgentSpec(kind=kind, model="m")
        plan = plans.make_plan(tasks, {"own": Condition()}, cells=cells, agent=agent)
        said = "passes over {}, or lists it without its description: line 3: a colon in a text without quotes"
        assert list(list_refused_skills(plan, objects)) == [
            f"conditions.own: copilot {said.format(path)}" for path in paths
        ]


@pytest.mark.parametrize(
    ("kind", "path", "reason"),
    [
        ("claude-code", ".claude/agents/a.md", "line 1: no name"),
        ("claude-code", ".claude/agents/below/a.md", "line 1: no name"),
        ("claude-code", ".github/agents/a.md", None),
        ("copilot", ".github/agents/a.agent.md", None),
        ("opencode", ".opencode/agent/a.md", ""),
        ("gemini", ".gemini/agents/a.md", ""),
        ("codex", ".claude/agents/a.md", None),
        ("nop", ".claude/agents/a.md", None),
    ],
)
def test_a_plan_names_subagents_that_are_passed_over(
    tmp_path: Path, kind: str, path: str, reason: str | None
) -> None:
    objects = Objects(tmp_path)
    tree = pack({path: TreeEntry(MEASURED["no name"][0].encode())})
    cell = Cell(task="a", condition=ConditionOrder(name="own", digest=digest("own"), files=objects.put(tree)))
    task, agent = planned_task("a", order=task_order("a")), AgentSpec(kind=kind, model="m")
    plan = plans.make_plan([task], {"own": Condition()}, cells=(cell,), agent=agent)
    said = f"conditions.own: {kind} passes over {path}, or lists it without its description: {reason}"
    said = said if reason else f"conditions.own: {kind} loads no sub-agents from a workspace in trials: {path}"
    assert list(list_refused_skills(plan, objects)) == ([] if reason is None else [said])
