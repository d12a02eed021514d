"""What the model received of declared texts: found by content, whatever an agent does to the form."""

from __future__ import annotations

import json
import subprocess
import textwrap
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_deliveries.composed import Composed
from trialfleet_deliveries.declared_texts import declare_texts
from trialfleet_deliveries.received_texts import DeclaredText, ReceivedTexts
from trialfleet_deliveries.text_matching import split_words
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_ledger.records.measurements import Delivery
from trialfleet_ledger.records.receipts import Arrival, FileRole, Receipt, Receipts, ScriptReceipt, TextChange
from trialfleet_ledger.trajectory import Step
from trialfleet_runner.attempt.delivery_receipts import ScriptWatch, claim_arrivals
from trialfleet_runner.gateway.canary import strings

RULES = "# Shop\n\nPrices are whole cents, never floats, as the first of all rules says.\n\n" + "".join(
    f"Rule {number:04d}: prices are whole cents, and nothing else.\n" for number in range(1, 701)
)
BODY = "# Shop\n\nPrices are whole cents, and sums have no rounding at all.\n\n- Use tabs.\n- Never add one.\n"


def received(text: str, *requests: object, **declared: object) -> Receipt:
    account = ReceivedTexts([DeclaredText("files", text, "files", **declared)])  # type: ignore[arg-type]
    for request in requests:
        account.confirm_request(account.read_request(strings({"messages": [request]})))
    return account.make_receipts()[0]


# Without what either stands for something else in JSON or HTML, or makes a line number of a number
signs = st.characters(categories=["L", "N", "Po", "Pd", "Zs"], exclude_characters="&@\\#")
lines = st.lists(st.text(signs, min_size=1, max_size=60), min_size=1, max_size=40)


@given(lines, st.integers(20, 90))
def test_a_text_that_is_wrapped_escaped_numbered_or_quoted_is_whole(text: list[str], width: int) -> None:
    whole = "\n".join(text)
    words = split_words(whole)
    if not words:
        assert received(whole, whole).arrival is None
        return
    wrapped = "\n".join(textwrap.wrap(whole, width, break_long_words=False, break_on_hyphens=False))
    twice = json.dumps({"content": json.dumps(whole)})
    for form in (whole, f"before\n{whole}\nafter", wrapped, twice, "\n".join(f"> {line}" for line in text)):
        assert received(whole, form).arrival is Arrival.WHOLE, form


def test_numbered_lines_and_pieces_over_several_requests_are_whole() -> None:
    numbered = "\n".join(f"{n:6}\t{line}" for n, line in enumerate(RULES.splitlines(), 1))
    arrows = "\n".join(f"{n:6}\u2192{line}" for n, line in enumerate(BODY.splitlines(), 1))
    assert received(RULES, numbered).arrival is Arrival.WHOLE
    assert received(BODY, arrows).arrival is Arrival.WHOLE
    half = RULES.index("Rule 0350")
    assert received(RULES, RULES[:half], RULES[half:]).arrival is Arrival.WHOLE


@given(
    st.lists(st.text("abc", min_size=1, max_size=2), min_size=4, max_size=30),
    st.integers(4, 60),
    st.sampled_from(["", "# The only heading of this file, said once\n"]),
)
def test_a_text_that_repeats_its_lines_is_whole(line: list[str], times: int, heading: str) -> None:
    """No shingle of theirs tells where it stands."""
    text = heading + f"{' '.join(line)}\n" * times
    assert received(text, f"before\n{text}after").arrival is Arrival.WHOLE


@given(st.integers(0, 23))
def test_the_end_of_a_text_whose_lines_differ_in_a_word_is_in_part(place: int) -> None:
    """Wherever that word stands."""
    line = [f"word{number}" for number in range(23)]
    lines = [" ".join([*line[:place], f"name{number}", *line[place:]]) for number in range(20)]
    found = received("\n".join(lines), "\n".join(lines[12:]))
    assert found.arrival is Arrival.IN_PART
    assert found.share == pytest.approx(0.4, abs=0.05)


@given(st.integers(200, len(RULES) - 40))
def test_a_text_that_is_cut_is_in_part_up_to_that_byte(cut: int) -> None:
    found = received(RULES, f"intro {RULES[:cut]}\n[cut]")
    assert found.arrival is Arrival.IN_PART
    assert (found.received[0].first, len(found.received)) == (0, 1)
    assert cut - 12 <= found.received[-1].last < cut + 2
    assert found.share is not None
    assert abs(found.share - cut / len(RULES)) < 0.02


@pytest.mark.parametrize(
    ("text", "sent", "changes"),
    [
        (f"<!-- Keep this short, every line is paid for. -->\n{BODY}", BODY, [TextChange.COMMENT]),
        ("<!-- A lone one -->\n# A\n\nUse tabs.\n<!-- c -->", "x # A\n\nUse tabs.\n y", [TextChange.COMMENT]),
        (f"---\napplyTo: a\ndescription: the longest line of it\n---\n{BODY}", BODY, [TextChange.FRONT_MATTER]),
        (f"\ufeff{BODY}", BODY, [TextChange.BYTE_ORDER_MARK]),
        (f"{BODY}\nUse @pytest.fixture there, too.", f"{BODY}\nUse there, too.", [TextChange.AT_WORD]),
        (f"\ufeff---\na: b\n---\n{BODY}<!-- c d e f g h -->\nLast of them.", f"{BODY}\nLast of them.",
         [TextChange.COMMENT, TextChange.FRONT_MATTER, TextChange.BYTE_ORDER_MARK]),
    ],
)  # fmt: skip
def test_what_an_agent_strips_is_named_and_the_rest_is_all_there(
    text: str, sent: str, changes: list[TextChange]
) -> None:
    found = received(text, f"system\n{sent}\nend")
    assert (found.arrival, list(found.changes), found.share) == (Arrival.CHANGED, changes, 1.0)
    assert received(text, text).arrival is Arrival.WHOLE
    assert received(text, "nothing of it").arrival is Arrival.NOT_SENT


def test_a_comment_that_nothing_ends_is_text() -> None:
    """Agents send it; what is cut off behind it was not stripped."""
    text = f"# Pages\n\nEach begins with `<!--` and a word.\n\n{BODY}"
    assert received(text, text).arrival is Arrival.WHOLE
    assert received(text, text[: text.index("Prices")]).arrival is Arrival.IN_PART


def test_a_text_of_nothing_but_a_comment_has_not_arrived_when_it_is_stripped() -> None:
    assert received("<!-- all of this -->", "a prompt").arrival is Arrival.NOT_SENT


def test_what_nobody_answered_and_what_has_no_words_is_unknown() -> None:
    account = ReceivedTexts([DeclaredText("files", BODY, "files"), DeclaredText("b", "---\n", "files")])
    reading = account.read_request([BODY])
    assert {one.arrival for one in account.make_receipts()} == {None}
    account.confirm_request(reading)
    assert [one.arrival for one in account.make_receipts()] == [Arrival.WHOLE, None]


def test_a_prompt_that_quotes_a_file_does_not_prove_the_file() -> None:
    texts = [
        DeclaredText("prompt", f"Do it.\n\n{BODY}\nNow.", "prompt", in_prompt=True),
        DeclaredText("files", BODY),
    ]
    account = ReceivedTexts(texts)
    account.confirm_request(account.read_request([f"{texts[0].text}\n", "other"]))
    assert [one.arrival for one in account.make_receipts()] == [Arrival.WHOLE, Arrival.NOT_SENT]
    account.confirm_request(account.read_request([f"{texts[0].text}\n", f"Contents of CLAUDE.md: {BODY}"]))
    assert account.make_receipts()[1].arrival is Arrival.WHOLE


def test_copies_in_one_request_are_counted_and_repetitions_of_requests_are_not() -> None:
    account = ReceivedTexts([DeclaredText("files", RULES)])
    for strings_of_a_request in ([RULES], [RULES, "a"], [f"{RULES}\n{RULES}"], [RULES, f"b {RULES}"]):
        account.confirm_request(account.read_request(strings_of_a_request))
        expected = 1 if account.requests < 3 else 2
        assert account.make_receipts()[0].copies == expected
    assert account.make_receipts()[0].first_request == 1


def test_texts_that_become_known_later_are_found_in_what_is_sent_again() -> None:
    account = ReceivedTexts([DeclaredText("files", BODY)])
    account.confirm_request(account.read_request([BODY, RULES]))
    account.declare_more([DeclaredText("inline", RULES)])
    assert [one.arrival for one in account.make_receipts()] == [Arrival.WHOLE, Arrival.NOT_SENT]
    account.confirm_request(account.read_request([BODY, RULES]))
    assert [one.arrival for one in account.make_receipts()] == [Arrival.WHOLE, Arrival.WHOLE]


@given(st.text(max_size=400), st.lists(st.text(max_size=400), max_size=6))
def test_no_content_breaks_it_or_makes_it_see_more_than_is_there(text: str, sent: list[str]) -> None:
    found = received(text, *sent)
    everything = set(split_words("\n".join(sent)))
    if found.arrival is Arrival.WHOLE:
        assert set(split_words(text)) <= everything


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("same line of five words\n" * 20_000, "same line of five words\n" * 40_000),
        ("<!-- " * 50_000, "<!-- " * 50_000),
        ("@a " * 50_000, "@a " * 100_000),
        ("x" * 500_000, "x" * 2_000_000),
        ("\\u0041" * 20_000, "\\\\n" * 200_000),
        ("---\n" * 50_000, "1\t" * 300_000),
    ],
)
def test_hostile_and_huge_content_takes_no_time(text: str, body: str) -> None:
    began = time.process_time()
    received(text, body)
    assert time.process_time() - began < 6


def test_a_text_that_is_too_large_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trialfleet_deliveries.received_texts.LARGEST", 1000)
    account = ReceivedTexts([DeclaredText(".claude/skills/x/data.txt", RULES), DeclaredText("files", BODY)])
    account.confirm_request(account.read_request([BODY]))
    assert [one.arrival for one in account.make_receipts()] == [None, Arrival.WHOLE]


def test_more_than_can_be_searched_leaves_the_rest_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trialfleet_deliveries.received_texts.MOST_SEARCHED", 1000)
    account = ReceivedTexts([DeclaredText("a", BODY), DeclaredText("b", RULES[:900])])
    account.confirm_request(account.read_request([BODY, RULES]))
    assert account.unread == len(RULES)
    assert [one.arrival for one in account.make_receipts()] == [Arrival.WHOLE, None]


SKILL = "---\nname: sql\ndescription: How to write queries here.\n---\n# SQL\n\nNever join more than two tables.\n"


def test_skills_are_listed_and_opened() -> None:
    told = {"role": FileRole.SKILL, "description": "How to write queries here."}
    seen = [received(SKILL, text, **told) for text in ("- sql: How to write queries here.", SKILL, "none")]
    assert [(one.listed, one.opened) for one in seen] == [(True, False), (True, True), (False, False)]


def test_a_conditions_files_imports_and_scripts_are_declared() -> None:
    files = {
        "CLAUDE.md": b"# Shop\n\n@docs/rules.md and @docs/gone.md\n",
        "docs/rules.md": b"See @/etc/passwd, @deep.md.\n",
        ".claude/hooks/start": b"#!/bin/sh\necho hi\n",
        ".claude/skills/sql/SKILL.md": SKILL.encode(),
        "logo.png": b"\x89PNG\0",
    }
    composed = Composed("Fix it.", None, files, "CLAUDE.md", {"a/AGENTS.md": "Notes on a"}, Delivery())
    found = declare_texts(composed, ConditionOrder(name="c", digest="0" * 64), {"docs/deep.md": b"Deep."}.get)
    names = {one.name: (one.channel, one.role.value) for one in found.texts}
    assert names["files"] == ("files", "instructions")
    assert names["files:.claude/skills/sql/SKILL.md"] == ("files", "skill")
    assert names["imports:docs/deep.md"] == ("imports", "instructions")
    assert names["hook:a/AGENTS.md"] == ("hook", "text")
    assert found.imports["CLAUDE.md"] == (("docs/rules.md", True), ("docs/gone.md", False))
    assert found.imports["docs/rules.md"] == (("/etc/passwd", False), ("docs/deep.md", True))
    assert found.scripts == (".claude/hooks/start",)


def test_scripts_are_present_executable_and_run_or_not(tmp_path: Path) -> None:
    """On a file system that keeps access times, as far as they tell."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    for name, mode in (("idle.sh", 0o644), ("called.sh", 0o755), ("read.sh", 0o755)):
        (workspace / name).write_text("#!/bin/sh\necho hi\n")
        (workspace / name).chmod(mode)
    modified = (workspace / "idle.sh").stat().st_mtime_ns
    watch = ScriptWatch(workspace, ["idle.sh", "called.sh", "read.sh", "gone.sh"])
    subprocess.run([workspace / "called.sh"], check=True, stdout=subprocess.DEVNULL)
    (workspace / "read.sh").read_text()
    found = watch.describe_scripts(
        watch.list_opened(), [Step(turn=1, kind="run", tool="Bash", detail="./called.sh")]
    )
    keeps_times = watch.list_opened()["idle.sh"] is False
    assert found["idle.sh"] == ScriptReceipt(present=True, executable=False, ran=False if keeps_times else None)
    assert found["called.sh"] == ScriptReceipt(present=True, executable=True, ran=True)
    assert found["read.sh"] == ScriptReceipt(present=True, executable=True, ran=None)
    assert found["gone.sh"] == ScriptReceipt(present=False, executable=False, ran=False)
    assert (workspace / "idle.sh").stat().st_mtime_ns == modified
    assert [path.name for path in tmp_path.iterdir()] == ["workspace"]


def test_claims_are_of_the_root_and_else_of_the_file_that_arrived_best() -> None:
    nested = [
        Receipt(name="files:a.md", channel="files", size=10, share=0.0, arrival=Arrival.NOT_SENT),
        Receipt(name="files:b.md", channel="files", size=10, share=1.0, arrival=Arrival.CHANGED),
    ]
    root = Receipt(name="files", channel="files", size=10, share=0.5, arrival=Arrival.IN_PART)
    empty = Receipt(name="files", channel="files")
    parts = {"files": ("files",)}
    assert claim_arrivals(parts, Receipts(receipts=tuple(nested))) == ({"files": True}, {"files": 1.0})
    assert claim_arrivals(parts, Receipts(receipts=(root, *nested))) == ({"files": False}, {"files": 0.5})
    assert claim_arrivals(parts, Receipts(receipts=(empty, *nested))) == ({"files": None}, {})


def test_a_description_proves_no_instructions_and_few_words_prove_nothing() -> None:
    lost = Receipt(
        name="files:a/CLAUDE.md",
        channel="files",
        role=FileRole.INSTRUCTIONS,
        size=9,
        share=0.0,
        arrival=Arrival.NOT_SENT,
    )
    agent = lost.model_copy(
        update={"name": "files:.claude/agents/a.md", "role": FileRole.SUBAGENT, "listed": True}
    )
    assert claim_arrivals({"files": ("files",)}, Receipts(receipts=(lost, agent))) == (
        {"files": False},
        {"files": 0.0},
    )


@pytest.mark.parametrize(
    ("role", "listed", "claimed"),
    [
        (FileRole.SUBAGENT, True, ({"files": True}, {"files": 1.0})),
        (FileRole.COMMAND, False, ({"files": False}, {"files": 0.0})),
        (FileRole.OTHER, None, ({"files": None}, {})),
        (FileRole.SCRIPT, None, ({"files": None}, {})),
    ],
)
def test_what_no_agent_sends_by_itself_arrives_by_its_description_or_not_at_all(
    role: FileRole, listed: bool | None, claimed: object
) -> None:
    """Of conditions of sub-agents, commands or settings alone."""
    one = Receipt(name="files:.claude/agents/a.md", channel="files", role=role, size=9, listed=listed)
    sent = one.model_copy(update={"arrival": Arrival.NOT_SENT, "share": 0.0})
    assert claim_arrivals({"files": ("files",)}, Receipts(receipts=(sent,))) == claimed
