"""Where uv is."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from trialfleet_runner.errors import OperatorError


def uv_program() -> str:
    """uv beside this interpreter, else on PATH. Raises `OperatorError`."""
    beside = Path(sys.executable).parent / "uv"
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        raise OperatorError("uv is not installed", hint="pip install uv, or pip install 'trialfleet[controller]'")
    return found
