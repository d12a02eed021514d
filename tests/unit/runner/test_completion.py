"""The shell completes commands and options."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from trialfleet_ledger.errors import OperatorError
from trialfleet_runner.cli import SUMMARIES
from trialfleet_runner.commands.completion import SHELLS, completion


def completed(*words: str) -> list[str]:
    """What the program offers for the last word, as the script asks it."""
    asked = {
        "_TRIALFLEET_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    program = "from trialfleet_runner.cli import root; root.main(args=[], prog_name='trialfleet')"
    ran = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **asked}, capture_output=True, text=True, check=True
    )
    return [line.partition(",")[2] for line in ran.stdout.splitlines()]


def test_commands_and_options_are_offered() -> None:
    assert completed("trialfleet", "side") == ["side-by-side"]
    assert set(completed("trialfleet", "")) == set(SUMMARIES)
    assert "--pilot" in completed("trialfleet", "power", "--p")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_written_where_the_shell_looks(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    for _ in range(2):
        ran = CliRunner().invoke(completion, ["install"], catch_exceptions=False)
        assert ran.exit_code == 0
    path = Path(ran.stdout.partition(":")[0])
    assert path.is_relative_to(tmp_path)
    assert path.read_text(encoding="utf-8") == CliRunner().invoke(completion, ["show"]).stdout
    if program := shutil.which(shell):
        subprocess.run([program, "-n", str(path)], check=True)
    path.write_text("mine\n", encoding="utf-8")
    with pytest.raises(OperatorError, match="not from trialfleet"):
        CliRunner().invoke(completion, ["install"], catch_exceptions=False)
    assert path.read_text(encoding="utf-8") == "mine\n"


def test_a_shell_that_is_not_known_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    ran = CliRunner().invoke(completion, ["show"])
    assert ran.exit_code == 2
    assert "bash, zsh, fish" in ran.output
