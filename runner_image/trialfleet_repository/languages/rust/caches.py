"""What cargo keeps of earlier builds."""

from __future__ import annotations

import re
from pathlib import Path

from trialfleet_ledger.removal import remove

BUILT = "built.jsonl"  # in cargo's `target`: its messages, which name what it used
_UNITS = ("deps", ".fingerprint", "build")  # folders of a profile whose entries have a unit's hash in their names
_HASH = re.compile(r'-([0-9a-f]{16})(?=[./"]|$)')
_OWN_CRATE = re.compile(r'"package_id":"[^"]*path\+file:')


def drop_other_units(environment: Path) -> None:
    """Of the `target` in an environment, keep the compiled crates and build scripts that its messages name,
    apart from those of the workspace: cargo compares times of files, so they must not outlive the build."""
    target = environment / "target"
    if not (target / BUILT).is_file():
        return
    lines = (target / BUILT).read_text(errors="replace").splitlines()
    used = {found for line in lines if not _OWN_CRATE.search(line) for found in _HASH.findall(line)}
    for entry in [path for part in _UNITS for path in target.glob(f"*/{part}/*")]:
        found = _HASH.search(entry.name)
        if found and found[1] not in used:
            remove(entry)
    for result in [path for path in target.glob("*/[!.]*") if path.is_file()]:  # the same files as in `deps`
        result.unlink()
