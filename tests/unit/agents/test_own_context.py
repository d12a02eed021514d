"""What belongs to the context of a repository: trees in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialfleet_agents.own_context import OwnContext, list_tree, select_context, select_repository_context
from trialfleet_repository.trees import EntryKind, TreeEntry, follow_links, link_to, links_of
from trialfleet_repository.workspace import build_template


def made(files: dict[str, str], links: dict[str, str] | None = None, scripts: tuple[str, ...] = ()) -> OwnContext:
    entries = {
        path: TreeEntry(text.encode(), EntryKind.EXEC if path in scripts else EntryKind.FILE)
        for path, text in files.items()
    }
    entries |= {path: link_to(to) for path, to in (links or {}).items()}
    return select_repository_context(list_tree(entries))


def texts(own: OwnContext) -> dict[str, str]:
    return {path: entry.data.decode() for path, entry in follow_links(own.tree).items()}


def test_scripts_stay_executable_also_where_a_link_leads_to_one() -> None:
    files = {".claude/hooks/a.sh": "#!/bin/sh", "ai/hooks/b.sh": "#!/bin/sh", "src/a.py": ""}
    own = made(files, {".claude/hooks/b.sh": "../../ai/hooks/b.sh"}, (".claude/hooks/a.sh", "ai/hooks/b.sh"))
    assert {path: entry.kind for path, entry in own.tree.items()} == {
        ".claude/hooks/a.sh": EntryKind.EXEC,
        ".claude/hooks/b.sh": EntryKind.EXEC,
    }


@pytest.mark.parametrize(
    ("link", "to", "kept", "reads"),
    [
        ("CLAUDE.md", "AGENTS.md", True, {"CLAUDE.md": "A"}),  # to a file of the context
        ("sub/CLAUDE.md", "../AGENTS.md", True, {"sub/CLAUDE.md": "A"}),
        (".claude/skills", "../.agents/skills", True, {".claude/skills/x/SKILL.md": "S"}),  # to a folder of it
        ("CLAUDE.md", "docs/ai.md", False, {"CLAUDE.md": "D"}),  # to a document: its text at this revision
        (".claude/commands", "../ai/prompts", False, {".claude/commands/p.md": "P"}),
        (".claude/skills", "../ai/skills", False, {".claude/skills/y/run.py": "Y"}),  # scripts of skills, too
        (".claude/src", "../src", True, {}),  # to code: the workspace's
        (".claude/skills/x/lib", "../../../src", True, {}),
        (".claude/hooks/run.py", "../../src/a.py", True, {}),
        (".claude/skills/x/README.md", "../../../src/README.md", False, {".claude/skills/x/README.md": "R"}),
        (".claude/all", "..", True, {}),
        ("CLAUDE.md", "gone.md", True, {}),
    ],
)
def test_links_that_stay_inside(link: str, to: str, kept: bool, reads: dict[str, str]) -> None:
    files = {
        **{"AGENTS.md": "A", ".agents/skills/x/SKILL.md": "S", "docs/ai.md": "D", "ai/prompts/p.md": "P"},
        **{"ai/skills/y/run.py": "Y", "src/a.py": "fix", "src/README.md": "R"},
    }
    own = made(files, {link: to})
    assert (link in links_of(own.tree)) is kept
    read = texts(own)
    assert reads.items() <= read.items()
    assert "fix" not in read.values()
    assert own.leaving == ()


def test_a_link_through_another_one_still_leads_to_its_file() -> None:
    own = made({"AGENTS.md": "A"}, {"root": ".", "CLAUDE.md": "root/AGENTS.md"})
    assert links_of(own.tree) == {"CLAUDE.md": "AGENTS.md"}


@pytest.mark.parametrize("to", ["/etc/hostname", "../outside.md", "CLAUDE.md"])
def test_links_that_leave_are_named(to: str) -> None:
    own = made({"AGENTS.md": "A"}, {"CLAUDE.md": to})
    assert own.leaving == ("CLAUDE.md",)
    assert "CLAUDE.md" not in own.tree


def test_a_chain_of_five_imports_belongs_to_it_and_a_sixth_does_not() -> None:
    chain = {f"docs/{n}.md": f"@{n + 1}.md" for n in range(1, 8)}
    own = made({"CLAUDE.md": "@docs/1.md", "other.md": "x", **chain})
    assert sorted(own.tree) == ["CLAUDE.md", *(f"docs/{n}.md" for n in range(1, 6))]


def test_what_is_imported() -> None:
    own = made(
        {
            "CLAUDE.md": "@./a.md @../up.md @~/home.md @/abs.md `@code.md` @pkg.json @src/x.py @gone.md\n",
            "sub/CLAUDE.md": "@rules.md @../a.md",
            **{
                "a.md": "",
                "up.md": "",
                "home.md": "",
                "abs.md": "",
                "code.md": "",
                "pkg.json": "{}",
                "src/x.py": "",
            },
            "sub/rules.md": "",
            "sub/y.py": "",
        }
    )
    assert sorted(own.tree) == ["CLAUDE.md", "a.md", "sub/CLAUDE.md", "sub/rules.md"]


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("## Rules: @docs/a.md", "docs/a.md"),
        ("Read @README first.", "README"),
        ("@docs/a.md#prices", "docs/a.md"),
        (r"@docs/my\ rules.md", "docs/my rules.md"),
        ("**@docs/a.md** and _@docs/b.md_", "docs/b.md"),
        ("See [@docs/a.md](docs/a.md).", "docs/a.md"),
        ("@docs/[slug].md", "docs/[slug].md"),
        ("@vendor/@org/AI.md", "vendor/@org/AI.md"),
    ],
)
def test_forms_of_an_import(line: str, path: str) -> None:
    """Measured: Claude Code follows each."""
    own = made({"CLAUDE.md": f"# Shop\n\n{line}\n", path: "Rules", "Makefile": "all:"})
    assert path in own.tree
    assert "Makefile" not in own.tree


def test_documents_without_a_suffix_import_others_and_code_imports_nothing() -> None:
    own = made(
        {"CLAUDE.md": "See @README; run `a -p @c.md`.", "README": "See @docs/b.md", "docs/b.md": "", "c.md": ""}
    )
    assert sorted(own.tree) == ["CLAUDE.md", "README", "docs/b.md"]


def test_imports_of_a_command_start_from_the_workspace() -> None:
    """Measured: Claude Code expands them when a task is started by the command."""
    own = made({".claude/commands/a/fix.md": "As @docs/a.md says: $ARGUMENTS", "docs/a.md": "", "docs/b.md": ""})
    assert sorted(own.tree) == [".claude/commands/a/fix.md", "docs/a.md"]


def test_imports_through_links_and_circles() -> None:
    files = {"AGENTS.md": "@docs/a.md", "shared/a.md": "@b.md", "shared/b.md": "@a.md @../AGENTS.md"}
    own = made(files, {"CLAUDE.md": "AGENTS.md", "docs": "shared"})
    read = texts(own)
    assert links_of(own.tree).keys() == {"CLAUDE.md"}, "a workspace may have a folder at the other one"
    assert read["docs/a.md"] == read["shared/a.md"] == files["shared/a.md"]
    assert read["docs/b.md"] == read["shared/b.md"] == files["shared/b.md"]


def test_pages_and_copies_are_left_out_of_a_repository_only() -> None:
    files = {
        "AGENTS.md": "",
        "src/a.py": "",
        "docs/AGENTS.md": "",
        "docs/x.md": "",
        "trialfleet/contexts/o/CLAUDE.md": "",
    }
    entries = {path: TreeEntry(text.encode()) for path, text in files.items()}
    assert sorted(select_repository_context(list_tree(entries)).tree) == ["AGENTS.md"]
    assert len(select_context(list_tree(entries)).tree) == 3


def test_links_below_a_linked_folder_are_followed() -> None:
    files = {"shared/SKILL.md": "S", "vendor/foo/SKILL.md": "F", "vendor/bar.md": "B"}
    own = made(
        files, {".claude/skills": "../shared", "shared/foo": "../vendor/foo", "shared/bar.md": "../vendor/bar.md"}
    )
    assert texts(own) == {
        ".claude/skills/SKILL.md": "S",
        ".claude/skills/foo/SKILL.md": "F",
        ".claude/skills/bar.md": "B",
    }


def test_other_links_of_the_repository_do_not_count() -> None:
    files = {"AGENTS.md": "A", **{f"data/{n}.csv": "" for n in range(400)}}
    own = made(files, {"CLAUDE.md": "AGENTS.md", **{f"runs/{n}": "../data" for n in range(400)}})
    assert own.tree.keys() == {"AGENTS.md", "CLAUDE.md"}


@pytest.mark.parametrize(
    ("links", "before", "now"),
    [
        ({"docs": "text"}, {"docs/a.md": "old", "docs/b.md": "b"}, {"docs/a.md": "A", "docs/b.md": "b"}),
        ({"docs": "text"}, {}, {"docs/a.md": "A"}),
        ({}, {"text/a.md": "old", "docs": "-> text"}, {"docs/a.md": "A", "text/a.md": "A"}),
    ],
)
def test_imports_through_links_leave_an_earlier_trees_folders(
    tmp_path: Path, links: dict[str, str], before: dict[str, str], now: dict[str, str]
) -> None:
    own = made({"CLAUDE.md": "@docs/a.md", "text/a.md" if links else "docs/a.md": "A"}, links)
    tree = {
        path: link_to(text[3:]) if text.startswith("->") else TreeEntry(text.encode())
        for path, text in {"x.py": "", **before}.items()
    }
    template = build_template(tmp_path / "t", tree, own.tree)
    assert {path: (template.tree / path).read_text() for path in now} == now
