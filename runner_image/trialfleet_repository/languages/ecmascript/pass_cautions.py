"""Lines of JavaScript that only code has which looks for its tests."""

from __future__ import annotations

import re

from trialfleet_repository.languages.pass_cautions import ASSERTIONS, ENDS, MODULES, RUNNER, STACK, PassCautions

_NODE_ENV = r"NODE_ENV\b[\"'\]]{0,2}"
PASS_CAUTIONS = PassCautions(
    {
        STACK: re.compile(r"\bError\s*\([^()]{0,200}\)\s*\.\s*stack\b|\b(?:capture|prepare)StackTrace\b"),
        MODULES: re.compile(r"\brequire\s*\.\s*(?:cache|main)\b|\bmodule\s*\.\s*(?:parent|children)\b"),
        RUNNER: re.compile(
            r"\bJEST_WORKER_ID\b|\bVITEST\w*|\bNODE_TEST_CONTEXT\b|\bimport\.meta\.vitest\b"
            rf"|{_NODE_ENV}\s*[!=]==?\s*[\"'`]test\b|[\"'`]test[\"'`]\s*[!=]==?\s*[\w.\[\"']{{0,40}}NODE_ENV\b"
        ),
        ASSERTIONS: re.compile(
            r"\bassert(?:\.strict)?\s{0,9}(?:\.\s{0,9}\w{1,40}|\[[^\]]{1,80}\])\s{0,9}=(?![=>])"
            r"|\bexpect\s{0,9}\.\s{0,9}extend\b|\b(?:Object|Reflect)\.\w{1,20}\(\s{0,9}(?:assert|expect)\b"
            r"|\basymmetricMatch(?:er)?\b"
        ),
        ENDS: re.compile(r"\bprocess\s*\.\s*(?:exit|abort|kill|reallyExit)\b"),
    }
)
