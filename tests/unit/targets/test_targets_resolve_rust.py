"""Paths of Rust workspaces, real-shaped."""

from __future__ import annotations

from tests.unit.targets.sources_fixture import edges_of, leads
from trialfleet_targets.syntax_facts import EdgeKind

WORKSPACE = {
    "Cargo.toml": "[workspace]\nmembers = ['crates/*']\n",
    "crates/core/Cargo.toml": "[package]\nname = 'rg-core'\n",
    "crates/core/src/lib.rs": (
        "mod args;\npub mod search;\nmod sys;\npub use crate::search::{Searcher, worker::Worker as Hand};\n"
        "pub mod prelude { pub use crate::args::*; }\n"
    ),
    "crates/core/src/args.rs": (
        "use super::search;\npub struct Args;\npub fn parse() -> Args { search::run(); Args }\n"
    ),
    "crates/core/src/search/mod.rs": (
        "pub mod worker;\nuse self::worker::Worker;\npub trait Search {}\npub struct Searcher;\n"
        "impl Search for Searcher {}\npub fn run() { Worker::new(); crate::args::parse(); }\n"
    ),
    "crates/core/src/search/worker.rs": (
        "use super::Search;\nuse crate::sys::limit;\npub struct Worker;\n"
        "impl Worker { pub fn new() { limit(); } }\n"
        "impl Search for Worker {}\n#[cfg(test)]\nmod tests {\n    use super::*;\n"
        "    use super::super::Searcher;\n}\n"
    ),
    "crates/core/src/sys.rs": '#[path = "sys_unix.rs"]\nmod imp;\npub use self::imp::limit;\n',
    "crates/core/src/sys_unix.rs": "pub fn limit() {}\n",
    "crates/cli/Cargo.toml": (
        "[package]\nname = 'cli'\n[dependencies]\nengine = { package = 'rg-core', path = '../core' }\n"
    ),
    "crates/cli/src/main.rs": (
        "mod flags;\nuse engine::{Hand, Searcher};\nuse engine::prelude::*;\nuse std::fmt;\n"
        "fn main() { flags::read(); Hand::new(); parse(); }\n"
    ),
    "crates/cli/src/flags.rs": "pub fn read() {}\n",
    "crates/cli/tests/it.rs": (
        "mod common;\nuse rg_core::search::run;\n#[test]\nfn t() { common::setup(); run(); }\n"
    ),
    "crates/cli/tests/common/mod.rs": "pub fn setup() {}\n",
}


def test_pub_use_is_followed_across_crates() -> None:
    found = edges_of(WORKSPACE)
    assert leads(found, "crates/cli/src/main.rs") == {
        "crates/cli/src/flags.rs": (),
        "crates/core/src/lib.rs": (),
        "crates/core/src/search/worker.rs": ("Worker",),
        "crates/core/src/search/mod.rs": ("Searcher",),
    }
    assert leads(found, "crates/cli/src/main.rs", EdgeKind.CALL) == {
        "crates/cli/src/flags.rs": ("read",),
        "crates/core/src/search/worker.rs": ("Worker",),
        "crates/core/src/args.rs": ("parse",),
    }


def test_crate_self_super_and_declared_modules() -> None:
    found = edges_of(WORKSPACE)
    assert leads(found, "crates/core/src/args.rs") == {"crates/core/src/search/mod.rs": ()}
    assert leads(found, "crates/core/src/args.rs", EdgeKind.CALL) == {"crates/core/src/search/mod.rs": ("run",)}
    assert leads(found, "crates/core/src/search/mod.rs", EdgeKind.VALUE) == {
        "crates/core/src/search/worker.rs": ("Worker",),
        "crates/core/src/args.rs": ("parse",),
    }
    assert leads(found, "crates/core/src/search/mod.rs", EdgeKind.CALL) == {
        "crates/core/src/search/worker.rs": ("Worker",),
        "crates/core/src/args.rs": ("parse",),
    }
    assert leads(found, "crates/core/src/search/worker.rs") == {
        "crates/core/src/search/mod.rs": ("Search", "Searcher"),
        "crates/core/src/sys.rs": (),
        "crates/core/src/sys_unix.rs": ("limit",),
    }


def test_traits_are_parents() -> None:
    found = edges_of(WORKSPACE)
    assert leads(found, "crates/core/src/search/worker.rs", EdgeKind.EXTENDS) == {
        "crates/core/src/search/mod.rs": ("Search",)
    }


def test_a_library_that_declares_and_passes_on_is_a_barrel() -> None:
    found = leads(edges_of(WORKSPACE), "crates/core/src/lib.rs", EdgeKind.BARREL)
    assert found == {
        "crates/core/src/args.rs": (),
        "crates/core/src/search/mod.rs": ("Searcher",),
        "crates/core/src/search/worker.rs": ("Worker",),
        "crates/core/src/sys.rs": (),
    }


def test_a_private_import_is_seen_inside_its_crate_and_not_from_outside() -> None:
    project = {
        "Cargo.toml": "[package]\nname = 'kit'\n",
        "src/lib.rs": "mod part;\nmod user;\nuse part::Hidden;\npub use part::Shown;\n",
        "src/part.rs": "pub struct Hidden;\npub struct Shown;\n",
        "src/user.rs": "use super::Hidden;\n",
        "tests/t.rs": "use kit::{Hidden, Shown};\n",
    }
    found = edges_of(project)
    assert leads(found, "src/user.rs")["src/part.rs"] == ("Hidden",)
    assert leads(found, "tests/t.rs")["src/part.rs"] == ("Shown",)


def test_an_exported_macro_is_a_name_of_its_crate() -> None:
    found = edges_of(
        {
            "Cargo.toml": "[package]\nname = 'kit'\n",
            "src/lib.rs": "mod macros;\nmod other;\n",
            "src/macros.rs": "#[macro_export]\nmacro_rules! ready { () => {} }\nmacro_rules! own { () => {} }\n",
            "src/other.rs": "use crate::own;\n",
            "tests/t.rs": "use kit::ready;\nfn t() { ready!(); }\n",
        }
    )
    assert leads(found, "tests/t.rs", EdgeKind.CALL) == {"src/macros.rs": ("ready",)}
    assert leads(found, "src/other.rs") == {"src/lib.rs": ()}


def test_every_file_of_tests_is_a_crate_of_its_own() -> None:
    found = edges_of(WORKSPACE)
    assert leads(found, "crates/cli/tests/it.rs") == {
        "crates/cli/tests/common/mod.rs": (),
        "crates/core/src/search/mod.rs": ("run",),
    }


def test_a_manifest_that_nobody_can_read() -> None:
    found = edges_of(
        {
            "Cargo.toml": "[package\nname = ",
            "src/main.rs": "mod a;\nfn main() { a::go(); }\n",
            "src/a.rs": "pub fn go() { crate::b::stop(); }\n",
            "src/b/mod.rs": "pub fn stop() {}\n",
        }
    )
    assert leads(found, "src/main.rs", EdgeKind.CALL) == {"src/a.rs": ("go",)}
    assert leads(found, "src/a.rs", EdgeKind.CALL) == {"src/b/mod.rs": ("stop",)}


def test_modules_that_name_each_other_end() -> None:
    found = edges_of(
        {
            "src/lib.rs": "pub use a::X;\npub mod a;\npub mod b;\n",
            "src/a.rs": 'pub use crate::b::X;\n#[path = "lib.rs"]\nmod top;\n',
            "src/b.rs": "pub use super::a::X;\nuse super::super::super::Y;\n",
        }
    )
    assert "src/a.rs" in leads(found, "src/b.rs")
