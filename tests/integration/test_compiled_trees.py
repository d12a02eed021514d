"""Validation runs a task's tests several times at each of its two trees: the first run of a tree compiles it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from tests.support.language_projects import GO, JAVA, RUST, Project
from trialfleet_ledger.task import ToolEnvironment
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments.environment import build
from trialfleet_repository.testrun import Suite
from trialfleet_repository.trees import TreeEntry
from trialfleet_repository.workspace import build_template
from trialfleet_sandbox.choose import choose
from trialfleet_tasks.presets.preset import preset
from trialfleet_tasks.task_environment import planned_tools
from trialfleet_tasks.validate.runs import TaskRunner

_PROFILE = "[workspace]\n[profile.test]\nopt-level = 1\n"
WORKSPACE = replace(RUST, base={**RUST.base, "Cargo.toml": RUST.base["Cargo.toml"] + _PROFILE})
MODULE = replace(GO, base={"go.mod": "module example.com/shop\n\ngo 1.19\n"})
TALKS = {"GOFLAGS": "-buildvcs=false -x"}  # Go says what it compiles

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("project", "kind", "compiles"),
    [
        pytest.param(MODULE, "go", "/compile -o", marks=pytest.mark.needs("go")),
        pytest.param(WORKSPACE, "rust", "Compiling shop", marks=pytest.mark.needs("cargo")),
        pytest.param(JAVA, "java", "Compiling 2 source files", marks=pytest.mark.needs("java", "mvn")),
    ],
)
def test_each_tree_is_compiled_by_its_first_run(
    project: Project, kind: Literal["go", "rust", "java"], compiles: str, tmp_path: Path
) -> None:
    fix = {path: TreeEntry(text.encode()) for path, text in project.kept[1].items()}
    (test,) = [path for path in fix if "test" in path]
    before = {path: TreeEntry(text.encode()) for path, text in (project.base | project.kept[0]).items()}
    before[test] = fix.pop(test)
    planned = planned_tools(ToolEnvironment(kind=kind), before, tests=(test,), url="shop.invalid")
    environment = build(planned.ref, planned.source, cache=Cache.default())
    found = preset(ToolEnvironment(kind=kind), before)
    suite = Suite(environment, found.test_command, (".",), 120, results=found.results, env=TALKS)
    (tmp_path / "scratch").mkdir()
    runner = TaskRunner(suite, build_template(tmp_path / "template", before), fix, choose(), tmp_path / "scratch")
    for first in (True, False):
        for fixed in (True, False):
            run = runner.run((test,), fixed=fixed)
            assert run.outcomes(())[project.fails] == ("passed" if fixed else "failed"), run.output
            assert first or compiles not in run.output, run.output
            assert not (first and fixed) or compiles in run.output, "a control: what it says is seen"
