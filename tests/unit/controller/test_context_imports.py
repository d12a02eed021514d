"""Which imports a plan names before it runs."""

from __future__ import annotations

from pathlib import Path

from tests.support import plans
from tests.support.plans import planned_task, task_order
from trialfleet_controller.planning.context_imports import list_broken_imports
from trialfleet_ledger.canonical import digest
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.plan import Cell
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_repository.trees import EntryKind, TreeEntry, pack


def test_dangling_imports_and_those_of_home_are_named(tmp_path: Path) -> None:
    objects = Objects(tmp_path / "objects")
    old = objects.put(pack({"docs/old.md": TreeEntry(b"")}))
    new = objects.put(pack({"docs/new.md": TreeEntry(b""), f"{'d/' * 60}new.md": TreeEntry(b"")}))
    root = (
        f"@docs/in.md @docs/old.md @docs/new.md @~/own.md @../up.md @a/react-query @{'d/' * 60}new.md `@code.md`"
    )
    context = {
        "AGENTS.md": TreeEntry(root.encode()),
        "CLAUDE.md": TreeEntry(b"AGENTS.md", EntryKind.LINK),
        "docs/in.md": TreeEntry(b"@gone.md"),
        ".claude/skills/x/SKILL.md": TreeEntry(b"@no.md"),
    }
    order = ConditionOrder(name="own", digest=digest("own"), files=objects.put(pack(context)))
    tasks = [
        planned_task(name, order=task_order(name, workspace=workspace))
        for name, workspace in (("a", old), ("b", new))
    ]
    plan = plans.make_plan(tasks, ("none",), cells=tuple(Cell(task=name, condition=order) for name in ("a", "b")))
    said = list(list_broken_imports(plan, objects))
    assert [line.partition(", which ")[0].partition(": ")[2] for line in said] == [
        *(
            f"{path} imports {target}"
            for path in ("AGENTS.md", "CLAUDE.md")
            for target in ("docs/new.md", "~/own.md", "../up.md", f"{'d/' * 60}new.md")
        ),
        "docs/in.md imports docs/gone.md",
        *(f"{path} imports docs/old.md" for path in ("AGENTS.md", "CLAUDE.md")),
    ]
    assert said[0].endswith("neither the context nor the workspace has: a")
    assert "outside of the context" in said[1]
