"""Returns one context of one task: from the cache, or written once and kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

from trialfleet_agents.context_files import strip
from trialfleet_controller.authoring.asked import Kind, asked
from trialfleet_controller.authoring.collect import CollectedContext, written
from trialfleet_controller.authoring.context_cache import Author, ContextCache, ContextManifest, Cost
from trialfleet_controller.authoring.writer import AgentRunner, AuthorAgent, AuthoringJob, write
from trialfleet_controller.planning.predicted_targets import past_of, require
from trialfleet_deliveries import tokens
from trialfleet_deliveries.texts import digests
from trialfleet_ledger.canonical import digest, sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_repository.cache import Cache
from trialfleet_repository.trees import Tree, tree_digest
from trialfleet_tasks.sources.materialise import materialise
from trialfleet_tasks.task_environment import planned_environment
from trialfleet_tasks.taskfile import LoadedTask

FORMAT = 1  # of requests: raise it if older contexts must no longer be returned


@dataclass(frozen=True)
class BuildContext:
    """Inputs of a build. `author_agent` None: the outline, which needs no agent."""

    bench: AgentRunner
    context_cache: ContextCache
    mirrors: Mapping[str, Path]
    author_agent: AuthorAgent | None = None
    seed: int = 0

    @property
    def cache(self) -> Cache:
        return self.bench.cache


@dataclass(frozen=True)
class Built:
    """`fresh`: the context was written by this call."""

    manifest: ContextManifest
    fresh: bool


@dataclass(frozen=True)
class _Request:
    """`tree`: the workspace before the fix. `prompt` None: the outline."""

    task: LoadedTask
    kind: Kind
    tree: Tree
    commit: str | None
    author: Author
    prompt: str | None
    building: BuildContext

    @property
    def where(self) -> str:
        return f"{self.task.where}: {self.kind}"

    @cached_property
    def digest(self) -> str:
        """Of everything that determines the context. It includes budgets: with more turns an agent writes another
        text."""
        author = self.building.author_agent
        budget = None if author is None else [author.spec.max_turns, author.spec.timeout_s, author.max_cost_usd]
        return digest(
            {
                "format": FORMAT,
                "kind": self.kind,
                "tree": tree_digest(self.tree),
                "commit": self.commit,
                "author": self.author.model_dump(mode="json"),
                "prompt": None if self.prompt is None else sha256(self.prompt.encode()),
                "budget": budget,
                "seed": self.building.seed,
            }
        )

    def manifest(self, made: CollectedContext, cost: Cost) -> ContextManifest:
        objects = self.building.context_cache.objects
        return ContextManifest(
            request=self.digest,
            task=self.task.id,
            kind=self.kind,
            tree=tree_digest(made.tree),
            workspace=tree_digest(self.tree),
            commit=self.commit,
            author=self.author,
            prompt=None if self.prompt is None else objects.put(self.prompt.encode()),
            seed=self.building.seed,
            cost=cost,
            tokens=made.tokens,
            tokenizer=tokens.name(),
            stripped=objects.put(made.diff.encode()) if made.diff else None,
            left_out=made.left_out,
            made_by=version("trialfleet"),
        )


def build(task: LoadedTask, kind: Kind, building: BuildContext) -> Built:
    """The context of that kind, from the tree before the fix. The same request for the same tree always returns
    the same context. Raises `OperatorError`; then nothing is kept."""
    from trialfleet_controller.authoring.outline import VERSION, SnapshotSources, outline
    from trialfleet_targets.errors import TargetsError
    from trialfleet_targets.snapshot_reader import snapshot_at

    where, author, cache = f"{task.where}: {kind}", building.author_agent, building.context_cache
    require(where)
    tree = before_fix(task, cache=building.cache, mirrors=building.mirrors)
    past = past_of(task, cache=building.cache, mirrors=building.mirrors)
    try:
        snapshot = snapshot_at(past.folder, past.commit, cache=building.cache.targets)
        sources = SnapshotSources(snapshot, tree.keys())
        prompt = None if author is None else asked(kind, sources.largest())
    except TargetsError as error:
        raise OperatorError(error.message, where=where, hint=error.hint) from None
    commit = past.commit if past.history else None
    request = _Request(task, kind, tree, commit, _author(author, VERSION), prompt, building)
    known = cache.known(task.id, kind, request.digest)
    if known is not None:
        return Built(cache.keep(*known), fresh=False)
    if author is None:
        made, cost = written(kind, outline(kind, sources), tree, where=where), Cost()
    else:
        made, cost = _by_agent(request, author)
    manifest = request.manifest(made, cost)
    kept = cache.keep(manifest, made.tree)
    return Built(kept, fresh=kept == manifest)


def before_fix(task: LoadedTask, *, cache: Cache, mirrors: Mapping[str, Path]) -> Tree:
    """The repository before the fix, without its own context files and without the tests that the fix adds."""
    tree, _ = strip(materialise(task, cache=cache, mirrors=mirrors).pre_fix, task.repo.strip_extra)
    return tree


def _by_agent(request: _Request, author: AuthorAgent) -> tuple[CollectedContext, Cost]:
    assert request.prompt is not None
    task, bench = request.task, request.building.bench
    other_uid = bench.sandbox.capabilities.other_uid
    environment = planned_environment(task, request.tree, for_other_uid=other_uid)
    job = AuthoringJob(
        kind=request.kind,
        author=author,
        prompt=request.prompt,
        seed=request.building.seed,
        tree=request.tree,
        environment=environment,
        where=request.where,
    )
    files, others, cost = write(job, bench)
    return written(request.kind, files, request.tree, left_out=others, where=request.where), cost


def _author(author_agent: AuthorAgent | None, outline_version: str) -> Author:
    if author_agent is None:
        said = {"kind": "outline", "version": outline_version}
        return Author(**said, digest=digest([said, digests("authoring")]))
    found = author_agent.identity
    return Author(kind=found.kind, version=found.version, digest=found.digest, model=found.model)
