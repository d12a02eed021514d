"""The task file: real bugs of one repository, as facts (names, digests, test ids), never upstream code."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from trialfleet_ledger.errors import FieldError
from trialfleet_ledger.records.base import Count, Frozen, Name, Sha256
from trialfleet_ledger.records.environment import tag_of
from trialfleet_ledger.records.task_order import ClassRule, ResultFormat

Commit = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]


def _inside(path: str) -> str:
    pure = PurePosixPath(path)
    if not path or pure.is_absolute() or ".." in pure.parts or "\\" in path or "\0" in path:
        raise FieldError(
            f"{path!r} must be a relative path inside the repository",
            hint="write it from the repository's root, with /, without .. and without a / in front",
        )
    return path


RepoPath = Annotated[str, AfterValidator(_inside)]


class GitSource(Frozen):
    """Two commits of one repository."""

    kind: Literal["git"] = "git"
    url: str
    pre_fix_commit: Commit
    fix_commit: Commit


class SdistSource(Frozen):
    """Two releases on a package index: the fixed tree is the newer one; the pre-fix tree is the newer one with
    `files` (named, relative to the sdist's root) as in the older one. A file that the older lacks is removed."""

    kind: Literal["sdist"] = "sdist"
    pre_fix: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+$")]
    pre_fix_sha256: Sha256
    fixed: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+$")]
    fixed_sha256: Sha256
    files: Annotated[tuple[RepoPath, ...], Field(min_length=1)]


class PathSource(Frozen):
    """Two folders, relative to the task file."""

    kind: Literal["path"] = "path"
    pre_fix: str
    fixed: str


Source = Annotated[GitSource | SdistSource | PathSource, Field(discriminator="kind")]


class PythonEnvironment(Frozen):
    """How to build the interpreter environment: dependencies and the project's metadata, never its code.

    `python`: acceptable interpreters, best first. `lock`: requirements file with hashes, relative to the task
    file. `distribution` and `version`: written as a dist-info, so that `importlib.metadata` knows the project;
    `entry_points` is that file's text. `test_command`: argv; `{tests}` becomes the test ids or files, `{junit}`
    the XML file. `results`: pytest, or unittest for a command of a runner that is built on it, which gets names of
    modules, classes and methods, and writes no XML itself. `pythonpath`: folders of the repository that are put on
    PYTHONPATH. `env`: variables of agent and tests; {workspace}, {home} and {environment} stand for the folders.
    """

    kind: Literal["python"] = "python"
    python: Annotated[tuple[str, ...], Field(min_length=1)] = ("3.11",)
    lock: str
    setup: tuple[tuple[str, ...], ...] = ()
    distribution: str | None = None
    version: str | None = None
    entry_points: str | None = None
    test_command: tuple[str, ...] = (
        "python",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--junit-xml={junit}",
        "{tests}",
    )
    results: Literal["pytest", "unittest"] = "pytest"
    pythonpath: tuple[str, ...] = (".",)
    import_name: str | None = None  # module whose __file__ must lie in the workspace
    env: dict[str, str] = Field(default_factory=dict)


class ToolEnvironment(Frozen):
    """How to get what the tests of another language need. What is not given follows from `kind` and the
    repository; kind `commands` gives `test_command` at least.

    `fetch`: argv lists that get the dependencies, run in a checkout of the pre-fix tree with a network; `warm`:
    then these, without a network, to fill caches; they may fail, and `{tests}` becomes what it becomes in
    `test_command` for all tests of the task and for each of their files. `inputs`: names or globs of the files
    that decide what is fetched: commits in which these are equal share an environment. `keep`: names of files
    and folders that `fetch` makes in the checkout and the tests need. `tools`: programs that must be there, each
    with the beginning of an acceptable version ("" for any). `env`: variables of agent and tests; {workspace},
    {home} and {environment} stand for the folders. `test_command`: argv; `{tests}` becomes what is run,
    `{junit}` the file of results. `results`: how results are read. `install_scripts`: permits scripts of
    packages to run when they are installed. `lock`: for kind node and a repository without a lock file, a
    package-lock.json beside the task file. `directory`: folder of the package in which the tests are called, where
    that is not the root.
    """

    kind: Name
    tools: dict[str, str] | None = None
    inputs: tuple[str, ...] | None = None
    fetch: tuple[tuple[str, ...], ...] | None = None
    warm: tuple[tuple[str, ...], ...] | None = None
    keep: tuple[str, ...] | None = None
    env: dict[str, str] = Field(default_factory=dict)
    test_command: tuple[str, ...] | None = None
    results: ResultFormat | None = None
    install_scripts: bool = False
    lock: str | None = None
    directory: RepoPath | None = None

    @model_validator(mode="after")
    def _commands(self) -> ToolEnvironment:
        if self.kind == "commands" and (self.test_command is None or self.results is None):
            raise FieldError(
                "kind commands needs test_command and results",
                hint="give the tests' argv, with {tests} and {junit}, and results: junit for JUnit XML",
            )
        return self


Environment = Annotated[
    Annotated[PythonEnvironment, Tag("python")] | Annotated[ToolEnvironment, Tag("tools")], Discriminator(tag_of)
]


class Docker(Frozen):
    """Upstream's container fields, kept for the image build."""

    image: str
    setup: tuple[str, ...] = ()
    test_command: str | None = None


class Repo(Frozen):
    """What the file's tasks share."""

    url: str | None = None
    default_branch: str = "main"
    docker: Docker | None = None
    strip_extra: tuple[RepoPath, ...] = ()
    environment: Environment | None = None
    contexts: dict[Name, str] = Field(
        default_factory=dict
    )  # name -> path (relative to the file) or sha256:<digest>
    language: str = "Python"
    test_framework: str | None = None  # None: by the format of its results


class AnchorPath(Frozen):
    """A fixed anchor."""

    path: RepoPath


class Status(StrEnum):
    """Whether `validate --write` has passed."""

    VALIDATED = "validated"
    UNVALIDATED = "unvalidated"
    NO_ORACLE = "no_oracle"  # no fail-to-pass test exists: kept out of primary results


class TaskSpec(Frozen):
    """One real bug."""

    id: Name
    category: Literal["simple_fix", "targeted_refactor", "complex_fix"] | None = None
    difficulty: Literal["easy", "medium", "hard"] | None = None
    source: Source | None = None
    pre_fix_commit: Commit | None = None  # upstream's spelling of a git source, with repo.url
    fix_commit: Commit | None = None
    test_file: RepoPath | None = None
    test_files: tuple[RepoPath, ...] = ()  # further test files that the fix brings
    test_pattern: str | None = None  # pytest -k
    prompt_source: Literal["failing_test", "issue", "commit_message"]
    issue_number: Count | None = None
    issue: str | None = None  # inline text, required by prompt_source issue
    commit_message: str | None = None  # needed when the source is not git
    environment: Environment | None = None
    anchor: Literal["traceback", "test_file", "targets", "oracle"] | AnchorPath = "traceback"
    contexts: dict[Name, str] = Field(default_factory=dict)
    status: Status = Status.UNVALIDATED
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    left_out: dict[str, Count] = Field(default_factory=dict)  # why tests of the files do not count: how many
    classes: ClassRule | None = None  # how files that are not the product's are told apart, as validated
    committed: date | None = None  # day of the fix, as `trialfleet tasks mine` writes it

    @model_validator(mode="after")
    def _complete(self) -> TaskSpec:
        if self.prompt_source == "issue" and not self.issue:
            raise FieldError(
                "prompt_source issue needs `issue`, the text itself",
                hint="add `issue: |` with the text (issue_number is a note only), or choose another prompt_source",
            )
        if self.prompt_source == "failing_test" and not self.test_file:
            raise FieldError(
                "prompt_source failing_test needs `test_file`",
                hint="add `test_file:` with the file whose test fails, or choose another prompt_source",
            )
        if (self.pre_fix_commit is None) != (self.fix_commit is None):
            raise FieldError("pre_fix_commit and fix_commit go together", hint="add the one that is missing")
        if (self.source is None) == (self.pre_fix_commit is None):
            raise FieldError(
                "give either `source` or pre_fix_commit and fix_commit",
                hint="add pre_fix_commit and fix_commit, or `source:` of kind git, sdist or path; one of the two",
            )
        return self


class TaskFile(Frozen):
    """A whole file."""

    repo: Repo
    tasks: Annotated[tuple[TaskSpec, ...], Field(min_length=1)]
