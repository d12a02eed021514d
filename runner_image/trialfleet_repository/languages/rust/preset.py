"""Crates and workspaces of cargo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trialfleet_ledger.errors import OperatorError
from trialfleet_repository.languages.preset import PLACE, ToolPreset, VersionOf, name_place, restrict_tree
from trialfleet_repository.languages.rust.caches import BUILT
from trialfleet_repository.trees import ROOT, Tree

if TYPE_CHECKING:
    from trialfleet_ledger.task import ToolEnvironment

# For this machine alone: a workspace's crates for Windows may be ten times the rest.
_FETCH = 'exec cargo fetch --target "$(rustc -vV | sed -n "s/^host: //p")"'
# Compiles dependencies alone, by cargo 1.74 or newer: it calls the wrapper for the workspace's crates, which every
# attempt compiles. Its messages say which of the crates in `target` it used.
_WARM = rf"""
mkdir -p "$CARGO_TARGET_DIR"
export RUSTC_WORKSPACE_WRAPPER="$HOME/dependencies-only"
printf '#!/bin/sh\nfor word; do case $word in *.rs) exit 1;; esac; done\nexec "$@"\n' >"$RUSTC_WORKSPACE_WRAPPER"
chmod +x "$RUSTC_WORKSPACE_WRAPPER"
exec cargo build --tests --profile test --keep-going --message-format=json "$@" >>"$CARGO_TARGET_DIR/{BUILT}"
"""


def make_rust_preset(environment: ToolEnvironment, tree: Tree, _: VersionOf) -> ToolPreset:
    features = ("--all-features",) if _ci_says(tree, "--all-features") else ()
    tree = restrict_tree(tree, environment.directory)
    if "Cargo.toml" not in tree:
        raise OperatorError(
            f"{name_place(environment.directory)} has no Cargo.toml",
            where="environment",
            hint="name the folder of the crate or of its workspace as `directory`",
        )
    return ToolPreset(
        tools={"cargo": "", "rustc": "", "rustdoc": ""},
        inputs=("Cargo.toml", "Cargo.lock", "rust-toolchain", "rust-toolchain.toml", ".cargo/config.toml"),
        directory=environment.directory or ROOT,
        fetch=(("sh", "-c", _FETCH),),
        warm=(("sh", "-c", _WARM, "cargo", *features, "{tests}"),),
        drop=(f"target/{BUILT}", "target/*/incremental"),
        keep=("Cargo.lock",),
        variables={
            "CARGO_HOME": "{environment}/cargo",
            "CARGO_TARGET_DIR": "{home}/target",
            "CARGO_NET_OFFLINE": "true",
            "CARGO_TERM_COLOR": "never",
            "CARGO_TERM_QUIET": "false",
            "CARGO_INCREMENTAL": "0",
            "CARGO_PROFILE_DEV_DEBUG": "0",
        },
        links={"target": "{home}/target"},
        place=PLACE,  # cargo's records name the folder of the crates' sources
        test_command=(
            "sh", "-c", 'exec cargo test "$@" 2>&1', "cargo", "--no-fail-fast",
            "--message-format=json-render-diagnostics", "--tests", *features, "{tests}",
        ),
        results="libtest",
    )  # fmt: skip


def _ci_says(tree: Tree, words: str) -> bool:
    return any(path.startswith(".github/workflows/") and words.encode() in e.data for path, e in tree.items())
