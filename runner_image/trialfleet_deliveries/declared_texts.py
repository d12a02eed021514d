"""Every file and text of a condition, as it is looked for in what a model receives. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from trialfleet_deliveries.composed import Composed
from trialfleet_deliveries.nodes import inside
from trialfleet_deliveries.placement import replace_imports
from trialfleet_deliveries.received_texts import DeclaredText
from trialfleet_deliveries.skills import FILE, begin_description
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_ledger.records.receipts import FileRole

ROOT = "files"  # name of the root's text
ReadFile = Callable[[str], bytes | None]

# Documents without a suffix.
PAGES = "README|CHANGELOG|CHANGES|CONTRIBUTING|LICEN[CS]E|COPYING|NOTICE|AUTHORS|HACKING|INSTALL"
_LOOKS_LIKE_A_PATH = re.compile(rf"/|\.(?i:md|mdc|txt|rst|toml|ya?ml|json)$|^(?:{PAGES})$")
DEEPEST_IMPORT = 5  # imports of imports
_MOST_IMPORTS = 200  # of a condition
_DESCRIPTION = re.compile(r"^description:[ \t]*(.*(?:\n[ \t]+.*)*)", re.MULTILINE)
_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*$", re.MULTILINE | re.DOTALL)
_SUBAGENT = re.compile(r"(?:^|/)\.\w+/agents?/(?:.+/)?[^/]+\.md$")
_COMMAND = re.compile(r"(?:^|/)\.\w+/(?:commands?|prompts)/(?:.+/)?[^/]+\.(?:md|toml)$")
_SCRIPT = re.compile(r"\.(?:sh|bash|py|js|mjs|cjs|ts|rb|pl|php|lua|ps1)$")
_INSTRUCTIONS = re.compile(r"\.(?:md|mdc|markdown|txt|rst)$|(?:^|/)\.\w+(?:rules|hints)$")


@dataclass(frozen=True)
class DeclaredTexts:
    """`imports`: path of a file -> its imports, each a path of the workspace and whether it is there. `scripts`:
    paths."""

    texts: tuple[DeclaredText, ...]
    imports: Mapping[str, tuple[tuple[str, bool], ...]] = field(
        default_factory=dict[str, tuple[tuple[str, bool], ...]]
    )
    scripts: tuple[str, ...] = ()


def declare_texts(composed: Composed, condition: ConditionOrder, in_workspace: ReadFile) -> DeclaredTexts:
    """`in_workspace`: the bytes of a file of the workspace; None: it has no such file."""
    files = [_declare_file(composed, condition, path) for path in sorted(composed.files)]
    imports = dict[str, tuple[tuple[str, bool], ...]]()
    imported = dict(_follow_imports(composed, in_workspace, imports))
    scripts = tuple(path for path, data in composed.files.items() if role_of(path, data) is FileRole.SCRIPT)
    return DeclaredTexts((*_declare_spoken(composed, condition), *files, *imported.values()), imports, scripts)


def _declare_spoken(composed: Composed, condition: ConditionOrder) -> Iterator[DeclaredText]:
    yield DeclaredText("prompt", composed.prompt, "prompt", in_prompt=True)
    if composed.inline:
        yield DeclaredText("inline", composed.inline, "inline", in_prompt=True)
    for key, text in composed.added.items():
        yield DeclaredText(key, text, key, in_prompt=True)
    for node, text in composed.hook_nodes.items():
        if text:
            yield DeclaredText(f"hook:{node}", text, "hook", node)
    if composed.rule is not None:
        yield DeclaredText("rules", composed.rule.text, "rules")
    for name, skill in condition.skills.items():
        yield DeclaredText(f"skills:{name}", begin_description(skill.description), "skills")
    for name, text in composed.offered.items():
        yield DeclaredText(name, text, "mcp")


def _declare_file(composed: Composed, condition: ConditionOrder, path: str) -> DeclaredText:
    data = composed.files[path]
    text, role = read_text(data), role_of(path, data)
    is_root = path == composed.root
    is_told = is_root and bool(composed.told)
    folders = tuple(f"skills/{name}/" for name in condition.skills)
    of_skill = any(folder in path for folder in folders)
    return DeclaredText(
        ROOT if is_root else f"files:{path}",
        composed.told if is_told else text,
        "skills" if of_skill else "files",
        path,
        role,
        in_prompt=is_told,
        description=begin_description(describe_file(text)),
    )


def read_text(data: bytes) -> str:
    """Empty for what is no text."""
    try:
        return "" if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return ""


def role_of(path: str, data: bytes) -> FileRole:
    """What agents take a file for.

    >>> role_of(".claude/skills/sql/SKILL.md", b"").value, role_of(".github/agents/a.agent.md", b"").value
    ('skill', 'subagent')
    >>> role_of(".claude/commands/fix.md", b"").value, role_of(".claude/hooks/start", b"#!/bin/sh").value
    ('command', 'script')
    """
    if posixpath.basename(path) == FILE:
        return FileRole.SKILL
    if _SUBAGENT.search(path):
        return FileRole.SUBAGENT
    if _COMMAND.search(path):
        return FileRole.COMMAND
    if data.startswith(b"#!") or _SCRIPT.search(path):
        return FileRole.SCRIPT
    return FileRole.INSTRUCTIONS if _INSTRUCTIONS.search(path) else FileRole.OTHER


def describe_file(text: str) -> str:
    """The description in its front matter.

    >>> describe_file("---\\nname: a\\ndescription: >\\n  Prices are\\n  cents.\\n---\\nBody")
    'Prices are cents.'
    """
    front = _FRONT_MATTER.match(text.replace("\r\n", "\n"))
    found = _DESCRIPTION.search(front[1]) if front else None
    words = found[1].split() if found else []
    return " ".join(words[1:] if words and words[0] in (">", "|", ">-", "|-") else words).strip("\"'")


def _follow_imports(
    composed: Composed, in_workspace: ReadFile, imports: dict[str, tuple[tuple[str, bool], ...]]
) -> Iterator[tuple[str, DeclaredText]]:
    """The texts of the workspace that the condition's files import; fills `imports`."""
    todo = [(path, read_text(data), 0) for path, data in sorted(composed.files.items()) if has_imports(path, data)]
    known = set(composed.files)
    while todo and len(known) < len(composed.files) + _MOST_IMPORTS:
        path, text, depth = todo.pop(0)
        found = list[tuple[str, bool]]()
        for target in find_imports(path, text):
            data = composed.files.get(target) if target in composed.files else in_workspace(target)
            found.append((target, data is not None))
            if data is not None and target not in known and depth < DEEPEST_IMPORT:
                known.add(target)
                imported = DeclaredText(
                    f"imports:{target}", read_text(data), "imports", target, FileRole.INSTRUCTIONS
                )
                todo.append((target, imported.text, depth + 1))
                yield target, imported
        if found:
            imports[path] = tuple(found)


def leaves_workspace(imported: str) -> bool:
    """Whether what `find_imports` found is no path of a workspace.

    >>> [leaves_workspace(path) for path in ("docs/b.md", "~/own.md", "../up.md", "/etc/x.md")]
    [False, True, True, True]
    """
    return imported.startswith("~") or inside(imported) != imported


def has_imports(path: str, data: bytes) -> bool:
    """Whether agents follow those of such a file: of instructions, and of commands in Markdown."""
    role = role_of(path, data)
    return role is FileRole.INSTRUCTIONS or (role is FileRole.COMMAND and path.endswith(".md"))


def find_imports(path: str, text: str) -> tuple[str, ...]:
    """What a file imports by `@path` outside of code, as paths of the workspace; those that leave it, or lie in
    HOME, as they are written. Of a command they start from the workspace.

    >>> find_imports("docs/a.md", "See @b.md, @../c.md and @~/own.md; not me@x.org or @pytest.fixture.")
    ('docs/b.md', 'c.md', '~/own.md')
    """
    found = dict[str, None]()
    folder = "" if _COMMAND.search(path) else posixpath.dirname(path)

    def note(named: str) -> None:
        if _LOOKS_LIKE_A_PATH.search(named):
            target = None if named.startswith("~") else inside(posixpath.join(folder, named))
            found[target or named] = None

    replace_imports(text, note)
    return tuple(found)
