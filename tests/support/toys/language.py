"""The language `toy`: a file `sum.toy` holds an expression of a and b, and its checks are lines of `sum.check`.

A check is a name, two numbers and what the expression makes of them: `value 3 4 7`, or `any`.
"""

from __future__ import annotations

import re
from pathlib import Path

from trialfleet_repository.languages import Language

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
OUTCOMES = {"good": "passed", "bad": "failed"}


def read_checks(record: Path) -> list[tuple[str, str, str, str]]:
    """File, name, outcome and text of each check. `record`: folder with the tests' stdout."""
    printed = (record / "stdout").read_text(errors="replace")
    return [
        (file, name, OUTCOMES[verdict], f"got {got}") for file, name, verdict, got in _VERDICT.findall(printed)
    ]


TOY = Language(
    name="Toy",
    suffixes=(".toy",),
    test_paths=re.compile(r"\.check\Z"),
    is_test_module=lambda path: path.endswith(".check"),
    is_manifest=lambda path: False,
)
