"""`make gallery`: three campaigns with the offline agent, their reports, pages and pictures, in build/gallery.

The page is gallery.md.in in this folder; `make docs` includes it once build/gallery is there. A campaign that is
complete is not run again. Needs chromium and chromedriver.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.browser import Browser, browser

ROOT = Path(__file__).resolve().parents[2]
GALLERY = ROOT / "build" / "gallery"
PROGRAM = (sys.executable, "-m", "trialfleet_runner.cli")
CAMPAIGNS = {name: ROOT / "examples/gallery" / f"{name}.yaml" for name in ("no-effect", "effect", "losses")}
KILLED = 16  # runners of the campaign with losses
INCOMPLETE = 3  # exit code of a campaign that gave trials up


def main() -> None:
    shutil.rmtree(GALLERY, ignore_errors=True)
    for name, campaign in CAMPAIGNS.items():
        _run(campaign, kills=KILLED if name == "losses" else 0)
        _trialfleet("report", str(campaign), "--out", str(GALLERY / name))
        _trialfleet("view", str(campaign), "--bundle", str(GALLERY / name / "pages"))
    with tempfile.TemporaryDirectory() as home, browser(Path(home)) as window:
        for name in CAMPAIGNS:
            _take_pictures(window, name)


def _run(campaign: Path, *, kills: int) -> None:
    with subprocess.Popen([*PROGRAM, "run", str(campaign), "--no-ray", "--no-report"]) as run:
        while run.poll() is None:
            time.sleep(1.5)
            runners = list(_runners(run.pid))
            if kills and runners:
                os.kill(runners[kills % len(runners)], signal.SIGKILL)
                kills -= 1
    if run.returncode not in (0, INCOMPLETE):
        sys.exit(f"{campaign}: trialfleet run ended with {run.returncode}")


def _runners(parent: int) -> Iterator[int]:
    """Runner processes of a campaign that runs."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    for child in map(int, children):
        try:
            words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
        except OSError:  # it has just ended
            continue
        if b"trialfleet_runner.attempt" in words:
            yield child


def _trialfleet(*argv: str) -> None:
    subprocess.run([*PROGRAM, *argv], check=True, stdout=subprocess.DEVNULL)


def _take_pictures(window: Browser, name: str) -> None:
    shown = {"report": GALLERY / name / "report.html", "view": GALLERY / name / "pages" / "index.html"}
    for kind, page in shown.items():
        for scheme in ("light", "dark"):
            window.look_at(page, dark=scheme == "dark")
            picture = window.tell("Page.captureScreenshot", {"format": "png"})["data"]
            (GALLERY / f"{name}-{kind}-{scheme}.png").write_bytes(base64.b64decode(picture))


if __name__ == "__main__":
    main()
