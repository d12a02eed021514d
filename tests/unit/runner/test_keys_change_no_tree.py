"""With any key the scored tree is the one without a key: keys occur in names, texts, binaries, links and modes."""

from __future__ import annotations

import os
import random
import string
from pathlib import Path

import pytest

from tests.support.stored_patches import stored_patch
from trialfleet_agents.context_files import is_context_file
from trialfleet_repository.cache import Cache
from trialfleet_repository.excluded_paths import Exclusions
from trialfleet_repository.patch import changes_of, diff
from trialfleet_repository.trees import EntryKind, TreeEntry
from trialfleet_repository.workspace import build_template, clone
from trialfleet_runner.attempt.key_marks import scored_diff


def _word(drawn: random.Random) -> str:
    return "".join(drawn.choices(string.ascii_letters + string.digits + "_-.", k=drawn.randint(8, 24)))


def _data(drawn: random.Random, words: list[str]) -> bytes:
    lines = [
        " ".join(drawn.choices([*words, "x", "[redacted]"], k=3)).encode() for _ in range(drawn.randint(0, 9))
    ]
    binary = drawn.randbytes(drawn.choice((0, 0, 300)))
    return b"\n".join([*lines, binary, b""])


def _tree(drawn: random.Random, words: list[str]) -> dict[str, TreeEntry]:
    def name() -> str:
        return (
            f"{drawn.choice('abc')}/{drawn.choice(words)}{drawn.choice(('', '.py', '.bin'))}{drawn.randint(0, 3)}"
        )

    kinds = (EntryKind.FILE, EntryKind.FILE, EntryKind.EXEC)
    files = {name(): TreeEntry(_data(drawn, words), drawn.choice(kinds)) for _ in range(6)}
    return files | {f"link{n}": TreeEntry(drawn.choice([*files]).encode(), EntryKind.LINK) for n in range(2)}


def _change(drawn: random.Random, workspace: Path, words: list[str]) -> None:
    """Some files edited, renamed, removed, made executable, turned into links; some new ones."""
    files = sorted(path for path in workspace.rglob("*") if path.is_file() and not path.is_symlink())
    for path in drawn.sample(files, min(4, len(files))):
        match drawn.randrange(5):
            case 0:
                path.write_bytes(path.read_bytes() + _data(drawn, words))
            case 1:
                path.rename(path.with_name(drawn.choice(words) + "-moved"))
            case 2:
                path.unlink()
            case 3:
                path.chmod(path.stat().st_mode ^ 0o111)
            case _:
                path.unlink()
                path.symlink_to(f"../{drawn.choice(words)}")
    for n in range(2):
        (workspace / f"{drawn.choice(words)}{n}").write_bytes(_data(drawn, words))


def _keys(drawn: random.Random, words: list[str], left: str) -> dict[str, str]:
    """A word of the files, and some characters of the diff, which may be of its base85 or of a digest."""
    lines = [line for line in left.splitlines() if len(line) > 12 and line.isascii()] or words
    line = drawn.choice(lines)
    start = drawn.randrange(len(line) - 7)
    return {"one-1": drawn.choice(words), "one-2": line[start : start + drawn.randint(8, 30)]}


@pytest.mark.parametrize("seed", range(25))
def test_the_scored_tree_is_the_same_with_any_key(tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    words = [_word(drawn) for _ in range(5)]
    template = build_template(Cache(tmp_path / "cache").workspaces / "t", _tree(drawn, words))
    clone(template, tmp_path / "ws")
    _change(drawn, tmp_path / "ws", words)
    exclusions = Exclusions(template.manifest, (), (".",), is_context=is_context_file)
    left = diff(tmp_path / "ws", template, exclusions).diff
    without_key = changes_of(left, template, exclusions)
    assert without_key
    for path, entry in without_key.items():
        there = tmp_path / "ws" / path
        assert entry is None or entry.data == (
            os.fsencode(there.readlink()) if there.is_symlink() else there.read_bytes()
        )
    for _ in range(4):
        keys = _keys(drawn, words, left)
        patch = stored_patch(left, keys)
        assert patch.key_marks or not any(key in left for key in keys.values())
        assert not any(key in patch.diff for key in keys.values() if not set("[]") & set(key))
        assert changes_of(scored_diff(patch, keys), template, exclusions) == without_key
