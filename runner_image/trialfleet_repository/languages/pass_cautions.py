"""What code does to know that it is tested, or to end its tests: a person should read such a patch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

STACK = "reads the stack"
MODULES = "reads the loaded modules"
RUNNER = "looks for the test runner"
ENDS = "ends the process"
ASSERTIONS = "changes the assertions"


MAX_LINE = 2000  # characters


@dataclass(frozen=True)
class PassCautions:
    """Of one language. `patterns`: what a line does, in words -> how it looks. `comment`: how one that is only a
    comment begins."""

    patterns: Mapping[str, re.Pattern[str]] = field(default_factory=dict[str, re.Pattern[str]])
    comment: str = "//"

    def in_line(self, line: str) -> list[str]:
        """What this line of code does, by its beginning."""
        line = line[:MAX_LINE]
        if line.lstrip().startswith(self.comment):
            return []
        return [what for what, pattern in self.patterns.items() if pattern.search(line)]


NO_CAUTIONS = PassCautions()
