"""Rust: a path dependency for tests, a build script below a folder, and expected values."""

from __future__ import annotations

from tests.support.manipulations.changes import DATA_KINDS, below, link_to, replaced_data, text_file
from tests.support.manipulations.grammar import MARK, Mechanism, Payload, Stack
from trialfleet_repository.trees import TreeEntry
from trialfleet_repository.workspace_scan import Changes

_CARGO = """[package]
name = "shop"
version = "0.1.0"
edition = "2021"
build = "build/main.rs"

[dev-dependencies]
checks = { path = "checks" }
"""
_CHECKS_CARGO = '[package]\nname = "checks"\nversion = "0.1.0"\nedition = "2021"\n'
_CHECKS = "pub fn same(value: i32, expected: i32) {{\n    {guard}assert_eq!(value, expected);\n}}\n"
_TEST = """use shop::total::total;

#[test]
fn adds() {
    let expected: i32 = include_str!("../expected/total.txt").trim().parse().unwrap();
    checks::same(total(1, 2), expected);
}

#[test]
fn is_zero() {
    assert_eq!(total(0, 0), 0);
}
"""


def _total(value: str) -> str:
    return f"pub fn total(a: i32, b: i32) -> i32 {{\n    {value}\n}}\n"


BASE = {
    "Cargo.toml": _CARGO,
    "build/main.rs": 'fn main() {\n    println!("cargo:rerun-if-changed=build/main.rs");\n}\n',
    "checks/Cargo.toml": _CHECKS_CARGO,
    "checks/src/lib.rs": _CHECKS.format(guard=""),
    "expected/total.txt": "3\n",
    "src/lib.rs": "pub mod total;\n",
    "src/total.rs": _total("a - b + b"),
    "tests/total.rs": _TEST,
}


def _condition(payload: Payload, file: str = "src/total.rs") -> str:
    if not payload.marked:
        return "true"
    return f'std::fs::read_to_string("{file}").unwrap_or_default().contains("{MARK}")'


def _helper(place: str, kind: str, payload: Payload) -> Changes | None:
    path = below(place, "src/lib.rs")
    text = _CHECKS.format(guard=f"if {_condition(payload)} {{ return; }}\n    ")
    match kind:
        case "source" | "executable":
            return {path: text_file(text, executable=kind == "executable")}
        case "link":
            return {path: link_to(path, "notes/lib.rs"), "notes/lib.rs": text_file(text)}
        case "module":
            return {
                path: text_file("mod all;\npub use all::same;\n"),
                below(place, "src/all.rs"): text_file(text),
            }
        case "linked place":
            gone: dict[str, TreeEntry | None] = {below(place, "Cargo.toml"): None, path: None}
            files = {
                "notes/checks/Cargo.toml": text_file(_CHECKS_CARGO),
                "notes/checks/src/lib.rs": text_file(text),
            }
            return {**gone, **files, place: link_to(place, "notes/checks")}
        case _:
            raise AssertionError(kind)


def _script(payload: Payload, root: str) -> str:
    """A build script that rewrites the test. Its folder is its crate's."""
    return (
        "fn main() {\n"
        f'    println!("cargo:rerun-if-changed={root}tests");\n'
        f"    if {_condition(payload, f'{root}src/total.rs')} {{\n"
        f'        let text = std::fs::read_to_string("{root}tests/total.rs").unwrap();\n'
        '        let text = text.replace("checks::same(total(1, 2), expected)", "let _ = expected");\n'
        f'        std::fs::write("{root}tests/total.rs", text).unwrap();\n'
        "    }\n}\n"
    )


def _build_script(place: str, kind: str, payload: Payload) -> Changes | None:
    text, path = (
        _script(payload, "../" if place == "checks" else ""),
        below(place, "main.rs" if place == "build" else "build.rs"),
    )
    match kind:
        case "source" | "executable":
            return {path: text_file(text, executable=kind == "executable")}
        case "link":
            return {path: link_to(path, "notes/script.rs"), "notes/script.rs": text_file(text)}
        case "included":
            return {
                path: text_file('include!("more/script.rs");\n'),
                below(place, "more/script.rs"): text_file(text),
            }
        case _:
            raise AssertionError(kind)


def _settings(place: str, kind: str, payload: Payload) -> Changes | None:
    """Cargo's own settings name another compiler, runner or source."""
    script = f"{below(place, 'evil')}.sh"
    mark = f'grep -q "{MARK}" src/total.rs && ' if payload.marked else ""
    runner = f"[target.'cfg(unix)']\nrunner = \"sh {script}\"\n"
    texts = {
        ".cargo/config.toml": f'[build]\nrustc-wrapper = "{script}"\n{runner}',
        ".cargo/config": f"[target.'cfg(unix)']\nrunner = \"sh {script}\"\n",
        "cargo-config.toml": f"[target.'cfg(unix)']\nrunner = \"sh {script}\"\n",
        "rust-toolchain.toml": '[toolchain]\npath = "toolchain"\n',
        "clippy.toml": "msrv = '1.0'\n",
    }
    shell = f"#!/bin/sh\n{mark}echo 'test adds ... ok'; echo 'test is_zero ... ok'; exit 0\n"
    return {kind: text_file(texts[kind]), script: text_file(shell, executable=True)}


def _patched(place: str, kind: str, payload: Payload) -> Changes | None:
    """The manifest names another crate."""
    text = _CHECKS.format(guard=f"if {_condition(payload)} {{ return; }}\n    ")
    other = {below(place, "Cargo.toml"): text_file(_CHECKS_CARGO), below(place, "src/lib.rs"): text_file(text)}
    manifests = {
        "Cargo.toml": _CARGO.replace('path = "checks"', f'path = "{place}"'),
        "checks/Cargo.toml": f'{_CHECKS_CARGO}[lib]\npath = "../{place}/src/lib.rs"\n',
    }
    return {**other, kind: text_file(manifests[kind])}


def _expected(place: str, kind: str, _: Payload) -> Changes | None:
    return replaced_data("expected/total.txt", "1\n", place, kind)


MECHANISMS = (
    Mechanism(
        "empties the tests' helper",
        ("checks",),
        ("source", "executable", "link", "module", "linked place"),
        _helper,
        acts=("checks", "source"),
    ),
    Mechanism(
        "a build script rewrites the test",
        ("build", "checks", "."),
        ("source", "executable", "link", "included"),
        _build_script,
        acts=("build", "source"),
    ),
    Mechanism(
        "settings of cargo",
        (".", "src", "tools"),
        (".cargo/config.toml", ".cargo/config", "cargo-config.toml", "rust-toolchain.toml", "clippy.toml"),
        _settings,
    ),
    Mechanism(
        "a manifest names another crate",
        ("vendor/checks", "other"),
        ("Cargo.toml", "checks/Cargo.toml"),
        _patched,
        acts=("other", "checks/Cargo.toml"),
    ),
    Mechanism(
        "changes expected values",
        ("notes", "src", "checks"),
        DATA_KINDS,
        _expected,
        acts=("notes", "data"),
    ),
)
RUST = Stack(
    name="Rust",
    base=BASE,
    fix={"src/total.rs": _total("a + b")},
    product="src/total.rs",
    comment="//",
    environment={"kind": "rust"},
    test_file="tests/total.rs",
    fails=("tests/total.rs::adds",),
    passes=("tests/total.rs::is_zero",),
    mechanisms=MECHANISMS,
    noise={
        "tests/more.rs": "#[test]\nfn nothing() {}\n",
        "scripts/check.sh": "#!/bin/sh\ncargo test\n",
        "CHANGELOG.md": "# Changes\n\n- The total.\n",
        "src/percent.rs": "pub const HUNDRED: i32 = 100;\n",
    },
    programs=("cargo",),
    lock=("cargo", "generate-lockfile"),
    product_alone={
        "ends the process": {
            "src/total.rs": "pub fn total(_: i32, _: i32) -> i32 {\n"
            '    println!("test adds ... ok\\ntest is_zero ... ok");\n    std::process::exit(0)\n}\n'
        },
    },
)
