"""Where contexts are kept: a store, a folder for people, or both. The first answer to a request stays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from trialfleet_controller.authoring.asked import Kind
from trialfleet_controller.authoring.manifest import Manifest
from trialfleet_runner.cache import write_whole
from trialfleet_runner.canonical import canonical_json
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.objects import ObjectError, Objects
from trialfleet_runner.trees import Tree, TreeError, pack, read_folder, tree_digest, unpack, write_folder

MANIFESTS = "_contexts/"


def manifest_key(request: str) -> str:
    """Key in the store; no campaign is called so.

    >>> manifest_key("ab")
    '_contexts/ab.json'
    """
    return f"{MANIFESTS}{request}.json"


@dataclass(frozen=True)
class Shelf:
    """`objects` has the store, if there is one. `out`: `<out>/<task>/<kind>/` and `<kind>.json` beside it."""

    objects: Objects
    out: Path | None = None

    def known(self, task: str, kind: Kind, request: str) -> tuple[Manifest, Tree] | None:
        """What answered the request before. Raises `OperatorError` when another context lies in its place, or what
        lies there is not what its manifest says."""
        here = self._in_folder(task, kind, request)
        stored = self._in_store(request)
        if here is not None and stored is not None and here[0].tree != stored.tree:
            raise OperatorError(
                f"holds another context than the store has for the same request ({stored.tree[:12]}…)",
                where=str(self._place(task, kind)),
                hint="remove it, and it is taken from the store",
            )
        return here if stored is None else (stored, self.tree(stored))

    def keep(self, manifest: Manifest, tree: Tree) -> Manifest:
        """Keep it, unless somebody else answered the request meanwhile: then theirs. Returns what is kept. No
        manifest names a tree that is not among the objects."""
        self.objects.put(pack(tree))
        store = self.objects.store
        if store is not None:
            store.create(manifest_key(manifest.request), canonical_json(manifest))
            manifest = self._in_store(manifest.request) or manifest
        if self.out is not None:
            self._write(manifest, tree if tree_digest(tree) == manifest.tree else self.tree(manifest))
        return manifest

    def tree(self, manifest: Manifest) -> Tree:
        """Its files. Raises `OperatorError` when the store has lost them."""
        try:
            return unpack(self.objects.get(manifest.tree))
        except (ObjectError, TreeError) as error:
            raise OperatorError(
                str(error),
                where=manifest_key(manifest.request),
                hint="ask with another --seed: what answered this request is lost",
            ) from None

    def _in_store(self, request: str) -> Manifest | None:
        store = self.objects.store
        data = None if store is None else store.get(manifest_key(request))
        return None if data is None else _parsed(data, f"{store.url if store else ''}/{manifest_key(request)}")

    def _in_folder(self, task: str, kind: Kind, request: str) -> tuple[Manifest, Tree] | None:
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

    def _write(self, manifest: Manifest, tree: Tree) -> None:
        """The manifest last: without it, what lies there was not built here."""
        place = self._place(manifest.task, manifest.kind)
        assert place is not None
        if not place.exists():
            write_folder(tree, place)
        write_whole(_manifest_of(place), canonical_json(manifest))


def _manifest_of(place: Path) -> Path:
    return place.with_name(f"{place.name}.json")


def _parsed(data: bytes, where: str) -> Manifest:
    try:
        return Manifest.model_validate_json(data)
    except ValidationError as error:
        raise OperatorError(
            f"is no manifest of a context: {error.errors()[0]['msg']}", where=where, hint="remove it"
        ) from None


def _foreign(place: Path, what: str) -> OperatorError:
    return OperatorError(
        what, where=str(place), hint="choose another --out, or remove the folder and the .json beside it"
    )
