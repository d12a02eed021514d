"""The gallery's script, on its campaigns with fewer trials: the same runners are killed on every machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "docs/site/gallery.py"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.needs("bwrap", "chromium", "chromedriver")]


@pytest.fixture
def campaigns(tmp_path: Path) -> Path:
    """Two of the campaigns, with one task under two conditions: 2 trials, and 4 of the campaign with losses."""
    folder = tmp_path / "campaigns"
    folder.mkdir()
    for path in (ROOT / "examples/gallery" / name for name in ("effect.yaml", "losses.yaml")):
        made: dict[str, Any] = yaml.safe_load(path.read_text())
        made["tasks"] = [str(ROOT / "tasks/quickstart/tasks/markdown.yaml")]
        made["only"] = ["markdown-abbr-override-unknown"]
        made |= {"reps": 2 if path.stem == "losses" else 1, "store": str(tmp_path / "runs")}
        (folder / path.name).write_text(yaml.safe_dump(made, sort_keys=False))
    return folder


def test_every_report_and_picture_is_made_and_losses_are_those_that_were_chosen(
    campaigns: Path, tmp_path: Path
) -> None:
    out = tmp_path / "gallery"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, str(SCRIPT), str(campaigns), str(out)], check=True, env=env)
    names = [path.stem for path in campaigns.iterdir()]
    for name in names:
        assert (out / name / "pages" / "index.html").is_file()
        assert "## In one minute" in (out / name / "report.md").read_text()
    assert len(list(out.glob("*.png"))) == 10 * len(names)  # desk and phone, light and dark; paper
    lost = {name: json.loads((out / name / "report.json").read_text())["losses"] for name in names}
    assert lost["effect"] == []
    assert sum(one["attempts"] for one in lost["losses"]) == 3
