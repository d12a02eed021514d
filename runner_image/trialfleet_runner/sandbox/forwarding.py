"""The gateway's forwarder before a program: how it is called, and how it says that the program is missing."""

from __future__ import annotations

from pathlib import Path

from trialfleet_runner.sandbox.protocol import Job

FORWARDER = Path(__file__).resolve().parent.parent / "gateway" / "forwarder.py"
_NOT_STARTED = 127


def forwarded(job: Job, *, python: str, script: str, socket: str) -> tuple[str, ...]:
    """The job's argv behind the forwarder; all paths are as the program sees them."""
    told = ("--socket", socket, "--port", str(job.gateway_port), "--")
    return (python, "-I", "-S", script, *told, *job.argv)


def last_line(path: Path) -> str:
    """Of what a program wrote to stderr."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no message"


def not_started(job: Job, code: int) -> str | None:
    """Why the forwarder could not start the program; None: it started. It can only tell on stderr."""
    if job.gateway is None or code != _NOT_STARTED:
        return None
    said = last_line(job.stderr)
    return said if said.startswith(f"forwarder: {job.argv[0]}: ") else None
