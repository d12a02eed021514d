"""`trialfleet-pod bake FILE`: build task environments into an image."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import TypeAdapter

from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.display_text import visible
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.environment import EnvironmentRef, PythonEnvironmentRef, Recipe, tree_file
from trialfleet_repository.cache import lock_of
from trialfleet_repository.environments import environment
from trialfleet_repository.environments.tool_caches import caches_of, turn_of
from trialfleet_runner.attempt.score_run import CHECKOUT
from trialfleet_runner.pod.run import Volumes


def main(file: str) -> int:
    """Bake what the file lists (JSON, a list of `Recipe`) into `$TRIALFLEET_BAKED`; prints each folder."""
    try:
        bake(Path(file))
    except OperatorError as error:
        print(f"trialfleet: {visible(str(error))}", file=sys.stderr)
        return 2
    return 0


def bake(file: Path) -> None:
    """Raises `OperatorError` when one cannot be built."""
    folder = environment.baked_folder()
    if folder is None:
        raise OperatorError("where to?", where="$TRIALFLEET_BAKED", hint="export TRIALFLEET_BAKED=/a/folder")
    folder.mkdir(parents=True, exist_ok=True)
    places = Volumes.here().places
    checkouts = (places.workspace, places.score / CHECKOUT)
    for recipe in TypeAdapter(tuple[Recipe, ...]).validate_json(file.read_bytes()):
        source = read_source(recipe, file.parent)
        made = environment.bake(recipe.environment, source, folder, checkouts=checkouts)
        print(made, flush=True)
        for lock in _locks(made, recipe.environment):
            lock.unlink(missing_ok=True)


def read_source(recipe: Recipe, folder: Path) -> bytes:
    """What the environment is built from; `folder` is that of the list. Raises `OperatorError`."""
    if recipe.lock is not None:
        return recipe.lock.encode()
    file = folder / tree_file(recipe.environment.source)
    data = file.read_bytes() if file.exists() else b""
    if sha256(data) != recipe.environment.source:
        raise OperatorError(
            f"{file} is not what its name says",
            where=file.name,
            hint="write the build context again with `trialfleet image build`",
        )
    return data


def _locks(made: Path, ref: EnvironmentRef) -> Iterator[Path]:
    """The lock files of one build, which an image does not need."""
    yield lock_of(made)
    caches = None if isinstance(ref, PythonEnvironmentRef) else caches_of(ref)
    if caches is not None:
        yield lock_of(turn_of(made, caches))
