"""`omit.py LIST SITE_PACKAGES`: remove from SITE_PACKAGES what LIST says, an image's list of omissions.
`omit.py LIST`: print the packages that LIST keeps out of the image's lock.

It runs while an image is built, with the base's Python and no package.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Omission(NamedTuple):
    """A line of a list, whose head says what the columns mean."""

    kind: str
    what: str
    reason: str


def load_omissions(file: Path) -> list[Omission]:
    """In the order of the list."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [Omission(*line.split("\t")) for line in lines if line and not line.startswith("#")]


def apply_omission(omission: Omission, packages: Path) -> None:
    """Raises `SystemExit` if nothing matches: a new release of the package has it elsewhere, or not at all."""
    paths = matching_paths(omission, packages)
    if not paths:
        sys.exit(f"nothing in {packages} matches {omission.what!r}: correct this line of the list, or delete it")
    for path in paths:
        (strip_symbols if omission.kind == "strip" else remove_path)(path)


def matching_paths(omission: Omission, packages: Path) -> list[Path]:
    """What an omission of the kind remove, only or strip is about."""
    if omission.kind != "only":
        return sorted(packages.glob(omission.what))
    folder, _, names = omission.what.partition(": ")
    return sorted(path for path in (packages / folder).glob("*/") if path.name not in names.split())


def remove_path(path: Path) -> None:
    """A file or a folder; it may be gone already, with the folder around it."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def strip_symbols(path: Path) -> None:
    """In a new file: `strip` alone would write through a hard link into the package manager's cache."""
    stripped = path.with_name(f"{path.name}.stripped")
    subprocess.run(("strip", "--strip-unneeded", "-o", stripped, path), check=True)
    stripped.replace(path)


def main(file: str, packages: str | None = None) -> None:
    for omission in load_omissions(Path(file)):
        if packages is None and omission.kind == "package":
            print(omission.what)
        elif packages is not None and omission.kind != "package":
            apply_omission(omission, Path(packages))


if __name__ == "__main__":
    main(*sys.argv[1:])
