"""The pinned agents (`pinned.tsv`): the package that each comes from, and the version that tests run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

TABLE = Path(__file__).with_name("pinned.tsv")


@dataclass(frozen=True)
class PinnedAgent:
    """One line of the table."""

    kind: str
    installer: Literal["npm", "pip"]
    package: str
    version: str
    program: str
    beside: str = ""
    """Further packages that this version needs, with their versions, separated by spaces."""

    @property
    def variable(self) -> str:
        """The environment variable that names the program where it is not on PATH.

        >>> pinned()["claude-code"].variable
        'TRIALFLEET_CLAUDE'
        """
        return f"TRIALFLEET_{self.program.upper().replace('-', '_')}"

    def install(self, version: str | None = None) -> str:
        """The command that installs it, in the pinned version unless another is given.

        >>> pinned()["codex"].install("0.1.0")
        'npm install -g @openai/codex@0.1.0'
        """
        wanted = version or self.version
        if self.installer == "npm":
            return f"npm install -g {self.package}@{wanted}"
        more = f" && pipx inject {self.package} {self.beside}" if self.beside else ""
        return f"pipx install {self.package}=={wanted}{more}"


@cache
def pinned() -> dict[str, PinnedAgent]:
    """Every line of the table, by kind."""
    rows = (line.split("\t") for line in TABLE.read_text().splitlines() if line and not line.startswith("#"))
    return {kind: PinnedAgent(kind, _installer(by), *rest) for kind, by, *rest in rows}


def _installer(word: str) -> Literal["npm", "pip"]:
    if word not in ("npm", "pip"):
        raise ValueError(f"{TABLE}: no installer is called {word!r}")
    return "npm" if word == "npm" else "pip"
