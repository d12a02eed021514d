"""`make gallery`: three campaigns with the offline agent, their reports, pages and pictures, in build/gallery.

The page is gallery.md.in in this folder; `make docs` includes it once build/gallery is there. A campaign that is
complete is not run again. Needs chromium and chromedriver. Arguments: another folder of campaigns, one of results.
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
from pathlib import Path

import psutil

from tests.support.browser import Browser, browser
from trialfleet_analysis.source import find_source
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.trial_order import trials

ROOT = Path(__file__).resolve().parents[2]
GALLERY = ROOT / "build" / "gallery"
PROGRAM = (sys.executable, "-m", "trialfleet_runner.cli")
CAMPAIGNS = ROOT / "examples/gallery"
LOST_ONCE = slice(0, None, 3)  # in the order of launch, the trials whose first runner is killed
LOST_TWICE = slice(0, None, 12)  # and the second one too
SCREENS = {"": 1440, "-phone": 390}  # pixels wide
PAPER = 718  # of A4 less its margins
INCOMPLETE = 3  # exit code of a campaign that gave trials up


def main(campaigns: Path = CAMPAIGNS, gallery: Path = GALLERY) -> None:
    shutil.rmtree(gallery, ignore_errors=True)
    names = sorted(path.stem for path in campaigns.glob("*.yaml"))
    for name in names:
        campaign = campaigns / f"{name}.yaml"
        _run(campaign, kills=name == "losses")
        _trialfleet("report", str(campaign), "--out", str(gallery / name))
        _trialfleet("view", str(campaign), "--bundle", str(gallery / name / "pages"))
    with tempfile.TemporaryDirectory() as home, browser(Path(home)) as window:
        for name in names:
            _take_pictures(window, gallery, name)


def _run(campaign: Path, *, kills: bool) -> None:
    source = find_source(str(campaign), None)
    ledger = Ledger(source.open(), source.campaign)
    with subprocess.Popen([*PROGRAM, "run", str(campaign), "--no-ray", "--no-report"]) as run:
        while run.poll() is None:
            time.sleep(0.1)
            if kills and ledger.exists():
                _kill(ledger, run.pid)
    if run.returncode not in (0, INCOMPLETE):
        sys.exit(f"{campaign}: trialfleet run ended with {run.returncode}")


def _kill(ledger: Ledger, parent: int) -> None:
    """The runners of these attempts, once their start is recorded: the same ones on every machine."""
    order = [one.id for one in trials(ledger.plan())]
    attempts = [*((trial, 1) for trial in order[LOST_ONCE]), *((trial, 2) for trial in order[LOST_TWICE])]
    for trial, number in attempts:
        attempt = ledger.attempts.attempt(trial, number)
        if attempt and attempt.start and attempt.start.pid in _runners(parent):
            os.kill(attempt.start.pid, signal.SIGKILL)


def _runners(parent: int) -> set[int]:
    """Processes below a campaign that runs: its runners are among them."""
    try:
        return {process.pid for process in psutil.Process(parent).children(recursive=True)}
    except psutil.NoSuchProcess:  # it has just ended
        return set()


def _trialfleet(*argv: str) -> None:
    subprocess.run([*PROGRAM, *argv], check=True, stdout=subprocess.DEVNULL)


def _take_pictures(window: Browser, gallery: Path, name: str) -> None:
    shown = {"report": gallery / name / "report.html", "view": gallery / name / "pages" / "index.html"}
    for kind, page in shown.items():
        for screen, width in SCREENS.items():
            for scheme in ("light", "dark"):
                window.look_at(page, width=width, dark=scheme == "dark")
                _take_picture(window, gallery / f"{name}-{kind}{screen}-{scheme}.png")
        window.look_at(page, width=PAPER)
        window.tell("Emulation.setEmulatedMedia", {"media": "print"})
        _take_picture(window, gallery / f"{name}-{kind}-paper.png")
        window.tell("Emulation.setEmulatedMedia", {"media": ""})


def _take_picture(window: Browser, path: Path) -> None:
    picture = window.tell("Page.captureScreenshot", {"format": "png"})["data"]
    path.write_bytes(base64.b64decode(picture))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
