"""The pure parts of `trialfleet agents`: what requests say of the canaries, and what is printed of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trialfleet_agents.agent_check import tool_server
from trialfleet_agents.agent_check.agent_tables import comparison, deliveries, listing
from trialfleet_agents.agent_check.delivery_matrix import (
    MODULE_TEXT,
    PRINTED,
    PRINTS,
    TOOL,
    CheckedDelivery,
    canary,
    context_nodes,
    declared,
    key,
    measured,
    workspace_files,
)
from trialfleet_agents.agent_check.kept_matrix import keep, kept
from trialfleet_agents.agent_check.known_agents import KnownAgent
from trialfleet_agents.context_files import list_root_files
from trialfleet_agents.pinned import pinned
from trialfleet_agents.protocol import Identity
from trialfleet_agents.registry import KINDS, agent, list_tool_calls
from trialfleet_deliveries.hooks.mcp_probe import looked
from trialfleet_deliveries.reach import Reach
from trialfleet_deliveries.skills import FOLDER, SHARED_FOLDER
from trialfleet_deliveries.texts import render
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_repository.cache import Cache
from trialfleet_runner.agent_check import canary_run

FULL = Reach(
    root_file="AGENTS.md",
    nested=True,
    hook_after=True,
    hook_before=True,
    fail_fast=True,
    system=True,
    skills=SHARED_FOLDER,
    mcp=True,
)
SKILL = canary(f"skill {SHARED_FOLDER}")
START = [*(canary(what) for what in ("root AGENTS.md", "system", "inline")), SKILL, canary("mcp"), TOOL]
LATER = [canary("nested AGENTS.md"), *context_nodes().values(), canary("hook before"), render("fail_fast")]


def identity(reach: Reach = FULL, version: str = "1.2.3") -> Identity:
    return Identity(kind="codex", version=version, digest="0" * 64, reach=reach)


def requests(first: list[str], later: list[str]) -> list[str]:
    return ["\n".join(first), "\n".join([*first, *later])]


def test_an_agent_that_gets_everything_is_as_declared() -> None:
    matrix = measured(identity(), requests(START, LATER))
    assert matrix.differing(FULL) == ()
    assert matrix.root_files == ("AGENTS.md",)
    assert (matrix.kind, matrix.version, matrix.digest) == ("codex", "1.2.3", "0" * 64)


@pytest.mark.parametrize(
    ("lacking", "delivery"),
    [
        (canary("root AGENTS.md"), CheckedDelivery.ROOT_FILE),
        (canary("system"), CheckedDelivery.SYSTEM),
        (canary("inline"), CheckedDelivery.INLINE),
        (SKILL, CheckedDelivery.SKILLS),
        (canary("mcp"), CheckedDelivery.MCP),
        (TOOL, CheckedDelivery.MCP),
        (canary("nested AGENTS.md"), CheckedDelivery.NESTED),
        (canary("hook after"), CheckedDelivery.HOOK_AFTER),
        (context_nodes()["rules.json"], CheckedDelivery.RULES),
        (canary("hook before"), CheckedDelivery.HOOK_BEFORE),
        (render("fail_fast"), CheckedDelivery.FAIL_FAST),
    ],
)
def test_a_text_that_is_in_no_request_differs_alone(lacking: str, delivery: CheckedDelivery) -> None:
    first, later = ([text for text in texts if text != lacking] for texts in (START, LATER))
    assert measured(identity(), requests(first, later)).differing(FULL) == (delivery,)


def test_a_preflight_reads_is_denied_and_runs_nothing() -> None:
    able, denied = FULL.model_copy(update={"preflight": True}), render("preflight_read_before")

    def differing(reach: Reach, *later: str) -> tuple[CheckedDelivery, ...]:
        looked = requests([PRINTS], list(later)) if later else []
        return measured(identity(reach), requests(START, LATER), looked).differing(reach)

    assert differing(able, MODULE_TEXT, denied) == ()
    for later in ((MODULE_TEXT,), (denied,), (MODULE_TEXT, denied, PRINTED), ()):
        assert differing(able, *later) == (CheckedDelivery.PREFLIGHT,)
    assert differing(FULL) == ()


@pytest.mark.parametrize("bait", [CheckedDelivery.PARENT, CheckedDelivery.HOME])
def test_bait_in_any_request_differs(bait: CheckedDelivery) -> None:
    found = canary("parent" if bait is CheckedDelivery.PARENT else "home")
    assert measured(identity(), requests([*START, found], LATER)).differing(FULL) == (bait,)
    assert measured(identity(), requests(START, [*LATER, found])).differing(FULL) == (bait,)


def test_a_nested_text_that_is_there_from_the_start_does_not_follow_a_read() -> None:
    matrix = measured(identity(), requests([*START, canary("nested AGENTS.md")], LATER))
    assert matrix.differing(FULL) == (CheckedDelivery.NESTED,)


def test_another_root_file_than_declared_is_not_the_declared_one() -> None:
    reach = FULL.model_copy(update={"root_file": "GEMINI.md"})
    matrix = measured(identity(reach), requests(START, LATER))
    assert matrix.differing(reach) == (CheckedDelivery.ROOT_FILE, CheckedDelivery.NESTED)


@pytest.mark.parametrize(
    ("loaded", "delivery"),
    [
        (canary("root CLAUDE.md"), CheckedDelivery.ROOT_FILE),
        (canary(f"skill {FOLDER}"), CheckedDelivery.SKILLS),
        (canary(f"skill {SHARED_FOLDER}"), CheckedDelivery.SKILLS),
    ],
)
def test_an_agent_that_loads_nothing_differs_once_it_loads_a_file(loaded: str, delivery: CheckedDelivery) -> None:
    bare = Reach(root_in_prompt=True)
    assert measured(identity(bare), requests([canary("inline")], [])).differing(bare) == ()
    assert measured(identity(bare), requests([canary("inline"), loaded], [])).differing(bare) == (delivery,)


def test_a_skill_of_another_folder_than_declared_is_not_the_declared_one() -> None:
    first = [canary(f"skill {FOLDER}") if text == SKILL else text for text in START]
    assert measured(identity(), requests(first, LATER)).differing(FULL) == (CheckedDelivery.SKILLS,)


def test_the_server_of_a_check_has_the_tool_that_is_looked_for() -> None:
    server = {"command": sys.executable, "args": [tool_server.__file__, TOOL, canary("mcp")], "env": {}}
    assert looked(server) == {"version": "1", "tools": {TOOL: canary("mcp")}}


def test_no_two_places_share_a_canary() -> None:
    texts = [*workspace_files().values(), *context_nodes().values(), *START[1:], canary("parent"), canary("home")]
    assert len(set(texts)) == len(texts)
    assert set(list_root_files()) < set(workspace_files())


def test_every_pinned_agent_can_be_checked() -> None:
    assert set(list_tool_calls()) == set(pinned())


def test_a_kind_without_a_program_of_its_own_cannot_be_checked() -> None:
    with pytest.raises(OperatorError, match="'command' has no deliveries that can be measured") as caught:
        canary_run.check(canary_run.spec_of("command"))
    assert "codex" in (caught.value.hint or "")


@pytest.mark.needs("bwrap")
def test_an_agent_that_is_not_here_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(pinned()["codex"].variable, "/nonexistent/codex")
    with pytest.raises(OperatorError, match="the agent codex is not on this machine") as caught:
        canary_run.check(canary_run.spec_of("codex"))
    assert pinned()["codex"].install() in (caught.value.hint or "")


def test_a_measurement_is_kept_for_one_version_and_one_declaration(tmp_path: Path) -> None:
    cache, own = Cache(tmp_path), identity()
    assert kept(cache, own) is None
    matrix = measured(own, requests(START, LATER))
    keep(cache, own, matrix)
    assert kept(cache, own) == matrix
    assert kept(cache, own.model_copy(update={"model": "other", "digest": "1" * 64})) == matrix
    assert kept(cache, identity(version="1.2.4")) is None
    assert kept(cache, identity(FULL.model_copy(update={"mcp": False}))) is None


def test_a_measurement_that_is_torn_counts_as_none(tmp_path: Path) -> None:
    cache, own = Cache(tmp_path), identity()
    keep(cache, own, measured(own, requests(START, LATER))).write_text("{")
    assert kept(cache, own) is None
    assert key(own) != key(identity(version="1"))


def test_a_comparison_names_every_root_file_and_what_differs() -> None:
    first = [*START[:1], canary("root CLAUDE.md"), *START[2:]]
    rows = comparison(measured(identity(), requests(first, LATER)), FULL).splitlines()
    assert len(rows) == 1 + len(declared(FULL))
    assert rows[1].split("  ")[0] == "root file"
    assert "CLAUDE.md, AGENTS.md" in rows[1]
    assert [row.split("  ")[0] for row in rows if row.endswith("differs")] == ["system channel"]


def test_a_listing_says_how_to_get_what_is_not_here() -> None:
    here = KnownAgent(
        kind="codex", pinned="1.0", install="npm a", installed="1.0", missing=None, measured=None, reach=FULL
    )
    other = here.model_copy(update={"kind": "gemini", "install": "npm b", "installed": "0.9"})
    none = here.model_copy(update={"kind": "copilot", "install": "npm c", "installed": None, "missing": "no"})
    text = listing([here, other, none])
    assert max(map(len, text.splitlines())) <= 100
    assert text.splitlines()[1].split()[:4] == ["codex", "1.0", "1.0", "AGENTS.md"]
    assert text.splitlines()[3].split()[:3] == ["copilot", "–", "1.0"]
    assert text.splitlines()[-2:] == ["  gemini  npm b", "  copilot  npm c"]


def test_a_listing_says_what_was_measured_of_the_version_that_is_here() -> None:
    matrix = measured(identity(), requests(START, LATER))
    one = KnownAgent(
        kind="codex", pinned="1.0", install="npm a", installed="1.0", missing=None, measured=matrix, reach=FULL
    )
    assert one.measurement == "as declared"
    assert one.model_copy(update={"reach": FULL.model_copy(update={"system": False})}).measurement == "differs"
    assert one.model_copy(update={"measured": None}).measurement is None


def test_what_an_adapter_declares_is_what_its_identity_says() -> None:
    assert agent("nop").identify(AgentSpec(kind="nop")).reach == agent("nop").reach
    assert all(set(deliveries(agent(kind).reach)) == set(deliveries(FULL)) for kind in KINDS)
