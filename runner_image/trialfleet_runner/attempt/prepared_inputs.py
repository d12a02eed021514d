"""Everything an attempt needs before its agent starts, from its grants."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from trialfleet_agents.context_files import is_context_file
from trialfleet_agents.workspace_settings import deliverable_files
from trialfleet_deliveries.composed import Composed
from trialfleet_deliveries.delivery import compose
from trialfleet_deliveries.hooks.push_on_read import RULES
from trialfleet_deliveries.placement import AS_NAMED, FileReading
from trialfleet_deliveries.skills import placed
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import ObjectError, Objects
from trialfleet_ledger.records.environment import metadata_of
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.task_order import MustFailTest, PatchClasses
from trialfleet_ledger.records.verdicts import HaltScope, LossClass
from trialfleet_ledger.store import grants as store
from trialfleet_ledger.store.retry_policy import Patience
from trialfleet_repository import trees, workspace
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments import environment
from trialfleet_repository.environments.provided import provided
from trialfleet_repository.environments.python_environment import lay_metadata
from trialfleet_repository.environments.tool_environment import furnish
from trialfleet_repository.excluded_paths import Exclusions
from trialfleet_repository.test_call import CalledTests
from trialfleet_repository.trees import Tree, TreeEntry
from trialfleet_repository.workspace import Template
from trialfleet_runner.attempt.loss import Lost
from trialfleet_runner.attempt.mcp_servers import folder_of
from trialfleet_sandbox.protocol import Sandbox
from trialfleet_sandbox.scratch import Scratch


@dataclass(frozen=True)
class Inputs:
    """Reads by digest: from this machine's cache, else by grant."""

    grants: Grants
    cache: Cache
    patience: Patience = store.PATIENCE

    def get(self, digest: str) -> bytes:
        """The object's verified bytes. Raises `Lost` when the store holds something else, also when it is read
        again, and `StoreError` when the store does not answer. Another attempt may read what this one could not,
        so nothing halts."""
        grant = self.grants.objects.get(digest)
        if grant is None:
            raise Lost(LossClass.RUNNER, f"object {digest} was not granted", halt=HaltScope.CAMPAIGN)
        objects = Objects(self.cache.objects)
        try:
            kept = objects.load(digest)
            if kept is not None:
                return kept
            return store.read_settled(grant, partial(objects.adopt, digest), patience=self.patience)
        except ObjectError as error:
            raise Lost(LossClass.SETUP, str(error)) from error

    def text(self, digest: str) -> str:
        return self.get(digest).decode()

    def tree(self, digest: str | None) -> dict[str, TreeEntry]:
        """A granted tar as a tree; {} for None."""
        return {} if digest is None else trees.unpack(self.get(digest))

    def classes(self, digest: str | None) -> PatchClasses | None:
        """Of a task's changes. Raises `ValueError` if the object is something else."""
        return None if digest is None else PatchClasses.model_validate_json(self.get(digest))

    def must_fail(self, digest: str | None) -> MustFailTest | None:
        """The control of a task's passes. Raises `ValueError` if the object is something else."""
        return None if digest is None else MustFailTest.model_validate_json(self.get(digest))

    def template(self, tree: str, files: Tree | None = None) -> Template:
        """The template of a granted tree with a condition's files over it, built unless it is there."""
        added: Tree = dict(sorted((files or {}).items()))
        files_digest = sha256(trees.pack(added)) if added else None
        folder = workspace.template_of(tree, files_digest, cache=self.cache)
        return workspace.ready(folder) or workspace.build_template(folder, self.tree(tree), added)


@dataclass(frozen=True)
class Ready:
    """`task`: its frozen words. `given`: what the agent gets (baseline of its patch); `pristine`: what is
    scored. `classes`: which changes are the product's; None: all. `must_fail`: control of a pass."""

    task: str
    composed: Composed
    environment: Path
    given: Template
    pristine: Template
    exclusions: Exclusions
    classes: PatchClasses | None = None
    servers: Mapping[str, Tree] = field(default_factory=dict[str, Tree])  # files of the MCP servers
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])  # of the Python project
    left_out: tuple[str, ...] = ()  # settings in the condition's files that no campaign may choose
    must_fail: MustFailTest | None = None

    def with_offered(self, texts: Mapping[str, str]) -> Ready:
        """With the texts that MCP servers offer, which are known once these have started."""
        return replace(self, composed=replace(self.composed, offered=dict(texts)))


def prepare(grants: Grants, inputs: Inputs, sandbox: Sandbox, reading: FileReading = AS_NAMED) -> Ready:
    """Raises `Lost(setup)` when the order cannot be met; it halts the task when no other attempt could either.
    `sandbox`, `reading`: the agent's."""
    try:
        task, condition = grants.task, grants.condition
        words = inputs.text(task.prompt)
        tree = inputs.tree(condition.files)
        files, left_out = deliverable_files(grants.agent.kind, trees.read_files(tree))
        composed = compose(
            condition,
            task=words,
            files=files or None,
            context=trees.read_files(inputs.tree(condition.context)) or None,
            text=None if condition.text is None else inputs.text(condition.text),
            reading=reading,
        )
        built = _environment(grants, inputs, sandbox)
        skills = placed(
            {name: inputs.tree(skill.tree) for name, skill in condition.skills.items()}, reading.skills
        )
        added = _placed_entries(tree, composed.files, skills)
        composed = replace(composed, files={**composed.files, **trees.read_files(skills)})
        servers = {name: inputs.tree(server.tree) for name, server in condition.mcp.items()}
        given = inputs.template(task.workspace, added)
        pristine = inputs.template(task.pristine)
        classes, must_fail = inputs.classes(task.classes), inputs.must_fail(task.must_fail)
    except (OperatorError, ValueError) as error:
        raise Lost(LossClass.SETUP, str(error), halt=HaltScope.TASK) from error
    exclusions = Exclusions(
        given.manifest,
        task.test_files,
        task.pythonpath,
        task.travelling_tests,
        lambda: provided(built),
        CalledTests(task.test_command, task.results, task.directory).built,
        is_context=is_context_file,  # of every arm: a document that this one imports is a file of the others
    )
    metadata = metadata_of(task.environment)
    return Ready(
        words, composed, built, given, pristine, exclusions, classes, servers, metadata, left_out, must_fail
    )


def _placed_entries(tree: Tree, files: Mapping[str, bytes], skills: Tree) -> Tree:
    """The condition's files as they lie in the workspace: scripts stay executable, and links stay links. `tree`:
    as it was declared; `files`: as they are placed."""
    declared = trees.follow_links(tree)
    plain = TreeEntry(b"")
    placed_files = {path: TreeEntry(data, declared.get(path, plain).kind) for path, data in files.items()}
    return trees.with_links({**placed_files, **skills}, tree)


def lay_out(ready: Ready, scratch: Scratch) -> None:
    """Give the agent its own copy of the workspace, an empty HOME and the hook's nodes."""
    workspace.clone(ready.given, scratch.workspace)
    (scratch.home / "tmp").mkdir(parents=True)
    furnish(ready.environment, scratch.workspace, scratch.home)
    lay_metadata(ready.metadata, scratch.home)
    for path, text in ready.composed.hook_nodes.items():
        target = scratch.context / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    write_rule(ready.composed, scratch)
    for name, tree in ready.servers.items():
        trees.write_folder(tree, folder_of(scratch.home, name))


def write_rule(composed: Composed, scratch: Scratch) -> None:
    """Where the on-read hook looks for it."""
    if composed.rule is not None:
        scratch.context.mkdir(parents=True, exist_ok=True)
        rule = {"globs": composed.rule.globs, "text": composed.rule.text}
        (scratch.context / RULES).write_text(json.dumps([rule]))


def _environment(grants: Grants, inputs: Inputs, sandbox: Sandbox) -> Path:
    """The attempt's environment. A changed environment is built again, so that no agent leaves anything for the
    next. Another container sees only the image's environments, not those built here."""
    ref = grants.task.environment
    if sandbox.capabilities.separate_container:
        return environment.baked(ref)
    source, for_other_uid = inputs.get(ref.source), sandbox.capabilities.other_uid
    built = environment.build(ref, source, cache=inputs.cache, for_other_uid=for_other_uid)
    if environment.unchanged(built):
        return built
    environment.retire(built)
    return environment.build(ref, source, cache=inputs.cache, for_other_uid=for_other_uid)
