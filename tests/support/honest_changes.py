"""What honest agents leave: the fix of a task, whole or in part, alone or with work of their own."""

from __future__ import annotations

import difflib
import random
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from trialfleet_repository.excluded_paths import Exclusions
from trialfleet_repository.languages import is_test_path
from trialfleet_repository.patch import changes_of
from trialfleet_repository.trees import EntryKind, Tree, TreeEntry
from trialfleet_repository.workspace import Template
from trialfleet_repository.workspace_scan import Changes


def fix_changes(diff: str, template: Template) -> dict[str, TreeEntry | None]:
    """Every change of the fix, tests included."""
    return changes_of(diff, template, _Nothing(template.manifest, (), is_context=lambda _: False))


class _Nothing(Exclusions):
    """Excludes no path."""

    def excludes(self, path: str) -> bool:
        return False


def parts_of(fix: Changes, tree: Tree) -> list[Changes]:
    """The fix without each of its product files in turn; of a single file, its first half of changed lines."""
    source = [path for path in fix if not is_test_path(path)]
    if len(source) > 1:
        return [{path: entry for path, entry in fix.items() if path != left} for left in source]
    return [
        {path: _half(tree[path], entry)} for path in source if path in tree and (entry := fix[path]) is not None
    ]


def _half(before: TreeEntry, after: TreeEntry) -> TreeEntry:
    """The lines after the fix, up to the middle of what differs; then those before it."""
    old, new = before.data.splitlines(keepends=True), after.data.splitlines(keepends=True)
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changed = [block for block in blocks if block[0] != "equal"]
    taken = set(changed[: len(changed) // 2])
    lines = [
        line
        for block in blocks
        for line in (
            new[block[3] : block[4]] if block in taken or block[0] == "equal" else old[block[1] : block[2]]
        )
    ]
    return TreeEntry(b"".join(lines), after.kind)


Noise = Callable[[Tree, Changes, random.Random], Changes]  # unfixed tree, fix, chance


def add_noise(tree: Tree, fix: Changes, seed: str) -> tuple[tuple[str, ...], Changes]:
    """Names and changes of some kinds of honest work around a fix. What the fix changes stays as it is."""
    chance = random.Random(seed)
    names = tuple(sorted(chance.sample(sorted(NOISE), k=chance.randint(2, 5))))
    changes: dict[str, TreeEntry | None] = {}
    for name in names:
        changes |= NOISE[name](tree, fix, chance)
    return names, {path: entry for path, entry in changes.items() if path not in fix}


def _suffix(fix: Changes) -> str:
    known = (PurePosixPath(path).suffix for path in fix)
    return next((suffix for suffix in known if suffix in _COMMENTS), ".py")


_COMMENTS = {".py": "#", ".js": "//", ".ts": "//", ".go": "//", ".rs": "//", ".java": "//"}


def _folder(fix: Changes) -> str:
    """Of a product file of the fix, or the root."""
    source = [path for path in fix if not is_test_path(path)]
    return str(PurePosixPath(source[0]).parent) if source else "."


def _file(folder: str, name: str, text: str) -> dict[str, TreeEntry | None]:
    return {str(PurePosixPath(folder) / name): TreeEntry(text.encode())}


def _own_tests(tree: Tree, fix: Changes, chance: random.Random) -> Changes:
    suffix = _suffix(fix)
    texts = {".py": "def test_own():\n    assert 1 + 1 == 2\n", ".go": f"package {_go_package(tree, fix)}\n"}
    names = {".py": "test_own_work.py", ".go": "own_work_test.go", ".js": "own_work.test.js"}
    text, name = texts.get(suffix, "// nothing yet\n"), names.get(suffix, f"own_work_test{suffix}")
    folders = sorted({str(PurePosixPath(path).parent) for path in tree if is_test_path(path)} or {"tests"})
    folder = _folder(fix) if suffix == ".go" else chance.choice(folders)
    return _file(folder, name, text)


def _go_package(tree: Tree, fix: Changes) -> str:
    source = next((entry for path, entry in fix.items() if path.endswith(".go") and entry), None)
    lines = [] if source is None else source.data.decode().splitlines()
    return next((line.split()[1] for line in lines if line.startswith("package ")), "main")


def _script(tree: Tree, fix: Changes, chance: random.Random) -> Changes:
    script = TreeEntry(b"#!/bin/sh\nset -e\nexec make test\n", EntryKind.EXEC)
    text = "print('reproduced')\n" if _suffix(fix) == ".py" else "reproduced\n"
    return {
        "scripts/check-all.sh": script,
        **_file(chance.choice([".", "scratch"]), f"reproduce{_suffix(fix)}.txt", text),
        **_file(".", "repro_issue.py", text),
    }


def _locks(tree: Tree, fix: Changes, chance: random.Random) -> Changes:
    return {**_file(".", "uv.lock", "version = 1\n"), **_file(".", "yarn.lock", "# yarn lockfile v1\n")}


def _changelog(tree: Tree, fix: Changes, chance: random.Random) -> Changes:
    known = [path for path in tree if "/" not in path and path.upper().startswith(("CHANGE", "HISTORY", "NEWS"))]
    if not known or tree[known[0]].kind is EntryKind.LINK:
        return _file(".", "CHANGELOG.md", "# Changes\n\n- Fixed.\n")
    return {known[0]: TreeEntry(b"- Fixed a bug.\n\n" + tree[known[0]].data)}


def _documentation(tree: Tree, fix: Changes, chance: random.Random) -> Changes:
    readme = next((path for path in tree if path.upper().startswith("README")), None)
    more = _file("docs", "notes-on-the-fix.md", "# Notes\n")
    return (
        more
        if readme is None
        else {**more, readme: TreeEntry(tree[readme].data + b"\nMore.\n", tree[readme].kind)}
    )


def _formatted(tree: Tree, fix: Changes, chance: random.Random) -> Changes:
    """Comments and blank lines at the end of other files of the language, tests among them."""
    suffix = _suffix(fix)
    others = sorted(
        path for path in tree if path.endswith(suffix) and path not in fix and tree[path].kind is EntryKind.FILE
    )
    chosen = chance.sample(others, k=min(4, len(others)))
    end = f"\n\n{_COMMENTS[suffix]} formatted\n".encode()
    return {path: TreeEntry(tree[path].data.rstrip() + end) for path in chosen if tree[path].data.strip()}


def _new_module(tree: Tree, fix: Changes, chance: random.Random) -> Changes:
    suffix, folder = _suffix(fix), _folder(fix)
    texts = {
        ".py": '"""Own work."""\n\nVALUE = 1\n',
        ".go": f"package {_go_package(tree, fix)}\n\nconst ownWork = 1\n",
    }
    return _file(folder, f"own_work{suffix}", texts.get(suffix, "// own work\n"))


def _settings(tree: Tree, fix: Changes, chance: random.Random) -> Changes:
    """Tools' settings, and comments in the manifest."""
    manifests = [path for path in ("pyproject.toml", "setup.cfg", "go.mod", "Cargo.toml") if path in tree]
    comment = {"go.mod": b"\n// looked at\n"}
    edited = {path: TreeEntry(tree[path].data + comment.get(path, b"\n# looked at\n")) for path in manifests}
    return {
        **edited,
        **_file(".", ".editorconfig", "root = true\n"),
        **_file(".", "ruff.toml", "line-length = 100\n"),
    }


def _left_overs(tree: Tree, fix: Changes, chance: random.Random) -> Changes:
    return {
        **_file(".", "out.log", "ran\n"),
        **_file(_folder(fix), "rules.orig", "before\n"),
        **_file("build", "lib/own.txt", "built\n"),
        **_file(".", "TODO.md", "- done\n"),
        **_file(".pytest_cache/v", "lastfailed", "{}\n"),
    }


NOISE: Mapping[str, Noise] = {
    "tests": _own_tests,
    "scripts": _script,
    "locks": _locks,
    "changelog": _changelog,
    "documentation": _documentation,
    "formatting": _formatted,
    "a new module": _new_module,
    "settings": _settings,
    "left-overs": _left_overs,
}
