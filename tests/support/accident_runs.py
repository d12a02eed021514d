"""Commands under accidents: what each says, how it ends, and how long it is silent."""

from __future__ import annotations

import os
import random
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.accidents import ACCIDENTS, AccidentCell, argv
from tests.support.attempts import Lab
from tests.support.real_campaign import campaign_file, trialfleet
from tests.support.silence import SILENT_S, Silence, StarvedTime

GOOD_EXITS = (0, 2, 3, 130, 141)
_WAYS_OUT = ("fix:", "Usage:", "over and not complete", "no isolation")


def make_site(folder: Path) -> Path:
    """Takes seconds: a task is validated and a campaign of two trials is run."""
    lab = Lab(folder / "site")
    lab.root.mkdir(parents=True)
    (lab.root / "CLAUDE.md").write_text("Prices are in cents – never floats.\n")
    file = campaign_file(lab, name="demo", agent={"kind": "nop"}, store="store", reps=2)
    file.write_text(file.read_text().replace(str(lab.root) + "/", ""))
    file.rename(lab.root / "campaign.yaml")
    trialfleet("run", "campaign.yaml", "--no-ray", "--no-report", lab=lab)
    for name in ("home", "full"):
        (lab.root / name).mkdir()
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q", "."], cwd=lab.root, check=True)
    subprocess.run([*git, "add", "CLAUDE.md", "task"], cwd=lab.root, check=True)
    subprocess.run([*git, "commit", "-qm", "Prices"], cwd=lab.root, check=True)
    return lab.root


@dataclass(frozen=True)
class EndedCommand:
    """`exit`: None where it had to be killed. `silent_s`: the longest silence. `fault`: None where all is good."""

    cell: AccidentCell
    exit: int | None
    output: str
    silent_s: float
    wall_s: float

    @property
    def fault(self) -> str | None:
        if "Traceback (most recent call last)" in self.output or "Exception ignored in" in self.output:
            return "traceback"
        if self.exit not in GOOD_EXITS:
            return "killed: it did not end" if self.exit is None else f"exit {self.exit}"
        if self.exit == 2 and not any(word in self.output for word in _WAYS_OUT):
            return "no way out"
        if self.cell.accident.ends == "word" and self.exit == 130 and "waiting for" not in self.output:
            return "no word of what is waited for"
        # A server is silent after its address.
        if self.silent_s > SILENT_S and self.cell.command != ("view",):
            return f"silent for {self.silent_s:.1f} s"
        return None


@contextmanager
def silent_server() -> Generator[str]:
    """Accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        kept: list[socket.socket] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    kept.append(server.accept()[0])

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def run_cells(
    chosen: Sequence[AccidentCell],
    folder: Path,
    *,
    workers: int,
    ended: Callable[[EndedCommand], None] = lambda one: None,
) -> list[EndedCommand]:
    """In this order, each in a copy of one site below `folder`. `ended`: called with each when it has ended."""
    site = make_site(folder)
    with silent_server() as silent, ThreadPoolExecutor(workers) as pool:
        running = [pool.submit(run_cell, cell, site, folder / str(n), silent) for n, cell in enumerate(chosen)]
        for one in as_completed(running):
            ended(one.result())
        return [one.result() for one in running]


def run_cell(cell: AccidentCell, site: Path, folder: Path, silent: str, *, limit_s: float = 240) -> EndedCommand:
    """In a copy of the site at `folder`, which is removed; `silent`: the address of `silent_server`."""
    shutil.copytree(site, folder, symlinks=True)
    cell.accident.prepare(folder)
    words = [sys.executable, "-m", "trialfleet_runner.console", *argv(cell.command)]
    inside = cell.accident.inside
    if inside:
        own_user = () if os.geteuid() == 0 else ("--map-root-user",)
        words = ["unshare", *own_user, "-m", "sh", "-c", inside, "sh", *words]
    process = subprocess.Popen(
        words,
        cwd=folder,
        env=_env(cell, folder, silent),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        return _followed(process, cell, limit_s)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _env(cell: AccidentCell, folder: Path, silent: str) -> dict[str, str]:
    own = {
        "XDG_CACHE_HOME": "",
        "XDG_CONFIG_HOME": "",
        "HOME": str(folder / "home"),
        "TRIALFLEET_SCRATCH": "",
        "TRIALFLEET_CACHE": "",
        "TERM": "",
    }
    wanted = {**os.environ, **own, **cell.accident.env}
    if wanted.get("AWS_ENDPOINT_URL_S3") == "SILENT":
        wanted["AWS_ENDPOINT_URL_S3"] = silent
    return {name: value for name, value in wanted.items() if value}


def _followed(process: subprocess.Popen[bytes], cell: AccidentCell, limit_s: float) -> EndedCommand:
    assert process.stdout is not None
    assert process.stderr is not None
    began, output = time.monotonic(), b""
    starved = StarvedTime(process.pid)
    silence = Silence(lambda: starved.seconds)
    interrupt_at = _interrupt_after(cell)
    with selectors.DefaultSelector() as ready:
        for stream in (process.stdout, process.stderr):
            ready.register(stream, selectors.EVENT_READ)
        while ready.get_map() and (now := time.monotonic()) - began < limit_s:
            spoken = ready.select(0.2)
            starved.sample()
            for key, _ in spoken:
                data = os.read(key.fd, 65536)
                if not data or (cell.accident.ends == "reader" and key.fileobj is process.stdout):
                    ready.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr] # registered above: a stream
                silence.hear(data)
                output += data
            if interrupt_at is not None and (now - began > interrupt_at or b"waiting for" in output):
                os.killpg(process.pid, signal.SIGINT)
                interrupt_at = None
    silence.hear(b"")
    with suppress(subprocess.TimeoutExpired):
        process.wait(10)
    return EndedCommand(
        cell, process.poll(), output.decode(errors="replace"), silence.longest_s, time.monotonic() - began
    )


def _interrupt_after(cell: AccidentCell) -> float | None:
    """Seconds until SIGINT; None: it ends by itself."""
    if cell.accident.ends == "SIGINT":
        return random.Random(cell.name).uniform(0.3, 4)
    if cell.accident.ends == "word":
        return 60.0  # if it has not said before what it waits for: a busy machine is slow
    return 15.0 if cell.command == ("view",) else None


def shown(ended: Sequence[EndedCommand]) -> Iterator[str]:
    """One line for each fault."""
    for one in ended:
        if one.fault is not None:
            last = " | ".join(one.output.strip().splitlines()[-3:])[:300]
            yield f"{one.cell.name}: {one.fault}; {shlex.join(argv(one.cell.command))}: {last}"


def accident_table(ended: Sequence[EndedCommand]) -> Iterator[str]:
    """Lines of Markdown: commands × accidents, "ok" or the fault; "" for a cell that was not run."""
    by_name = {one.cell.name: one.fault or "ok" for one in ended}
    rows = list(dict.fromkeys(one.cell.command for one in ended))
    columns = [accident for accident in ACCIDENTS if any(one.cell.accident is accident for one in ended)]
    yield f"| command | {' | '.join(one.name for one in columns)} |"
    yield f"|---{'|---' * len(columns)}|"
    for row in rows:
        row_cells = (by_name.get(AccidentCell(row, column).name, "") for column in columns)
        yield f"| `{' '.join(row)}` | {' | '.join(row_cells)} |"
