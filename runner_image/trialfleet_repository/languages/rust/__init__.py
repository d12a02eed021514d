"""Rust."""

from __future__ import annotations

import re

from trialfleet_repository.languages.protocol import Language, manifests, names_of
from trialfleet_repository.languages.report_format import ReportFormat
from trialfleet_repository.languages.rust.caches import drop_other_units
from trialfleet_repository.languages.rust.crates import give_crates
from trialfleet_repository.languages.rust.libtest import read_libtest
from trialfleet_repository.languages.rust.names import NAMES
from trialfleet_repository.languages.rust.pass_cautions import PASS_CAUTIONS
from trialfleet_repository.languages.rust.preset import make_rust_preset
from trialfleet_repository.languages.rust.product import find_rust_product
from trialfleet_repository.languages.rust.registry import find_cargo_registries
from trialfleet_repository.languages.rust.workspace import find_workspace
from trialfleet_repository.languages.settings_record import SettingsPlugin
from trialfleet_repository.languages.survey_traits import SurveyTraits
from trialfleet_repository.languages.tool_traits import ToolTraits
from trialfleet_repository.languages.traces import TraceStyle

_NAMED = re.compile(r"(?:^|/)(?:[^/]*_)?tests?\.rs$")
_PROGRAM = re.compile(r"(?:^|/)tests/(?:[^/]+|[^/]+/main)\.rs$")
_SUPPORT = re.compile(
    r"(?:^|/)tests/(?:.*/)?(?:common|support|utils?|fixtures?|data|testdata|snapshots|ui|compile[-_]fail|fail|pass)/"
)


def _is_test_module(path: str) -> bool:
    named = _NAMED.search(path) is not None or "tests" in path.split("/")[:-1]
    return path.endswith(".rs") and named and not _SUPPORT.search(path) and not RUST.is_foreign(path)


RUST = Language(
    name="Rust",
    suffixes=(".rs",),
    test_paths=re.compile(r"/(?:[^/]*_)?tests?\.rs\Z|/benches/[\s\S]*\.rs\Z"),
    is_test_module=_is_test_module,
    is_manifest=manifests(
        r"Cargo\.(?:toml|lock)|rust-toolchain(?:\.toml)?|config\.toml|nextest\.toml|\.tool-versions"
    ),
    harness=re.compile(
        names_of("cargo.toml", "cargo.lock", "rust-toolchain", "rust-toolchain.toml")
        + r"|/\.cargo/|\A(?!(?:[\s\S]*/)?src/)(?:[\s\S]*/)?build\.rs\Z"  # src/build.rs is a module
    ),
    junk=re.compile(r"/target/(?:debug|release|\.rustc_info\.json|CACHEDIR\.TAG)(?:/|\Z)"),
    product_files=find_rust_product,
    kind="rust",
    preset=make_rust_preset,
    find_package=find_workspace,
    programs=("cargo",),
    linkers=("cargo",),
    offline=("CARGO_NET_OFFLINE",),
    registry_files=find_cargo_registries,
    tools=ToolTraits(
        left_out=lambda path: path.parts in (("cargo", "registry", "src"), ("cargo", "config.toml")),
        of_its_place="target",
        drop_unused=drop_other_units,
        compiled=("target",),
        locks=(".cargo-lock", ".package-cache"),
    ),
    formats=(
        ReportFormat(
            "libtest",
            lambda files: read_libtest(files.read_stream("stdout"), files.inside),
            (".rs",),
            "cargo test",
            give_crates,
            lambda _: (101,),
            plugin=SettingsPlugin(
                variables=lambda _, _folder: {"RUST_TEST_NOCAPTURE": "0", "RUST_TEST_SHUFFLE": "0"}
            ),
            unit_of=lambda path: path if _PROGRAM.search(path) else None,
        ),
    ),
    traces=(
        TraceStyle(re.compile(r"(?:thread '.*panicked at |.*', )(?P<path>[^\s',]+\.rs):\d+:\d+:?$")),
        TraceStyle(
            re.compile(r"\s+at (?P<path>[^\s']+\.rs):\d+(?::\d+)?$"),
            between=re.compile(r"\s*\d+: "),
        ),
    ),
    names=NAMES,
    pass_cautions=PASS_CAUTIONS,
    takes_packages=True,
    settings_in_code=False,
    too_old=re.compile(
        r"(?i)rustc [\w.-]+ is not supported by the following package|requires rustc [\d.]+"
        r"|version of Cargo is older than the `\d+` edition|feature `edition\d+` is required"
    ),
    survey=SurveyTraits(
        {".rs": "Rust"},
        ("Cargo.toml",),
        ("Cargo.lock",),
        lambda name, _: ("cargo test",) if name == "Cargo.toml" else (),
        re.compile(r"\bcargo test\b"),
    ),
)
