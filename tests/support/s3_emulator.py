"""Moto's S3, one request at a time: by itself it checks a condition and writes in two steps, between which another
writer may come, so that now and then a key has two winners."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

Application = Callable[..., Iterable[bytes]]


@contextmanager
def emulator() -> Iterator[str]:
    """Its address."""
    app = one_at_a_time(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()


def one_at_a_time(app: Any) -> Application:
    lock = threading.Lock()

    def answer(environ: Any, start_response: Any) -> list[bytes]:
        with lock:
            return list(app(environ, start_response))

    return answer
