"""Examines one candidate: its environment, its tests at both trees, and the task that it gives."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Literal

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.task import (
    AnchorPath,
    Environment,
    GitSource,
    PythonEnvironment,
    Repo,
    Status,
    TaskSpec,
)
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments.package_index import find_sizes
from trialfleet_repository.environments.uses import EnvironmentRoom
from trialfleet_repository.git import GitError, git, read_blobs
from trialfleet_repository.languages import PYTHON, Language
from trialfleet_repository.trees import MAX_BYTES, Tree, TreeEntry
from trialfleet_sandbox.protocol import Sandbox
from trialfleet_tasks.mining.added_names import added_names, using_tests
from trialfleet_tasks.mining.environment_failures import HINTS, is_temporary, told_apart
from trialfleet_tasks.mining.environments import MinedEnvironments
from trialfleet_tasks.mining.findings import MiningFinding, RejectionReason, hint_of, reason_of
from trialfleet_tasks.mining.history import CandidateCommit
from trialfleet_tasks.mining.issues import Issues, unsuitable_text
from trialfleet_tasks.mining.lock_size import count_download_bytes
from trialfleet_tasks.mining.python_environment import PythonEnvironments
from trialfleet_tasks.mining.setup_arguments import is_about
from trialfleet_tasks.mining.tree_gaps import not_in_the_tree
from trialfleet_tasks.mining.wider import tests_of_packages
from trialfleet_tasks.settings import plain_url
from trialfleet_tasks.sources.materialise import materialise
from trialfleet_tasks.taskfile import LoadedTask
from trialfleet_tasks.validate.bench import passing_tests
from trialfleet_tasks.validate.inputs import prepare_inputs
from trialfleet_tasks.validate.record import Validation
from trialfleet_tasks.validate.steps import Untold
from trialfleet_tasks.validate.task import save, validate_task
from trialfleet_tasks.variants import variants

_VERSION = re.compile(r"v?(\d+(?:\.\d+)*)")
PromptSource = Literal["failing_test", "issue", "commit_message"]
# Reasons that files which git does not hold may be behind.
_MAY_LACK_FILES = {
    RejectionReason.ENVIRONMENT_FAILED,
    RejectionReason.CANNOT_RUN_AT_FIX,
    RejectionReason.FAILS_AT_FIX,
}
_UNPACKED = 3  # times the size of wheels
_WIDER_TRIES = 2  # of a package's tests, without those that were not stable the time before
TELLING_CHARS = 24  # a line of the fix this long does not stand in a message by chance


class UnreadableCommit(OperatorError):
    """The clone lacks files of the commit."""


@dataclass(frozen=True)
class Miner:
    """One repository that is mined. `file`: the task file to be, which paths are relative to. `environments`: by
    the language's name. `issues`: for prompts. `logs`: where outputs go. `wider`: tests of the changed packages
    must keep passing too. `room`: for environments. Threads may share it."""

    git_dir: Path
    url: str
    file: Path
    environments: Mapping[str, MinedEnvironments]
    prompt_source: PromptSource
    issues: Issues
    logs: Path
    cache: Cache
    objects: Objects
    sandbox: Sandbox
    repeats: int
    timeout_s: float
    wider: bool = False
    room: EnvironmentRoom | None = None

    @property
    def mirrors(self) -> dict[str, Path]:
        return {plain_url(self.url): self.git_dir}

    def examine(
        self, candidate: CandidateCommit, say: Callable[[str], None]
    ) -> tuple[MiningFinding, TaskSpec | None]:
        """The finding, and the task when it is kept. Only what concerns the machine as a whole raises."""
        started = time.monotonic()
        say("environment")
        with nullcontext() if self.room is None else self.room.examination():
            finding, spec = self._examined(candidate, say)
        return finding.model_copy(update={"seconds": round(time.monotonic() - started, 1)}), spec

    def _environment(self, candidate: CandidateCommit) -> Environment:
        return self.environments[candidate.language.name].of(*self.environment_facts(candidate))

    def environment_facts(self, candidate: CandidateCommit) -> tuple[Tree, date, str, tuple[str, ...]]:
        """What `MinedEnvironments.of` is given for it."""
        commit = candidate.commit
        if commit.committed is None:
            raise OperatorError("its date cannot be read, so which versions its packages had is not known")
        tree = self._metadata(commit.parent, candidate.language)
        return tree, commit.committed, self._version(commit.sha), candidate.tests

    def prepare_task(self, candidate: CandidateCommit) -> LoadedTask | MiningFinding:
        """The task before its tests are known, or why there is none."""
        try:
            environment = self._environment(candidate)
            self._make_room(environment)
        except OperatorError as error:
            lacking = isinstance(error, UnreadableCommit)
            reason = RejectionReason.UNREADABLE if lacking else RejectionReason.ENVIRONMENT_FAILED
            return self._rejected(candidate, reason, error.message, hint=error.hint)
        return self.make_task(candidate, environment)

    def _make_room(self, environment: Environment) -> None:
        """For its packages, where the index says how large they are. Raises `OperatorError` if they never fit."""
        if self.room is None or not isinstance(environment, PythonEnvironment):
            return
        lock = (self.file.parent / environment.lock).read_text()
        fetched = count_download_bytes(lock, environment.python[0], find_sizes)
        if fetched > self.room.limit_bytes:
            raise OperatorError(
                f"its packages are {fetched / 2**30:.1f} GiB to download, more than --room "
                f"{self.room.limit_bytes / 2**30:.1f}",
                hint="give --room more GiB, free some of the disk, or choose other commits with --paths",
            )
        self.room.reserve(environment.lock, _UNPACKED * fetched)

    def _examined(
        self, candidate: CandidateCommit, say: Callable[[str], None]
    ) -> tuple[MiningFinding, TaskSpec | None]:
        task = self.prepare_task(candidate)
        if isinstance(task, MiningFinding):
            return task, None
        validation = self._validate(task, say, untold=lambda tests: self._untold(candidate, task, tests))
        if validation.problems:
            return self._refused(candidate, validation), None
        return self._kept(candidate, task, validation, say)

    def _untold(self, candidate: CandidateCommit, task: LoadedTask, tests: Sequence[str]) -> Mapping[str, str]:
        """Tests that use a name which only the fix adds, and that name."""
        trees = materialise(task, cache=self.cache, mirrors=self.mirrors)
        return using_tests(
            added_names(trees.pre_fix, variants(task, trees).fix),
            tests,
            before=trees.pre_fix,
            fixed=trees.fixed,
            language=candidate.language,
            files=candidate.tests,
        )

    def _kept(
        self, candidate: CandidateCommit, task: LoadedTask, validation: Validation, say: Callable[[str], None]
    ) -> tuple[MiningFinding, TaskSpec | None]:
        anchor, targets = task.spec.anchor, validation.targets
        if validation.anchor is None:
            target = next((path for path in candidate.source if path in targets), targets[0])
            anchor = AnchorPath(path=target.rpartition("/")[0] or target)
        facts = {
            "fail_to_pass": validation.fail_to_pass,
            "pass_to_pass": validation.pass_to_pass,
            "left_out": validation.left_out,
            "status": Status.VALIDATED,
            "classes": validation.rule,
        }
        spec = task.spec.model_copy(update={**facts, "anchor": anchor})
        final = replace(task, spec=spec)
        key = prepare_inputs(final, cache=self.cache, mirrors=self.mirrors, sandbox=self.sandbox).digest
        save(validation.model_copy(update={"digest": key}), cache=self.cache)
        if self.wider:
            spec = self._widened(candidate, final, say)
        finding = MiningFinding(
            commit=candidate.commit.sha,
            language=candidate.language.name,
            outcome="kept",
            environment=_environment(validation),
        )
        return finding, spec

    def _widened(self, candidate: CandidateCommit, task: LoadedTask, say: Callable[[str], None]) -> TaskSpec:
        """With the tests of the changed packages that pass in every run; as it is where these give no stable
        results."""
        spec = task.spec
        tree = variants(task, materialise(task, cache=self.cache, mirrors=self.mirrors)).pristine
        files = tests_of_packages(candidate.language, tree, source=candidate.source, tests=candidate.tests)
        known = {*spec.fail_to_pass, *spec.pass_to_pass}
        more = passing_tests(
            task,
            files,
            cache=self.cache,
            mirrors=self.mirrors,
            sandbox=self.sandbox,
            timeout_s=self.timeout_s,
            say=say,
        )
        more = tuple(test for test in more if test not in known)
        for _ in range(_WIDER_TRIES if more else 0):
            wide = spec.model_copy(update={"pass_to_pass": (*spec.pass_to_pass, *more)})
            problems = self._validate(replace(task, spec=wide), say).problems
            if not problems:
                return wide
            unstable = {problem.message.partition(": ")[0] for problem in problems}
            if unstable.isdisjoint(more):
                break
            more = tuple(test for test in more if test not in unstable)
        return spec

    def _validate(self, task: LoadedTask, say: Callable[[str], None], untold: Untold | None = None) -> Validation:
        return validate_task(
            task,
            repeats=self.repeats,
            sandbox=self.sandbox,
            cache=self.cache,
            objects=self.objects,
            mirrors=self.mirrors,
            timeout_s=self.timeout_s,
            say=say,
            untold=untold,
        )

    def make_task(self, candidate: CandidateCommit, environment: Environment) -> LoadedTask | MiningFinding:
        """The task before its tests are known, or why its prompt cannot be had."""
        commit = candidate.commit
        issue = self.issues.find_closed(commit.message) if self.prompt_source == "issue" else None
        if self.prompt_source == "issue":
            why = "it closes no issue that --issues has" if issue is None else unsuitable_text(issue)
            if why is not None:
                return self._rejected(candidate, RejectionReason.NO_ISSUE, why)
        text = commit.message if self.prompt_source == "commit_message" else issue.text if issue else ""
        telling = self._telling_line(candidate, text)
        if telling is not None:
            return self._rejected(
                candidate, RejectionReason.TELLS_THE_FIX, f"it holds this line of the fix: {telling}"
            )
        tests = (*candidate.tests, *candidate.support)
        present = self._present(commit.sha, tests)
        modules = [path for path in candidate.tests if path in present]
        if not modules:
            return self._rejected(
                candidate, RejectionReason.CHANGES_ONLY_TESTS, "the commit removes its test files"
            )
        source = GitSource(url=self.url, pre_fix_commit=commit.parent, fix_commit=commit.sha)
        spec = TaskSpec(
            id=task_id(candidate),
            source=source,
            test_file=modules[0],
            test_files=tuple(path for path in tests if path in present and path != modules[0]),
            prompt_source=self.prompt_source,
            issue=issue.text if issue else None,
            issue_number=issue.number if issue else None,
            environment=environment,
            committed=commit.committed,
        )
        return LoadedTask(spec, Repo(url=self.url), source, environment, {}, self.file, 0)

    def _telling_line(self, candidate: CandidateCommit, text: str) -> str | None:
        """A line that the fix adds and the text holds."""
        if not text:
            return None
        diff = git(
            ("diff-tree", "-p", "--no-color", "--no-ext-diff", candidate.commit.parent, candidate.commit.sha, "--",
             *candidate.source), git_dir=self.git_dir,
        ).decode(errors="replace")  # fmt: skip
        added = (
            line[1:].strip() for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++")
        )
        return next((line for line in added if len(line) >= TELLING_CHARS and line in text), None)

    def _present(self, commit: str, paths: tuple[str, ...]) -> frozenset[str]:
        listed = git(("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit), git_dir=self.git_dir)
        return frozenset(paths) & frozenset(listed.decode("utf-8", "surrogateescape").split("\0"))

    def _metadata(self, commit: str, language: Language) -> Tree:
        """All paths of the commit; content of those files only that describe the project."""
        try:
            listing = git(("ls-tree", "-r", "-z", "--full-tree", commit), git_dir=self.git_dir)
            blobs: dict[str, bytes] = {}
            for row in listing.split(b"\0")[:-1]:
                facts, _, name = row.partition(b"\t")
                mode, kind, blob = facts.split(b" ")
                if kind == b"blob" and mode != b"120000":
                    blobs[name.decode("utf-8", "surrogateescape")] = blob
            manifests = {blob for path, blob in blobs.items() if language.is_manifest(path) or is_about(path)}
            content = read_blobs(self.git_dir, manifests, limit=MAX_BYTES)
        except GitError as error:
            raise UnreadableCommit(
                f"commit {commit[:12]} cannot be read: {error}", hint="use a full clone"
            ) from None
        return {path: TreeEntry(content.get(blob, b"")) for path, blob in blobs.items()}

    def _version(self, commit: str) -> str:
        """Of the newest tag before the commit, for what asks `importlib.metadata`."""
        try:
            tag = git(("describe", "--tags", "--abbrev=0", commit), git_dir=self.git_dir).decode().strip()
        except GitError:
            tag = ""
        found = _VERSION.search(tag)
        return found[1] if found else "0.0.0"

    def _refused(self, candidate: CandidateCommit, validation: Validation) -> MiningFinding:
        first = validation.problems[0]
        reason = reason_of(validation.problems)
        lacks = self._lacks(candidate, reason) if reason in _MAY_LACK_FILES else ()
        detail = "; ".join((*lacks, first.message))
        finding = self._rejected(candidate, reason, detail, hint=hint_of(first, reason), output=first.output)
        return finding.model_copy(update={"environment": _environment(validation)})

    def _lacks(self, candidate: CandidateCommit, reason: RejectionReason) -> tuple[str, ...]:
        """What its tests may miss: files that git does not hold, parts of the project's own test command, and
        dependencies that come with the fix."""
        parent = candidate.commit.parent
        environments = self.environments[candidate.language.name]
        call = (
            environments.choose_call(self._metadata(parent, PYTHON))
            if isinstance(environments, PythonEnvironments)
            else None
        )
        built = reason is not RejectionReason.ENVIRONMENT_FAILED
        found = (
            not_in_the_tree(self.git_dir, parent),
            call.unused if call else None,
            _changed_manifests(candidate) if built else None,
        )
        return tuple(each for each in found if each)

    def _rejected(
        self,
        candidate: CandidateCommit,
        reason: RejectionReason,
        detail: str,
        *,
        hint: str | None = None,
        output: str = "",
    ) -> MiningFinding:
        sha = candidate.commit.sha
        reason = told_apart(reason, f"{detail}\n{output}")
        hint = HINTS.get(reason, hint)
        log = self.logs / f"{sha[:12]}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"{sha}\n{reason.value}: {detail}\n\n{output}", errors="replace")
        short = detail.strip().replace("\n", " ")[:300]
        language = candidate.language.name
        return MiningFinding(
            commit=sha,
            language=language,
            outcome=reason,
            detail=short,
            hint=hint,
            log=log.name,
            temporary=is_temporary(reason, f"{detail}\n{output}"),
        )


def task_id(candidate: CandidateCommit) -> str:
    """A name that says where the bug was: the file's stem and the beginning of the fix's digest."""
    stem = re.sub(r"[^a-z0-9]+", "-", candidate.source[0].rpartition("/")[2].partition(".")[0].lower()).strip("-")
    return f"{stem or 'task'}-{candidate.commit.sha[:8]}"


def _changed_manifests(candidate: CandidateCommit) -> str | None:
    """In words, where the fix may need packages that its environment lacks."""
    paths = [change.path for change in candidate.commit.changes if candidate.language.is_manifest(change.path)]
    if not paths:
        return None
    shown = f"{', '.join(paths[:3])}{' and more' if len(paths) > 3 else ''}"
    return f"the commit changes {shown}, and the environment is that of the commit before it"


def _environment(validation: Validation) -> str | None:
    return validation.environment.digest if validation.environment else None
