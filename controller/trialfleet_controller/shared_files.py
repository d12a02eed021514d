"""Files that come with the program beside its packages: the demo, examples, manifests, what images are built from.

A wheel has them in `trialfleet_share`, an editable install in its checkout; both have the checkout's layout.
"""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from trialfleet_ledger.errors import OperatorError

_PACKAGES = Path(__file__).resolve().parents[1]
_ROOTS = (_PACKAGES / "trialfleet_share", _PACKAGES.parent)
_MARK = "pyproject.toml"


def find_shared(name: str) -> Path:
    """The file or folder of this place in the checkout, such as `k8s/base`. Raises `OperatorError` where the
    installation lacks it, as a pod's image does."""
    for root in _ROOTS:
        if (root / _MARK).is_file() and (root / name).exists():
            return root / name
    raise OperatorError(
        f"this installation of trialfleet has no {name}", hint="install trialfleet from its wheel or a checkout"
    )


def find_checkout() -> Path | None:
    """The checkout that this is an editable install of; None: it is installed from a wheel."""
    root = find_shared(_MARK).parent
    return root if root == _PACKAGES.parent else None


def find_package(place: str) -> Path:
    """The folder of a package of ours by its place in the checkout, such as `tasks/trialfleet_tasks`."""
    name = place.rpartition("/")[2]
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise OperatorError(f"this installation of trialfleet has no package {name}", hint="install it again")
    return Path(spec.submodule_search_locations[0])


def copy_shared(name: str, into: Path) -> None:
    """Copy a folder. What is there already with the same content stays. Raises `OperatorError` before anything is
    written where a file with another content, or something else than a file, is in the way."""
    source = find_shared(name)
    if into.exists() and not into.is_dir():
        raise OperatorError("this is no folder", where=str(into), hint="name another one")
    files = [path.relative_to(source) for path in sorted(source.rglob("*")) if _belongs(path)]
    for path in files:
        there = into / path
        if (there.exists() or there.is_symlink()) and not _is_same(source / path, there):
            raise OperatorError(
                "this file exists with another content, and it is not overwritten",
                where=str(there),
                hint="move it away, or name another folder",
            )
    for path in files:
        (into / path).parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), (into / path).open("xb") as file:
            file.write((source / path).read_bytes())


def _belongs(path: Path) -> bool:
    return path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts


def _is_same(one: Path, other: Path) -> bool:
    return other.is_file() and not other.is_symlink() and other.read_bytes() == one.read_bytes()
