"""A campaign of two small shell functions with a plug-in, through the command line from its file to its report."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

PLUGINS = Path(__file__).parent
OPERATORS = {"sum": ("+", 7), "product": ("*", 12)}  # task -> its operator, and what it makes of 3 and 4
NAME = "toy"

# JUnit XML of the shell functions `test_…` in the files that it is called with.
_RUN_TESTS = """#!/bin/sh
report=$1; shift
echo '<testsuite>' > "$report"
for test in "$@"; do
  for name in $(sed -n 's/^\\(test_[a-z]*\\)() .*/\\1/p' "$test"); do
    printf '<testcase classname="%s" name="%s">' "$test" "$name" >> "$report"
    if ! ( . "./$test"; $name ); then echo "FAILED $name"; printf '<failure/>' >> "$report"; fi
    echo '</testcase>' >> "$report"
  done
done
echo '</testsuite>' >> "$report"
"""
_TESTS = """. ./{task}.sh
test_value() {{ [ "$({task} 3 4)" = {value} ]; }}
test_runs() {{ {task} 1 1 > /dev/null; }}
"""
SHELL: dict[str, Any] = {
    "kind": "commands",
    "tools": {},
    "test_command": ["./run-tests", "{junit}", "{tests}"],
    "results": "junit",
}


class CommandRefused(AssertionError):
    """A command ended with an error for its operator. The message: the command, and all that it printed."""


@dataclass(frozen=True)
class Plugin:
    """A module of this folder that every process of a campaign finds as `toy_NAME`.

    `registration`: Python statements that each of them runs at its start, as an installed package's entry points
    would be read.
    """

    name: str
    registration: str

    def install(self, folder: Path) -> dict[str, str]:
        """Put it into the empty `folder`; returns the variables of a process that has it."""
        folder.mkdir()
        shutil.copyfile(PLUGINS / f"{self.name}.py", folder / f"toy_{self.name}.py")
        (folder / "sitecustomize.py").write_text(self.registration)
        return {"PYTHONPATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))}


@dataclass(frozen=True)
class TaskFiles:
    """What the repositories of both tasks hold, as pairs of path and text in which {task}, {sign} and {value} are
    replaced. `tests`: what only the fix brings. `others`: path -> text, as it is."""

    source: tuple[str, str] = ("{task}.sh", "{task}() {{ echo $(($1 {sign} $2)); }}\n")
    tests: tuple[str, str] = ("tests/{task}.sh", _TESTS)
    others: Mapping[str, str] = field(default_factory=lambda: {"run-tests": _RUN_TESTS})


class ToyCampaign:
    """`folder`: empty, of this campaign alone. Two tasks, which differ in the operator that their fix writes."""

    def __init__(self, folder: Path, plugin: Plugin, *, env: Mapping[str, str] | None = None) -> None:
        folder.chmod(0o755)
        self.folder = folder
        places = {"TRIALFLEET_CACHE": str(folder / "cache"), "TRIALFLEET_SCRATCH": str(folder / "scratch")}
        self._env = {**os.environ, **places, **plugin.install(folder / "plugin"), **(env or {})}

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o644)

    def write_tasks(
        self,
        *,
        files: TaskFiles | None = None,
        environment: Mapping[str, Any] = SHELL,
        language: str = "Shell",
        context: Mapping[str, str] | None = None,
    ) -> None:
        """`context`: files of the tasks' context `flat`."""
        given, tasks = files or TaskFiles(), []
        for task, (sign, value) in OPERATORS.items():
            for tree, operator in (("before", "-"), ("after", sign)):
                fixed = (given.tests,) if tree == "after" else ()
                for name, text in (given.source, *fixed):
                    words = {"task": task, "sign": operator, "value": value}
                    self.write(f"{task}/{tree}/{name.format(**words)}", text.format(**words))
                for name, text in given.others.items():
                    self.write(f"{task}/{tree}/{name}", text)
            tasks.append(
                {
                    "id": task,
                    "source": {"kind": "path", "pre_fix": f"{task}/before", "fixed": f"{task}/after"},
                    "prompt_source": "failing_test",
                    "test_file": given.tests[0].format(task=task),
                    "anchor": {"path": given.source[0].format(task=task)},
                    "contexts": {"flat": "flat"} if context else {},
                }
            )
        for name, text in (context or {}).items():
            self.write(f"flat/{name}", text)
        repo = {"environment": dict(environment), "language": language}
        self.write("tasks.yaml", yaml.safe_dump({"repo": repo, "tasks": tasks}))

    def write_campaign(self, **fields: Any) -> None:
        """`fields`: of the campaign file, in the place of two reps of the agent `nop`."""
        spec = {
            "campaign": NAME,
            "seed": 5,
            "tasks": ["tasks.yaml"],
            "reps": 2,
            "agent": {"kind": "nop"},
            "limits": {"memory": "256Mi", "disk": "64Mi"},
            "store": "out",
        }
        self.write("campaign.yaml", yaml.safe_dump(spec | fields, sort_keys=False))

    def call(self, *words: str) -> str:
        """What the command prints on standard output. Raises `CommandRefused` when it ends with exit code 2, an
        operator's error."""
        ended = subprocess.run(
            [sys.executable, "-m", "trialfleet_runner.console", *words],
            cwd=self.folder,
            env=self._env,
            capture_output=True,
            text=True,
            timeout=240,
        )
        output = f"{' '.join(words)} exited {ended.returncode}:\n{ended.stdout}{ended.stderr}"
        assert "Traceback" not in output, output
        if ended.returncode == 2:
            raise CommandRefused(output)
        assert ended.returncode == 0, output
        return ended.stdout

    def drive(self) -> None:
        """Validate, plan, run and report. The first of them that refuses raises `CommandRefused`."""
        self.call("validate", "tasks.yaml", "--write", "--repeats", "1")
        assert "4 cells × 2 reps = 8" in self.call("plan", "campaign.yaml")
        self.call("run", "campaign.yaml", "--no-ray")

    @property
    def report(self) -> dict[str, Any]:
        """`report.json`."""
        document: dict[str, Any] = json.loads((self._reported / "report.json").read_text())
        return document

    @property
    def page(self) -> str:
        """`report.md`."""
        return (self._reported / "report.md").read_text()

    def passes(self) -> dict[tuple[str, str], int]:
        """Of the report, by condition and task; each cell must have two valid trials."""
        cells = self.report["cells"]
        assert [cell["valid"] for cell in cells] == [2] * 4, cells
        return {(cell["condition"], cell["task"]): cell["passes"] for cell in cells}

    def first_trial(self, condition: str, task: str, *options: str) -> str:
        """Prompt, patch, tests and trajectory of the cell's first trial; `options`: of the command `show`."""
        return self.call("show", "campaign.yaml", f"{task}/{condition}/0", *options)

    @property
    def _reported(self) -> Path:
        return self.folder / "out" / f"{NAME}-report"
