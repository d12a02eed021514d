"""Styles and scripts of the pages. The report's style and its switch between light and dark serve here too."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from trialfleet_analysis.report.html.assets import asset as report_asset

ASSETS = {
    "style.css": "text/css",
    "viewer.css": "text/css",
    "theme.js": "text/javascript",
    "live.js": "text/javascript",
    "refresh.js": "text/javascript",
    "kept.js": "text/javascript",
    "steps.js": "text/javascript",
}


@cache
def asset(name: str) -> str:
    """One of `ASSETS`."""
    if name in ("style.css", "theme.js"):
        return report_asset(name)
    return files("trialfleet_analysis.viewer.assets").joinpath(name).read_text(encoding="utf-8")
