"""What an attempt gathers for its bundle, redacted and capped."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path

from trialfleet_deliveries import texts
from trialfleet_ledger import bundle
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.records.base import Frozen
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.manifest import Manifest
from trialfleet_ledger.untrusted import regular_file


@dataclass
class Members:
    """Files by their path in the bundle; `secrets` are replaced by value in all of them; `keys`: those of the
    provider, by name. `left_out`: bytes that they lack already."""

    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    left_out: dict[str, int] = field(default_factory=dict[str, int])
    warnings: list[str] = field(default_factory=list[str])
    secrets: set[str] = field(default_factory=set[str])
    keys: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, path: str, content: bytes | str, *, left_out: int = 0) -> None:
        """Keep `content`; an empty one is kept too, for it says that there was nothing. `left_out`: bytes that it
        lacks."""
        self.files[path] = content.encode() if isinstance(content, str) else content
        self.left_out[path] = left_out

    def add_value(self, path: str, value: Frozen | list[object]) -> None:
        self.files[path] = canonical_json(value)

    def add_file(self, path: str, source: Path) -> None:
        """Keep a file that a program wrote: only a regular one, never through a link, capped."""
        found = read_hostile(source)
        if found is not None:
            self.add(path, found.data, left_out=found.left_out)

    def pack(self, grants: Grants, isolation: str) -> bytes:
        kept = {path: bundle.capped(bundle.redacted(data, self.secrets)) for path, data in self.files.items()}
        files = {path: one.data for path, one in kept.items()}
        left_out = {path: one.left_out + self.left_out.get(path, 0) for path, one in kept.items()}
        manifest = Manifest(
            plan=grants.plan,
            campaign=grants.campaign,
            trial=grants.trial,
            attempt=grants.attempt,
            task=grants.task.digest,
            condition=grants.condition.digest,
            agent=grants.agent,
            limits=grants.limits,
            isolation=isolation,
            warnings=tuple(dict.fromkeys(self.warnings)),
            versions=versions(),
            texts=texts.digest(),
            files=bundle.described(files, left_out),
        )
        return bundle.pack(manifest, files)


def read_hostile(path: Path, limit: int = bundle.MEMBER_CAP) -> bundle.Capped | None:
    """Head and tail of a regular file, at most `limit` bytes; None when there is none (or a link, or a pipe)."""
    file = regular_file(path)
    if file is None:
        return None
    with file:
        return bundle.read_capped(file, os.fstat(file.fileno()).st_size, limit)


@cache
def versions() -> dict[str, str]:
    """What made this bundle."""
    return {
        "trialfleet": version("trialfleet"),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "machine": platform.machine(),
    }
