"""Receipts of real programs: what each strips from a context file, or cuts off, is in its trial's bundle."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.agent_attempts import AgentAttempts, AgentRan
from tests.support.agent_rows import ROWS
from tests.support.attempts import Lab
from trialfleet_agents.agent_check.scripted_model import ScriptedModel, scripted_model
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.records.receipts import RECEIPTS, Arrival, Receipt, Receipts, TextChange

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.slow]

COMMENT = (
    "<!-- Maintainers: keep this file short. Every line is paid for in each session, so discuss additions. -->"
)
PROSE = (
    "# Shop\n\nPrices are whole cents, and sums have no rounding.\n\nSee @.claude/notes.md and @docs/gone.md.\n"
)
RULES = "Imported: a discount is a percentage of the whole sum, never of one price.\n"
LONG = "# Shop\n\n" + "".join(
    f"Rule {number:04d}: prices are whole cents, never floats.\n" for number in range(900)
)
PUSHED = "Discounts are read from the table of vouchers, which a job rewrites every night."
NODE = f"# Pricing\n\n## Pitfalls\n\n- {PUSHED}\n"
SUBAGENT = "---\nname: clerk\ndescription: Counts the vouchers of one day.\n---\nCount them twice.\n"
LIMIT = 32 * 1024  # of Codex, for all its AGENTS.md together


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    root = tmp_path_factory.mktemp("receipts")
    root.chmod(0o755)
    stripped = {"CLAUDE.md": f"{COMMENT}\n{PROSE}", ".claude/notes.md": RULES}
    tree = {"CLAUDE.md": PROSE, "shop/pricing/AGENTS.md": NODE, "shop/pricing/CLAUDE.md": NODE}
    only = {
        "subagent": {".claude/agents/clerk.md": SUBAGENT},
        "settings": {".claude/settings.json": "{}"},
    }
    return Lab(root, contexts={"stripped": stripped, "long": {"CLAUDE.md": LONG}, "tree": tree, **only})


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with scripted_model() as model:
        yield model


def run(lab: Lab, model: ScriptedModel, kind: str, files: str, **settings: int) -> AgentRan:
    attempts = AgentAttempts(lab, ROWS[kind], model)
    options = {"settings": settings} if settings else None
    return attempts.run([attempts.done], files, composed=Condition(files=files), options=options)


def receipts(ran: AgentRan) -> dict[str, Receipt]:
    found = Receipts.model_validate_json(ran.left.bundle.files[RECEIPTS])
    return {one.name: one for one in found.receipts}


@pytest.mark.needs("codex")
def test_codex_cuts_a_long_file_unless_its_limit_is_raised(lab: Lab, model: ScriptedModel) -> None:
    cut = run(lab, model, "codex", "long")
    root = receipts(cut)["files"]
    assert (root.arrival, root.size, root.received[0].first) == (Arrival.IN_PART, len(LONG), 0)
    assert LIMIT - 300 < root.received[-1].last < LIMIT
    assert cut.scored.delivery.reached_model == {"files": False}
    assert cut.scored.delivery.sent_share["files"] == pytest.approx(LIMIT / len(LONG), abs=0.02)
    whole = run(lab, model, "codex", "long", project_doc_max_bytes=2 * LIMIT)
    assert receipts(whole)["files"].arrival is Arrival.WHOLE
    assert whole.scored.delivery.reached_model == {"files": True}


@pytest.mark.needs("claude")
def test_claude_code_strips_a_comment_and_follows_an_import(lab: Lab, model: ScriptedModel) -> None:
    ran = run(lab, model, "claude-code", "stripped")
    found = receipts(ran)
    assert (found["files"].arrival, found["files"].changes) == (Arrival.CHANGED, (TextChange.COMMENT,))
    assert found["files:.claude/notes.md"].arrival is Arrival.WHOLE
    imports = [(one.path, one.present, one.arrival) for one in found["files"].imports]
    assert imports == [(".claude/notes.md", True, Arrival.WHOLE), ("docs/gone.md", False, None)]
    assert found["prompt"].arrival is Arrival.WHOLE
    assert ran.scored.delivery.reached_model == {"files": True}


@pytest.mark.needs("claude")
@pytest.mark.parametrize(("files", "claim"), [("subagent", True), ("settings", None)])
def test_a_condition_without_instructions_arrives_by_descriptions(
    lab: Lab, model: ScriptedModel, files: str, claim: bool | None
) -> None:
    assert run(lab, model, "claude-code", files).scored.delivery.reached_model == {"files": claim}


@pytest.mark.needs("opencode")
def test_a_node_that_the_hook_pushes_arrives_once(lab: Lab, model: ScriptedModel) -> None:
    """The program would send files of these names, too, when something in their folder is read. Of others:
    test_agents_end_to_end.py."""
    attempts = AgentAttempts(lab, ROWS["opencode"], model)
    composed = Condition(files="tree", hook="on_read", pull=True)
    ran = attempts.run([attempts.reads(), attempts.done], "hooked", composed=composed)
    hook = receipts(ran)["hook:shop/pricing/AGENTS.md"]
    assert (hook.arrival, hook.copies) == (Arrival.WHOLE, 1)
    assert ran.main[-1].strings.count(PUSHED) == 1
    assert ran.scored.delivery.read_as["shop/pricing/AGENTS.md"] != "shop/pricing/AGENTS.md"
