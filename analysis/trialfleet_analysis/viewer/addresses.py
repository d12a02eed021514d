"""Where the viewer's pages are: served by a process, or as files of a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol
from urllib.parse import quote, urlencode

TableForm = Literal["csv", "parquet"]


class Addresses(Protocol):
    """The address of each page, as the page that is being made links to it. Empty: that page does not exist.

    `served`: a process answers queries, and knows what has changed."""

    @property
    def served(self) -> bool: ...

    def home(self, a: str = "", b: str = "") -> str: ...
    def trials(self, query: Mapping[str, str]) -> str: ...
    def found(self, query: Mapping[str, str]) -> str: ...
    def table(self, query: Mapping[str, str], form: TableForm = "csv") -> str: ...
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

    @property
    def served(self) -> bool:
        return True

    def home(self, a: str = "", b: str = "") -> str:
        return _with_query("/", {"a": a, "b": b})

    def trials(self, query: Mapping[str, str]) -> str:
        return _with_query("/trials", query)

    def found(self, query: Mapping[str, str]) -> str:
        return _with_query("/trials/found", query)

    def table(self, query: Mapping[str, str], form: TableForm = "csv") -> str:
        return _with_query(f"/trials.{form}", query)

    def trial(self, trial: str, attempt: int | None = None) -> str:
        return f"/trial/{quote(trial)}" + (f"/{attempt}" if attempt else "")

    def pair(self, a: str, b: str) -> str:
        return f"/pair/{quote(a)}/{quote(b)}"

    def file(self, trial: str, attempt: int, path: str) -> str:
        return f"/trial/{quote(trial)}/{attempt}/file/{quote(path)}"

    def asset(self, name: str) -> str:
        return f"/assets/{name}"


@dataclass(frozen=True)
class FolderAddresses:
    """Files of a folder, as a page links to them that lies `up` from its root. A list of some trials is the list
    of all with words behind the #, which a script of that page reads.

    >>> FolderAddresses("../").trial("abc"), FolderAddresses().trials({"task": "a b"})
    ('../trial/abc.html', 'trials.html#task=a+b')
    """

    up: str = ""

    @property
    def served(self) -> bool:
        return False

    def home(self, a: str = "", b: str = "") -> str:
        return f"{self.up}index.html"

    def trials(self, query: Mapping[str, str]) -> str:
        said = urlencode({name: query[name] for name in ("task", "condition", "loss") if query.get(name)})
        return f"{self.up}trials.html" + (f"#{said}" if said else "")

    def found(self, query: Mapping[str, str]) -> str:
        return ""

    def table(self, query: Mapping[str, str], form: TableForm = "csv") -> str:
        return f"{self.up}trials.{form}"

    def trial(self, trial: str, attempt: int | None = None) -> str:
        return "" if attempt else f"{self.up}trial/{quote(trial)}.html"

    def pair(self, a: str, b: str) -> str:
        return f"{self.up}pair/{quote(a)}-{quote(b)}.html"

    def file(self, trial: str, attempt: int, path: str) -> str:
        return ""

    def asset(self, name: str) -> str:
        return f"{self.up}assets/{name}"


def _with_query(path: str, query: Mapping[str, str]) -> str:
    said = urlencode({name: value for name, value in query.items() if value})
    return f"{path}?{said}" if said else path
