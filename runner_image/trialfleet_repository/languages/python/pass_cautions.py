"""Lines of Python that only code has which looks for its tests."""

from __future__ import annotations

import re

from trialfleet_repository.languages.pass_cautions import ASSERTIONS, ENDS, MODULES, RUNNER, STACK, PassCautions

PASS_CAUTIONS = PassCautions(
    {
        STACK: re.compile(
            r"\binspect\s*\.\s*(?:stack|currentframe|getouterframes|getinnerframes|trace)\b"
            r"|\bfrom\s+inspect\s+import\b.*\b(?:stack|currentframe|getouterframes|trace)\b"
            r"|\b_(?:getframe|current_frames)\b|\bf_(?:back|code|globals|locals)\b|\btb_frame\b"
            r"|\btraceback\s*\.\s*\w|\b(?:import|from)\s+traceback\b|\bset(?:trace|profile)\b"
        ),
        MODULES: re.compile(r"\bsys\s*\.\s*modules\b|\bfrom\s+sys\s+import\b.*\bmodules\b|\bgc\s*\.\s*get_"),
        RUNNER: re.compile(r"\bPYTEST_\w|\b_pytest\b|[\"']pytest[\"']|\bimport\s+pytest\b"),
        ASSERTIONS: re.compile(
            r"\.\s{0,9}__code__\s{0,9}=(?!=)|\b(?:builtins|TestCase)\s{0,9}\.\s{0,9}\w{1,40}\s{0,9}=(?!=)"
        ),
        ENDS: re.compile(r"\bos\s*\.\s*(?:_exit|abort|kill)\b|\bfrom\s+os\s+import\b.*\b(?:_exit|abort|kill)\b"),
    },
    comment="#",
)
