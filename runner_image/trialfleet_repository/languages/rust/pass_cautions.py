"""Lines of Rust that only code has which looks for its tests."""

from __future__ import annotations

import re

from trialfleet_repository.languages.pass_cautions import ASSERTIONS, ENDS, RUNNER, STACK, PassCautions

PASS_CAUTIONS = PassCautions(
    {
        STACK: re.compile(r"\bBacktrace\b|\bbacktrace::"),
        RUNNER: re.compile(
            r"\bcfg!\s*\([^)]*\btest\b|\bcfg(?:_attr)?\s*\(\s*not\s*\(\s*test\b|\bRUST_TEST_|\bNEXTEST\b"
        ),
        ASSERTIONS: re.compile(r"\bmacro_rules!\s{0,9}(?:debug_)?assert"),
        ENDS: re.compile(r"\bprocess::(?:exit|abort)\b|\blibc::_?exit\b"),
    }
)
