"""What an attempt gathers for its bundle, redacted and capped."""

from __future__ import annotations

import os
import platform
import stat
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path

from trialfleet_runner import bundle
from trialfleet_runner.canonical import canonical_json
from trialfleet_runner.contract import Frozen, Grants, Manifest


@dataclass
class Members:
    """Files by their path in the bundle; `secrets` are replaced by value in all of them."""

    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    warnings: list[str] = field(default_factory=list[str])
    secrets: set[str] = field(default_factory=set[str])

    def add(self, path: str, content: bytes | str) -> None:
        """Keep `content`; an empty one is kept too, for it says that there was nothing."""
        self.files[path] = content.encode() if isinstance(content, str) else content

    def add_value(self, path: str, value: Frozen | list[object]) -> None:
        """Keep a value as JSON."""
        self.files[path] = canonical_json(value)

    def add_file(self, path: str, source: Path) -> None:
        """Keep a file that a program wrote: only a regular one, never through a link, capped."""
        content = read_hostile(source)
        if content is not None:
            self.add(path, content)

    def pack(self, grants: Grants, isolation: str) -> bytes:
        """The bundle's bytes."""
        files = {path: bundle.capped(bundle.redacted(data, self.secrets)) for path, data in self.files.items()}
        manifest = Manifest(
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
            files=bundle.described(files),
        )
        return bundle.pack(manifest, files)


def read_hostile(path: Path, limit: int = bundle.MEMBER_CAP) -> bytes | None:
    """Head and tail of a regular file, at most `limit` bytes; None when there is none (or a link, or a pipe)."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            return None
        if facts.st_size <= limit:
            return file.read(limit)
        head = file.read(limit // 2)
        file.seek(-(limit - limit // 2), os.SEEK_END)
        note = f"\n[… {facts.st_size - limit} bytes left out …]\n".encode()
        return head + note + file.read(limit - limit // 2)


@cache
def versions() -> dict[str, str]:
    """What made this bundle."""
    return {
        "trialfleet": version("trialfleet"),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "machine": platform.machine(),
    }
