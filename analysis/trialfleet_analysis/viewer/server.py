"""The viewer's HTTP server: addresses to pages. It keeps nothing, and no request ends it."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from trialfleet_analysis.viewer.access import Access, Admission
from trialfleet_analysis.viewer.assets import ASSETS, asset
from trialfleet_analysis.viewer.pages.scaffold import POLICY, message_page
from trialfleet_analysis.viewer.site import CampaignSite, NoSuchPage
from trialfleet_ledger.display_text import visible
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.store.protocol import StoreError

FILE_CAP = 8 * 2**20  # bytes of one file that are served; a bundle's own limit of a member
HEADERS = {
    "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class _AttemptNumber(IntegerConvertor):
    regex = "[0-9]{1,9}"  # `int` refuses a number of thousands of digits


register_url_convertor("attempt", _AttemptNumber())


def application(site: CampaignSite, access: Access) -> Guard:
    """Every answer has the headers above; nobody gets one without the token."""
    app = Starlette(routes=_routes(site), exception_handlers=_refusals(site))
    app.router.redirect_slashes = False  # no answer leads to an address that a request names
    return Guard(app, access)  # outside of Starlette's own middleware, whose answer to an error it guards too


def _routes(site: CampaignSite) -> list[Route]:
    def page(make: Callable[[Request], str]) -> Callable[[Request], Response]:
        return lambda request: HTMLResponse(make(request))

    def table(request: Request) -> Response:
        return _table(site, request)

    def file(request: Request) -> Response:
        return _file(site, request)

    def live(_: Request) -> Response:
        return JSONResponse(site.watched.progress())

    trial, pair = page(lambda r: site.trial(**r.path_params)), page(lambda r: site.pair(**r.path_params))
    return [
        Route("/", page(lambda r: site.home(r.query_params))),
        Route("/trials", page(lambda r: site.trials(_list_parameters(r)))),
        Route("/trials/found", page(lambda r: site.found(_list_parameters(r)))),
        Route("/trials.csv", table),
        Route("/trials.parquet", table),
        Route("/trial/{trial}", trial),
        Route("/trial/{trial}/{attempt:attempt}", trial),
        Route("/now", page(lambda _: site.now())),
        Route("/trial/{trial}/{attempt:attempt}/output", page(lambda r: site.output(**r.path_params))),
        Route("/trial/{trial}/{attempt:attempt}/file/{path:path}", file),
        Route("/pair/{a}/{b}", pair),
        Route("/assets/{name}", _asset),
        Route("/live.json", live),
    ]


def _refusals(site: CampaignSite) -> dict[Any, Any]:
    """What is answered where a page cannot be made."""

    def failed(title: str, status: int) -> Callable[[Request, Exception], Response]:
        def answer(_: Request, error: Exception) -> Response:
            words = visible(str(error)) if status != 404 else "There is nothing at this address."
            return HTMLResponse(message_page(title, words, site.to, campaign=site.watched.campaign), status)

        return answer

    return {
        NoSuchPage: failed("Not found", 404),
        404: failed("Not found", 404),
        OperatorError: failed("This cannot be shown", 500),
        StoreError: failed("The store does not answer", 503),
        Exception: failed("An error of the viewer", 500),
    }


def _list_parameters(request: Request) -> dict[str, str]:
    """A form sends each chosen column by itself."""
    asked = request.query_params
    return {**asked, "columns": ",".join(asked.getlist("columns"))}


def _table(site: CampaignSite, request: Request) -> Response:
    asked, form = _list_parameters(request), request.url.path.rpartition(".")[2]
    headers = {"Content-Disposition": f'attachment; filename="trials.{form}"'}
    if form == "parquet":
        return Response(site.parquet(asked), media_type="application/vnd.apache.parquet", headers=headers)
    return Response(site.table(asked), media_type="text/csv; charset=utf-8", headers=headers)


def _file(site: CampaignSite, request: Request) -> Response:
    """Always sent as plain text."""
    asked = request.path_params
    data = site.file(asked["trial"], asked["attempt"], asked["path"])
    rest = len(data) - FILE_CAP
    note = f"\n[… {rest} bytes left out …]\n".encode() if rest > 0 else b""
    headers = {"Content-Security-Policy": "default-src 'none'; sandbox"}
    return PlainTextResponse(data[:FILE_CAP] + note, headers=headers)


def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in ASSETS:
        raise NoSuchPage(name)
    return Response(asset(name), media_type=ASSETS[name])


def own_address(path: str, query: str) -> str:
    """An address of this server: a browser takes `//host` and `/\\host` for another one.

    >>> own_address("//evil.example/a b", "x=1"), own_address("/\\t/evil.example", "")
    ('/evil.example/a%20b?x=1', '/%09/evil.example')
    """
    address = quote("/" + path.lstrip("/\\"))
    return f"{address}?{quote(query, safe='=&%+,;:@/?-._~')}" if query else address


class Guard:
    """Refuses without a word, and gives every answer its headers. A token in the address becomes a cookie by a
    page that leads on: a redirect would come from the site that the link was on, and browsers keep the cookie from
    that."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        admission = self._access.judge(
            host=request.headers.get("host", ""),
            origin=request.headers.get("origin"),
            token=request.query_params.get("token"),
            cookie=request.cookies.get(self._access.cookie),
        )
        if admission is Admission.REFUSED:
            await Response(status_code=403)(scope, receive, send)
        elif admission is Admission.ENTERING:
            await self._entered(request)(scope, receive, _with_headers(send))
        else:
            await self._app(scope, receive, _with_headers(send))

    def _entered(self, request: Request) -> Response:
        address = escape(own_address(request.url.path, request.url.remove_query_params("token").query))
        text = f'<!doctype html><meta http-equiv="refresh" content="0; url={address}"><title>trialfleet</title>'
        answer = HTMLResponse(text)
        answer.set_cookie(self._access.cookie, self._access.token, httponly=True, samesite="strict")
        return answer


def _with_headers(send: Send) -> Send:
    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            there = {name.lower() for name, _ in message["headers"]}
            message["headers"] += [
                (name.lower().encode(), value.encode())
                for name, value in HEADERS.items()
                if name.lower().encode() not in there
            ]
        await send(message)

    return sending
