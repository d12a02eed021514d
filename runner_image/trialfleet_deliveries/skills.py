"""Skills: folders with a SKILL.md, whose names the agent sees and which it opens when it decides to."""

from __future__ import annotations

from collections.abc import Mapping

from trialfleet_repository.trees import Tree

FOLDER = ".claude/skills"  # of the workspace, for Claude Code
SHARED_FOLDER = ".agents/skills"  # for every other agent that has skills
FILE = "SKILL.md"
TOOLS = ("skill", "activate_skill")  # of agents, in small letters: they open the skill that an argument names
LISTED_CHARS = 80


def placed(skills: Mapping[str, Tree], folder: str = FOLDER) -> Tree:
    """The skills' files, as they lie in the workspace, in the folder that the agent knows."""
    return {f"{folder}/{name}/{path}": entry for name, tree in skills.items() for path, entry in tree.items()}


def begin_description(description: str) -> str:
    """Whole words at the beginning of its first line: what a list of skills, or of a server's tools, shows of it.

    >>> begin_description("What the prices of this shop are, why they are whole cents, and how sums are rounded.")
    'What the prices of this shop are, why they are whole cents, and how sums are'
    """
    line = description.strip().partition("\n")[0]
    if len(line) <= LISTED_CHARS:
        return line.rstrip()
    return line[: LISTED_CHARS + 1].rpartition(" ")[0].rstrip() or line[:LISTED_CHARS]
