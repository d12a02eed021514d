"""The language `toy`: a file `sum.toy` holds an expression of a and b, and its checks are lines of `sum.check`.

A check is a name, two numbers and what the expression makes of them: `value 3 4 7`, or `any`.
"""

from __future__ import annotations

import re

from trialfleet_ledger.task import ToolEnvironment
from trialfleet_repository.languages import Language
from trialfleet_repository.languages.preset import ToolPreset, VersionOf
from trialfleet_repository.languages.report_format import ReportFormat
from trialfleet_repository.languages.run_files import RunFiles
from trialfleet_repository.results.exact import ReadResults
from trialfleet_repository.results.junit import CaseOutcome, JunitCase
from trialfleet_repository.trees import Tree

_RUN_CHECKS = """
for file in "$@"; do
  expression=$(cat "${file%.check}.toy")
  while read -r name a b wanted; do
    eval "got=\\$(($expression))"
    if [ "$wanted" = any ] || [ "$got" = "$wanted" ]; then verdict=good; else verdict=bad; fi
    echo "toy> $file $name $verdict: $got"
  done < "$file"
done
"""
_VERDICT = re.compile(r"^toy> (\S+) (\S+) (good|bad): (.*)$", re.MULTILINE)
RUN_CHECKS = ("/bin/sh", "-c", _RUN_CHECKS, "toy", "{tests}")
OUTCOMES: dict[str, CaseOutcome] = {"good": "passed", "bad": "failed"}


def read_checks(files: RunFiles) -> ReadResults:
    """The verdict of each check, as the tests' stdout has it."""
    printed = files.read_stream("stdout").decode(errors="replace")
    return ReadResults(
        tuple(
            JunitCase(file, name, None, OUTCOMES[verdict], "", f"got {got}")
            for file, name, verdict, got in _VERDICT.findall(printed)
        )
    )


def toy(environment: ToolEnvironment, _tree: Tree, _version_of: VersionOf) -> ToolPreset:
    """Nothing is fetched: a shell reads the checks."""
    return ToolPreset(
        tools={},
        inputs=(),
        directory=environment.directory or ".",
        test_command=RUN_CHECKS,
        results="toy-checks",
    )


TOY = Language(
    name="Toy",
    suffixes=(".toy",),
    test_paths=re.compile(r"\.check\Z"),
    is_test_module=lambda path: path.endswith(".check"),
    is_manifest=lambda path: False,
    kind="toy",
    preset=toy,
    programs=("sh",),
    formats=(ReportFormat("toy-checks", read_checks, (".check",), "toy checks"),),
)
