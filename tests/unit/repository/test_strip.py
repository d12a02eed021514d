"""Files that speak to agents leave every workspace; files that only sound like them stay."""

from __future__ import annotations

import pytest

from trialfleet_agents.context_files import leftovers, strip, unused
from trialfleet_repository.trees import EntryKind, TreeEntry, TreeError

FILE = TreeEntry(b"")


@pytest.mark.parametrize(
    "path",
    [
        "AGENTS.md",
        "agents.md",
        "deep/down/AGENTS.md",
        "CLAUDE.md",
        "claude.md",
        "CLAUDE.local.md",
        "CLAUDE-team.md",
        ".claude/settings.json",
        "pkg/.claude/agents/x.md",
        ".cursorrules",
        ".agents/skills/x/SKILL.md",
        ".codex/skills/x/SKILL.md",
        ".github/skills/x/SKILL.md",
        ".cursor/rules/a.mdc",
        "sub/.cursorignore",
        "GEMINI.md",
        ".github/copilot-instructions.md",
        ".hidden/AGENTS.md",
    ],
)
def test_context_files_are_removed_wherever_they_lie(path: str) -> None:
    kept, removed = strip({path: FILE, "src/a.py": FILE})
    assert (set(kept), removed) == ({"src/a.py"}, (path,))


@pytest.mark.parametrize("path", ["docs/agents.rst", "claude_client.md", "src/claude/__init__.py", "my.cursor"])
def test_names_that_only_sound_alike_stay(path: str) -> None:
    assert strip({path: FILE})[1] == ()


def test_a_link_is_removed_itself_and_what_it_names_stays() -> None:
    tree = {"docs/guide.md": FILE, "CLAUDE.md": TreeEntry(b"docs/guide.md", EntryKind.LINK)}
    kept, removed = strip(tree)
    assert (set(kept), removed) == ({"docs/guide.md"}, ("CLAUDE.md",))


def test_strip_extra_takes_files_folders_and_globs() -> None:
    tree = dict.fromkeys((".github/a.yml", ".github/b/c", "notes.txt", "docs/x.md", "src/x.py"), FILE)
    kept, removed = strip(tree, [".github/", "./notes.txt", "docs/*.md"])
    assert set(kept) == {"src/x.py"}
    assert unused(removed, [".github/", "docs/*.md", "typo"]) == ("typo",)


@pytest.mark.parametrize("extra", ["../other", "/etc", "a/../../b", ""])
def test_strip_extra_cannot_leave_the_repository(extra: str) -> None:
    with pytest.raises(TreeError):
        strip({"a": FILE}, [extra])


@pytest.mark.parametrize(
    "path",
    [
        ".windsurfrules",
        "a/.clinerules",
        ".junie/guidelines.md",
        "AGENT.md",
        "docs/a.instructions.md",
    ],
)
def test_what_stays_and_may_speak_to_some_agent_is_named(path: str) -> None:
    kept, _ = strip({path: FILE, "src/a.py": FILE, "docs/rules.md": FILE, "AGENTS.md": FILE})
    assert leftovers(kept) == (path,)


def test_leftovers_ignore_virtual_environments() -> None:
    paths = ["a/CLAUDE.md", ".venv/lib/AGENTS.md", "lib/site-packages/x/AGENTS.md", "src/a.py"]
    assert leftovers(paths) == ("a/CLAUDE.md",)
