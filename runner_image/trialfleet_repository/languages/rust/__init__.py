"""Rust."""

from __future__ import annotations

import re

from trialfleet_repository.languages.protocol import Language, manifests, names_of

_NAMED = re.compile(r"(?:^|/)(?:[^/]*_)?tests?\.rs$")
_SUPPORT = re.compile(
    r"(?:^|/)tests/(?:.*/)?(?:common|support|utils?|fixtures?|data|testdata|snapshots|ui|compile[-_]fail|fail|pass)/"
)


def _is_test_module(path: str) -> bool:
    named = _NAMED.search(path) is not None or "tests" in path.split("/")[:-1]
    return path.endswith(".rs") and named and not _SUPPORT.search(path) and not RUST.is_foreign(path)


RUST = Language(
    name="Rust",
    suffixes=(".rs",),
    test_paths=re.compile(r"(?:\A|/)(?:[^/]*_)?tests?\.rs\Z|(?:\A|/)benches/[\s\S]*\.rs\Z"),
    is_test_module=_is_test_module,
    is_manifest=manifests(
        r"Cargo\.(?:toml|lock)|rust-toolchain(?:\.toml)?|config\.toml|nextest\.toml|\.tool-versions"
    ),
    harness=re.compile(
        names_of("cargo.toml", "cargo.lock", "rust-toolchain", "rust-toolchain.toml")
        + r"|(?:\A|/)\.cargo/|\A(?!(?:[\s\S]*/)?src/)(?:[\s\S]*/)?build\.rs\Z"  # src/build.rs is a module
    ),
    junk=re.compile(r"(?:\A|/)target/(?:debug|release|\.rustc_info\.json|CACHEDIR\.TAG)(?:/|\Z)"),
)
