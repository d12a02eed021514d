"""Lines of Java and Kotlin that only code has which looks for its tests."""

from __future__ import annotations

import re

from trialfleet_repository.languages.pass_cautions import ENDS, RUNNER, STACK, PassCautions

PASS_CAUTIONS = PassCautions(
    {
        STACK: re.compile(r"\bgetStackTrace\b|\bgetAllStackTraces\b|\.\s*stackTrace\b|\bStackWalker\b"),
        RUNNER: re.compile(r"\borg\.junit\b|\bsurefire\b|\bsun\.java\.command\b|\borg\.gradle\.test\b"),
        ENDS: re.compile(r"\bSystem\.exit\b|\bRuntime\.getRuntime\(\)\.(?:exit|halt)\b|\bexitProcess\b"),
    }
)
