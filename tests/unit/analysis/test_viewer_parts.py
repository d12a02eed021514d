"""Parts of a trial's page: a patch's colours, and the steps that context belongs to."""

from __future__ import annotations

from xml.etree.ElementTree import tostring

import pytest

from trialfleet_analysis.viewer.bundle_parts import HookFiring
from trialfleet_analysis.viewer.pages.patch import LONGEST_COLOURED, patch
from trialfleet_analysis.viewer.pages.trajectory import marked
from trialfleet_ledger.trajectory import Step


def diff(name: str, *lines: str) -> str:
    return "\n".join((f"diff --git a/{name} b/{name}", f"--- a/{name}", f"+++ b/{name}", "@@ -1 +1 @@", *lines))


def shown(text: str) -> str:
    return tostring(patch(text, "Patch"), encoding="unicode")


def words(text: str) -> str:
    return "".join(patch(text, "Patch").itertext())


def test_syntax_has_colours_and_every_character_stays() -> None:
    made = diff("a.py", "-return 1", "+return 'two'  # why", " \tclass A: pass")
    assert '<span class="kw">return</span>' in shown(made)
    assert '<span class="st">\'' in shown(made)
    assert '<span class="cm"># why</span>' in shown(made)
    assert all(line in words(made) for line in made.split("\n"))


@pytest.mark.parametrize("name", ["a.unknown", "Makefile", "a." + "x" * 300, "a.py/", '"a b.zzz"'])
def test_an_unknown_language_has_the_lines_kinds_alone(name: str) -> None:
    made = shown(diff(name, "+return 1"))
    assert '<span class="added">+return 1</span>' in made
    assert 'class="kw"' not in made


def test_hostile_lines_are_text_and_cost_little() -> None:
    evil = "<script>alert(1)</script>\x1b[31m\u202e"
    made = diff("a.py", f"+{evil}", "+" + "(" * (LONGEST_COLOURED + 1), '+"' + "\\" * LONGEST_COLOURED)
    assert "<script" not in shown(made)
    assert "<script>alert(1)</script>␛[31m⟨U+202E⟩" in words(made)
    assert "(" * (LONGEST_COLOURED + 1) in words(made)


def firing(path: str, *, pushed: bool = True, denied: bool = False) -> HookFiring:
    return HookFiring("Read", path, "shop/AGENTS.md", pushed=pushed, denied=denied)


def read(path: str | None, kind: str = "read") -> Step:
    return Step.model_validate({"turn": 1, "kind": kind, "path": path})


def test_context_that_was_read_or_pushed_is_marked_at_its_step() -> None:
    steps = [
        read("AGENTS.md"),
        read("shop/a.py"),
        read("shop/a.py"),
        read("b.py"),
        read(None),
        read("x/AGENTS.md", "edit"),
    ]
    fired = [firing("/work/shop/a.py"), firing("b.py", pushed=False), firing("b.py", pushed=False, denied=True)]
    assert [one.marks for one in marked(steps, fired)] == [
        ("reads context",),
        ("hook pushed shop/AGENTS.md",),
        (),
        ("hook denied it",),
        (),
        (),
    ]
