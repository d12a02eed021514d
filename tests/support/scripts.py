"""Programs of tests: shell scripts in a folder of the PATH."""

from __future__ import annotations

from pathlib import Path


def write_script(path: Path, lines: str) -> None:
    path.write_text(f"#!/bin/sh\n{lines}\n", encoding="utf-8")
    path.chmod(0o755)
