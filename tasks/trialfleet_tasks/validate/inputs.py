"""The inputs of a task's validation, and their digest. Nothing runs here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from trialfleet_deliveries.nodes import inside
from trialfleet_deliveries.texts import render
from trialfleet_ledger.canonical import digest, sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.environment import metadata_of
from trialfleet_ledger.task import AnchorPath
from trialfleet_repository.cache import Cache
from trialfleet_repository.trees import pack
from trialfleet_repository.workspace_scan import Changes
from trialfleet_sandbox.protocol import Sandbox
from trialfleet_tasks.sources.materialise import materialise
from trialfleet_tasks.task_environment import PlannedEnvironment, planned_environment, unfixed
from trialfleet_tasks.taskfile import LoadedTask
from trialfleet_tasks.variants import Variants, variants

METHOD = 7  # of validation itself: raise it when older results say less
# The trees' own digests say what source and commits are: a task file has two forms for them.
_ELSEWHERE = {
    "status",
    "classes",
    "left_out",
    "contexts",
    "environment",
    "committed",
    "source",
    "pre_fix_commit",
    "fix_commit",
}


@dataclass(frozen=True)
class Prepared:
    """A task's trees, environment and pristine tree's tar, and the digest of all that decides its validation.
    `committed`: day of the fix, as the task file or git says."""

    variants: Variants
    commit_message: str | None
    environment: PlannedEnvironment
    pristine: bytes
    digest: str
    committed: date | None = None

    def with_test_side(self, paths: Collection[str]) -> Prepared:
        """With these changes of the fix in the scored tree. The digest stays: it names what these come from."""
        if not paths:
            return self
        variants = self.variants.with_test_side(paths)
        return replace(self, variants=variants, pristine=pack(variants.pristine))


def prepare_inputs(task: LoadedTask, *, cache: Cache, mirrors: Mapping[str, Path], sandbox: Sandbox) -> Prepared:
    """Trees and environment by the task's facts; nothing is run. Raises `OperatorError`."""
    trees = materialise(task, cache=cache, mirrors=mirrors)
    found = variants(task, trees)
    _check_anchor(task, found.workspace)
    environment = planned_environment(task, unfixed(trees, found), for_other_uid=sandbox.capabilities.other_uid)
    pristine = pack(found.pristine)
    facts = {
        "method": METHOD,
        "harness": _version(),
        "note": render("test_output_cut"),  # part of the output that is kept
        "task": task.spec.model_dump(mode="json", exclude=_ELSEWHERE),
        "command": environment.test_command,
        "results": environment.results,
        "directory": environment.directory,
        "env": dict(environment.env),
        "pythonpath": environment.pythonpath,
        "import_name": environment.import_name,
        "environment": environment.ref.digest,
        "metadata": metadata_of(environment.ref),
        "pristine": sha256(pristine),
        "fix": _digests(found.fix),
        "isolation": sandbox.name,
    }
    if found.settings:
        facts["settings"] = _digests(found.settings)
    committed = task.spec.committed or trees.committed
    return Prepared(found, trees.commit_message, environment, pristine, digest(facts), committed)


def _digests(changes: Changes) -> list[list[str | None]]:
    return [[path, sha256(entry.data) if entry else None] for path, entry in sorted(changes.items())]


def _check_anchor(task: LoadedTask, paths: Collection[str]) -> None:
    """Check that a fixed anchor is in the agent's tree: another node, or none, would cover a misspelt anchor
    without an error."""
    if not isinstance(task.spec.anchor, AnchorPath):
        return
    path = inside(task.spec.anchor.path)
    if path is None or not (path in paths or any(other.startswith(f"{path}/") for other in paths)):
        last = task.spec.anchor.path.rpartition("/")[2]
        same = sorted(other for other in paths if other.rpartition("/")[2] == last)[:3]
        raise OperatorError(
            f"the tree before the fix has neither a file nor a folder {task.spec.anchor.path!r}",
            where=f"{task.where}: anchor.path",
            hint=f"did you mean {' or '.join(same)}?"
            if same
            else "name a path of the repository before the fix, or remove `anchor` to use the traceback's",
        )


def _version() -> str:
    try:
        return version("trialfleet")
    except PackageNotFoundError:
        return "source"
