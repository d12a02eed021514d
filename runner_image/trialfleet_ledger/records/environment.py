"""The environments that tests run in, as the plan names them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from pydantic import Discriminator, Field, Tag

from trialfleet_ledger.records.base import Frozen, Name, Sha256


class PythonEnvironmentRef(Frozen):
    """A built virtual environment: its digest, and all that is needed to build it again."""

    kind: Literal["python"] = "python"
    digest: Sha256
    python: str  # "3.11": major.minor of the interpreter
    lock: Sha256  # object: the requirements file with hashes
    setup: tuple[tuple[str, ...], ...] = ()  # argv lists, run in the environment after the install
    # The project's, for `importlib.metadata`: "pdm-2.26.1.dist-info/METADATA" -> text. It lies in each HOME and is
    # not part of `digest`: commits of all versions share their packages.
    metadata: dict[str, str] = Field(default_factory=dict)

    @property
    def source(self) -> Sha256:
        """The object that it is built from."""
        return self.lock

    @property
    def versions(self) -> str:
        """As people read it."""
        return f"Python {self.python}"


class ToolEnvironmentRef(Frozen):
    """What the tests of another language need: fetched dependencies and caches, made by commands in a checkout.

    In variables and commands, {environment}, {home} and {workspace} stand for folders.
    """

    kind: Name  # of a registered language, or commands
    digest: Sha256
    tools: dict[str, str]  # program -> version of the machine that planned
    inputs: Sha256  # digest of the files that say what is fetched: manifests and locks
    tree: Sha256 = "0" * 64  # object: a tree with these files. Not part of `digest`: neighbouring commits share
    repository: Sha256 | None = None  # of its name; not part of `digest`. Caches of one repository are copied on
    directory: str = "."  # folder of the tree that these commands run in
    alone: tuple[tuple[str, ...], ...] = ()  # argv lists that need no tree, run first, without a network
    fetch: tuple[tuple[str, ...], ...] = ()  # argv lists, run in the tree with a network
    warm: tuple[tuple[str, ...], ...] = ()  # then these, without one; they may fail
    keep: tuple[str, ...] = ()  # names of files and folders of the tree that attempts get: "node_modules"
    drop: tuple[str, ...] = ()  # globs in the environment that are removed after `warm`
    variables: dict[str, str] = Field(default_factory=dict)  # of agent and tests
    links: dict[str, str] = Field(default_factory=dict)  # cache in the environment -> writable place of an attempt
    place: str | None = None  # path at which sandboxes that map paths show it, for caches that hold paths

    @property
    def source(self) -> Sha256:
        """The object that it is built from."""
        return self.tree

    @property
    def versions(self) -> str:
        """As people read it."""
        return ", ".join(f"{name} {version}" for name, version in self.tools.items()) or self.kind


def metadata_of(ref: PythonEnvironmentRef | ToolEnvironmentRef) -> dict[str, str]:
    """The project's metadata; only Python has such."""
    return ref.metadata if isinstance(ref, PythonEnvironmentRef) else {}


def tag_of(environment: Any) -> str:
    """Which of the two an environment is, as a model or as a file has it: Python's, or one of tools."""
    kind: Any = getattr(environment, "kind", None)
    if isinstance(environment, dict):
        kind = cast("dict[str, Any]", environment).get("kind")
    return "python" if kind in (None, "python") else "tools"


EnvironmentRef = Annotated[
    Annotated[PythonEnvironmentRef, Tag("python")] | Annotated[ToolEnvironmentRef, Tag("tools")],
    Discriminator(tag_of),
]


class Recipe(Frozen):
    """One environment to bake. `lock`: of a Python environment, the requirements file's text, whose digest the
    reference names. Another environment is built from `tree_file(digest)`, next to the list."""

    environment: EnvironmentRef
    lock: str | None = None


def tree_file(digest: Sha256) -> str:
    """The path of a source tree, relative to the folder of the list of recipes.

    >>> tree_file("0" * 64)[:8]
    'trees/00'
    """
    return f"trees/{digest}.tar"
