"""Front matter of skills and sub-agents: what is wrong with it, on which line, and which agents do not read such
files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import yaml

from trialfleet_agents.registry import find_kind
from trialfleet_agents.skill_faults import SkillFault
from trialfleet_deliveries.declared_texts import role_of
from trialfleet_ledger.display_text import one_line
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.receipts import FileRole
from trialfleet_repository.trees import read_files, unpack

_MOST_BYTES = 2**16  # of front matter
_LONG = 1024  # characters of a description
_PLAIN = re.compile(r"([A-Za-z][\w-]*):[ \t]+([^\s\"'|>].*?)[ \t]*")


@dataclass(frozen=True)
class FrontMatter:
    """`description`: empty if it has none. `faults`: each with its line, from 1."""

    description: str = ""
    faults: tuple[tuple[SkillFault, int], ...] = ()


def read_front_matter(data: bytes) -> FrontMatter:
    """As the most lenient agent reads it.

    >>> read_front_matter(b"---\\nname: x\\ndescription: Prices: cents.\\n---\\n# X").faults
    ((<SkillFault.COLON: 'a colon in a text without quotes'>, 3),)
    """
    text = data[:_MOST_BYTES].decode(errors="replace").replace("\r\n", "\n")
    faults = list[tuple[SkillFault, int]]()
    if text.startswith("\ufeff"):
        faults.append((SkillFault.BYTE_ORDER_MARK, 1))
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[0].rstrip() != "---" or "---" not in (line.rstrip() for line in lines[1:]):
        return FrontMatter("", (*faults, (SkillFault.NO_FRONT_MATTER, 1)))
    end = next(number for number, line in enumerate(lines) if number and line.rstrip() == "---")
    fields, found = _read_fields(lines[1:end])
    faults += found
    if any(fault is SkillFault.INVALID for fault, _ in found):
        return FrontMatter("", tuple(faults))
    if "name" not in fields:
        faults.append((SkillFault.NO_NAME, 1))
    description, line = fields.get("description", ("", 1))
    if not description:
        is_there = "description" in fields
        faults.append((SkillFault.NOT_TEXT if is_there else SkillFault.NO_DESCRIPTION, line))
    if len(description) > _LONG:
        faults.append((SkillFault.LONG, line))
    return FrontMatter(description, tuple(faults))


def _read_fields(lines: list[str]) -> tuple[dict[str, tuple[str, int]], list[tuple[SkillFault, int]]]:
    """Key -> (its text, empty for what is none; its line), and the faults."""
    faults = list[tuple[SkillFault, int]]()
    text = "\n".join(lines)
    root = _compose(text)
    if isinstance(root, int):
        quoted = dict[int, str]()
        for number, line in enumerate(lines):
            plain = _PLAIN.fullmatch(line)
            if plain is not None and isinstance(_compose(line), int):
                quoted[number] = f"{plain[1]}: {json.dumps(plain[2])}"
                is_colon = plain[2][0].isalnum() and re.search(r":(\s|$)", plain[2])
                faults.append((SkillFault.COLON if is_colon else SkillFault.UNQUOTED, number + 2))
        text = "\n".join(quoted.get(number, line) for number, line in enumerate(lines))
        root = _compose(text)
        if isinstance(root, int):
            return {}, [(SkillFault.INVALID, root + 2)]
    fields = dict[str, tuple[str, int]]()
    if not isinstance(root, yaml.MappingNode):
        return fields, [*faults, (SkillFault.INVALID, 2)]
    for key, value in root.value:
        at = _line_at(text, key.start_mark) + 2
        if not isinstance(key, yaml.ScalarNode):
            return {}, [*faults, (SkillFault.INVALID, at)]
        if key.value in fields:
            faults.append((SkillFault.DUPLICATE, at))
        is_text = isinstance(value, yaml.ScalarNode) and value.tag != "tag:yaml.org,2002:null"
        fields[str(key.value)] = (" ".join(value.value.split()) if is_text else "", at)
    return fields, faults


def _compose(text: str) -> yaml.Node | int | None:
    """Its root, or the line from 0 where it is no YAML."""
    try:
        root: yaml.Node | None = yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        return 0 if error.problem_mark is None else _line_at(text, error.problem_mark)
    except (yaml.YAMLError, RecursionError):
        return 0
    return root


def _line_at(text: str, mark: yaml.Mark) -> int:
    """From 0. YAML counts other characters as ends of lines, too."""
    return text.count("\n", 0, mark.index)


def list_refused_skills(plan: Plan, objects: Objects) -> Iterator[str]:
    """Warnings: one for each skill or sub-agent of a condition that its agent passes over, or lists without its
    description."""
    seen = dict[str, None]()
    for cell in plan.cells:
        kind, condition = plan.agents[cell.condition.name].spec.kind, cell.condition
        trees = {"": condition.files} | {f"skills.{name}/": one.tree for name, one in condition.skills.items()}
        for prefix, digest in trees.items():
            files = {} if digest is None else read_files(unpack(objects.get(digest)))
            for path, fault in _find_refused(kind, files, is_skill=bool(prefix)):
                name = prefix + one_line(path)
                said = (
                    f"passes over {name}, or lists it without its description: {fault}"
                    if fault
                    else f"loads no sub-agents from a workspace in trials: {name}"
                )
                seen[f"conditions.{condition.name}: {kind} {said}"] = None
    yield from seen


def _find_refused(kind: str, files: Mapping[str, bytes], *, is_skill: bool) -> Iterator[tuple[str, str]]:
    """(File, line and fault); no fault: its agent loads no such file. `is_skill`: the files are of one skill."""
    known = find_kind(kind).files
    folders = [f"{folder}/" for folder in (known.skills, *known.folders) if folder]
    for path, data in files.items():
        role, refused = role_of(path, data), tuple[SkillFault, ...]()
        if role is FileRole.SKILL and (is_skill or any(map(path.startswith, folders))):
            refused = known.refused_skills
        elif role is FileRole.SUBAGENT and known.subagents and path.startswith(f"{known.subagents}/"):
            refused = known.refused_subagents
        elif role is FileRole.SUBAGENT and not known.subagents and path.split("/")[0] in known.names:
            yield path, ""
        for fault, line in read_front_matter(data).faults if refused else ():
            if fault in refused:
                yield path, f"line {line}: {fault.value}"
