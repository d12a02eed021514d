"""Development commands taken out of context files.

An agent that runs `make test` because a context file says so spends minutes on a suite that the task does not
ask for, and has no network for `uv sync`. So they are removed everywhere, by these rules:

- A line of a fenced or indented block that is a command (or a chain with one in it) goes, with its
  continuation lines. A fence left with nothing but comments goes too.
- In prose, list items and tables, the sentence with the command goes; when nothing is left of the item, row or
  paragraph, it goes whole. A heading with a command in it goes.
- A line ending in a colon that introduced only what is gone goes, and so does a heading left without text.

What counts: in code (fences and `code spans`) `COMMAND`; in plain prose only `PHRASE`, the unmistakable ones.
`pdm` and `ansible` are left alone except as test runners: there they are what the repository is about.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, takewhile
from pathlib import PurePosixPath

from trialfleet_deliveries.markdown import LineKind, MarkdownLine, normal, scan

_MAKE = r"make\s+(?:-\S+\s+)*(?:test|install|lint)\b(?!['’])"
_PIP = r"(?:python[\d.]*\s+-m\s+)?pip[\d.]*\s+(?:install|uninstall|wheel|download)"
PHRASE = re.compile(
    rf"(?<![\w./-])(?:{_MAKE}|uv\s+sync\b|uv\s+run\s+(?:-|\w)|(?:uv\s+)?{_PIP}\s+(?:-|\.)|poetry\s+install\b|"
    r"npm\s+(?:install|ci|test|run)\b|(?:yarn|pnpm)\s+(?:install|test)\b|tox\s+-\w|pre-commit\s+(?:install|run)\b)"
)
_CODE = (
    rf"(?:{_MAKE}|make(?:\s+(?:-\S+\s+)*[\w./-]+|\s*$)|uv\s+(?:sync|run|pip|venv|add|tool|lock)\b|{_PIP}(?:\s+\S|\s*$)|"
    r"(?:poetry|pipenv|hatch|rye|pixi|conda|mamba)\s+"
    r"(?:install|run|sync|shell|add|update|lock|build|env|create|activate|test)\b|"
    r"pdm\s+run\s+(?:test|tests|pytest|lint|tox|nox|pre-commit|doc|docs)\b|"
    r"ansible-test\s+(?:units|sanity|integration|coverage)\b|"
    r"(?:tox|nox)(?:\s+-\S+.*|\s*$)|(?:python[\d.]*\s+-m\s+)?pytest\s+\S|"
    r"python[\d.]*\s+-m\s+(?:pytest|unittest|tox|nox|build|venv)\b|python[\d.]*\s+setup\.py\s+\w|"
    r"npm\s+(?:install|i|ci|test|run|start|build)\b|npx\s+\S|(?:yarn|pnpm|bun)(?:\s+(?:install|test|run|add|build|dev)\b|\s*$)|"
    r"cargo\s+(?:test|build|run|check)\b|go\s+(?:test|build)\b|(?:\./)?(?:mvnw?|gradlew?)\s+\S|"
    r"docker(?:-compose|\s+compose|\s+build|\s+run)\b|"
    r"pre-commit(?:\s+(?:install|run)\b|\s*$)|(?:ruff|mypy|pyright|black|isort|flake8)\s+[\w./-]|"
    r"(?:sudo\s+)?(?:apt|apt-get|brew|dnf|yum|apk)\s+(?:install|update|add)\b)"
)
_LEAD = r"(?:[$>%]\s+)?(?:sudo\s+)?(?:[A-Z_][A-Z0-9_]*=\S*\s+)*"
COMMAND = re.compile(rf"(?:^|&&|\|\||;|\|)\s*{_LEAD}{_CODE}")
BARE = re.compile(rf"^\s*{_LEAD}pytest\s*(?:#.*)?$")  # a command in a fence, a name in prose
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?])(?:[\"')\]*_]*)\s+(?=[\"'(\[*_`A-Z0-9])")


def in_code(code: str) -> bool:
    """Whether a line of code, or a code span, is a development command.

    >>> in_code("cd docs && make html"), in_code("./mvnw -q verify"), in_code("makefile = 1")
    (True, True, False)
    """
    return bool(COMMAND.search(code) or PHRASE.search(code))


def in_prose(sentence: str) -> bool:
    """Whether a sentence tells to run one: in a code span, or in words.

    >>> in_prose("Run `tox` first."), in_prose("Then make test again."), in_prose("We make tests fast.")
    (True, True, False)
    """
    return any(in_code(span[2].strip()) for span in _SPAN.finditer(sentence)) or bool(PHRASE.search(sentence))


def sentences(text: str) -> list[str]:
    """Pieces of `text` that give it back when joined; nothing is cut inside a code span."""
    masked = _SPAN.sub(lambda m: "x" * len(m[0]), text)
    cuts = [0, *(m.end() for m in _SENTENCE_END.finditer(masked)), len(text)]
    return [text[a:b] for a, b in pairwise(cuts) if a < b]


_ITEM_HEAD = re.compile(r"^(\s*(?:>\s*)*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?)")
_NOTHING = re.compile(r"^[\s*_~>.,:;|()\[\]–—-]*$")
_LABEL = re.compile(r"^\s*(?:(\*\*|__)[^*_]+\1|[\w /&-]{1,40}:)\s*:?\s*$")
_TEXT_SUFFIXES = frozenset({".md", ".mdc", ".markdown", ".txt", ""})


@dataclass(frozen=True)
class Stripped:
    """The files without commands, and what was taken out as a unified diff (empty: nothing)."""

    files: dict[str, bytes]
    diff: str


def strip(text: str) -> str:
    """`text` without development commands; the very same text when it has none. Idempotent."""
    current = normal(text)
    changed = False
    while True:
        after = _once(current)
        if after == current:
            return current if changed else text
        current, changed = after, True


def strip_files(files: Mapping[str, bytes]) -> Stripped:
    """Every context file stripped; what is not UTF-8 text stays as it is."""
    import difflib

    cleaned: dict[str, bytes] = {}
    diffs: list[str] = []
    for path in sorted(files):
        before = _text(path, files[path])
        after = None if before is None else strip(before)
        cleaned[path] = files[path] if after is None else after.encode()
        if before is not None and after is not None and after != before:
            diffs += difflib.unified_diff(
                normal(before).splitlines(), after.splitlines(), f"a/{path}", f"b/{path}", lineterm=""
            )
    return Stripped(cleaned, "".join(line + "\n" for line in diffs))


def is_text(path: str) -> bool:
    """Whether a context file of this name is text by its suffix.

    >>> [is_text(path) for path in ("a/AGENTS.md", ".cursorrules", ".claude/skills/x/logo.png")]
    [True, True, False]
    """
    return PurePosixPath(path).suffix.lower() in _TEXT_SUFFIXES


def _text(path: str, data: bytes) -> str | None:
    if not is_text(path):
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


# --- one pass ---------------------------------------------------------------------------------------


def _once(text: str) -> str:
    lines = scan(text)
    raw = text.split("\n")
    kept = _without_commands(lines, raw)
    if kept == raw:
        return text
    kept_lines = _tidy(lines, kept)
    return _collapsed(kept_lines, text)


def _without_commands(lines: list[MarkdownLine], raw: list[str]) -> list[str | None]:
    """Per line what is left of it; None: the line goes."""
    kept: list[str | None] = list(raw)
    for positions in _groups(lines):
        kind = lines[positions[0]].kind
        if kind is LineKind.PROSE:
            _prose(positions, raw, kept)
        elif kind is LineKind.CODE:
            _code(positions, raw, kept)
        elif kind in (LineKind.HEADING, LineKind.COMMENT) and any(in_prose(raw[i]) for i in positions):
            for i in positions:
                kept[i] = None
    _drop_hollow_fences(lines, kept)
    return kept


def _groups(lines: list[MarkdownLine]) -> list[list[int]]:
    """Positions of lines that belong together: the wrapped lines of one item, row or paragraph; the code of one
    block; a comment (half of one would turn the rest into text); single lines of all other kinds."""
    groups: list[list[int]] = []
    for i, line in enumerate(lines):
        before = lines[i - 1] if i else None
        row = line.text.lstrip().startswith("|")
        joins = (
            before is not None
            and before.kind is line.kind
            and line.kind in (LineKind.PROSE, LineKind.CODE, LineKind.COMMENT)
            and before.block == line.block
            and not line.item
            and not (line.kind is LineKind.PROSE and row)
        )
        if joins:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


def _prose(positions: list[int], raw: list[str], kept: list[str | None]) -> None:
    text = "\n".join(raw[i] for i in positions)
    if not in_prose(text):
        return
    head = _ITEM_HEAD.match(text)
    start = head[1] if head else text[: len(text) - len(text.lstrip())]
    body = text[len(start) :]
    left = "".join(s for s in sentences(body) if not in_prose(s)).rstrip()
    row = text.lstrip().startswith("|")
    gone = row or _NOTHING.match(left) or _LABEL.match(left) or in_prose(start + left)
    result: list[str | None] = [] if gone else list((start + left).split("\n"))
    for n, i in enumerate(positions):
        kept[i] = result[n] if n < len(result) else None


def _code(positions: list[int], raw: list[str], kept: list[str | None]) -> None:
    going = False
    for i in positions:
        continued = going and i > positions[0] and raw[i - 1].rstrip().endswith("\\")
        going = continued or in_code(raw[i]) or bool(BARE.match(raw[i]))
        if going:
            kept[i] = None


def _drop_hollow_fences(lines: list[MarkdownLine], kept: list[str | None]) -> None:
    """A block from which a command went and that holds only comments and blank lines now goes whole."""
    for block in {line.block for line in lines} - {0}:
        inside = [i for i, line in enumerate(lines) if line.block == block]
        code = [i for i in inside if lines[i].kind is LineKind.CODE]
        touched = any(kept[i] is None for i in code)
        rest = [kept[i] for i in code]
        if touched and not any(x and x.strip() and not x.strip().startswith(("#", "//")) for x in rest):
            for i in inside:
                kept[i] = None


# --- what the removed lines leave behind ------------------------------------------------------------


def _tidy(lines: list[MarkdownLine], kept: list[str | None]) -> list[str | None]:
    kept = list(kept)
    for i in range(len(lines) - 1, -1, -1):
        line, text = lines[i], kept[i]
        if text is None or not text.strip():
            continue
        if line.kind is LineKind.PROSE and text.rstrip().endswith(":") and _introduced_only_gone(i, lines, kept):
            kept[i] = _before_lead_in(text)
        elif line.kind is LineKind.HEADING:
            section = _section(i, lines)
            had = any(lines[j].kind is not LineKind.BLANK for j in section)
            has = any((kept[j] or "").strip() for j in section)
            if had and not has:
                kept[i] = None
    return kept


def _section(i: int, lines: list[MarkdownLine]) -> list[int]:
    """Positions of what stands below the heading at `i`, subsections included."""

    def within(j: int) -> bool:
        return lines[j].kind is not LineKind.HEADING or lines[j].level > lines[i].level

    return list(takewhile(within, range(i + 1, len(lines))))


def _introduced_only_gone(i: int, lines: list[MarkdownLine], kept: list[str | None]) -> bool:
    """Whether something right after line `i` went, and what comes next is not what the line introduces: a
    list or a block, and when the line is an item itself, one that is indented deeper."""
    gone = False
    for j in range(i + 1, len(lines)):
        text = kept[j]
        if text is None:
            gone = gone or lines[j].kind is not LineKind.BLANK
        elif text.strip():
            listed = lines[j].item or lines[j].kind in (LineKind.CODE, LineKind.FENCE)
            return gone and not (listed and (not lines[i].item or _indent(text) > _indent(lines[i].text)))
    return gone


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _before_lead_in(text: str) -> str | None:
    """The line without its last sentence; None when that was all."""
    head = _ITEM_HEAD.match(text)
    start = head[1] if head else ""
    left = "".join(sentences(text[len(start) :])[:-1]).rstrip()
    return start + left if left else None


def _collapsed(kept: list[str | None], before: str) -> str:
    """The lines that stay; where lines went, one blank line instead of several, none at the start."""
    out: list[str] = []
    gap = False
    for text in kept:
        if text is None:
            gap = True
        elif not text.strip() and gap and (not out or not out[-1].strip()):
            continue
        else:
            gap = gap and not text.strip()
            out.append(text)
    while out and not out[-1].strip():
        out.pop()
    end = "\n" if before.endswith("\n") and out else ""
    return "\n".join(out) + end
