"""Where the viewer's pages are: served by a process, or as files of a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, urlencode


class Addresses(Protocol):
    """The address of each page, as the page that is being made links to it. Empty: that page does not exist."""

    def home(self, a: str = "", b: str = "") -> str: ...
    def trials(self, query: Mapping[str, str]) -> str: ...
    def table(self, query: Mapping[str, str]) -> str: ...
    def trial(self, trial: str, attempt: int | None = None) -> str: ...
    def pair(self, a: str, b: str) -> str: ...
    def file(self, trial: str, attempt: int, path: str) -> str: ...
    def asset(self, name: str) -> str: ...


@dataclass(frozen=True)
class ServedAddresses:
    """Addresses of the server's routes.

    >>> ServedAddresses().file("abc", 1, "agent/<x>.log")
    '/trial/abc/1/file/agent/%3Cx%3E.log'
    """

    def home(self, a: str = "", b: str = "") -> str:
        return _with_query("/", {"a": a, "b": b})

    def trials(self, query: Mapping[str, str]) -> str:
        return _with_query("/trials", query)

    def table(self, query: Mapping[str, str]) -> str:
        return _with_query("/trials.csv", query)

    def trial(self, trial: str, attempt: int | None = None) -> str:
        return f"/trial/{quote(trial)}" + (f"/{attempt}" if attempt else "")

    def pair(self, a: str, b: str) -> str:
        return f"/pair/{quote(a)}/{quote(b)}"

    def file(self, trial: str, attempt: int, path: str) -> str:
        return f"/trial/{quote(trial)}/{attempt}/file/{quote(path)}"

    def asset(self, name: str) -> str:
        return f"/assets/{name}"


def _with_query(path: str, query: Mapping[str, str]) -> str:
    said = urlencode({name: value for name, value in query.items() if value})
    return f"{path}?{said}" if said else path
