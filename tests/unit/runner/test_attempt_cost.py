"""What every attempt pays for again: modules that its runner imports, and programs that it starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trialfleet_agents.context_files import is_context_file
from trialfleet_repository.cache import Cache
from trialfleet_repository.excluded_paths import Exclusions
from trialfleet_repository.patch import changes_of, diff
from trialfleet_repository.trees import TreeEntry
from trialfleet_repository.workspace import Template, build_template, clone

# Builds of environments, other backends' sandboxes, the task file's models, counting tokens.
NOT_IN_A_PODS_ATTEMPT = [
    "configparser",
    "difflib",
    "html.parser",
    "regex",
    "tiktoken",
    "tomllib",
    "trialfleet_deliveries.inline_texts",
    "trialfleet_deliveries.tokens",
    "trialfleet_repository.environments.package_index",
    "trialfleet_sandbox.bubblewrap",
    "trialfleet_sandbox.host",
    "trialfleet_sandbox.memory_group",
    "trialfleet_ledger.task",
    "trialfleet_repository.environments.tool_build",
]


def test_a_pods_runner_imports_nothing_that_only_others_need() -> None:
    script = "import sys, trialfleet_runner.pod.run; print('\\n'.join(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert sorted(set(NOT_IN_A_PODS_ATTEMPT) & set(ended.stdout.splitlines())) == []


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file to which git appends each of its programs that starts."""
    real, log = shutil.which("git"), tmp_path / "started"
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexport GIT_TRACE2={log}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    return log


def programs(log: Path) -> list[str]:
    """The commands that git has run since the last call."""
    words = [line.split() for line in log.read_text(encoding="utf-8").splitlines() if " cmd_name " in line]
    log.unlink()
    return [line[line.index("cmd_name") + 1] for line in words]


def test_a_patch_starts_few_programs(tmp_path: Path, started: Path) -> None:
    tree = {"a.py": TreeEntry(b"a = 1\n"), "b.py": TreeEntry(b"b = 1\n")}
    template: Template = build_template(Cache(tmp_path / "cache").workspaces / "t", tree)
    assert programs(started) == ["fast-import", "read-tree", "update-index"]
    clone(template, tmp_path / "workspace")
    (tmp_path / "workspace/a.py").write_text("a = 2\n")
    exclusions = Exclusions(template.manifest, (), is_context=is_context_file)
    patch = diff(tmp_path / "workspace", template, exclusions)
    assert programs(started) == ["fast-import", "diff"]
    assert changes_of(patch.diff, template, exclusions) == {"a.py": TreeEntry(b"a = 2\n")}
    assert programs(started) == ["read-tree", "apply", "diff-index", "cat-file", "cat-file"]
