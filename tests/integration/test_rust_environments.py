"""Neighbouring environments of a Rust repository: a crate is compiled once, and kept where it is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialfleet_ledger.task import ToolEnvironment
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments.environment import build
from trialfleet_repository.testrun import Suite, TestRun, run_tests
from trialfleet_repository.trees import Tree, TreeEntry, write_changes
from trialfleet_sandbox.choose import choose
from trialfleet_tasks.presets.preset import preset
from trialfleet_tasks.task_environment import planned_tools

pytestmark = [pytest.mark.needs("bwrap", "cargo")]
TEST = "tests/four.rs"


def tree(version: str, *crates: str) -> Tree:
    lines = "".join(f'{name} = "1"\n' for name in crates)
    manifest = f'[package]\nname = "shop"\nversion = "{version}"\nedition = "2021"\n[dependencies]\n{lines}'
    test = '#[test]\nfn four() {\n    assert_eq!(itoa::Buffer::new().format(4), "4");\n}\n'
    files = {"Cargo.toml": manifest, "src/lib.rs": "pub fn two() -> i32 { 2 }\n", TEST: test}
    return {path: TreeEntry(text.encode()) for path, text in files.items()}


def built(files: Tree, cache: Cache, *tests: str) -> Path:
    planned = planned_tools(ToolEnvironment(kind="rust"), files, tests=tests or (TEST,), url="shop.invalid")
    return build(planned.ref, planned.source, cache=cache)


def attempted(files: Tree, environment: Path, place: Path, *tests: str) -> TestRun:
    found = preset(ToolEnvironment(kind="rust"), files)
    workspace = place / "workspace"
    workspace.mkdir(parents=True)
    write_changes(files, workspace)
    suite = Suite(environment, found.test_command, (".",), 120, results=found.results)
    return run_tests(suite, workspace=workspace, scratch=place, tests=tests or (TEST,), sandbox=choose())


def crates(environment: Path) -> dict[str, float]:
    """Name of each compiled crate -> when it was compiled."""
    files = (environment / "target/debug/deps").glob("lib*.rlib")
    return {path.name.removeprefix("lib").partition("-")[0]: path.stat().st_mtime for path in files}


def test_a_crate_is_compiled_once_and_dropped_where_it_is_not_used(tmp_path: Path) -> None:
    cache, both, one = Cache(tmp_path), tree("2.0.0", "itoa", "ryu"), tree("3.0.0", "itoa")
    first = built(tree("1.0.0", "itoa"), cache)
    second, third = built(both, cache), built(one, cache)
    assert [sorted(crates(each)) for each in (first, second, third)] == [["itoa"], ["itoa", "ryu"], ["itoa"]]
    assert crates(first)["itoa"] == crates(second)["itoa"] == crates(third)["itoa"], "compiled once"
    assert not list(third.glob("target/debug/.fingerprint/ryu-*"))
    for files, environment in ((both, second), (one, third)):
        run = attempted(files, environment, tmp_path / environment.name)
        assert run.exit.code == 0, run.output
        assert "Compiling shop" in run.output
        assert "Compiling itoa" not in run.output


def workspace_of_two() -> Tree:
    """Two crates, whose dependency has a feature that one of them asks for, and a profile for tests."""
    head = '[package]\nname = "{name}"\nversion = "1.0.0"\nedition = "2021"\n[dependencies]\n'
    cart = head.format(name="cart") + 'itoa = "1"\nmemchr = {version = "2", default-features = false}\n'
    shop = head.format(name="shop") + 'ryu = "1"\nmemchr = "2"\n'
    test = "#[test]\nfn one() {\n    assert_eq!(memchr::memchr(b'a', b\"ba\"), Some(1));\n}\n"
    files = {
        "Cargo.toml": '[workspace]\nmembers = ["cart", "shop"]\nresolver = "2"\n[profile.test]\nopt-level = 1\n'
    }
    for name, manifest in (("cart", cart), ("shop", shop)):
        files |= {f"{name}/Cargo.toml": manifest, f"{name}/src/lib.rs": "", f"{name}/tests/one.rs": test}
    return {path: TreeEntry(text.encode()) for path, text in files.items()}


def test_an_environment_holds_what_its_tests_need_as_they_are_called(tmp_path: Path) -> None:
    files, tests = workspace_of_two(), ("cart/tests/one.rs", "shop/tests/one.rs")
    one = built(files, Cache(tmp_path), tests[0])
    assert sorted(crates(one)) == ["itoa", "memchr"]
    both = built(files, Cache(tmp_path), *tests)
    assert one != both
    assert crates(both)["itoa"] == crates(one)["itoa"], "compiled once"
    for number, (environment, called) in enumerate(
        [(one, tests[:1]), *((both, x) for x in (tests, tests[:1], tests[1:]))]
    ):
        run = attempted(files, environment, tmp_path / str(number), *called)
        assert run.exit.code == 0, run.output
        compiled = {line.split()[1] for line in run.output.splitlines() if line.lstrip().startswith("Compiling")}
        assert compiled == {test.partition("/")[0] for test in called}


def test_another_isolation_has_an_environment_of_its_own_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cargo would write into the sealed environment that it finds at another path than its records say."""
    cache, files = Cache(tmp_path), tree("1.0.0", "itoa")
    mapped = built(files, cache)
    monkeypatch.setenv("TRIALFLEET_ISOLATION", "subreaper")
    own = built(files, cache)
    assert own != mapped
    run = attempted(files, own, tmp_path / "attempt")
    assert run.exit.code == 0, run.output
    assert "Compiling itoa" not in run.output
    monkeypatch.delenv("TRIALFLEET_ISOLATION")
    assert built(files, cache) == mapped


def test_a_dependency_may_have_the_name_of_a_crate_of_the_workspace(tmp_path: Path) -> None:
    """As where a crate is compared with an earlier release of itself."""
    manifest = '[package]\nname = "itoa"\nversion = "9.0.0"\nedition = "2021"\n[dev-dependencies]\n'
    manifest += 'itoa1 = {package = "itoa", version = "1"}\n'
    test = '#[test]\nfn four() {\n    assert_eq!(itoa1::Buffer::new().format(itoa::FOUR), "4");\n}\n'
    contents = {"Cargo.toml": manifest, "src/lib.rs": "pub const FOUR: i32 = 4;\n", TEST: test}
    files = {path: TreeEntry(text.encode()) for path, text in contents.items()}
    run = attempted(files, built(files, Cache(tmp_path)), tmp_path)
    assert run.exit.code == 0, run.output
    assert "Compiling itoa v9.0.0" in run.output
    assert "Compiling itoa v1" not in run.output
