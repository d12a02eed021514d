"""YAML that others wrote, such as a workflow of CI: read as far as it is small, refused by nobody."""

from __future__ import annotations

from typing import Any

import yaml

from trialfleet_ledger.untrusted import mapping

MOST_BYTES = 2**20  # more would be parsed for minutes
MOST_NODES = 250_000  # after aliases and merge keys are expanded: a file of a few lines can grow without bound


def parse_foreign_yaml(data: bytes | str) -> dict[str, Any]:
    """Its mapping; an empty one for anything else, and for what is too large.

    >>> parse_foreign_yaml("a: &a {b: 1}\\nc: {<<: *a}")
    {'a': {'b': 1}, 'c': {'b': 1}}
    >>> parse_foreign_yaml("[1]"), parse_foreign_yaml("a: ["), parse_foreign_yaml("&a {b: *a}")
    ({}, {}, {})
    """
    if len(data) > MOST_BYTES:
        return {}
    try:
        loader: Any = yaml.SafeLoader(data)  # the stubs leave types open
        root = loader.get_single_node()
        if root is None or _expanded_size(root, {}) > MOST_NODES:
            return {}
        return mapping(loader.construct_document(root))
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}


def _expanded_size(node: yaml.Node, known: dict[int, int]) -> int:
    """Nodes where every alias is written out. `known`: of the nodes so far; a node within itself has no end."""
    if id(node) not in known:
        known[id(node)] = MOST_NODES + 1  # until it is counted
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        children = [part for pair in pairs for part in pair]
        if isinstance(node, yaml.SequenceNode):
            children = node.value
        known[id(node)] = 1 + sum(_expanded_size(child, known) for child in children)
    return known[id(node)]
