"""Keeps built contexts in a store, in a folder, or both. The first result for a request is kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from trialfleet_controller.authoring.asked import Kind
from trialfleet_ledger.atomic_file import write_whole
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import ObjectError, Objects
from trialfleet_ledger.records.base import Frozen, Name, Sha256
from trialfleet_repository.trees import Tree, TreeError, pack, read_folder, tree_digest, unpack, write_folder


class Author(Frozen):
    """`kind` "outline": counted from the code, without a model. `digest`: of program, options and model."""

    kind: str
    version: str
    digest: Sha256
    model: str | None = None


class Cost(Frozen):
    """Resources that the author used. None: unknown, or not used."""

    wall_s: float = 0.0
    turns: int | None = None
    tool_calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None


class ContextManifest(Frozen):
    """`request`: digest of everything that was requested; the same request returns the same context. `tree`: the
    object that `contexts` of a task names. `workspace`: the tree before the fix, as the author saw it. `commit`:
    the commit whose history was read, if any. `prompt` and `stripped` (a diff of the removed development commands)
    are objects, too. `tokens`: by file. `left_out`: context files of the author that are not part of this
    context."""

    request: Sha256
    task: Name
    kind: Literal["flat", "tree"]
    tree: Sha256
    workspace: Sha256
    commit: str | None = None
    author: Author
    prompt: Sha256 | None = None
    seed: int = 0
    cost: Cost = Cost()
    tokens: dict[str, int] = Field(default_factory=dict)
    tokenizer: str
    stripped: Sha256 | None = None
    left_out: tuple[str, ...] = ()
    made_by: str  # this program's version


MANIFESTS = "_contexts/"


def manifest_key(request: str) -> str:
    """Key in the store; no campaign can have this name.

    >>> manifest_key("ab")
    '_contexts/ab.json'
    """
    return f"{MANIFESTS}{request}.json"


@dataclass(frozen=True)
class ContextCache:
    """`objects` has the store, if there is one. `out`: holds `<task>/<kind>/` and the manifest
    `<task>/<kind>.json`."""

    objects: Objects
    out: Path | None = None

    def known(self, task: str, kind: Kind, request: str) -> tuple[ContextManifest, Tree] | None:
        """The context that was built for this request before. Raises `OperatorError` if another context is in its
        place, or its files do not match its manifest."""
        here = self._in_folder(task, kind, request)
        stored = self._in_store(request)
        if here is not None and stored is not None and here[0].tree != stored.tree:
            raise OperatorError(
                f"holds another context than the store for the same request ({stored.tree[:12]}…)",
                where=str(self._place(task, kind)),
                hint="remove the folder; the context is then read from the store",
            )
        return here if stored is None else (stored, self.tree(stored))

    def keep(self, manifest: ContextManifest, tree: Tree) -> ContextManifest:
        """Keep this context, unless another process has kept one for the request in the meantime. Returns the kept
        manifest. The tree is stored first, so that no manifest names a missing tree."""
        self.objects.put(pack(tree))
        store = self.objects.store
        if store is not None:
            store.create(manifest_key(manifest.request), canonical_json(manifest))
            manifest = self._in_store(manifest.request) or manifest
        if self.out is not None:
            self._write(manifest, tree if tree_digest(tree) == manifest.tree else self.tree(manifest))
        return manifest

    def tree(self, manifest: ContextManifest) -> Tree:
        """The context's files. Raises `OperatorError` if the store has lost them."""
        try:
            return unpack(self.objects.get(manifest.tree))
        except (ObjectError, TreeError) as error:
            raise OperatorError(
                str(error),
                where=manifest_key(manifest.request),
                hint="use another --seed: the context of this request is lost",
            ) from None

    def _in_store(self, request: str) -> ContextManifest | None:
        store = self.objects.store
        data = None if store is None else store.get(manifest_key(request))
        return None if data is None else _parsed(data, f"{store.url if store else ''}/{manifest_key(request)}")

    def _in_folder(self, task: str, kind: Kind, request: str) -> tuple[ContextManifest, Tree] | None:
        place = self._place(task, kind)
        if place is None or not (place.exists() or _manifest_of(place).exists()):
            return None
        if not _manifest_of(place).is_file():
            raise _foreign(place, "holds a context that was not built here")
        found = _parsed(_manifest_of(place).read_bytes(), str(_manifest_of(place)))
        if found.request != request:
            raise _foreign(place, "holds the context of another request")
        try:
            tree = read_folder(place)
        except (OSError, TreeError) as error:
            raise _foreign(place, f"cannot be read: {error}") from None
        if tree_digest(tree) != found.tree:
            raise _foreign(place, "has been edited since it was built")
        return found, tree

    def _place(self, task: str, kind: Kind) -> Path | None:
        return None if self.out is None else self.out / task / kind

    def _write(self, manifest: ContextManifest, tree: Tree) -> None:
        """Writes the manifest last: a folder without a manifest was not built here."""
        place = self._place(manifest.task, manifest.kind)
        assert place is not None
        if not place.exists():
            write_folder(tree, place)
        write_whole(_manifest_of(place), canonical_json(manifest))


def _manifest_of(place: Path) -> Path:
    return place.with_name(f"{place.name}.json")


def _parsed(data: bytes, where: str) -> ContextManifest:
    try:
        return ContextManifest.model_validate_json(data)
    except ValidationError as error:
        raise OperatorError(
            f"is not the manifest of a context: {error.errors()[0]['msg']}", where=where, hint="remove it"
        ) from None


def _foreign(place: Path, what: str) -> OperatorError:
    return OperatorError(
        what, where=str(place), hint="choose another --out, or remove the folder and its .json manifest"
    )
