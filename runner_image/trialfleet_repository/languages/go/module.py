"""Go modules."""

from __future__ import annotations

from trialfleet_repository.languages.manifest_files import file_in, folders_above
from trialfleet_repository.trees import ROOT, Tree


def find_module(tree: Tree, folder: str) -> str:
    """The folder of the nearest go.mod."""
    return next((place for place in folders_above(folder) if file_in(place, "go.mod") in tree), ROOT)
