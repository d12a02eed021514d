"""Which reasons of a program that was not executed are its own: a missing interpreter alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialfleet_sandbox.protocol import InterpreterMissing, Job
from trialfleet_sandbox.start import start_failure

NONE = "No such file or directory"


@pytest.mark.parametrize(
    ("why", "own"),
    [
        (NONE, True),  # the forwarder
        ("{program}: [Errno 2] " + NONE + ": '{program}'", True),  # the supervisor
        ("bwrap: execvp {program}: " + NONE, True),
        ("bwrap: Can't find source path /gone: " + NONE, False),
        ("bwrap: execvp /gone/python3: " + NONE, False),
        ("/gone/python3: [Errno 2] " + NONE + ": '/gone/python3'", False),
        ("the gateway's forwarder ended before it: /gone/forwarder.py: [Errno 2] " + NONE, False),
        ("{program}: [Errno 13] Permission denied", False),
    ],
)
def test_only_executing_the_program_itself_can_miss_its_interpreter(
    tmp_path: Path, why: str, *, own: bool
) -> None:
    program = tmp_path / "agent.sh"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    job = Job(
        argv=(str(program),),
        env={},
        cwd=str(tmp_path),
        mounts=(),
        stdout=tmp_path / "out",
        stderr=tmp_path / "err",
        timeout_s=1,
        grace_s=1,
    )
    failure = start_failure(job, why.format(program=program), 0.0)
    assert isinstance(failure, InterpreterMissing) is own
