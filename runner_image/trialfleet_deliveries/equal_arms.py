"""Conditions under which the model got the same first request: what remains to differ is chance. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from trialfleet_deliveries.condition_parts import PartName, differing_parts, list_later_parts
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.plurals import enumerate_words, plural

# An agent's own choices: most of what they do is in its first request, of the rest it is not known.
_MAY_ACT_LATER: frozenset[PartName] = frozenset({"settings", "options"})
_IN_EVERY_REQUEST: frozenset[PartName] = frozenset({"effort"})
_ROUTES = ("provider", "model_id", "model_ids")  # options that send the same request to another model

Requests = Mapping[tuple[str, int], str | None]  # task and block -> digest


class MeasuredRequest(NamedTuple):
    """The first request of a measured trial in a complete block: its digest, if it is known."""

    task: str
    condition: str
    block: int
    sha256: str | None


@dataclass(frozen=True)
class EqualArms:
    """Conditions whose first requests are equal in every block that they share. `parts`: what they differ in;
    `later`: those of them that may act later in a run: a text that the first request lacks, as of an agent of two
    phases, too."""

    conditions: tuple[str, ...]
    blocks: int
    parts: tuple[PartName, ...]
    later: tuple[PartName, ...]

    def describe_equality(self) -> str:
        """In sentences that name them.

        >>> print(EqualArms(("a", "b"), 1, (), ()).describe_equality())
        a and b sent the model the same first request in the one complete block that they share. They differ in \
nothing else, so any difference between them is chance (an A/A check).
        """
        number = "the one complete block" if self.blocks == 1 else f"all {plural(self.blocks, 'complete block')}"
        blocks = f"{number} that they share"
        parts = enumerate_words(self.parts) if self.parts else ""
        same = f"{enumerate_words(self.conditions)} sent the model the same first request in {blocks}."
        chance = "any difference between them is chance (an A/A check)."
        if self.later:
            return f"{same} Unless what they differ in ({parts}) acts later in a run, {chance}"
        if self.parts:
            return f"{same} They differ in {parts} alone, which every request would show, so {chance}"
        return f"{same} They differ in nothing else, so {chance}"


def find_equal_arms(plan: Plan, measured: Iterable[MeasuredRequest]) -> tuple[EqualArms, ...]:
    """In the plan's order, each condition at most once. Nothing is said of conditions that differ in what acts
    later by design, such as files or a hook, nor where the digest of a trial that both have is not known.
    `measured`: trials of complete blocks."""
    found = defaultdict[str, dict[tuple[str, int], str | None]](dict)
    for one in measured:
        found[one.condition][one.task, one.block] = one.sha256
    groups = list[list[str]]()
    for name in (name for name in plan.condition_names if any(found[name].values())):
        for group in groups:
            if all(_are_equal(found[name], found[other]) and _may_be_said(plan, other, name) for other in group):
                group.append(name)
                break
        else:
            groups.append([name])
    return tuple(_describe_group(plan, group, found) for group in groups if len(group) > 1)


def _are_equal(one: Requests, other: Requests) -> bool:
    """In every trial that both have; each task of either must be among these."""
    shared = one.keys() & other.keys()
    if {task for task, _ in shared} != {task for task, _ in one.keys() | other.keys()}:
        return False
    return all(one[place] is not None and one[place] == other[place] for place in shared)


def _may_be_said(plan: Plan, one: str, other: str) -> bool:
    routes = [[plan.agents[name].spec.options.get(key) for key in _ROUTES] for name in (one, other)]
    conditions = plan.conditions[one], plan.conditions[other]
    later = list_later_parts(_list_differing(plan, one, other), conditions)
    return routes[0] == routes[1] and set(later) <= _MAY_ACT_LATER


def _list_differing(plan: Plan, one: str, other: str) -> tuple[PartName, ...]:
    agents = plan.agents[one].spec, plan.agents[other].spec
    return differing_parts(plan.conditions[one], plan.conditions[other], agents)


def _describe_group(plan: Plan, group: Sequence[str], found: Mapping[str, Requests]) -> EqualArms:
    pairs = list(combinations(group, 2))
    shared = ({block for _, block in found[one].keys() & found[other].keys()} for one, other in pairs)
    parts = tuple(dict.fromkeys(part for pair in pairs for part in _list_differing(plan, *pair)))
    later = tuple(part for part in parts if part not in _IN_EVERY_REQUEST)
    return EqualArms(tuple(group), min(map(len, shared)), parts, later)
