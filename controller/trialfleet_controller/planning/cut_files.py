"""Context files of which an agent sends its model only the beginning: named before the campaign runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trialfleet_agents.protocol import Identity
from trialfleet_agents.registry import find_kind
from trialfleet_agents.workspace_settings import deliverable_files
from trialfleet_deliveries.context_tree import decode_texts, strip_tree
from trialfleet_deliveries.declared_texts import read_text
from trialfleet_deliveries.delivery import hook_nodes
from trialfleet_deliveries.placement import FileReading, placed
from trialfleet_ledger.display_text import one_line
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_repository.trees import read_files, unpack


def list_cut_files(plan: Plan, identities: Mapping[str, Identity], objects: Objects) -> Iterator[str]:
    """Warnings: one for each file of a condition that its agent cuts, with how much of it is sent."""
    orders = {(cell.condition.name, cell.condition.files): cell.condition for cell in plan.cells}
    said = dict[str, None]()
    for order in orders.values():
        spec, reading = plan.agents[order.name].spec, identities[order.name].reach.reading
        for path, data in _place_files(order, spec.kind, reading, objects).items():
            if cut := _describe_cut(path, data, spec, reading):
                said[f"conditions.{order.name}: of {one_line(path)}, {spec.kind} sends {cut}"] = None
    yield from said


def _place_files(order: ConditionOrder, kind: str, reading: FileReading, objects: Objects) -> Mapping[str, bytes]:
    files = {} if order.files is None else read_files(unpack(objects.get(order.files)))
    delivered = strip_tree(deliverable_files(kind, files)[0]).files
    nodes = hook_nodes(decode_texts(delivered)) if order.hook is not None else {}
    otherwise = order.pull or order.hook is not None
    return placed(delivered, reading, delivered_otherwise=otherwise, hooked=nodes).files


def _describe_cut(path: str, data: bytes, spec: AgentSpec, reading: FileReading) -> str:
    """Empty: it is sent whole."""
    known = find_kind(spec.kind).files
    if path == reading.root_file and known.root_bytes:
        settings: dict[str, Any] = spec.options.get("settings") or {}
        chosen = settings.get(known.root_bytes_setting)
        limit, size = chosen if isinstance(chosen, int) else known.root_bytes, len(data)
        way_out = f": settings: {{{known.root_bytes_setting}: {size}}} raises that"
        return f"the first {limit:,} of {size:,} bytes{way_out}" if size > limit else ""
    if "/" in path and path.rpartition("/")[2] in reading.nested_names and known.nested_characters:
        limit, size = known.nested_characters, len(read_text(data))
        return f"the first {limit:,} of {size:,} characters when something in its folder is read" * (size > limit)
    return ""
