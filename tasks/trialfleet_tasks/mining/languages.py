"""What mining knows about the files of a language: which are source, which are tests, which nobody wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from trialfleet_repository.excluded_paths import is_harness
from trialfleet_repository.test_paths import is_test_path
from trialfleet_tasks.mining.python_environment import is_metadata
from trialfleet_tasks.variants import is_test_module

_NOT_WRITTEN_HERE = {"vendor", "third_party", "_vendor", "node_modules", "site-packages", ".venv", "dist"}
_GENERATED = re.compile(r"(?:_pb2(?:_grpc)?|\.generated|_generated)\.\w+$")
_TYPES_ALONE = (".d.ts", ".d.mts", ".d.cts")
_NOTHING = re.compile(r"(?!)")


@dataclass(frozen=True)
class MinedLanguage:
    """`is_test`: whether the path is a module of tests, which a test runner can be given. `belongs_to_tests`:
    that, or a file that only tests use. `is_manifest`: whether the file describes the project, its dependencies or
    its tools. `foreign`: paths that are vendored or generated, besides those of every language. `named_test`:
    paths that only modules of tests have, where `is_test` includes all code of a folder."""

    name: str
    suffixes: tuple[str, ...]
    is_test: Callable[[str], bool]
    belongs_to_tests: Callable[[str], bool]
    is_manifest: Callable[[str], bool]
    foreign: re.Pattern[str] = _NOTHING
    named_test: re.Pattern[str] | None = None

    def is_source(self, path: str) -> bool:
        """Whether the path is code of the project that people wrote and that is not for tests, their runner or the
        build.

        >>> PYTHON.is_source("src/shop/cart.py"), PYTHON.is_source("shop/_vendor/six.py")
        (True, False)
        """
        code = path.endswith(self.suffixes) and not path.endswith(_TYPES_ALONE)
        aside = self.belongs_to_tests(path) or self.is_foreign(path) or is_harness(path)
        return code and not aside

    def is_foreign(self, path: str) -> bool:
        """Whether the file is vendored or generated, by its path.

        >>> GO.is_foreign("api/shop.pb.go"), PYTHON.is_foreign("build/a.py"), JAVASCRIPT.is_foreign("build/a.js")
        (True, False, True)
        """
        return is_foreign(path) or self.foreign.search(path) is not None

    def tests_among(self, paths: Iterable[str]) -> tuple[str, ...]:
        """The modules of tests. Where some have a name that only tests have, other files of test folders are no
        tests but help them.

        >>> JAVASCRIPT.tests_among(["test/cart.ts", "test/cart.test.ts"]), JAVASCRIPT.tests_among(["test/cart.ts"])
        (('test/cart.test.ts',), ('test/cart.ts',))
        """
        tests = tuple(filter(self.is_test, paths))
        named = tuple(path for path in tests if self.named_test and self.named_test.search(path))
        return named or tests


def is_foreign(path: str) -> bool:
    """Whether the file is vendored or generated in any language, by its path.

    >>> is_foreign("third_party/a.py"), is_foreign("api/shop_pb2.py"), is_foreign("shop/cart.py")
    (True, True, False)
    """
    return bool(_GENERATED.search(path)) or not _NOT_WRITTEN_HERE.isdisjoint(PurePosixPath(path).parts[:-1])


_GO_FOREIGN = re.compile(
    r"(?:\.pb(?:\.gw)?|[._]gen|_easyjson|_ffjson|_mock|(?:^|/)(?:bindata|generated))\.go$"
    r"|(?:^|/)(?:zz_generated|mock_)[^/]*\.go$"
)
_JS_SUFFIXES = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
_JS_NAMED = re.compile(r"[._](?:test|spec)\.[cm]?[jt]sx?$|(?:^|/)__tests__/")
_JS_FOLDER = re.compile(r"(?:^|/)(?:__tests__|tests?)/")
_JS_SUPPORT = re.compile(
    r"(?:^|/)(?:__snapshots__|__fixtures__|__mocks__)/|(?:^|/)(?:__tests__|tests?)/(?:.*/)?fixtures?/"
    r"|[.](?:test|spec)-d[.][cm]?tsx?$"  # tests of types, which are only checked
)
_JS_FOREIGN = re.compile(  # below src, build is a folder of source
    r"^(?!(?:.*/)?src/)(?:.*/)?build/|(?:^|/)(?:__generated__|generated|\.next|\.nuxt|\.yarn)/"
    r"|[.-]min\.[cm]?js$|\.gen\.[cm]?[jt]sx?$|(?:^|/)\.pnp\.c?js$"
)
_RUST_NAMED = re.compile(r"(?:^|/)(?:[^/]*_)?tests?\.rs$")
_RUST_SUPPORT = re.compile(
    r"(?:^|/)tests/(?:.*/)?(?:common|support|utils?|fixtures?|data|testdata|snapshots|ui|compile[-_]fail|fail|pass)/"
)
_JVM_TEST = re.compile(
    r"(?:^|/)src/test/(?:.*/)?(?:[^/]*(?:Tests?|TestCase|IT)|Test[^/]*|[^/]*Spec(?=\.kt))\.(?:java|kt)$"
)
_JVM_FOREIGN = re.compile(r"(?:^|/)(?:generated|generated-sources|generated-src|\.mvn|\.gradle)/")


def _is_go_test(path: str) -> bool:
    return path.endswith("_test.go") and "testdata" not in path.split("/") and not GO.is_foreign(path)


def _is_javascript_test(path: str) -> bool:
    code = path.endswith(_JS_SUFFIXES) and not path.endswith(_TYPES_ALONE)
    named = _JS_NAMED.search(path) is not None or _JS_FOLDER.search(path) is not None
    return code and named and not _JS_SUPPORT.search(path) and not JAVASCRIPT.is_foreign(path)


def _is_rust_test(path: str) -> bool:
    named = _RUST_NAMED.search(path) is not None or "tests" in path.split("/")[:-1]
    return path.endswith(".rs") and named and not _RUST_SUPPORT.search(path) and not RUST.is_foreign(path)


def _is_jvm_test(path: str) -> bool:
    return _JVM_TEST.search(path) is not None and not JAVA.is_foreign(path)


def _manifests(pattern: str) -> Callable[[str], bool]:
    """Of the project and of its packages, not of its tests' data or of what it vendors. `pattern`: of the name."""
    names = re.compile(pattern)

    def is_manifest(path: str) -> bool:
        name = path.rpartition("/")[2]
        return names.fullmatch(name) is not None and not is_foreign(path) and not is_test_path(path)

    return is_manifest


PYTHON = MinedLanguage("Python", (".py",), is_test_module, is_test_path, is_metadata)
GO = MinedLanguage(
    "Go",
    (".go",),
    _is_go_test,
    is_test_path,
    _manifests(r"go\.(?:mod|sum|work|work\.sum)|\.go-version|\.tool-versions"),
    _GO_FOREIGN,
)
JAVASCRIPT = MinedLanguage(
    "JavaScript",
    _JS_SUFFIXES,
    _is_javascript_test,
    is_test_path,
    _manifests(
        r"package(?:-lock)?\.json|npm-shrinkwrap\.json|pnpm-(?:lock|workspace)\.yaml|yarn\.lock|bun\.lockb?|bunfig\.toml"
        r"|\.npmrc|\.yarnrc(?:\.yml)?|\.nvmrc|\.node-version|\.tool-versions|\.mocharc.*|tsconfig.*\.json"
        r"|(?:vite|vitest|jest|babel|karma)\.conf(?:ig)?\..+|(?:vitest|jest)\.(?:workspace|setup)\..+"
    ),
    _JS_FOREIGN,
    _JS_NAMED,
)
RUST = MinedLanguage(
    "Rust",
    (".rs",),
    _is_rust_test,
    is_test_path,
    _manifests(r"Cargo\.(?:toml|lock)|rust-toolchain(?:\.toml)?|config\.toml|nextest\.toml|\.tool-versions"),
)
JAVA = MinedLanguage(
    "Java",
    (".java", ".kt"),
    _is_jvm_test,
    is_test_path,
    _manifests(
        r"pom\.xml|.*\.gradle(?:\.kts)?|gradle\.properties|gradle\.lockfile|libs\.versions\.toml|maven\.config|jvm\.config"
        r"|(?:gradle|maven)-wrapper\.properties|\.java-version|\.sdkmanrc|\.tool-versions"
    ),
    _JVM_FOREIGN,
)
LANGUAGES: Mapping[str, MinedLanguage] = {
    language.name: language for language in (PYTHON, GO, JAVASCRIPT, RUST, JAVA)
}


def language_of(path: str) -> MinedLanguage | None:
    """By the file's suffix.

    >>> [found.name for found in map(language_of, ("a.py", "web/a.mts", "A.kt", "a.c")) if found]
    ['Python', 'JavaScript', 'Java']
    """
    return next((language for language in LANGUAGES.values() if path.endswith(language.suffixes)), None)
