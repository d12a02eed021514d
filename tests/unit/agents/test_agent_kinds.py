"""What is known of each agent stands in one place, and its adapter says the same."""

from __future__ import annotations

import pytest

from trialfleet_agents.agent_kind import AgentFiles, AgentKind
from trialfleet_agents.context_files import is_context_file, list_root_files, list_root_names
from trialfleet_agents.pinned import pinned
from trialfleet_agents.registry import KINDS, agent, find_kind, list_tool_calls
from trialfleet_ledger.errors import OperatorError


@pytest.mark.parametrize("kind", KINDS)
def test_an_adapter_has_the_files_of_its_kind(kind: str) -> None:
    adapter, files = agent(kind), KINDS[kind].files
    assert adapter.kind == KINDS[kind].kind == kind
    assert (adapter.reach.root_file, adapter.reach.skills) in ((files.root, files.skills), (None, None))


def test_every_pinned_agent_can_be_measured_and_has_reserved_settings() -> None:
    assert set(list_tool_calls()) == set(pinned()) == {kind for kind, one in KINDS.items() if one.rules.reserved}


def test_every_file_of_a_table_is_a_context_file() -> None:
    tables = [one.files for one in KINDS.values()]
    paths = {*list_root_files(), *(f"{table.skills}/x/SKILL.md" for table in tables if table.skills)}
    paths |= {f"a/{name}" for table in tables for name in table.names if name == name.lower()}
    paths |= {f"a/{folder}/x" for table in tables for folder in table.folders if not folder.endswith(".json")}
    paths |= {path.replace("*", "x") for table in tables for path in (*table.settings, *table.left_out)}
    paths -= {".env"}  # the application's, too
    assert [path for path in paths if not is_context_file(path)] == []


def test_a_kind_that_is_added_counts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("TOY.md", "a/toy.md", "a/.toy/x", "notes/TOY.txt")
    assert not any(map(is_context_file, names))
    files = AgentFiles(roots=("TOY.md",), names=(".toy",))
    monkeypatch.setitem(KINDS, "toy", AgentKind("toy", "toy:Toy", files=files))
    assert [is_context_file(name) for name in names] == [True, True, True, False]
    assert list_root_names()[-1] == list_root_files()[-1] == "TOY.md"
    monkeypatch.delitem(KINDS, "toy")
    assert not any(map(is_context_file, names))


def test_an_unknown_kind_is_refused_with_those_there_are() -> None:
    with pytest.raises(OperatorError, match="no agent is called 'nobody'") as refused:
        find_kind("nobody")
    assert "claude-code" in (refused.value.hint or "")
