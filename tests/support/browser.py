"""A real browser without network, driven over chromedriver's own protocol."""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.waiting import wait_until

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


PATIENCE_MS = 150_000


@dataclass(frozen=True)
class Browser:
    """One window. `address`: of its session."""

    address: str

    def look_at(self, page: Path, *, width: int = 1280, dark: bool = False) -> None:
        """Loads it anew, as a screen of that width and that preference would. What pages before it said and asked
        for is forgotten."""
        self.visit(page.as_uri(), width=width, dark=dark)

    def visit(self, address: str, *, width: int = 1280, dark: bool = False) -> None:
        """As `look_at`, at any address."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.tell("Emulation.setDeviceMetricsOverride", size)
        self.tell("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.leave()
        self._post("url", {"url": address})

    def leave(self) -> None:
        """For a blank page: any other keeps asking its server, which may have ended. What it said is forgotten."""
        self._post("url", {"url": "about:blank"})
        self.console()
        self.requested()

    def forget(self) -> None:
        """Leave, and keep no cookie, no page, no way back and nothing that a page has stored."""
        self.leave()
        for command in ("Network.clearBrowserCookies", "Network.clearBrowserCache", "Page.resetNavigationHistory"):
            self.tell(command, {})
        self.tell("Storage.clearDataForOrigin", {"origin": "file://", "storageTypes": "all"})

    def run(self, script: str) -> Any:
        """What the script returns; it runs beside the page, not as part of it."""
        return self._post("execute/sync", {"script": script, "args": []})

    def wait_for(self, condition: str) -> None:
        """Until the script's expression is true: what a page does on events comes after the script that caused
        them."""

        def never() -> str:
            return f"{condition}; at {self.run('return [location.href, history.length, document.readyState]')}"

        wait_until(lambda: self.run(f"return Boolean({condition})"), never, within_s=60)

    def tell(self, command: str, parameters: dict[str, Any]) -> Any:
        """One command of the developer tools' protocol."""
        return self._post("goog/cdp/execute", {"cmd": command, "params": parameters})

    def press(self, key: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            self.tell("Input.dispatchKeyEvent", {"type": kind, "key": key, "windowsVirtualKeyCode": code})

    def console(self) -> list[str]:
        """What was said since the last time."""
        return [entry["message"] for entry in self._post("se/log", {"type": "browser"})]

    def requested(self) -> list[str]:
        """What pages asked the network for since the last time, themselves included; what a policy stopped is
        in `console`."""
        entries = [
            json.loads(entry["message"])["message"] for entry in self._post("se/log", {"type": "performance"})
        ]
        stopped = {
            one["params"]["requestId"]
            for one in entries
            if one["method"] == "Network.loadingFailed" and one["params"].get("blockedReason") == "csp"
        }
        asked = [one["params"] for one in entries if one["method"] == "Network.requestWillBeSent"]
        return [one["request"]["url"] for one in asked if one["requestId"] not in stopped]

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return post(f"{self.address}/{path}", body)


def post(address: str, body: dict[str, Any]) -> Any:
    head = {"Content-Type": "application/json"}
    request = urllib.request.Request(address, json.dumps(body).encode(), head, method="POST")
    with urllib.request.urlopen(request, timeout=200) as answer:
        return json.loads(answer.read())["value"]


@contextmanager
def browser(home: Path) -> Generator[Browser]:
    """Its profile and everything else that it writes lie in `home`."""
    env = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_CACHE_HOME": str(home)}
    with subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True, env=env) as driver:
        try:
            address = f"http://127.0.0.1:{_port(driver)}/session"
            options = {"args": [*ARGUMENTS, f"--user-data-dir={home / 'profile'}"], "binary": "/usr/bin/chromium"}
            wanted: dict[str, Any] = {
                "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            }
            wanted["timeouts"] = {
                "pageLoad": PATIENCE_MS,
                "script": PATIENCE_MS,
            }  # its own are too short under load
            session = post(address, {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
            try:
                window = Browser(f"{address}/{session}")
                window.leave()
                yield window
            finally:
                quit_ = urllib.request.Request(f"{address}/{session}", method="DELETE")
                urllib.request.urlopen(quit_, timeout=60).close()
        finally:
            driver.terminate()


def _port(driver: subprocess.Popen[str]) -> int:
    assert driver.stdout is not None
    for line in driver.stdout:
        found = re.search(r"successfully on port (\d+)", line)
        if found:
            return int(found[1])
    raise RuntimeError("chromedriver did not start")
