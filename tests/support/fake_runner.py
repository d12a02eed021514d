"""A runner program that keeps the contract and does no work: `fake_runner.py BEHAVIOUR GRANTS`.

It uses only the standard library, and imports little of it: imports are most of what a run costs. BEHAVIOUR is
words joined by commas, or `@FILE`, a file that holds them:
`sleep=S` the agent takes S seconds, `slow=S` instead for odd seeds, of which the others wait for one to begin;
`log=FILE` where one line per execution of the agent is appended;
`ponder=S` take S seconds from holding its folder to claiming the attempt;
`kill=PLACE:N` SIGKILL itself at PLACE (begin, start, patch, bundle, end) of attempts up to N;
`loss=CLASS:N` end attempts up to N with that loss before the agent, `midloss=CLASS:N` after it started;
`halt=SCOPE` the losses halt; `torn` the bundle is not what the end says; `crash` end with a traceback;
`orphan=FILE` leave a process behind; `deaf` ignore SIGTERM; `linger=S` take S seconds to stop;
`gap=S` take S seconds from the agent's end to its patch; `tests=S` score for S seconds;
`cost=USD` what the agent says it has cost; `dead` it crashes; `dead=CONDITION`: in that condition.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

# As `trialfleet_ledger.owned_folder.marker_of("scratch")`: this program sees no packages.
_NOTE = "trialfleet created this folder and deletes what is in it"
MARKER = json.dumps({"id": "trialfleet-scratch", "version": 1, "note": _NOTE}).encode() + b"\n"


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def create(grant: dict[str, Any], data: bytes) -> bool:
    target = Path(unquote(urlsplit(grant["url"]).path))
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.parent / f".tmp-{os.getpid()}-{target.name}"
    temporary.write_bytes(data)
    try:
        os.link(temporary, target)
    except FileExistsError:
        return target.read_bytes() == data
    finally:
        temporary.unlink()
    return True


class Fake:
    def __init__(self, behaviour: str, grants: dict[str, Any]) -> None:
        self.words = dict((*word.split("=", 1), "")[:2] for word in behaviour.split(","))
        self.grants = grants
        self.holds = False
        self.ended = False  # the agent
        self.id, self.n = grants["trial"]["id"], grants["attempt"]
        self.nonce = grants["intent_nonce"]
        root = os.environ.get("TRIALFLEET_SCRATCH", f"/var/tmp/trialfleet-{os.getuid()}")
        intent = hashlib.sha256(self.nonce.encode()).hexdigest()[:8]  # other campaigns have trials of the same id
        self.scratch = Path(root) / f"trialfleet-scratch-{os.geteuid()}" / f"{self.id}-{self.n}-{intent}"

    def upto(self, word: str) -> str | None:
        """The value of `word=VALUE:N` when this attempt is at most N."""
        value, _, last = self.words.get(word, "").partition(":")
        return value if value and self.n <= int(last or 1) else None

    def place(self, name: str) -> None:
        if self.upto("kill") == name:
            os.kill(os.getpid(), signal.SIGKILL)

    def identity(self) -> dict[str, Any]:
        return {"schema_version": 1, "trial": self.id, "attempt": self.n, "nonce": self.nonce, "at": time.time()}

    def end(self, **fields: Any) -> None:
        create(self.grants["end"], canonical({**self.identity(), **self.blank(), **fields}))

    def blank(self) -> dict[str, Any]:
        return {"by": "runner", "scored": None, "loss": None, "bundle": None, "bundle_bytes": None}

    def lose(self, loss: str, message: str, *, started: bool) -> None:
        halt = self.words.get("halt", "none")
        self.end(loss={"loss": loss, "message": message, "agent_started": started, "patched": False, "halt": halt})

    def leave_last_words(self, loss: str, message: str) -> None:
        """The controller that started this runner commits the end. What an ended agent left is stored first."""
        ended = self.ended or self.grants["prior_patch"] is not None
        if ended and self.grants["prior_patch"] is None:
            create(self.grants["patch"], canonical({**self.identity(), **self.patch()}))
        told = {"loss": loss, "message": message, "agent_started": True, "patched": ended, "halt": "none"}
        path = Path(os.environ["TRIALFLEET_LAST_WORDS"])
        part = path.with_suffix(".part")
        part.write_bytes(canonical({**self.identity(), **self.blank(), "loss": told}))
        part.rename(path)

    def run(self) -> int:
        signal.signal(signal.SIGTERM, signal.SIG_IGN if "deaf" in self.words else self.told_to_stop)
        while not self.lock():
            time.sleep(0.02)
        self.holds = True
        time.sleep(float(self.words.get("ponder") or 0))
        try:
            return self.attempt()
        finally:
            self.remove_scratch()

    def remove_scratch(self) -> None:
        """It holds a lock and nothing else."""
        with contextlib.suppress(OSError):
            (self.scratch / "lock").unlink()
            self.scratch.rmdir()

    def lock(self) -> bool:
        """As long as the process lives. False: another holds it."""
        with contextlib.suppress(FileExistsError):
            self.scratch.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
            create({"url": (self.scratch.parent / ".trialfleet-folder").as_uri()}, MARKER)
            self.scratch.mkdir()
        with contextlib.suppress(BlockingIOError, FileNotFoundError):
            lock = os.open(self.scratch / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            with contextlib.ExitStack() as unless_held:
                unless_held.callback(os.close, lock)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(lock), (self.scratch / "lock").stat()):
                    unless_held.pop_all()
                    return True
        return False

    def told_to_stop(self, *_: object) -> None:
        if not self.holds:
            os._exit(143)
        time.sleep(float(self.words.get("linger") or 0))
        self.leave_last_words("terminated", "told to stop")
        self.remove_scratch()
        os._exit(143)

    def attempt(self) -> int:
        self.place("begin")
        start = {
            "host": os.uname().nodename,
            "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip(),
            "pid": os.getpid(),
            "scratch": str(self.scratch),
            "isolation": "subreaper",
            "image": None,
        }
        if not create(self.grants["start"], canonical({**self.identity(), **start})):
            return 0
        self.place("start")
        if loss := self.upto("loss"):
            self.lose(loss, "as asked", started=False)
            return 0
        if self.grants["prior_patch"] is None:
            self.agent()
            if loss := self.upto("midloss"):
                self.lose(loss, "as asked", started=True)
                return 0
            self.ended = True
            time.sleep(float(self.words.get("gap") or 0))
            create(self.grants["patch"], canonical({**self.identity(), **self.patch()}))
        self.place("patch")
        time.sleep(float(self.words.get("tests") or 0))
        self.score()
        return 0

    def agent(self) -> None:
        if "crash" in self.words:
            raise ZeroDivisionError
        if file := self.words.get("orphan"):
            import subprocess

            Path(file).write_text(str(subprocess.Popen(["sleep", "600"]).pid), encoding="utf-8")
        if log := self.words.get("log"):
            with Path(log).open("a", encoding="utf-8") as file:
                file.write(f"{self.id} {self.n}\n")
        with contextlib.suppress(InterruptedError):
            slow = "slow" in self.words and self.grants["trial"]["seed"] % 2
            while (
                "slow" in self.words
                and not slow
                and len(Path(log or "").read_text(encoding="utf-8").splitlines()) < 2
            ):
                time.sleep(0.01)
            time.sleep(float(self.words.get("slow" if slow else "sleep") or 0))

    def patch(self) -> dict[str, Any]:
        return {
            "diff": "--- a\n+++ b\n",
            "excluded": [],
            "stop": "finished",
            "throttled_s": 0.0,
            "metrics": self.metrics(),
            "delivery": {},
            "trajectory": None,
            "trajectory_jsonl": "",
        }

    @property
    def dead(self) -> bool:
        return self.words.get("dead", "no") in ("", "1", self.grants["trial"]["condition"])

    def metrics(self) -> dict[str, Any]:
        if self.dead:
            return {"files_changed": 0}
        return {"turns": 3, **({"cost_usd": float(self.words["cost"])} if "cost" in self.words else {})}

    def score(self) -> None:
        bundle = canonical({"bundle": self.id, "n": self.n})
        create(self.grants["bundle"], bundle + (b"torn" if "torn" in self.words else b""))
        self.place("bundle")
        dead = self.dead
        passed = self.grants["trial"]["seed"] % 2 == 0 and not dead
        scored = {
            "verdict": "passed" if passed else "failed",
            "stop": "crashed" if dead else "finished",
            "tests_passed": passed,
            "metrics": self.metrics(),
            "delivery": {},
        }
        self.end(scored=scored, bundle=hashlib.sha256(bundle).hexdigest(), bundle_bytes=len(bundle))
        self.place("end")


def die_with_parent() -> None:
    """As the contract asks of a runner that a process starts."""
    if parent := os.environ.pop("TRIALFLEET_PARENT_PID", None):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if os.getppid() != int(parent):
            os._exit(1)


if __name__ == "__main__":
    die_with_parent()
    behaviour, grants = sys.argv[1:]
    if behaviour.startswith("@"):
        behaviour = Path(behaviour[1:]).read_text(encoding="utf-8")
    sys.exit(Fake(behaviour, json.loads(Path(grants).read_text(encoding="utf-8"))).run())
