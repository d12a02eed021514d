"""The prompt, from strings alone: the task first, then what the condition adds."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Sequence

from trialfleet_runner.context.nodes import child_nodes, root_file


def join(task: str, *additions: str) -> str:
    """The task's text, untouched, then each addition after an empty line. Without additions: byte-equal.

    >>> join("Fix it.\\n", "", "Read this.")
    'Fix it.\\n\\nRead this.'
    """
    text = task
    for addition in filter(None, additions):
        text += ("\n" if text.endswith("\n") else "\n\n") + addition
    return text


def pull_sentence(files: Collection[str]) -> str:
    """One sentence that points at the context files in the workspace; empty when there are none."""
    root, nodes = root_file(files), child_nodes(files)
    names = sorted({posixpath.basename(node) for node in nodes})
    nested = f"the {' or '.join(names)} of a folder before you work in that folder" if nodes else ""
    match root, nested:
        case None, "":
            return ""
        case None, _:
            return f"Read {nested}: it describes the code there."
        case str(), "":
            return f"Read {root} at the root of the repository before you start: it describes this code base."
        case _:
            return (
                f"Read {root} at the root of the repository before you start, and {nested}: "
                "they describe this code base."
            )


def directive(folder: str, titles: Sequence[str]) -> str:
    """The sentence that stands before the inline text and says what to do with it.

    >>> directive("a/b", ["Pitfalls", "Contracts"])
    'Before you change anything, review these known pitfalls and contracts of the code in `a/b/`, and make sure \
that your change respects them:'
    """
    names = [title.lower() for title in titles]
    listed = ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]
    return (
        f"Before you change anything, review these known {listed} of the code in `{folder}/`, "
        "and make sure that your change respects them:"
    )


def framed(content: str, folder: str, titles: Sequence[str]) -> str:
    """Directive and content."""
    return f"{directive(folder, titles)}\n\n{content}"
