"""Finding the Claude Code program on this machine, and what it says about itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from trialfleet_runner.errors import OperatorError

PACKAGE = "@anthropic-ai/claude-code"
_VERSION = re.compile(r"^(\d+\.\d+\.\d+\S*) \(Claude Code\)")
_VERSION_TIMEOUT_S = 60


def find_program(given: str | None) -> Path:
    """`agent.options.binary`, else $TRIALFLEET_CLAUDE, else `claude` on PATH; links resolved.

    Raises `OperatorError` when there is none.
    """
    name = given or os.environ.get("TRIALFLEET_CLAUDE") or "claude"
    found = shutil.which(name)
    if found is None:
        raise OperatorError(
            f"Claude Code is not on this machine ({name} cannot be run)",
            where="agent: claude-code",
            hint=f"npm install -g {PACKAGE}@<version>, or name it in $TRIALFLEET_CLAUDE",
        )
    return Path(found).resolve()


def version_of(program: Path) -> str:
    """What `--version` says. Raises `OperatorError` when it says nothing of the kind."""
    return _ask(program, program.stat().st_mtime_ns)


@cache
def _ask(program: Path, _: int) -> str:
    """Once per program and change of it: starting it takes a tenth of a second."""
    with tempfile.TemporaryDirectory(prefix="trialfleet-claude-") as home:
        env = {"HOME": home, "CLAUDE_CONFIG_DIR": home, "PATH": os.defpath, "DISABLE_AUTOUPDATER": "1"}
        try:
            ran = subprocess.run(
                [program, "--version"],
                env=env,
                cwd=home,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_VERSION_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _unusable(program, str(error)) from error
    match = _VERSION.match(ran.stdout)
    if match is None:
        raise _unusable(program, (ran.stderr or ran.stdout).strip()[:300] or f"exit code {ran.returncode}")
    return match[1]


def _unusable(program: Path, why: str) -> OperatorError:
    return OperatorError(
        f"{program} --version does not work: {why}",
        where="agent: claude-code",
        hint=f"install it again: npm install -g {PACKAGE}@<version>",
    )


def shown(program: Path) -> Path:
    """What must be visible for the program to run: its npm package, or the single file of a native install."""
    for folder in list(program.parents)[:3]:
        if (folder / "package.json").is_file():
            return folder
    return program
