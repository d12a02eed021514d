"""Skills and MCP servers of a condition, resolved to content. Every refusal comes before anything is paid."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from trialfleet_controller.planning.predicted_targets import order_digest
from trialfleet_controller.planning.skill_front_matter import read_front_matter
from trialfleet_deliveries.secret_files import refuse_secrets
from trialfleet_deliveries.skills import FILE
from trialfleet_ledger.conditions import Condition
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.records.condition_order import ConditionOrder, McpOrder, McpSpec, SkillOrder
from trialfleet_repository.trees import Tree, TreeError, follow_links, pack, read_folder


class Extensions(NamedTuple):
    """Of one condition: the same for every task."""

    skills: dict[str, SkillOrder]
    mcp: dict[str, McpOrder]


def extensions(condition: Condition, base: Path, where: str, objects: Objects) -> Extensions:
    """Puts their folders among the objects. `base`: what relative paths start from; `where`: the condition's
    place. Raises `OperatorError`: no such folder, no SKILL.md in it, or one that does not say what it is for; two
    skills of one name."""
    skills = dict[str, SkillOrder]()
    for number, given in enumerate(condition.skills):
        folder = (base / given).resolve()
        if folder.name in skills:
            raise OperatorError(
                f"two skills are called {folder.name!r}",
                where=f"{where}: skills[{number}]",
                hint="rename one of the folders",
            )
        skills[folder.name] = _skill(folder, f"{where}: skills[{number}]", objects)
    servers = {name: _server(base, spec, f"{where}: mcp.{name}", objects) for name, spec in condition.mcp.items()}
    return Extensions(skills, servers)


def with_extensions(order: ConditionOrder, extended: Extensions) -> ConditionOrder:
    """`order` with them, and the digest of both."""
    made = order.model_copy(update=extended._asdict())
    return made.model_copy(update={"digest": order_digest(made)})


def _skill(folder: Path, where: str, objects: Objects) -> SkillOrder:
    tree = _folder(folder, where)
    if FILE not in follow_links(tree):
        raise OperatorError(
            f"{folder} has no {FILE}: it is not a skill",
            where=where,
            hint=f"name the folder that holds {FILE}, or write one with `name` and `description`",
        )
    description = read_front_matter(follow_links(tree)[FILE].data).description
    if not description:
        raise OperatorError(
            f"{folder / FILE} does not say what the skill is for",
            where=where,
            hint="begin it with a block of YAML between two lines `---`, with `name:` and `description:`",
        )
    return SkillOrder(tree=objects.put(pack(tree)), description=description)


def _server(base: Path, spec: McpSpec, where: str, objects: Objects) -> McpOrder:
    tree = None if spec.files is None else objects.put(pack(_folder(base / spec.files, where)))
    if tree is None and any("{files}" in word for word in spec.command):
        raise OperatorError(
            "{files} means the server's folder, and the server has none",
            where=f"{where}.command",
            hint="add files: FOLDER, a path from the campaign file",
        )
    for folder in spec.mounts:
        if not Path(folder).is_absolute():
            raise OperatorError(
                f"{folder!r} is not an absolute path", where=f"{where}.mounts", hint="begin it with /"
            )
    return McpOrder.model_validate(spec.model_dump() | {"tree": tree})


def _folder(folder: Path, where: str) -> Tree:
    if not folder.is_dir():
        raise OperatorError(f"no such folder: {folder}", where=where, hint="check the path")
    try:
        tree = read_folder(folder)
    except (OSError, TreeError) as error:
        raise OperatorError(f"{folder}: {error}", where=where, hint="check the folder") from None
    refuse_secrets(tree, where)
    return tree
