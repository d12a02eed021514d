"""`nop` does nothing, `oracle` applies the fix: when their solve rates are not 0 and 1, the task is not valid."""

from __future__ import annotations

from pathlib import Path

from trialfleet_agents.protocol import Identity, Setup
from trialfleet_agents.sandbox_env import job_of, stop_of
from trialfleet_deliveries.reach import Reach
from trialfleet_ledger.canonical import digest
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_ledger.trajectory import Parsed, Step
from trialfleet_sandbox.protocol import Exit, Job, Mount

# Paths are what `git apply` reports, NUL-separated with -z, so that names need no unquoting.
_ANYTHING = Reach(
    hook_after=True, fail_fast=True, preflight=True, system=True, slash_commands=True
)  # they read nothing: nothing is refused
_ARGV = ("git", "apply", "--whitespace=nowarn", "--numstat", "-z", "--apply", "-")


def _identity(kind: str) -> Identity:
    """The same wherever it runs: these agents have no program."""
    return Identity(kind=kind, version="1", digest=digest({"kind": kind, "version": "1"}), reach=_ANYTHING)


class Oracle:
    kind = "oracle"
    reach = _ANYTHING

    def identify(self, spec: AgentSpec) -> Identity:
        return _identity(self.kind)

    def job(self, setup: Setup, mounts: tuple[Mount, ...]) -> Job | None:
        if setup.fix is None:
            raise OperatorError("this task has no fix", where="agent: oracle", hint="validate the task first")
        return job_of(setup, mounts, _ARGV, stdin=setup.fix)

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


class Nop:
    kind = "nop"
    reach = _ANYTHING

    def identify(self, spec: AgentSpec) -> Identity:
        return _identity(self.kind)

    def job(self, setup: Setup, mounts: tuple[Mount, ...]) -> Job | None:
        return None

    def parse(self, record: Path, exit: Exit | None, workspace: Path) -> Parsed:
        return Parsed(turns=0, tool_calls=0, stop=Stop.FINISHED)
