"""What `{tests}` becomes for each format."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_repository.languages import format_named
from trialfleet_repository.results.limits import ResultError

MANIFESTS = {
    "Cargo.toml": b'[workspace]\nmembers = ["crates/*"]\n[workspace.package]\nversion = "3.0.0"\n',
    "crates/x/Cargo.toml": b'[package]\nname = "tiny-x"\nversion = "0.2.0-rc.1+b"\n',
    "crates/y/Cargo.toml": b'[package]\nname = "tiny-y"\n[[test]]\nname = "other"\n',
    "crates/z/Cargo.toml": b'[package]\nname = "tiny-z"\nversion.workspace = true\n',
    "crates/odd/Cargo.toml": b'[package]\nname = "odd"\nversion = "--config"\n',
    "crates/bad/Cargo.toml": b"[package\xff",
    "crates/option/Cargo.toml": b'[package]\nname = "--config"\n',
}

X = "tiny-x@0.2.0-rc.1+b"


def files(content: Mapping[str, bytes]) -> Callable[[str], bytes | None]:
    return content.get


@pytest.mark.parametrize(
    ("given_format", "tests", "words"),
    [
        ("go", ["pkg/a/x_test.go", "pkg/a/y_test.go", "z_test.go"], ("./pkg/a", ".")),
        ("go", ["example.com/m/a::TestA/one", "example.com/m/a::TestB"], ("example.com/m/a",)),
        ("jest", ["a/x.test.js::sum > adds", "a/x.test.js::top", "b.test.js"], ("a/x.test.js", "b.test.js")),
        ("mocha", ["a.spec.js::sum > a :: b"], ("a.spec.js",)),
        ("vitest", ["a.test.ts"], ("a.test.ts",)),
        ("node", ["a.test.mjs::t"], ("a.test.mjs",)),
        ("bun", ["t/a.test.ts::total > adds", "t/a.test.ts"], ("./t/a.test.ts",)),
        ("junit", ["a/x.rb::t"], ("a/x.rb",)),
        ("libtest", ["crates/x/src/lib.rs::tests::adds", "crates/x/tests/foo.rs"], ("-p", X)),
        ("libtest", ["crates/x/src/lib.rs", "crates/y/tests/it/main.rs"], ("-p", X, "-p", "tiny-y")),
        ("libtest", ["crates/z/src/lib.rs", "crates/odd/src/lib.rs"], ("-p", "tiny-z@3.0.0", "-p", "odd")),
        ("libtest", ["src/lib.rs", "crates/bad/src/lib.rs", "../crates/x/src/lib.rs", "/crates/x/a.rs"], ()),
        ("libtest", ["crates/option/src/lib.rs"], ()),
        (
            "surefire",
            ["src/test/java/org/x/FooTest.java", "org.x.FooTest$Inner::adds(int)[1]"],
            ("org.x.FooTest",),
        ),
        ("surefire", ["m/src/test/kotlin/org/x/KTest.kt", "t/Plain.java"], ("org.x.KTest", "Plain")),
    ],
)
def test_each_thing_is_named_once(given_format: str, tests: list[str], words: tuple[str, ...]) -> None:
    assert format_named(given_format).arguments(tests, files(MANIFESTS)) == words


def test_what_nobody_registered_is_an_error() -> None:
    with pytest.raises(ResultError, match="no language that is registered here has results of the format tap"):
        format_named("tap")


def test_the_manifest_of_a_package_is_looked_for_a_bounded_number_of_times() -> None:
    looked: list[str] = []

    def read(path: str) -> bytes | None:
        looked.append(path)
        return None

    assert format_named("libtest").arguments(["a/" * 5000 + "b.rs"], read) == ()
    assert len(looked) <= 50


@given(st.lists(st.text()), st.binary())
def test_nothing_is_raised(tests: list[str], manifest: bytes) -> None:
    formats = ("go", "libtest", "jest", "surefire")
    for one in formats:
        format_named(one).arguments(tests, lambda path: manifest)
