"""Style and scripts of the report's pages, which the viewer's have too."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def asset(name: str) -> str:
    """The style or the script that every page carries."""
    return files("trialfleet_analysis.report.html").joinpath(name).read_text(encoding="utf-8")
