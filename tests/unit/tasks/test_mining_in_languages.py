"""What mining in several languages passes on: candidates of a real history, manifests, findings, the task file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import pytest
import yaml

from tests.support.git_repositories import Made
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.task import Environment, GitSource, PythonEnvironment, TaskFile, TaskSpec, ToolEnvironment
from trialfleet_repository.cache import Cache
from trialfleet_repository.languages import LANGUAGES
from trialfleet_repository.trees import Tree
from trialfleet_sandbox.choose import choose
from trialfleet_tasks.commands.mine import _chosen  # pyright: ignore[reportPrivateUsage]
from trialfleet_tasks.mining.environments import MinedEnvironments
from trialfleet_tasks.mining.examine import Miner
from trialfleet_tasks.mining.findings import MiningFinding, RejectionReason
from trialfleet_tasks.mining.history import CandidateRules, read_commits
from trialfleet_tasks.mining.issues import Issues
from trialfleet_tasks.mining.mine import CandidateCommits, candidates
from trialfleet_tasks.mining.state import MiningState
from trialfleet_tasks.mining.task_file import task_file

FILES = {
    "Go": ("go.mod", "cart/cart.go", "cart/cart_test.go"),
    "JavaScript": ("web/package.json", "web/src/cart.ts", "web/src/cart.test.ts"),
    "Rust": ("Cargo.toml", "src/cart.rs", "tests/cart.rs"),
    "Java": ("pom.xml", "src/main/java/Cart.java", "src/test/java/CartTest.java"),
}


class NoEnvironments:
    """Notes what it is given, and has no environment."""

    def __init__(self) -> None:
        self.given: list[tuple[Tree, date, str]] = []

    def of(self, tree: Tree, committed: date, version: str, tests: Sequence[str]) -> Environment:
        self.given.append((tree, committed, version))
        raise OperatorError("there is none")

    def find_versions(self) -> Mapping[str, str]:
        return {}


@pytest.fixture
def polyglot(tmp_path: Path) -> tuple[Made, dict[str, str]]:
    """A repository, and the commit that fixes something in each language."""
    made = Made(tmp_path / "shop")
    for manifest, source, _ in FILES.values():
        made.write(manifest, f"manifest {manifest}")
        made.write(source, "bug")
    made.commit("Start")
    fixes: dict[str, str] = {}
    for name, (_, source, test) in FILES.items():
        made.write(source, "right")
        made.write(test, "test")
        fixes[name] = made.commit(f"Fix {name}")
    return made, fixes


def found_in(made: Made, *names: str) -> CandidateCommits:
    git_dir = made.folder / ".git"
    return candidates(read_commits(git_dir), [LANGUAGES[name] for name in names], CandidateRules(), git_dir)


def miner(made: Made, folder: Path, environments: dict[str, MinedEnvironments]) -> Miner:
    cache = Cache(folder / "cache")
    return Miner(
        git_dir=made.folder / ".git",
        url=str(made.folder),
        file=folder / "mined.yaml",
        environments=environments,
        prompt_source="failing_test",
        issues=Issues(),
        logs=folder / "logs",
        cache=cache,
        objects=Objects(cache.objects),
        sandbox=choose(),
        repeats=1,
        timeout_s=10,
    )


def test_each_language_is_asked_for_its_environments(
    polyglot: tuple[Made, dict[str, str]], tmp_path: Path
) -> None:
    made, fixes = polyglot
    found = found_in(made, *LANGUAGES)
    assert {c.language.name: c.commit.sha for c in found.chosen} == fixes
    assert found.rejected == ()
    notes = {name: NoEnvironments() for name in FILES}
    mine = miner(made, tmp_path, dict(notes))
    for candidate in found.chosen:
        finding, task = mine.examine(candidate, lambda _: None)
        assert (finding.outcome, finding.language) == (RejectionReason.ENVIRONMENT_FAILED, candidate.language.name)
        assert task is None
    for name, (manifest, source, test) in FILES.items():
        ((tree, _, version),) = notes[name].given
        assert (tree[manifest].data, tree[source].data, version) == (f"manifest {manifest}".encode(), b"", "0.0.0")
        assert test not in tree, "it is the tree before the fix"
        assert not any(tree[other].data for other, _, _ in FILES.values() if other != manifest)


def test_other_languages_are_no_candidates(polyglot: tuple[Made, dict[str, str]]) -> None:
    made, fixes = polyglot
    found = found_in(made, "Go")
    assert [c.commit.sha for c in found.chosen] == [fixes["Go"]]
    assert {f.outcome for f in found.rejected} == {RejectionReason.NO_SOURCE}


def test_a_finding_counts_for_its_language_alone(tmp_path: Path) -> None:
    path = tmp_path / "findings.jsonl"
    state = MiningState.load(path, lambda _: "a", {})
    state.add(MiningFinding(commit="1", language="Go", outcome=RejectionReason.FLAKY), None)
    state.add(MiningFinding(commit="2", outcome=RejectionReason.FLAKY), None)
    again = MiningState.load(path, lambda _: "a", {"1": "Go", "2": "Python"})
    assert None not in (again.finding("1"), again.finding("2")), "a finding without a language is older: Python"
    other = MiningState.load(path, lambda _: "a", {"1": "Python", "2": "Go"})
    assert (other.finding("1"), other.finding("2")) == (None, None)


def test_languages_that_cannot_be_run_are_refused() -> None:
    environments: dict[str, MinedEnvironments] = {"Python": NoEnvironments()}
    lacking = {"Go": OperatorError("there is no program go", hint="install go")}
    assert _chosen(environments, lacking, ()) == environments
    assert _chosen(environments, lacking, ("Python", "Python")) == environments
    with pytest.raises(OperatorError, match="tests in Go cannot be run: there is no program go") as refused:
        _chosen(environments, lacking, ("Python", "Go"))
    assert refused.value.hint == "install go; or choose from Python"


def test_the_task_file_names_language_and_day() -> None:
    source = GitSource(url="x", pre_fix_commit="0" * 40, fix_commit="1" * 40)
    task = TaskSpec(
        id="a",
        source=source,
        test_file="cart_test.go",
        prompt_source="failing_test",
        environment=ToolEnvironment(kind="go"),
        committed=date(2025, 2, 1),
    )

    def read(*tasks: TaskSpec) -> TaskFile:
        return TaskFile.model_validate_json(json.dumps(yaml.safe_load(task_file("..", tasks, {}))))

    written = read(task)
    assert written.repo.language == "Go"
    assert written.tasks[0].committed == date(2025, 2, 1)
    assert read(task.model_copy(update={"test_file": "a.test.ts"})).repo.language == "JavaScript"
    python = task.model_copy(
        update={"test_file": "tests/test_a.py", "committed": None, "environment": PythonEnvironment(lock="l")}
    )
    assert "language" not in task_file("..", [python], {})
    assert "committed" not in task_file("..", [python], {})
