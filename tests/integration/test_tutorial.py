"""The tutorial's commands, as they are written."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial" / "first-campaign.md"


def commands(text: str) -> list[str]:
    """Every command of the console blocks, in order."""
    return [line for block in re.findall(r"```console\n(.*?)```", text, re.S) for line in block.splitlines()]


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_command_of_the_tutorial_works(tmp_path: Path) -> None:
    for name in ("examples", "tasks", ".venv"):
        (tmp_path / name).symlink_to(ROOT / name)
    said = ""
    for command in commands(TUTORIAL.read_text()):
        done = subprocess.run(["/bin/bash", "-c", command], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        said += done.stdout
    assert "validated" in said
    report = (tmp_path / "my-shop/runs/shop-report/report.md").read_text()
    assert "after a look" in report
    assert len(list((tmp_path / "my-shop/runs/shop/outcomes").iterdir())) == 9
    shutil.rmtree(tmp_path / "my-shop")
