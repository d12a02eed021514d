"""`trialfleet-pod bake FILE`: build task environments into an image."""

from __future__ import annotations

import sys
from pathlib import Path

from pydantic import TypeAdapter

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records import EnvironmentRef, Frozen
from trialfleet_runner import environment


class Recipe(Frozen):
    """One environment to bake. `lock`: the requirements file's text, whose digest the reference names."""

    environment: EnvironmentRef
    lock: str


def main(file: str) -> int:
    """Bake what the file lists (JSON, a list of `Recipe`) into `$TRIALFLEET_BAKED`; prints each folder."""
    try:
        bake(Path(file))
    except OperatorError as error:
        print(f"trialfleet: {error}", file=sys.stderr)
        return 2
    return 0


def bake(file: Path) -> None:
    """Raises `OperatorError` when one cannot be built."""
    folder = environment.baked_folder()
    if folder is None:
        raise OperatorError("where to?", where="$TRIALFLEET_BAKED", hint="export TRIALFLEET_BAKED=/a/folder")
    folder.mkdir(parents=True, exist_ok=True)
    for recipe in TypeAdapter(tuple[Recipe, ...]).validate_json(file.read_bytes()):
        print(environment.bake(recipe.environment, recipe.lock.encode(), folder), flush=True)
    for lock in folder.glob("*.lock"):
        lock.unlink()
