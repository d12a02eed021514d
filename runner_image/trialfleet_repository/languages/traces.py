"""How a language prints stack traces."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class TraceStyle:
    """How one language prints a trace, whose frames go from the innermost outwards. `frame`: a line that names
    code, with its `path`, or its `name` and `file`. `between`: lines between the frames of one trace. `cause`: a
    line after which the frames of a deeper trace follow. `loose`: what other languages print looks like it, too;
    it is tried after the others."""

    frame: re.Pattern[str]
    between: re.Pattern[str] = re.compile(r"(?!)")
    cause: re.Pattern[str] = re.compile(r"(?!)")
    loose: bool = False
