"""Which machine this is, whatever it is called: many are called `localhost` or `debian`."""

from __future__ import annotations

from pathlib import Path

from trialfleet_runner.canonical import sha256

_ID = Path("/etc/machine-id")


def machine_id(path: Path = _ID) -> str | None:
    """Of this installation, the same after every boot; hashed, since machine-id(5) asks not to show it. None: it
    has none."""
    try:
        found = path.read_text().strip()
    except OSError:
        return None
    return sha256(f"trialfleet {found}".encode()) if found else None
