"""The objects that an attempt was granted, and the folders made of them: copied cheaply when they are there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trialfleet_runner import grants as store
from trialfleet_runner import trees, workspace
from trialfleet_runner.attempt.loss import Lost
from trialfleet_runner.cache import Cache
from trialfleet_runner.canonical import sha256
from trialfleet_runner.contract import Grants, HaltScope, LossClass
from trialfleet_runner.objects import ObjectError, Objects
from trialfleet_runner.trees import Entry, Tree
from trialfleet_runner.workspace import Template


@dataclass(frozen=True)
class Inputs:
    """Reads by digest: from this machine's cache, else by grant."""

    grants: Grants
    cache: Cache

    def get(self, digest: str) -> bytes:
        """The object's verified bytes. Raises `Lost` when it is not what its name says, `StoreError` when the
        store does not answer."""
        grant = self.grants.objects.get(digest)
        if grant is None:
            raise Lost(LossClass.RUNNER, f"object {digest} was not granted", halt=HaltScope.CAMPAIGN)
        try:
            return Objects(self.cache.objects).fetch(digest, lambda: store.read(grant))
        except ObjectError as error:
            raise Lost(LossClass.SETUP, str(error), halt=HaltScope.TASK) from error

    def text(self, digest: str) -> str:
        return self.get(digest).decode()

    def tree(self, digest: str | None) -> dict[str, Entry]:
        """A granted tar as a tree; {} for None."""
        return {} if digest is None else trees.unpack(self.get(digest))

    def template(self, tree: str, files: Mapping[str, bytes] | None = None) -> Template:
        """The template of a granted tree with a condition's files over it, built unless it is there."""
        added: Tree = {path: Entry(data) for path, data in sorted((files or {}).items())}
        files_digest = sha256(trees.pack(added)) if added else None
        folder = workspace.template_of(tree, files_digest, cache=self.cache)
        return workspace.ready(folder) or workspace.build_template(folder, self.tree(tree), added)
