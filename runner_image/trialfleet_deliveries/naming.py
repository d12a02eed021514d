"""Texts of a prompt, from strings alone: what a condition adds to the task, texts that name files or none."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Sequence

from trialfleet_deliveries.nodes import ROOT_NAMES, child_nodes, root_file
from trialfleet_deliveries.texts import render


def naming(paths: Sequence[str]) -> str:
    """The block that tells an agent which files to edit. Its words do not depend on how the files were chosen.

    >>> naming(["a/b.py"]).splitlines()[-1]
    '- `a/b.py`'
    """
    return render("target_files", files=listed(paths))


def listed(paths: Sequence[str]) -> str:
    return "\n".join(f"- `{path}`" for path in paths)


def two_lines(language: str, test_framework: str) -> str:
    """The placebo: two lines that name the language and the test framework."""
    return render("placebo", language=language, test_framework=test_framework)


def globs_of(paths: Sequence[str]) -> tuple[str, ...]:
    """The globs of a rule about these files: everything below their folders, or the files of the root.

    >>> globs_of(["a/b/c.py", "a/b/d.py", "e.py"])
    ('a/b/**', '*')
    """
    folders = dict.fromkeys(posixpath.dirname(path) for path in paths)
    return tuple(f"{folder}/**" if folder else "*" for folder in folders)


def join(task: str, *additions: str) -> str:
    """The task's text, untouched, then each addition after an empty line. Without additions: byte-equal.

    >>> join("Fix it.\\n", "", "Read this.")
    'Fix it.\\n\\nRead this.'
    """
    text = task
    for addition in filter(None, additions):
        text += ("\n" if text.endswith("\n") else "\n\n") + addition
    return text


def pull_sentence(
    files: Collection[str], root_names: Sequence[str] = ROOT_NAMES, moved: Iterable[str] = ()
) -> str:
    """The text that points at the context files in the workspace; empty when there are none. `moved`: those whose
    names do not tell that they are some."""
    root = root_file(files, root_names)
    nested = [*child_nodes(files), *(path for path in moved if "/" in path and path in files)]
    names = " or ".join(sorted({posixpath.basename(node) for node in nested}))
    if not names:
        return "" if root is None else render("pull_root", root=root)
    if root is None:
        return render("pull_directories", names=names)
    return render("pull_root_and_directories", root=root, names=names)


def framed(content: str, folder: str, titles: Sequence[str]) -> str:
    """The directive, which says what to do with the content, and the content.

    >>> said = framed("- Cached.", "a/b", ["Pitfalls", "Contracts"])
    >>> "pitfalls and contracts" in said, "`a/b/`" in said, said.splitlines()[-1]
    (True, True, '- Cached.')
    """
    *most, last = (title.lower() for title in titles)
    listed = f"{', '.join(most)} and {last}" if most else last
    return render("inline_sections", titles=listed, directory=folder, sections=content)
