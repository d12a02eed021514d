"""This user's cache: everything in it can be made again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """`targets` below trialfleet's cache: `$TRIALFLEET_CACHE`; else, as root, `/var/cache/trialfleet`; else
    `$XDG_CACHE_HOME/trialfleet` or `~/.cache/trialfleet`. It is not made here."""
    chosen = os.environ.get("TRIALFLEET_CACHE")
    if chosen:
        return Path(chosen).absolute() / "targets"
    if os.geteuid() == 0:
        return Path("/var/cache/trialfleet/targets")
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "trialfleet" / "targets"
