"""What a user sets once for this machine: local mirrors of repositories."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.base import Frozen
from trialfleet_ledger.user_folders import expand_home, home_folder
from trialfleet_tasks import yamlfile

# The first `=` before what begins as a path does, else the last: a folder's name may hold one, and a url as well.
_MIRROR = re.compile(r"(?P<url>.+?)=(?P<folder>[/~.].*)|(?P<other_url>.+)=(?P<other_folder>.+)", re.DOTALL)


class Settings(Frozen):
    """`~/.config/trialfleet/settings.yaml`. `mirrors`: repository url -> folder of a local clone."""

    mirrors: dict[str, str] = Field(default_factory=dict)


def settings_path() -> Path:
    """`$XDG_CONFIG_HOME/trialfleet/settings.yaml`, or the same below `~/.config`."""
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else home_folder() / ".config") / "trialfleet" / "settings.yaml"


def load_settings(path: Path | None = None) -> Settings:
    """The user's settings; empty ones when there is no file."""
    chosen = path or settings_path()
    return yamlfile.load(chosen, Settings) if chosen.exists() else Settings()


def mirror_map(settings: Settings, options: tuple[str, ...]) -> dict[str, Path]:
    """Mirrors of the settings and of `--mirror URL=DIR` options, which win.

    >>> mirror_map(Settings(), ("https://example.org/a/b.git=/srv/b",))
    {'https://example.org/a/b': PosixPath('/srv/b')}
    """
    mirrors = {
        plain_url(url): expand_home(folder, where=f"{settings_path()}: mirrors")
        for url, folder in settings.mirrors.items()
    }
    for option in options:
        parts = _MIRROR.fullmatch(option)
        if parts is None:
            raise OperatorError(
                f"{option!r} is not URL=DIR",
                where="--mirror",
                hint="write --mirror https://example.org/owner/name=/path/to/clone",
            )
        url, folder = parts["url"] or parts["other_url"], parts["folder"] or parts["other_folder"]
        mirrors[plain_url(url)] = expand_home(folder, where="--mirror")
    return mirrors


def mirror_of(url: str, mirrors: Mapping[str, Path]) -> Path | None:
    """The local clone that stands for `url`, whichever way the url is spelt."""
    return mirrors.get(plain_url(url))


def plain_url(url: str) -> str:
    """A repository's url without what is optional in it.

    >>> plain_url("https://Example.org/a/b.git/")
    'https://example.org/a/b'
    """
    bare = url.strip().rstrip("/").removesuffix(".git")
    scheme, separator, rest = bare.partition("://")
    if not separator:
        return bare
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}://{host.lower()}{slash}{path}"
