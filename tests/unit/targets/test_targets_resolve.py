"""Edges of any project: only between its files, whatever their order, whatever they hold."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.targets.sources_fixture import edges_of, source_files
from tests.unit.targets.test_targets_resolve_ecmascript import MONOREPO
from tests.unit.targets.test_targets_resolve_go import APP
from tests.unit.targets.test_targets_resolve_java import SERVICE
from tests.unit.targets.test_targets_resolve_python import FLASK
from tests.unit.targets.test_targets_resolve_rust import WORKSPACE
from trialfleet_targets.parsing import parse
from trialfleet_targets.resolve.edges import edges
from trialfleet_targets.snapshot import SourceFile
from trialfleet_targets.syntax_facts import FileFacts, Import, Inheritance, ParsedLanguage

EVERYTHING = {**MONOREPO, **APP, **SERVICE, **FLASK, **WORKSPACE}
PATHS = st.sampled_from(
    [
        f"{folder}{name}"
        for folder in ("", "a/", "a/b/", "src/")
        for name in ("a", "b", "index", "__init__", "mod", "lib")
    ]
)
MODULES = st.sampled_from(
    (
        *("", "a", "b", "a.b", "a/b", "./a", "../b", ".", "..", "../../..", "m/a", "@/a", "#a", "@a", "/"),
        *("self::a", "super::super", "crate", "crate::a::b", "./b.rs", "::", "a::", "self", "self::"),
        *("a.b.C", "p", "p.A"),
    )
)
NAMES = st.sampled_from(["*", "", "a", "b", "default", "A", "::", "a::b", "self"])
IMPORTS = st.builds(
    Import,
    MODULES,
    st.lists(st.tuples(NAMES, NAMES), max_size=3).map(tuple),
    level=st.integers(0, 4),
    type_only=st.booleans(),
    dynamic=st.booleans(),
    re_export=st.booleans(),
)
FACTS = st.builds(
    FileFacts,
    st.sampled_from(ParsedLanguage),
    imports=st.lists(IMPORTS, max_size=5).map(tuple),
    inheritance=st.lists(st.builds(Inheritance, NAMES, NAMES), max_size=2).map(tuple),
    package=st.sampled_from(["", "p", "a"]),
    references=st.lists(NAMES, max_size=3).map(tuple),
)
OTHERS = st.dictionaries(
    st.sampled_from(
        [
            "package.json",
            "tsconfig.json",
            "go.mod",
            "Cargo.toml",
            "pyproject.toml",
            "a/package.json",
            "go.work",
            "lerna.json",
        ]
    ),
    st.one_of(
        st.binary(max_size=40),
        st.sampled_from(
            [b'{"name": "a", "main": "../../x"}', b'{"extends": ".", "compilerOptions": {"paths": {"*": ["*"]}}}']
        ),
        st.sampled_from(
            [
                b"module m\n",
                b"use a\n",
                b'{"name": "a", "workspaces": ["*"]}',
                b"[package]\nname = 'a'\n[lib]\npath = '../..'\n",
                b"[tool]\npytest = 1\n",
            ]
        ),
    ),
)


def test_a_rust_import_of_a_file_without_a_name_leads_nowhere() -> None:
    """No parser gives one, but facts that were kept may be anything."""
    here = FileFacts(ParsedLanguage.RUST, imports=(Import("./b.rs"),))
    files = {path: SourceFile(path, "", facts, "") for path, facts in {"a.rs": here, "b.rs": here}.items()}
    assert all(edge.source != edge.target for edge in edges(files, {}))


@settings(max_examples=80, deadline=None)
@given(facts=st.dictionaries(PATHS, FACTS, max_size=8), others=OTHERS, order=st.randoms(use_true_random=False))
def test_whatever_files_say_edges_stay_among_them(
    facts: dict[str, FileFacts], others: dict[str, bytes], order: random.Random
) -> None:
    suffixes = {
        ParsedLanguage.PYTHON: ".py",
        ParsedLanguage.RUST: ".rs",
        ParsedLanguage.GO: ".go",
        ParsedLanguage.JAVA: ".java",
    }
    files = {
        path: SourceFile(path, "", one, "")
        for path, one in ((p + suffixes.get(f.language, ".ts"), f) for p, f in facts.items())
    }
    found = edges(files, others)
    assert {e.source for e in found} | {e.target for e in found} <= files.keys()
    assert all(e.source != e.target for e in found)
    shuffled = list(files.items())
    order.shuffle(shuffled)
    assert edges(dict(shuffled), dict(reversed(others.items()))) == found


def test_five_languages_in_one_repository_do_not_mix() -> None:
    files = source_files(EVERYTHING)
    found = edges_of(EVERYTHING)
    family = {ParsedLanguage.JAVASCRIPT: ParsedLanguage.TYPESCRIPT}
    for edge in found:
        source, target = files[edge.source].facts.language, files[edge.target].facts.language
        assert family.get(source, source) == family.get(target, target)
    assert {files[e.source].facts.language for e in found} == set(ParsedLanguage)


def test_the_order_of_files_changes_nothing() -> None:
    expected = edges_of(EVERYTHING)
    for seed in range(5):
        shuffled = list(EVERYTHING.items())
        random.Random(seed).shuffle(shuffled)
        assert edges_of(dict(shuffled)) == expected
    assert list(expected) == sorted(expected, key=lambda e: (e.source, e.target, e.kind))


def test_symbols_are_defined_in_the_target() -> None:
    files = source_files(EVERYTHING)
    for edge in edges_of(EVERYTHING):
        assert set(edge.symbols) <= {d.name for d in files[edge.target].facts.definitions}


def test_nothing_leads_nowhere() -> None:
    assert edges({}, {}) == ()


def barrel(path: str, source: str) -> bool:
    facts = parse(path, source.encode())
    assert facts is not None
    return facts.barrel


def test_barrels() -> None:
    assert barrel("index.ts", "export * from './a'\n")
    assert barrel("index.ts", "export { a, b } from './a'\nexport const c = 1\n")
    assert not barrel("index.ts", "export { a } from './a'\nexport const c = 1\n")
    assert barrel("pkg/__init__.py", "from .a import b\n__all__ = ['b']\n__version__ = '1'\n") is False
    assert barrel("pkg/__init__.py", "from .a import b, c\n__version__ = '1'\n")
    assert not barrel("pkg/a.py", "from .b import c\n")
    assert barrel("src/lib.rs", "pub mod a;\npub use a::B;\n")
    assert not barrel("src/main.rs", "mod a;\nfn main() {}\n")
    assert not barrel("a.go", "package a\n")
