"""Identifies this machine independently of its host name: many machines are called `localhost` or `debian`."""

from __future__ import annotations

from pathlib import Path

from trialfleet_ledger.canonical import sha256

_ID = Path("/etc/machine-id")


def boot_id() -> str:
    """Changes at every boot: a pid of another boot means nothing."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()


def machine_id(path: Path = _ID) -> str | None:
    """Of this installation, the same after every boot; hashed, since machine-id(5) asks not to show it. None: it
    has none."""
    try:
        found = path.read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return sha256(f"trialfleet {found}".encode()) if found else None
