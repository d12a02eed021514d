"""A combination as a page, as Markdown, on a terminal and by its command; text of others in all of them."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from tests.unit.analysis.combining_fixture import CONTROL, ONE, TREATMENT, TWO, combined, made
from tests.unit.analysis.parsed_page import Page
from trialfleet_analysis.combining.combine import Combination
from trialfleet_analysis.combining.render import show, to_html, to_markdown
from trialfleet_analysis.combining.sameness import CampaignDifference
from trialfleet_analysis.commands.combine import combine

HOSTILE = "<script>alert(1)</script>|\x1b[2J\u202e_x_"


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Combination:
    return combined(tmp_path_factory.mktemp("three"), ONE, TWO, ONE[:3])


@pytest.fixture(scope="module")
def hostile(three: Combination) -> Combination:
    """As if a plan could hold such names."""
    return dataclasses.replace(
        three,
        treatment=HOSTILE,
        answer=(f"{HOSTILE} passed more often", *three.answer[1:]),
        cautions=(f"differ in {HOSTILE}",),
        campaigns=tuple(
            dataclasses.replace(one, label=HOSTILE, where=HOSTILE, treatment=HOSTILE) for one in three.campaigns
        ),
        differences=(CampaignDifference(HOSTILE, ((HOSTILE, (HOSTILE,)), ("b", ("c",)))),),
    )


def on_terminal(found: Combination) -> str:
    stream = io.StringIO()
    show(found, Console(file=stream, width=100, force_terminal=False))
    return stream.getvalue()


def test_the_page_draws_every_campaign_and_what_combines_them(three: Combination) -> None:
    parsed = Page(to_html(three))
    drawn = [one["aria-label"] or "" for one in parsed.named("svg") if one.get("role") == "img"]
    assert [label.partition(":")[0] for label in drawn] == [
        "c0", "c1", "c2", "All strata", "Random effects", "Another campaign", "Inverse variance",
    ]  # fmt: skip
    assert drawn[0].startswith("c0: +40.0 points, +10.6 to +63.7, p = 0.011")
    assert [row[0] for row in parsed.tables["Campaigns"][1:]] == ["c0", "c1", "c2"]
    assert parsed.tables["Combined"][1][-1] == f"{three.pooled.test.p_value:.2g}"


def test_every_format_starts_with_the_answer(three: Combination) -> None:
    first = f"On these 11 tasks of 3 campaigns, {TREATMENT} passed more often than {CONTROL}: "
    assert on_terminal(three).startswith(first)
    assert to_markdown(three).startswith(f"**{first}")
    words = " ".join(Page(to_html(three)).words)
    assert words.index("passed more often than") < words.index("Combined by")


def test_names_of_others_are_shown_as_text(hostile: Combination) -> None:
    page = to_html(hostile)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert Page(page).tags.count("script") == 1
    for told in (page, to_markdown(hostile), on_terminal(hostile)):
        assert "\x1b" not in told
        assert "\u202e" not in told
    assert "<script>" not in to_markdown(hostile)


def test_the_command_writes_three_files(tmp_path: Path) -> None:
    sources = [made(tmp_path, "a", ONE), made(tmp_path, "b", TWO)]
    words = [*(one.campaign for one in sources), "--store", str(tmp_path), "--out", str(tmp_path / "out")]
    told = CliRunner().invoke(combine, words, catch_exceptions=False, standalone_mode=False)
    files = [tmp_path / "out" / f"combined.{kind}" for kind in ("html", "md", "json")]
    assert told.output.splitlines()[-3:] == [str(path) for path in files]
    kept = json.loads(files[2].read_text())
    assert " ".join(told.output.split()).startswith(kept["answer"][0])
    printed = CliRunner().invoke(combine, [*words, "--json"], catch_exceptions=False, standalone_mode=False)
    assert json.loads(printed.output) == {**kept, "files": [str(path) for path in files]}
