"""A viewer that runs, as its users start it."""

from __future__ import annotations

import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

from tests.support.command_forks import ForkedProcess, start_command


@dataclass(frozen=True)
class Viewing:
    """`address`: with its token. `process`: of the command."""

    address: str
    process: subprocess.Popen[bytes] | ForkedProcess

    @property
    def origin(self) -> str:
        return self.address.split("/?")[0]

    @property
    def cookie(self) -> str:
        port, token = self.origin.rpartition(":")[2], self.address.partition("token=")[2]
        return f"trialfleet-{port}={token}"

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, Message, bytes]:
        """Status, headers and body; with the cookie, unless `headers` say otherwise."""
        asked = urllib.request.Request(self.origin + path, headers=dict(headers or {"Cookie": self.cookie}))
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.headers, refused.read()


@contextmanager
def viewing(*words: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Generator[Viewing]:
    """Ends it as Ctrl-C does, which is no failure."""
    with start_command("view", "--no-open", *words, cwd=cwd, env=env, pipe_errors=False) as process:
        assert process.stdout is not None
        try:
            found = re.search(r"http://\S+", process.stdout.readline().decode())
            assert found, "the viewer did not start"
            yield Viewing(found[0], process)
            assert process.poll() is None, "the viewer ended"
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
        finally:
            process.kill()
