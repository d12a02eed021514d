"""A language that is registered is known to everything that serves languages, and the shipped ones are whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.toys.language import RUN_CHECKS, TOY
from trialfleet_ledger.task import ToolEnvironment
from trialfleet_repository.languages import (
    LANGUAGES,
    PYTHON,
    Language,
    format_named,
    is_test_path,
    language_of,
    language_of_kind,
    register,
)
from trialfleet_repository.trees import TreeEntry
from trialfleet_tasks.presets.packages import package_of
from trialfleet_tasks.presets.preset import preset


@pytest.fixture
def toy() -> Iterator[Language]:
    assert not is_test_path("sum.check")
    register(TOY)
    yield TOY
    del LANGUAGES[TOY.name]
    register(PYTHON)  # joins the patterns of all languages again
    assert not is_test_path("sum.check")


def test_a_registered_language_is_known(toy: Language) -> None:
    assert is_test_path("shop/sum.check")
    assert not is_test_path("shop/sum.toy")
    assert language_of("shop/sum.toy") is toy
    assert language_of_kind("toy") is toy
    assert toy.is_source("shop/sum.toy")
    assert toy.test_modules(["sum.toy", "sum.check"]) == ("sum.check",)
    assert format_named("toy-checks") is toy.formats[0]
    assert package_of("toy", {}, "shop/sum.toy") == "."
    found = preset(ToolEnvironment(kind="toy"), {"sum.toy": TreeEntry(b"a + b")})
    assert (found.results, found.test_command) == ("toy-checks", RUN_CHECKS)


def test_doctor_looks_for_its_programs(toy: Language, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trialfleet_controller.doctor import _languages

    program = tmp_path / "sh"
    program.write_text("#!/bin/sh\necho shell 5.2.1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert "sh 5.2.1" in _languages().found


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=lambda language: language.name)
def test_a_shipped_language_is_whole(language: Language) -> None:
    assert language_of_kind(language.kind) is language
    assert language.formats
    assert language.survey.names
    assert language.survey.manifests
    assert all(format_named(each.name) is each for each in language.formats)
    if language.preset is not None:
        assert language.programs
        assert set(language.linkers) | set(language.asks) <= {*language.programs, "javac"}
    assert all(file.is_file() for file in language.own_files)
    for name in ("test_paths", "harness", "junk"):
        pattern = getattr(language, name)
        assert pattern.flags == PYTHON.test_paths.flags, "patterns of all languages are joined"
        assert pattern.groups == 0


def test_names_kinds_and_formats_are_of_one_language() -> None:
    languages = LANGUAGES.values()
    kinds = [language.kind for language in languages]
    formats = [each.name for language in languages for each in language.formats]
    suffixes = [suffix for language in languages for suffix in language.suffixes]
    for names in (kinds, formats, suffixes):
        assert len(set(names)) == len(names)
