"""Source, tests, their support and foreign files of each language, and the candidates that follow from them."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_repository.languages import LANGUAGES, Language, is_harness, is_junk, is_test_path, language_of
from trialfleet_tasks.mining.findings import RejectionReason
from trialfleet_tasks.mining.history import CandidateCommit, CandidateRules, FileChange, HistoryCommit, judge

SOURCE = {
    "Python": "src/shop/cart.py setup.py shop/build/cart.py",
    "Go": "cart.go internal/cart/cart.go cmd/shop/main.go cart/gen.go cart/test.go",
    "JavaScript": """src/cart.ts src/cart.tsx lib/cart.mjs src/build/plugin.ts packages/vite/src/build/a.ts
        src/test.ts index.cjs src/minimum.js""",
    "Rust": "src/lib.rs crates/cart/src/total.rs src/testing.rs src/build.rs",
    "Java": "src/main/java/org/x/Cart.java app/src/main/kotlin/Cart.kt src/main/java/org/x/build/CartTest.java",
}
TESTS = {
    "Python": "tests/test_cart.py src/shop/cart_test.py",
    "Go": "cart_test.go internal/cart/cart_test.go",
    "JavaScript": """src/cart.test.ts src/cart.spec.jsx src/cart_test.ts src/__tests__/cart.tsx test/cart.js
        packages/a/tests/b/cart.mts""",
    "Rust": "tests/cart.rs src/cart/tests.rs src/test.rs src/cart_test.rs src/cart_tests.rs src/a/tests/b.rs",
    "Java": """src/test/java/org/x/CartTest.java core/src/test/java/CartTests.java src/test/java/CartIT.java
        src/test/java/TestCart.java src/test/kotlin/CartTest.kt src/test/kotlin/CartSpec.kt""",
}
SUPPORT = {
    "Python": "tests/conftest.py tests/data/cart.json",
    "Go": "cart/testdata/cart.json cart/testdata/cart_test.go",
    "JavaScript": """src/__snapshots__/cart.test.ts.snap src/__fixtures__/cart.ts src/__mocks__/fs.js
        test/fixtures/a.ts tests/types.d.ts test/cart.json src/cart.test-d.ts""",
    "Rust": "tests/common/mod.rs tests/ui/fail.rs tests/data.json",
    "Java": "src/test/java/org/x/Carts.java src/test/resources/cart.xml src/testFixtures/java/Cart.java",
}
FOREIGN = {
    "Python": "shop/_vendor/six.py shop/cart_pb2.py",
    "Go": """vendor/x/cart.go api/cart.pb.go api/cart.pb.gw.go cart/cart_gen.go cart/zz_generated.deepcopy.go
        cart/cart_generated.go cart/mock_cart.go cart/cart_mock.go bindata.go""",
    "JavaScript": """node_modules/a/index.js dist/index.js build/index.js packages/a/build/index.js
        web/jquery.min.js src/__generated__/a.ts src/routes.gen.ts src/api.generated.ts""",
    "Rust": "vendor/a/src/lib.rs src/api.generated.rs",
    "Java": "target/generated-sources/A.java src/main/generated/A.java third_party/A.java",
}


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=lambda language: language.name)
def test_files_by_their_paths(language: Language) -> None:
    for path in SOURCE[language.name].split():
        assert language.is_source(path), path
        assert not language.is_test_module(path), path
        assert language_of(path) is language
    for path in TESTS[language.name].split():
        assert language.is_test_module(path), path
        assert is_test_path(path), path
        assert not language.is_source(path), path
        assert is_test_path(path), f"{path} must not travel with a patch"
    for path in SUPPORT[language.name].split():
        assert is_test_path(path), path
        assert not language.is_test_module(path), path
        assert not language.is_source(path), path
    for path in FOREIGN[language.name].split():
        assert language.is_foreign(path), path
        assert not language.is_source(path), path


def test_types_alone_and_configuration_are_no_source() -> None:
    assert not any(map(LANGUAGES["JavaScript"].is_source, ("src/cart.d.ts", "vitest.config.ts", "jest.setup.js")))
    assert not LANGUAGES["Rust"].is_source("build.rs")
    assert not is_test_path("src/cart.d.ts")


@pytest.mark.parametrize(
    ("name", "path", "expected"),
    [
        ("Python", "uv.lock", True),
        ("Go", "go.mod", True),
        ("Go", "tools/go.sum", True),
        ("Go", "vendor/x/go.mod", False),
        ("JavaScript", "packages/a/package.json", True),
        ("JavaScript", "pnpm-lock.yaml", True),
        ("JavaScript", "vitest.config.mts", True),
        ("JavaScript", "test/fixtures/package.json", False),
        ("JavaScript", "node_modules/a/package.json", False),
        ("Rust", "crates/a/Cargo.toml", True),
        ("Rust", ".cargo/config.toml", True),
        ("Java", "core/pom.xml", True),
        ("Java", "settings.gradle.kts", True),
        ("Java", "gradle/wrapper/gradle-wrapper.properties", True),
        ("Java", "src/main/java/A.java", False),
    ],
)
def test_manifests(name: str, path: str, expected: bool) -> None:
    assert LANGUAGES[name].is_manifest(path) is expected


WORDS = """src test tests __tests__ testdata vendor build dist target main java fixtures cart.ts cart.test.ts
    cart.d.ts cart_test.go cart.go tests.rs lib.rs CartTest.java Cart.kt conftest.py test_a.py a.snap
    package.json"""
PARTS = st.sampled_from(WORDS.split())


@given(st.lists(PARTS | st.text(max_size=4), min_size=1, max_size=5))
def test_no_path_is_source_and_test(parts: list[str]) -> None:
    path = "/".join(parts)
    is_harness(path)
    is_junk(path)
    for language in LANGUAGES.values():
        assert not (language.is_source(path) and language.is_test_module(path))
        assert is_test_path(path) or not language.is_test_module(path), "what is run as a test does not travel"


def commit(*changes: tuple[str, int]) -> HistoryCommit:
    return HistoryCommit("a" * 40, "0" * 40, date(2025, 1, 1), "Fix", tuple(FileChange(*c) for c in changes))


ALL = tuple(LANGUAGES.values())


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_candidate_of_each_language(name: str) -> None:
    source, test, support = (files[name].split()[0] for files in (SOURCE, TESTS, SUPPORT))
    given = commit((source, 3), (test, 9), (support, 9), (FOREIGN[name].split()[0], 500), ("README.md", 3))
    for languages in (ALL, [LANGUAGES[name]]):
        found = judge(given, languages, CandidateRules())
        assert isinstance(found, CandidateCommit)
        assert found.language is LANGUAGES[name]
        assert (found.source, found.tests, found.support) == ((source,), (test,), (support,))
    others = [language for language in ALL if language.name != name]
    assert judge(given, others, CandidateRules()) is RejectionReason.NO_SOURCE


def test_the_language_with_source_and_tests_counts() -> None:
    both = [("web/cart.ts", 9), ("cart/cart.go", 3), ("cart/cart_test.go", 3)]
    found = judge(commit(*both), ALL, CandidateRules())
    assert isinstance(found, CandidateCommit)
    assert found.language.name == "Go", "no test of the other is changed"
    found = judge(commit(*both, ("web/cart.test.ts", 1)), ALL, CandidateRules())
    assert isinstance(found, CandidateCommit)
    assert (found.language.name, found.source) == ("JavaScript", ("web/cart.ts",)), "most lines of source"
    assert judge(commit(("a.ts", 1), ("a_test.go", 1)), ALL, CandidateRules()) is RejectionReason.NO_TESTS


def test_limits_count_the_source_of_that_language_alone() -> None:
    given = [("cart.go", 3), ("cart_test.go", 3), *((f"web/{n}.ts", 100) for n in range(9))]
    assert isinstance(judge(commit(*given), ALL, CandidateRules()), CandidateCommit)
    large = judge(commit(*given, ("web/a.test.ts", 1)), ALL, CandidateRules())
    assert large is RejectionReason.TOO_LARGE


def test_code_that_helps_tests_is_no_test_where_tests_have_names_of_their_own() -> None:
    given = commit(("src/a.ts", 1), ("test/entity/Post.ts", 9), ("test/post.test.ts", 1))
    found = judge(given, ALL, CandidateRules())
    assert isinstance(found, CandidateCommit)
    assert (found.tests, found.support) == (("test/post.test.ts",), ("test/entity/Post.ts",))
