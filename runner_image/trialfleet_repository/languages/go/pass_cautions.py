"""Lines of Go that only code has which looks for its tests."""

from __future__ import annotations

import re

from trialfleet_repository.languages.pass_cautions import ENDS, RUNNER, STACK, PassCautions

PASS_CAUTIONS = PassCautions(
    {
        STACK: re.compile(r"\bruntime\.(?:Callers?|CallersFrames|FuncForPC|Stack)\b|\bdebug\.(?:Print)?Stack\b"),
        RUNNER: re.compile(r"\bflag\.Lookup\(\s*[\"`]test\.|\btesting\.Testing\(|[\"`]-?(?:test\.\w|\.test\b)"),
        ENDS: re.compile(r"\bos\.Exit\b|\bsyscall\.(?:Exit|Kill)\b|\bruntime\.Goexit\b"),
    }
)
