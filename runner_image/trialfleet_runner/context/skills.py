"""Skills: folders with a SKILL.md, whose names the agent sees and which it opens when it decides to."""

from __future__ import annotations

from collections.abc import Mapping

from trialfleet_runner.trees import Tree

FOLDER = ".claude/skills"  # of the workspace
FILE = "SKILL.md"
NEEDLE_CHARS = 80


def placed(skills: Mapping[str, Tree]) -> Tree:
    """The skills' files, as they lie in the workspace."""
    return {f"{FOLDER}/{name}/{path}": entry for name, tree in skills.items() for path, entry in tree.items()}


def needle(description: str) -> str:
    """Beginning of its first line: what a list of skills shows of it."""
    return description.strip().partition("\n")[0][:NEEDLE_CHARS].rstrip()
