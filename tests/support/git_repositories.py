"""Repositories made in a test, by git itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "file",
}


class Made:
    """A checkout. Each commit is an hour after the one before, so that the same calls give the same commits.
    `digests`: git's object format."""

    def __init__(self, folder: Path, *, digests: str = "sha1") -> None:
        self.folder, self._clock = folder, 1_700_000_000
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main", f"--object-format={digests}")

    def git(self, *args: str) -> str:
        self._clock += 3600
        dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), f"{self._clock} +0000")
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always", "-c", "gc.auto=0")
        ended = subprocess.run(
            ["git", *who, *args], cwd=self.folder, env=ENV | dates, capture_output=True, check=False
        )
        if ended.returncode:
            raise RuntimeError(ended.stderr.decode(errors="replace"))
        return ended.stdout.decode(errors="replace").strip()

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def commit(self, message: str, **files: str) -> str:
        """Writes the files first: `a__b` is a/b.py."""
        for name, content in files.items():
            self.write(f"{name.replace('__', '/')}.py", content)
        self.git("add", "-A")
        self.git("commit", "-qm", message, "--allow-empty")
        return self.git("rev-parse", "HEAD")


def shop(folder: Path) -> Made:
    """Some files that differ, a test, and a few commits."""
    made = Made(folder)
    made.write("shop/__init__.py", "")
    made.write("go.mod", "module example.com/shop\n")
    made.write("cmd/main.go", 'package main\n\nimport "example.com/shop/cart"\n\nfunc main() { cart.Open() }\n')
    made.write("cart/cart.go", "package cart\n\n// Open opens a cart.\nfunc Open() {}\n")
    made.commit(
        "Start the shop",
        shop__session="class Session:\n    def renew(self):\n        '''Renew the cookie.'''\n        return 1\n",
        shop__cookies="from shop.session import Session\n\n\ndef read_cookie(header):\n    return Session()\n",
        shop__prices="def total(prices):\n    return sum(prices)\n",
        tests__test_session="from shop.session import Session\n\n\ndef test_renew():\n    Session().renew()\n",
    )
    made.commit(
        "Renew the session before it expires",
        shop__session="class Session:\n    def renew(self):\n        return 2\n",
    )
    made.commit(
        "Round the total of prices to cents", shop__prices="def total(prices):\n    return round(sum(prices), 2)\n"
    )
    return made
