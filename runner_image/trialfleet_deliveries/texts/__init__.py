"""Every text that a model reads: one file each in this folder, with the placeholders of `string.Template`.

A file begins with a comment that says what its text is for, who reads it, and where it comes from; the comment is
no part of the text. `$$` stands for a dollar sign. The texts of this folder reach agents in trials: a plan freezes
their digests. Those below `authoring/` reach the authors of contexts, or stand in contexts that are built without
a model: they are part of a context's request.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Template
from typing import Literal

from trialfleet_ledger import canonical

FOLDER = Path(__file__).parent
SUFFIX = ".md"

TextName = Literal[
    "authoring/context",
    "authoring/flat",
    "authoring/largest_directories",
    "authoring/outline",
    "authoring/outline_contract",
    "authoring/outline_contracts",
    "authoring/outline_pitfall",
    "authoring/outline_pitfalls",
    "authoring/tree",
    "fail_fast",
    "hook_node",
    "inline_sections",
    "placebo",
    "placebo_filler",
    "preflight",
    "preflight_call_unchecked",
    "preflight_calls_used",
    "preflight_findings",
    "preflight_read_before",
    "preflight_tool_denied",
    "pull_directories",
    "pull_root",
    "pull_root_and_directories",
    "root_in_prompt",
    "target_files",
    "task_commit_message",
    "task_failing_test",
    "task_issue",
    "test_output_cut",
]


def render(name: TextName, **values: object) -> str:
    """The text with `values` in the place of its placeholders, without a newline at its end.

    Raises `ValueError` when these are not exactly its placeholders.

    >>> render("preflight_calls_used", calls=10)
    'All 10 tool calls have been used. Answer now, in the requested form.'
    """
    text = template(name)
    wanted = sorted(text.get_identifiers())
    if wanted != sorted(values):
        raise ValueError(f"text {name}: its placeholders are {wanted}, given are {sorted(values)}")
    return text.substitute(values)


@cache
def template(name: TextName) -> Template:
    """The text as it stands in its file, without the comment."""
    return Template(_read(FOLDER / f"{name}{SUFFIX}"))


def digests(folder: Literal["", "authoring"] = "") -> dict[str, str]:
    """Name -> SHA-256 of each text in `folder`, without its comment and before anything is filled in."""
    return dict(_digests(FOLDER / folder))


def digest() -> str:
    """One SHA-256 over the names and digests of all texts that reach agents in trials."""
    return canonical.digest(digests())


def without_comment(content: str) -> str:
    """What follows the comment at the beginning of a file. Raises `ValueError` when there is none.

    >>> without_comment("<!-- Purpose: none. -->\\nFix it.\\n")
    'Fix it.'
    """
    comment, end, text = content.partition("-->\n")
    if not comment.startswith("<!--") or not end:
        raise ValueError("a text begins with a comment that says what it is for")
    return text.removesuffix("\n")


@cache
def _digests(folder: Path) -> Mapping[str, str]:
    files = sorted(folder.glob(f"*{SUFFIX}"))
    return {file.stem: canonical.sha256(_read(file).encode()) for file in files}


def _read(file: Path) -> str:
    return without_comment(file.read_text(encoding="utf-8"))
