"""Which node covers a path: nearest only, never the root's, whatever the path."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_deliveries.nodes import child_nodes, covering_node, root_file

TREE = {
    "CLAUDE.md",
    "AGENTS.md",
    "pkg/AGENTS.md",
    "pkg/deep/CLAUDE.md",
    "pkg/both/AGENTS.md",
    "pkg/both/CLAUDE.md",
    "tests/AGENTS.md",
}


@pytest.mark.parametrize(
    ("anchor", "node"),
    [
        ("pkg/a.py", "pkg/AGENTS.md"),
        ("pkg/none/of/these/exist.py", "pkg/AGENTS.md"),
        ("pkg/deep/a.py", "pkg/deep/CLAUDE.md"),
        ("pkg/both/a.py", "pkg/both/AGENTS.md"),
        ("pkg/both", "pkg/both/AGENTS.md"),  # a folder is covered by its own node
        ("pkg/both/", "pkg/both/AGENTS.md"),
        ("./pkg//deep/../a.py", "pkg/AGENTS.md"),
        ("tests/test_a.py", "tests/AGENTS.md"),
        ("a.py", None),
        ("other/a.py", None),
        ("pkg_other/a.py", None),
        ("", None),
        ("   ", None),
        (".", None),
        ("/", None),
        ("/pkg/a.py", None),
        ("..", None),
        ("../pkg/a.py", None),
        ("pkg/../../pkg/a.py", None),
        ("pkg\\a.py", None),
        ("pkg/\0a.py", None),
        (None, None),
    ],
)
def test_covering_node(anchor: str | None, node: str | None) -> None:
    assert covering_node(TREE, anchor) == node


def test_a_tree_with_only_a_root_covers_nothing() -> None:
    assert covering_node({"CLAUDE.md", "AGENTS.md"}, "pkg/a.py") is None
    assert covering_node(set(), "pkg/a.py") is None


def test_child_nodes_are_one_per_folder() -> None:
    assert child_nodes(TREE) == (
        "pkg/AGENTS.md",
        "pkg/both/AGENTS.md",
        "pkg/deep/CLAUDE.md",
        "tests/AGENTS.md",
    )


def test_root_file_prefers_claude() -> None:
    assert [root_file(tree) for tree in (TREE, {"AGENTS.md"}, {"a/CLAUDE.md"})] == ["CLAUDE.md", "AGENTS.md", None]


@given(st.text(alphabet="pkgdeboth./\\\0 ", max_size=40))
def test_no_path_reaches_the_root_or_leaves_the_tree(anchor: str) -> None:
    assert covering_node(TREE, anchor) in {*child_nodes(TREE), None}
