"""`fake_switch.py FILE RUNNER GRANTS`: the fake runner, with the behaviour that stands in FILE."""

from __future__ import annotations

import os
import sys
from pathlib import Path

behaviour, runner, grants = sys.argv[1:]
os.execv(sys.executable, [sys.executable, "-S", "-E", runner, Path(behaviour).read_text() or "pass", grants])
