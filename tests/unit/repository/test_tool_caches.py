"""What a new environment takes over from an older one of its repository, and what it does not keep of it."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.records.environment import ToolEnvironmentRef
from trialfleet_repository.environments.environment import tool_environment_ref
from trialfleet_repository.environments.tool_caches import caches_of, drop_unused, seed_of, take_over, taking_turns
from trialfleet_repository.environments.tool_environment import Furnishings


def reference(**changed: object) -> ToolEnvironmentRef:
    facts = {"kind": "go", "digest": "0" * 64, "tools": {"go": "1.22.1"}, "inputs": "1" * 64, **changed}
    return tool_environment_ref(ToolEnvironmentRef.model_validate(facts))


OWN = reference(repository="4" * 64)


def built(folder: Path, ref: ToolEnvironmentRef, *files: str) -> Path:
    """An environment whose files are read-only and an hour old."""
    folder.mkdir()
    facts = Furnishings(variables={}, links={}, kept=(), caches=caches_of(ref))
    (folder / "environment.json").write_bytes(canonical_json(facts))
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
        (folder / name).chmod(0o444)
        os.utime(folder / name, (time.time() - 3600,) * 2)
    return folder


def files_of(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_caches_are_copied_within_one_repository_alone(tmp_path: Path) -> None:
    first = built(tmp_path / "first", OWN)
    built(tmp_path / "foreign", reference(repository="5" * 64))
    built(tmp_path / "unknown", reference())
    assert seed_of(tmp_path / "new", OWN.model_copy(update={"inputs": "9" * 64})) == first
    assert seed_of(tmp_path / "new", reference(repository="6" * 64)) is None
    assert seed_of(tmp_path / "new", reference()) is None
    assert seed_of(tmp_path / "new", reference(repository="4" * 64, tools={"go": "1.23"})) is None


@pytest.mark.parametrize(
    ("kind", "files", "taken"),
    [
        (
            "go",
            {
                "modules/cache/download/a.zip",
                "modules/cloud.google.com/a.go",
                "build/ab/one-d",
                "kept/x",
                "bin/go",
            },
            {"modules/cache/download/a.zip", "build/ab/one-d"},
        ),
        (
            "rust",
            {"cargo/registry/cache/a.crate", "cargo/registry/src/a/lib.rs", "target/debug/deps/liba.rlib"},
            {"cargo/registry/cache/a.crate"},  # a record of target names the sources' folder, which differs
        ),
        ("java", {"m2/a.jar", "modules/a.jar"}, {"m2/a.jar", "modules/a.jar"}),
    ],
)
def test_archives_are_taken_over_and_what_is_made_of_them_is_not(
    kind: str, files: set[str], taken: set[str], tmp_path: Path
) -> None:
    seed, new = built(tmp_path / "seed", OWN, *files), tmp_path / "new"
    new.mkdir()
    take_over(seed, new, kind)
    assert files_of(new) == taken
    assert all(os.access(new / name, os.W_OK) for name in taken), "a tool writes its records again"
    assert files_of(seed) == {*files, "environment.json"}


def test_what_cargo_compiled_is_taken_over_to_the_same_place_and_kept_if_its_messages_name_a_foreign_crate(
    tmp_path: Path,
) -> None:
    used, other, own = "13aa3cc0db52b3aa", "56563bfde9827543", "2f1b46fe4a7c0d11"
    units = [
        f"target/debug/{name}"
        for unit in (used, other, own)
        for name in (
            f"deps/libserde-{unit}.rlib",
            f".fingerprint/serde-{unit}/lib-serde",
            f"build/serde-{unit}/out/a",
        )
    ]
    seed, new = built(tmp_path / "seed", OWN, *units, "target/debug/.cargo-lock"), tmp_path / "new"
    new.mkdir()
    take_over(seed, new, "rust", one_place=True)
    assert files_of(new) == {*units, "target/debug/.cargo-lock"}
    (new / "target/debug/libshop.rlib").write_text("of the workspace, without its hash")
    packages = {"registry+https://example.com/index#serde@1.0.2": used, "path+file:///workspace#shop@0.1.0": own}
    messages = [
        {
            "reason": "compiler-artifact",
            "package_id": name,
            "filenames": [f"/target/debug/deps/libserde-{unit}.rlib"],
        }
        for name, unit in packages.items()
    ]
    lines = [json.dumps(message, separators=(",", ":")) for message in messages]
    (new / "target/built.jsonl").write_text("\n".join([*lines, "not json", ""]))
    drop_unused(new, "rust")
    kept = {name for name in units if used in name}
    assert files_of(new) == {*kept, "target/debug/.cargo-lock", "target/built.jsonl"}


def test_what_go_did_not_use_again_is_dropped(tmp_path: Path) -> None:
    seed, new = (
        built(tmp_path / "seed", OWN, "build/ab/used-d", "build/ab/unused-d", "build/trim.txt"),
        tmp_path / "n",
    )
    new.mkdir()
    take_over(seed, new, "go")
    os.utime(new / "build/ab/used-d")  # as Go marks it
    (new / "build/ab/made-d").write_text("")
    drop_unused(new, "go")
    assert files_of(new) == {"build/ab/used-d", "build/ab/made-d", "build/trim.txt"}


def test_nothing_of_other_tools_is_taken_for_unused(tmp_path: Path) -> None:
    seed, new = built(tmp_path / "seed", OWN, "m2/old", "build/classes/old"), tmp_path / "new"
    new.mkdir()
    os.utime(seed / "m2/old", (0, 0))
    take_over(seed, new, "java")
    assert (new / "m2/old").stat().st_mtime == 0, "some tools compare times"
    drop_unused(new, "java")
    assert files_of(new) == {"m2/old", "build/classes/old"}


def test_the_first_environment_is_built_alone(tmp_path: Path) -> None:
    """Both ask at once: one begins with nothing, the other, later, with the first one's caches."""
    began: list[Path | None] = []

    def build(name: str) -> None:
        with taking_turns(tmp_path / name, OWN) as seed:
            began.append(seed)
            time.sleep(0.2)
            built(tmp_path / name, OWN)

    threads = [threading.Thread(target=build, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert began[0] is None
    assert began[1] in (tmp_path / "one", tmp_path / "two")


def test_environments_of_no_known_repository_do_not_wait(tmp_path: Path) -> None:
    with (
        taking_turns(tmp_path / "one", reference()) as first,
        taking_turns(tmp_path / "two", reference()) as second,
    ):
        assert (first, second) == (None, None)
