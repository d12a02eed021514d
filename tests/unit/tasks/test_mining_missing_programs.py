"""Commits whose packages are installed by a program that is not here are counted before anything runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.git_repositories import Made
from trialfleet_repository.languages import LANGUAGES, Language
from trialfleet_tasks.mining.findings import RejectionReason
from trialfleet_tasks.mining.history import CandidateRules, read_commits
from trialfleet_tasks.mining.mine import CandidateCommits, candidates
from trialfleet_tasks.mining.missing_programs import count_missing, drop_missing_programs


def _fix(made: Made, name: str, source: str, test: str) -> str:
    made.write(source, f"// {name}\n")
    made.write(test, f"// {name}\n")
    return made.commit(f"Fix {name}")


def _found(made: Made, *here: str) -> tuple[CandidateCommits, set[str]]:
    commits = read_commits(made.folder / ".git")
    whole = candidates(commits, LANGUAGES.values(), CandidateRules(), made.folder / ".git")
    found = drop_missing_programs(whole, made.folder / ".git", lambda name: name in here)
    return found, {candidate.commit.sha for candidate in found.chosen}


def test_each_program_is_counted_once_with_what_installs_it(tmp_path: Path) -> None:
    made = Made(tmp_path / "shop")
    made.write("package.json", json.dumps({"scripts": {"test": "mocha"}}))
    made.commit("Start")
    without_lock = _fix(made, "none", "src/none.js", "test/none.test.js")
    made.write("package-lock.json", "{}")
    made.commit("Lock")
    npm = _fix(made, "npm", "src/npm.js", "test/npm.test.js")
    made.git("mv", "package-lock.json", "pnpm-lock.yaml")
    made.commit("Use pnpm")
    pnpm = {_fix(made, f"pnpm {n}", f"src/pnpm{n}.js", f"test/pnpm{n}.test.js") for n in range(3)}
    made.write("tools/bun.lock", "{}")
    made.commit("Use bun, too")
    bun = _fix(made, "bun", "tools/src/a.js", "tools/test/a.test.js")
    made.write("jvm/build.gradle", "")
    made.commit("Java as well")
    gradle = _fix(made, "gradle", "jvm/src/main/java/A.java", "jvm/src/test/java/ATest.java")
    made.write("gradlew", "")
    made.commit("Wrap Gradle")
    wrapped = _fix(made, "wrapper", "jvm/src/main/java/B.java", "jvm/src/test/java/BTest.java")

    found, chosen = _found(made, "npm", "java")
    assert chosen == {without_lock, npm, wrapped}
    counts = {(row.detail.split()[4], row.hint): number for row, number in count_missing(found).items()}
    assert counts == {
        ("pnpm", "npm install --global pnpm"): 3,
        ("bun", "npm install --global bun"): 1,
        ("gradle", "apt-get install gradle"): 1,
    }
    lacking = {row.commit for row in found.rejected if row.outcome is RejectionReason.NO_TOOLCHAIN}
    assert lacking == {*pnpm, bun, gradle}
    assert _found(made, "npm", "java", "pnpm")[1] == {without_lock, npm, wrapped, bun, *pnpm}, (
        "the root's lock may do"
    )


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=lambda language: language.name)
def test_what_a_language_asks_for_can_be_installed(language: Language) -> None:
    programs = {*language.programs, *language.managers}
    assert set(language.program_of.values()) <= programs
    assert set(language.installs) <= programs
