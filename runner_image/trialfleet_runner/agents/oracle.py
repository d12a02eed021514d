"""`oracle`: applies the fix. Its solve rate must be 1, or the task does not hold."""

from __future__ import annotations

from pathlib import Path

from trialfleet_runner.agents.protocol import Identity, Parsed, Setup, Step
from trialfleet_runner.agents.surroundings import environment, inside, stop_of
from trialfleet_runner.canonical import digest
from trialfleet_runner.contract import AgentSpec
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.sandbox.protocol import Exit, Job, Mount

# Paths are what `git apply` reports, NUL-separated with -z, so that names need no unquoting.
_ARGV = ("git", "apply", "--whitespace=nowarn", "--numstat", "-z", "--apply", "-")


class Oracle:
    kind = "oracle"

    def identify(self, spec: AgentSpec) -> Identity:
        return Identity(kind=self.kind, version="1", digest=digest({"kind": self.kind, "version": "1"}))

    def job(self, setup: Setup, mounts: tuple[Mount, ...]) -> Job | None:
        if setup.fix is None:
            raise OperatorError("this task has no fix", where="agent: oracle", hint="validate the task first")
        return Job(
            argv=_ARGV,
            env=environment(setup, mounts),
            cwd=inside(setup.workspace, mounts),
            mounts=mounts,
            stdout=setup.record / "stdout",
            stderr=setup.record / "stderr",
            timeout_s=setup.spec.timeout_s,
            stdin=setup.fix,
        )

    def parse(self, record: Path, exit: Exit | None, workspace: Path) -> Parsed:
        """One turn, one edit per file of the fix; no edit when the fix did not apply."""
        applied = exit is not None and exit.cause == "itself" and exit.code == 0
        edits = tuple(_edit(path) for path in _changed(record / "stdout")) if applied else ()
        return Parsed(steps=edits, turns=1, tool_calls=len(edits), stop=stop_of(exit))


def _edit(path: str) -> Step:
    return Step(turn=1, kind="edit", tool="git apply", path=path)


def _changed(numstat: Path) -> list[str]:
    """Paths of `git apply --numstat -z`: records `added TAB removed TAB path NUL`."""
    records = numstat.read_text("utf-8", "replace").split("\0") if numstat.exists() else []
    return [record.split("\t", 2)[2] for record in records if record.count("\t") >= 2]
