"""The page that turns a token in the address into a cookie leads to this server, for every address."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from html import unescape
from typing import Any, cast
from urllib.parse import quote, urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_analysis.viewer.access import Access
from trialfleet_analysis.viewer.addresses import ServedAddresses
from trialfleet_analysis.viewer.server import HEADERS, application
from trialfleet_analysis.viewer.site import CampaignSite


class BrokenSite(Exception): ...


class Broken:
    """A campaign of which no page can be made."""

    campaign = "demo"

    def __getattr__(self, name: str) -> Any:
        raise BrokenSite(name)


ACCESS = Access(8080, "right")
APP = application(CampaignSite(cast("Any", Broken()), ServedAddresses()), ACCESS)
HERE = "http://127.0.0.1:8080"


def ask(path: str, query: str = "token=right", **headers: str) -> tuple[int, dict[str, str], str]:
    """Status, headers and text of the answer. `path`: as the server decodes it."""
    given = {"host": "127.0.0.1:8080", **headers}
    scope = {
        "type": "http", "method": "GET", "scheme": "http", "path": path, "raw_path": quote(path).encode(),
        "query_string": query.encode(), "headers": [(k.encode(), v.encode()) for k, v in given.items()],
        "server": ("127.0.0.1", 8080), "root_path": "",
    }  # fmt: skip
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    with suppress(BrokenSite):  # answered, and raised for the log
        asyncio.run(APP(cast("Any", scope), receive, send))
    head = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], head, b"".join(one.get("body", b"") for one in sent[1:]).decode()


def browser_target(page: str) -> str:
    """Where a browser goes: it drops tabs and line breaks of an address, and takes backslashes for slashes."""
    address = re.search(r'content="0; url=([^"]*)"', page)
    assert address is not None
    return urljoin(f"{HERE}/", re.sub(r"[\t\r\n]", "", unescape(address[1])).replace("\\", "/"))


@pytest.mark.parametrize(
    "path",
    ["//evil.example/", "///evil.example", "/\\evil.example", "\\\\evil.example", "/\t/evil.example",
     "/\n/evil.example", "/\r\\evil.example", "http://evil.example/", "//evil.example\\@127.0.0.1:8080/",
     '/"><script>', "/;url=//evil.example", "//user@evil.example/"],
)  # fmt: skip
def test_the_entry_leads_to_no_other_host(path: str) -> None:
    status, head, page = ask(path)
    assert status == 200
    assert "location" not in head
    assert urlsplit(browser_target(page)).netloc == "127.0.0.1:8080"
    assert "<script" not in page


@given(st.text(st.sampled_from("/\\\t\n\r.:@;'\"<>%#?&= e"), max_size=12))
def test_no_path_leads_to_another_host(path: str) -> None:
    assert urlsplit(browser_target(ask(f"/{path}")[2])).netloc == "127.0.0.1:8080"


def test_the_page_that_was_asked_for_is_kept() -> None:
    assert (
        browser_target(ask("/trials", "task=a%2Fb&token=right&sort=turns")[2])
        == f"{HERE}/trials?task=a%2Fb&sort=turns"
    )


@pytest.mark.parametrize("path", ["//evil.example/", "/trials/", "/trials//evil.example/"])
def test_no_answer_is_a_redirect(path: str) -> None:
    status, head, _ = ask(path, "", cookie=f"{ACCESS.cookie}=right")
    assert (status, "location" in head) == (404, False)


@pytest.mark.parametrize(
    ("path", "status"),
    [("/", 500), ("/trials", 500), ("/trial/x/1", 500), (f"/trial/x/{'9' * 5000}", 404), ("/trial/x/-1", 404),
     (f"/trial/x/{'9' * 5000}/file/a", 404), ("/nothing", 404)],
)  # fmt: skip
def test_errors_have_the_headers_too(path: str, status: int) -> None:
    found, head, page = ask(path, "", cookie=f"{ACCESS.cookie}=right")
    assert (found, {name.lower(): head.get(name.lower()) for name in HEADERS}) == (
        status,
        {name.lower(): value for name, value in HEADERS.items()},
    )
    assert page


@pytest.mark.parametrize(
    "headers",
    [{"host": "evil.example"}, {"host": "evil.example:8080"}, {"host": "127.0.0.1:8080.evil.example"},
     {"host": ""}, {"host": "127.0.0.1"}, {"origin": "null"}, {"origin": "http://evil.example"}, {"origin": "http://localhost:8080"}],
)  # fmt: skip
def test_another_host_or_origin_is_refused(headers: dict[str, str]) -> None:
    status, _, page = ask("/", **headers)
    assert (status, page) == (403, "")
