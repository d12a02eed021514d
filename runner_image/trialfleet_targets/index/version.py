"""Of the code that builds indexes: an index by another version is built again."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path

_LIBRARIES = ("numpy", "scipy", "networkx", "snowballstemmer")
_NOT_BUILDING = ("command.py", "evaluation/", "index/keeping.py")


@cache
def version() -> str:
    """A digest of the package's code and data, with the releases of what it computes by."""
    from trialfleet_targets.source_files import parser_version

    package, digest = Path(__file__).parents[1], sha256(parser_version().encode())
    for path in sorted(package.rglob("*")):
        name = path.relative_to(package).as_posix()
        if path.suffix != ".pyc" and path.is_file() and not name.startswith(_NOT_BUILDING):
            digest.update(name.encode() + b"\0" + path.read_bytes())
    digest.update(" ".join(metadata.version(name) for name in _LIBRARIES).encode())
    return digest.hexdigest()[:32]
