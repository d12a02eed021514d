"""The texts that models read: each documented, filled in exactly, and part of a digest."""

from __future__ import annotations

import re
import shutil
import zipfile
from pathlib import Path
from typing import get_args

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.unit.runner.test_renewal import grants
from trialfleet_deliveries import texts
from trialfleet_ledger.records.verdicts import HaltScope, LossClass
from trialfleet_runner.attempt.agent_run import identified
from trialfleet_runner.attempt.loss import Lost
from trialfleet_search.guidance import HINTS

ROOT = Path(__file__).parents[3]
NAMES: tuple[texts.TextName, ...] = get_args(texts.TextName)
FRAMES = [name for name in NAMES if re.match("task|pull|inline|hook|target|preflight_findings", name)]


def test_every_file_is_a_known_text() -> None:
    files = texts.FOLDER.rglob(f"*{texts.SUFFIX}")
    assert sorted(str(file.relative_to(texts.FOLDER).with_suffix("")) for file in files) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_comment_says_what_the_text_is_for_and_names_its_placeholders(name: texts.TextName) -> None:
    content = (texts.FOLDER / f"{name}{texts.SUFFIX}").read_text()
    comment = content.partition("-->")[0]
    fields = re.findall(r"^(Purpose|Reader|Source|Placeholders): \S", comment, re.MULTILINE)
    assert fields == ["Purpose", "Reader", "Source", "Placeholders"]
    template = texts.template(name)
    assert template.is_valid()
    described = comment.partition("Placeholders: ")[2]
    assert [found for found in template.get_identifiers() if not re.search(rf"\b{found}\b", described)] == []
    assert (described.strip() == "none.") == (template.get_identifiers() == [])


def test_the_comment_is_no_part_of_the_text() -> None:
    for name in NAMES:
        text = texts.template(name).template
        assert text == text.strip()
        assert "<!--" not in text
        assert "Purpose:" not in text
    with pytest.raises(ValueError, match="begins with a comment"):
        texts.without_comment("Fix it.\n")


@pytest.mark.parametrize("values", [{}, {"root": "a", "names": "b"}, {"names": "b"}])
def test_values_are_exactly_the_placeholders(values: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"text pull_root: its placeholders are \['root'\]"):
        texts.render("pull_root", **values)


def test_what_is_filled_in_is_not_read_as_a_placeholder() -> None:
    assert "$HOME ${calls} $$" in texts.render("task_issue", issue="$HOME ${calls} $$")


@pytest.mark.parametrize("name", FRAMES)
def test_the_words_around_a_context_are_no_advice_to_the_search_agent(name: texts.TextName) -> None:
    """Else the frame would have an effect of its own."""
    text = texts.template(name).template
    assert [hint for hint in HINTS if re.search(hint, text, re.IGNORECASE)] == []


# --- the digest -------------------------------------------------------------------------------------------


def edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, old: str, new: str) -> None:
    """From here on the texts are a copy in which one file is changed."""
    copy = tmp_path / new
    shutil.copytree(texts.FOLDER, copy)
    file = copy / f"{name}{texts.SUFFIX}"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    monkeypatch.setattr(texts, "FOLDER", copy)


def test_a_changed_text_is_another_digest_and_a_changed_comment_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, whole = texts.digests(), texts.digest()
    edited(tmp_path, monkeypatch, "fail_fast", "why the", "the reason why the")
    assert (texts.digests(), texts.digest()) == (before, whole)
    edited(tmp_path, monkeypatch, "fail_fast", "has run twice", "has run two times")
    assert {name for name, digest in texts.digests().items() if digest != before[name]} == {"fail_fast"}
    assert texts.digest() != whole


def test_texts_of_authors_are_no_part_of_a_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authoring, whole = texts.digests("authoring"), texts.digest()
    edited(tmp_path, monkeypatch, "authoring/flat", "at most 150 lines", "at most 100 lines")
    assert texts.digests("authoring") != authoring
    assert texts.digest() == whole


def test_a_runner_with_other_texts_than_planned_halts_the_campaign() -> None:
    planned = grants().model_copy(update={"texts": texts.digest()})
    assert identified(planned)[1].kind == "nop"
    with pytest.raises(Lost, match=str(texts.FOLDER)) as raised:
        identified(planned.model_copy(update={"texts": "1" * 64}))
    assert (raised.value.loss, raised.value.halt) == (LossClass.SETUP, HaltScope.CAMPAIGN)


# --- where they are shipped -------------------------------------------------------------------------------


def test_a_wheel_has_every_text_and_table(tmp_path: Path) -> None:
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert {f"trialfleet_deliveries/texts/{name}.md" for name in NAMES} <= packed
    files = [file for file in (ROOT / "runner_image").rglob("*.*") if file.suffix not in {".pyc", ".so"}]
    assert {str(file.relative_to(ROOT / "runner_image")) for file in files} <= packed
    assert "trialfleet_sandbox/system_calls.tsv" in packed
