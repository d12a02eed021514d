"""The repositories of the localisation figures: which train, which are reported, and where a machine has them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SPLIT = Path(__file__).with_name("targets_split.json")


@dataclass(frozen=True, slots=True)
class Listed:
    """`language`: the one whose files are candidates. `folder`: a clone or a bare mirror with full history."""

    name: str
    language: str
    folder: Path


def split() -> dict[str, Any]:
    """Fixed before any figure was seen."""
    return json.loads(SPLIT.read_text("utf-8"))


def listed(part: str, below: Path) -> Iterator[Listed]:
    """The repositories of "train" or "report" that the folder has, as `owner+name/repo`, `owner/name`,
    `owner+name` or `name`, the last three with or without ".git"."""
    for language, names in split()[part].items():
        for name in names:
            joined, short = name.replace("/", "+"), name.rpartition("/")[2]
            places = (f"{joined}/repo", name, f"{name}.git", joined, f"{joined}.git", short, f"{short}.git")
            folder = next((below / place for place in places if (below / place).is_dir()), None)
            if folder is not None:
                yield Listed(name, language, folder)
