"""Repair operators as pure functions: what they propose parses, is local, and reaches known fixes."""

from __future__ import annotations

import ast
import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trialfleet_search.edit import Edit, OverlappingEdits, apply
from trialfleet_search.facts import Facts, differing, middle
from trialfleet_search.generate import candidates, written
from trialfleet_search.guidance import Guidance
from trialfleet_search.operators import REGISTRY, EditSite
from trialfleet_search.scope import FileScope
from trialfleet_search.source import ParsedSource, is_atom

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "search-agent.md"
SEEN = Facts(
    exceptions=("KeyError", "UnboundLocalError"),
    expected_raises=("ValueError",),
    pairs=(("a-b", "a_b"), ("x", "x ")),
    strings=("foo", "|"),
    numbers=(3, 7.5),
    names=("x",),
)


def proposed(text: str, facts: Facts = SEEN) -> dict[str, set[str]]:
    """By operator: every text of the file that it proposes and that compiles."""
    source = ParsedSource("a.py", text.encode())
    scope = FileScope(source)
    found: dict[str, set[str]] = {}
    for node in ast.walk(source.tree):
        for operator in REGISTRY.get(type(node), ()):
            for change in operator.propose(EditSite(source, scope, facts, node)):
                changed = apply(source.data, change.edits).decode()
                try:
                    ast.parse(changed)
                except SyntaxError:
                    continue
                found.setdefault(operator.name, set()).add(changed)
    return found


# --- known fixes: (operator, before, after) -----------------------------------------------------------

FIXES = [
    ("relational", "def f(a, b):\n    return a < b\n", "def f(a, b):\n    return a <= b\n"),
    ("none_truth", "def f(a):\n    if a:\n        g()\n", "def f(a):\n    if a is not None:\n        g()\n"),
    ("none_truth", "def f(a):\n    if not a:\n        g()\n", "def f(a):\n    if a is None:\n        g()\n"),
    ("logical", "def f(a, b):\n    return a and b\n", "def f(a, b):\n    return a or b\n"),
    ("negate", "def f(a):\n    if a.ok():\n        g()\n", "def f(a):\n    if not a.ok():\n        g()\n"),
    ("operand_drop", "def f(a, b):\n    return a and b\n", "def f(a, b):\n    return b\n"),
    (
        "condition_refine",
        "def f(a, b):\n    if b == 1:\n        g()\n",
        "def f(a, b):\n    if b == 1 and a:\n        g()\n",
    ),
    ("relational", "def f(a, b):\n    return (a or b) < b\n", "def f(a, b):\n    return (a or b) <= b\n"),
    ("arithmetic", "def f(a, b):\n    return a / b\n", "def f(a, b):\n    return a // b\n"),
    ("number", "def f(a):\n    return a[3]\n", "def f(a):\n    return a[4]\n"),
    ("boolean", "def f(a=True):\n    pass\n", "def f(a=False):\n    pass\n"),
    ("string_repair", "def f():\n    return 'see a-b there'\n", "def f():\n    return 'see a_b there'\n"),
    ("regex", "import re\nR = re.compile(r'\\d+x')\n", "import re\nR = re.compile(r'\\d*x')\n"),
    ("get_default", "def f(d):\n    d.pop('k')\n", "def f(d):\n    d.pop('k', None)\n"),
    ("or_default", "def f(a):\n    return g(a)\n", "def f(a):\n    return g((a or []))\n"),
    ("method_sibling", "def f(a):\n    return a.lstrip()\n", "def f(a):\n    return a.strip()\n"),
    ("argument_swap", "def f(a, b):\n    g(a, b)\n", "def f(a, b):\n    g(b, a)\n"),
    (
        "argument_add",
        "def g(x, mode=0):\n    pass\ndef f(a, mode):\n    g(a)\n",
        "def g(x, mode=0):\n    pass\ndef f(a, mode):\n    g(a, mode=mode)\n",
    ),
    ("guard_insert", "def f(a):\n    g(a)\n", "def f(a):\n    if a:\n        g(a)\n"),
    (
        "early_exit",
        "def f(a):\n    b = a.x\n    return b\n",
        "def f(a):\n    if a is None:\n        return None\n    b = a.x\n    return b\n",
    ),
    (
        "exception_widen",
        "def f():\n    try:\n        g()\n    except OSError:\n        pass\n",
        "def f():\n    try:\n        g()\n    except (OSError, KeyError):\n        pass\n",
    ),
    ("exception_raise", "def f():\n    raise TypeError(1)\n", "def f():\n    raise ValueError(1)\n"),
    ("parameter_default", "def f(a, b=1):\n    pass\n", "def f(a, b=None):\n    pass\n"),
    ("element_add", "X = ['a', 'b']\n", "X = ['a', 'b', 'foo']\n"),
]


@pytest.mark.parametrize(("name", "before", "after"), FIXES, ids=lambda value: str(value)[:20])
def test_an_operator_reaches_the_fix_that_it_is_named_for(name: str, before: str, after: str) -> None:
    assert after in proposed(before).get(name, set())


def test_every_documented_operator_exists_and_every_operator_is_documented() -> None:
    text = DOCUMENT.read_text()
    documented = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    built = {operator.name for operators in REGISTRY.values() for operator in operators}
    assert built | {"compose"} == documented


# --- properties ---------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "self", "item", "x1"])
ATOMS = st.one_of(
    NAMES,
    st.integers(-3, 300).map(str),
    st.sampled_from(["None", "True", '""', "'x y'", "[]", "{}", "()", "r'^a+$'", "b'z'", "'é€'", "f'{a}-{b!r}'"]),
)


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(inner, inner)
    return st.one_of(
        two.map(lambda p: f"({p[0]} + {p[1]})"),
        two.map(lambda p: f"({p[0]} and {p[1]})"),
        two.map(lambda p: f"({p[0]} < {p[1]})"),
        two.map(lambda p: f"g({p[0]}, k={p[1]})"),
        two.map(lambda p: f"({p[0]} if a else {p[1]})"),
        two.map(lambda p: f"[{p[0]}, {p[1]}]"),
        two.map(lambda p: f"{{'k': {p[0]}, 'l': {p[1]}}}"),
        two.map(lambda p: f"[x for x in ({p[0]}) if ({p[1]})]"),
        inner.map(lambda t: f"(not {t})"),
        inner.map(lambda t: f"a.b({t}).strip()"),
        inner.map(lambda t: f"a[{t}:]"),
        inner.map(lambda t: f"b[{t}]"),
        inner.map(lambda t: f"isinstance({t}, (str, int))"),
    )


EXPRESSIONS = st.recursive(ATOMS, _compound, max_leaves=6)
STATEMENTS = st.one_of(
    EXPRESSIONS.map(lambda e: [f"a = {e}"]),
    EXPRESSIONS.map(lambda e: [f"b += {e}"]),
    EXPRESSIONS.map(lambda e: [f"g({e})  # note"]),
    EXPRESSIONS.map(lambda e: [f"if {e}:", "    b = 1", "elif a:", "    pass", "else:", "    g(b)"]),
    EXPRESSIONS.map(lambda e: [f"for x in {e}:", "    if x:", "        continue", "    g(x)"]),
    EXPRESSIONS.map(lambda e: ["try:", f"    a = {e}", "except (ValueError, KeyError):", "    raise"]),
    EXPRESSIONS.map(lambda e: [f"return {e}"]),
)


@st.composite
def modules(draw: st.DrawFn) -> str:
    """A function or a method with a few statements, sometimes with Windows line ends or without a last one."""
    statements = draw(st.lists(STATEMENTS, min_size=1, max_size=2))
    body = [row for rows in statements for row in rows]
    method = draw(st.booleans())
    header = ["class A(B):", "    def f(self, a, b=None):"] if method else ["def f(self, a, b=None):"]
    indent = " " * (8 if method else 4)
    rows = ["import re", "R = re.compile(r'\\d+')", *header, *(indent + row for row in body)]
    text = draw(st.sampled_from(["\n", "\r\n"])).join(rows)
    return text + draw(st.sampled_from(["\n", ""]))


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@settings(max_examples=60, deadline=None)
@given(modules())
def test_candidates_parse_differ_and_stay_local(text: str) -> None:
    source = ParsedSource("a.py", text.encode())
    lines = dict.fromkeys(range(1, len(source.starts) + 1), 1.0)
    found, broken = candidates(source, lines, SEEN, Guidance([]), random.Random(1))
    assert broken == 0
    assert found
    before = ast.dump(source.tree)
    for one in random.Random(2).sample(found, min(40, len(found))):
        for edit in one.edits:
            assert 0 <= edit.start <= edit.end <= len(source.data)
        data = written(source, one)
        if data is None:
            continue
        assert ast.dump(ast.parse(data)) != before
        first, last = one.edits[0].start, one.edits[-1].end
        assert data.startswith(source.data[:first])
        assert data.endswith(source.data[last:])


@settings(max_examples=30, deadline=None)
@given(modules())
def test_most_proposals_compile_as_they_are(text: str) -> None:
    """`written` drops what does not compile; operators that relied on it would waste the search's time."""
    source = ParsedSource("a.py", text.encode())
    lines = dict.fromkeys(range(1, len(source.starts) + 1), 1.0)
    found, _ = candidates(source, lines, Facts(), Guidance([]), random.Random(1))
    sample = random.Random(3).sample(found, min(60, len(found)))
    broken = 0
    for one in sample:
        try:
            ast.parse(apply(source.data, one.edits))
        except (SyntaxError, OverlappingEdits):
            broken += 1
    assert broken <= max(3, len(sample) // 4)


def test_the_seed_orders_equals_and_nothing_else() -> None:
    source = ParsedSource("a.py", b"def f(a, b):\n    if a < b:\n        return a + b\n    return b\n")
    lines = dict.fromkeys(range(1, 5), 1.0)

    def order(seed: int) -> list[tuple[Edit, ...]]:
        found, _ = candidates(source, lines, Facts(), Guidance([]), random.Random(seed))
        return [one.edits for one in found]

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert set(order(1)) == set(order(2))


def test_an_edit_counts_bytes_not_characters() -> None:
    source = ParsedSource("a.py", "def f(a, b):\n    return '€é' + a[0] # €\n".encode())
    changed = {
        apply(source.data, c.edits).decode()
        for c in candidates(source, {2: 1.0}, Facts(), Guidance([]), random.Random(0))[0]
    }
    assert "def f(a, b):\n    return '€é' + a[1] # €\n" in changed


def test_names_of_the_guidance_come_first() -> None:
    text = b"def one(a):\n    return a[0]\n\n\ndef two(a):\n    return a[0]\n"
    source = ParsedSource("a.py", text)
    guidance = Guidance(["a.py"])
    guidance.add_text("Pitfall: `two` takes the wrong element of what it is given, every time.")
    found, _ = candidates(source, {2: 1.0, 6: 1.0}, Facts(), guidance, random.Random(0))
    assert [one.line for one in found[:4]] == [6] * 4


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(OverlappingEdits):
        apply(b"abc", [Edit(0, 2, b""), Edit(1, 3, b"")])


@given(st.text(alphabet="ab-", max_size=8), st.text(alphabet="ab-", max_size=8))
def test_middle_puts_both_texts_together_again(got: str, expected: str) -> None:
    prefix, lost, gained, suffix = middle(got, expected)
    assert (prefix + lost + suffix, prefix + gained + suffix) == (got, expected)


def test_atoms_hold_together() -> None:
    for text in ("a", "a.b", "f(x)", "a[0]", "'s'", "[1]"):
        assert is_atom(text)
    for text in ("a + b", "not a", "a if b else c", "lambda: 1", "1", "a b"):
        assert not is_atom(text)


def test_differences_are_found_in_depth() -> None:
    left, right = {"a": [1, {"b": "x"}], "c": 1}, {"a": [1, {"b": "y"}], "d": 1}
    assert list(differing(left, right)) == [("x", "y"), ("c", "d")]
    assert list(differing([1], [1, 2])) == [([1], [1, 2])]
    assert list(differing("same", "same")) == []
