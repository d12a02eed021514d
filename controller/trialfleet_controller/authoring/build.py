"""One context of one task: looked up, or written once and kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from trialfleet_controller.authoring.asked import Kind, asked
from trialfleet_controller.authoring.harvest import Written, written
from trialfleet_controller.authoring.manifest import Author, Cost, Manifest
from trialfleet_controller.authoring.shelf import Shelf
from trialfleet_controller.authoring.writer import Bench, Commission, write
from trialfleet_controller.targets import Past, past_of, require
from trialfleet_runner.agents.protocol import Agent, Identity
from trialfleet_runner.cache import Cache
from trialfleet_runner.canonical import digest, sha256
from trialfleet_runner.context import tokens
from trialfleet_runner.contract import AgentSpec
from trialfleet_runner.environment import environment_ref
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.interpreters import find_interpreter
from trialfleet_runner.sources.materialise import materialise
from trialfleet_runner.strip import strip
from trialfleet_runner.taskfile import LoadedTask
from trialfleet_runner.trees import Tree, tree_digest

FORMAT = 1  # of what is asked for: raise it when older contexts must not answer


@dataclass(frozen=True)
class Hired:
    """An agent that is to write. `identity` is what this machine has."""

    agent: Agent
    identity: Identity
    spec: AgentSpec
    max_cost_usd: float | None = None


@dataclass(frozen=True)
class Atelier:
    """What building needs. `hired` None: the outline, which nobody has to be asked for."""

    bench: Bench
    shelf: Shelf
    mirrors: Mapping[str, Path]
    hired: Hired | None = None
    seed: int = 0

    @property
    def cache(self) -> Cache:
        return self.bench.cache


@dataclass(frozen=True)
class Built:
    """`fresh`: it was made now."""

    manifest: Manifest
    fresh: bool


def build(task: LoadedTask, kind: Kind, atelier: Atelier) -> Built:
    """The context of that kind, from the tree before the fix. The same request, of the same tree, gets the same
    context, whoever asks for it. Raises `OperatorError`; then nothing is kept."""
    from trialfleet_controller.authoring.outline import VERSION, Sources, outline
    from trialfleet_targets.errors import TargetsError
    from trialfleet_targets.reading import snapshot_at

    where = f"{task.where}: {kind}"
    require(where)
    tree = before_fix(task, cache=atelier.cache, mirrors=atelier.mirrors)
    past = past_of(task, cache=atelier.cache, mirrors=atelier.mirrors)
    try:
        snapshot = snapshot_at(past.folder, past.commit, cache=atelier.cache.targets)
        sources = Sources(snapshot, tree.keys())
        prompt = None if atelier.hired is None else asked(kind, sources.largest())
    except TargetsError as error:
        raise OperatorError(error.message, where=where, hint=error.hint) from None
    author = _author(atelier.hired, VERSION)
    request = _request(kind, tree, past, author, prompt, atelier)
    known = atelier.shelf.known(task.id, kind, request)
    if known is not None:
        return Built(atelier.shelf.keep(*known), fresh=False)
    if atelier.hired is None or prompt is None:
        made, cost = written(kind, outline(kind, sources), tree, where=where), Cost()
    else:
        made, cost = _by_agent(task, kind, tree, prompt, atelier.hired, atelier, where)
    manifest = _manifest(task, kind, request, tree, past, author, made, cost, prompt, atelier)
    kept = atelier.shelf.keep(manifest, made.tree)
    return Built(kept, fresh=kept == manifest)


def before_fix(task: LoadedTask, *, cache: Cache, mirrors: Mapping[str, Path]) -> Tree:
    """The repository before the fix, without its own context files, and without the tests that the fix brings."""
    tree, _ = strip(materialise(task, cache=cache, mirrors=mirrors).pre_fix, task.repo.strip_extra)
    return tree


def _by_agent(
    task: LoadedTask, kind: Kind, tree: Tree, prompt: str, hired: Hired, atelier: Atelier, where: str
) -> tuple[Written, Cost]:
    lock = task.lock_path.read_bytes()
    python = find_interpreter(task.environment.python, for_other_uid=atelier.bench.sandbox.name == "uid")
    files, others, cost = write(
        Commission(
            kind=kind,
            agent=hired.agent,
            identity=hired.identity,
            spec=hired.spec,
            prompt=prompt,
            seed=atelier.seed,
            tree=tree,
            environment=environment_ref(task.environment, lock, python),
            lock=lock,
            pythonpath=task.environment.pythonpath,
            max_cost_usd=hired.max_cost_usd,
            where=where,
        ),
        atelier.bench,
    )
    return written(kind, files, tree, left_out=others, where=where), cost


def _author(hired: Hired | None, outline_version: str) -> Author:
    if hired is None:
        said = {"kind": "outline", "version": outline_version}
        return Author(**said, digest=digest(said))
    found = hired.identity
    return Author(kind=found.kind, version=found.version, digest=found.digest, model=found.model)


def _request(kind: Kind, tree: Tree, past: Past, author: Author, prompt: str | None, atelier: Atelier) -> str:
    """Digest of all that decides what is written, and of what is asked for. Budgets belong to it: with more turns
    an agent writes another text."""
    hired = atelier.hired
    return digest(
        {
            "format": FORMAT,
            "kind": kind,
            "tree": tree_digest(tree),
            "commit": past.commit if past.history else None,
            "author": author.model_dump(mode="json"),
            "prompt": None if prompt is None else sha256(prompt.encode()),
            "budget": None if hired is None else [hired.spec.max_turns, hired.spec.timeout_s, hired.max_cost_usd],
            "seed": atelier.seed,
        }
    )


def _manifest(
    task: LoadedTask,
    kind: Kind,
    request: str,
    tree: Tree,
    past: Past,
    author: Author,
    made: Written,
    cost: Cost,
    prompt: str | None,
    atelier: Atelier,
) -> Manifest:
    objects = atelier.shelf.objects
    return Manifest(
        request=request,
        task=task.id,
        kind=kind,
        tree=tree_digest(made.tree),
        workspace=tree_digest(tree),
        commit=past.commit if past.history else None,
        author=author,
        prompt=None if prompt is None else objects.put(prompt.encode()),
        seed=atelier.seed,
        cost=cost,
        tokens=made.tokens,
        tokenizer=tokens.name(),
        stripped=objects.put(made.diff.encode()) if made.diff else None,
        left_out=made.left_out,
        made_by=_version(),
    )


def _version() -> str:
    try:
        return version("trialfleet")
    except PackageNotFoundError:
        return "source"
