"""What is known about a language, as one value, and the languages that are registered.

Code that serves every language asks a `Language` or iterates over `LANGUAGES`; it never names one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from trialfleet_repository.languages.code_names import NO_NAMES, CodeNames
from trialfleet_repository.languages.manifest_files import find_root
from trialfleet_repository.languages.pass_cautions import NO_CAUTIONS, PassCautions
from trialfleet_repository.languages.preset import Preset
from trialfleet_repository.languages.project_files import ProjectFiles, no_product, no_sources
from trialfleet_repository.languages.registry import no_registry, no_registry_files
from trialfleet_repository.languages.report_format import ANY_JUNIT, ReportFormat
from trialfleet_repository.languages.survey_traits import NO_SURVEY, SurveyTraits
from trialfleet_repository.languages.tool_traits import NO_TRAITS, ToolTraits
from trialfleet_repository.languages.traces import TraceStyle
from trialfleet_repository.results.limits import ResultError
from trialfleet_repository.trees import Tree

NOTHING = re.compile(r"(?!)")
TEST_FOLDERS = frozenset({"tests", "test", "testdata"})
_NOT_WRITTEN_HERE = frozenset(
    {"vendor", "third_party", "_vendor", "node_modules", "site-packages", ".venv", ".yarn", "dist"}
)
_GENERATED = re.compile(r"(?:_pb2(?:_grpc)?|\.generated|_generated)\.\w+$")


@dataclass(frozen=True)
class LockRules:
    """`is_lacking`: whether a package has dependencies, and no lock file is at or above its folder. `place`: where
    the lock file of a package would be. `made_by`: the command that writes one."""

    is_lacking: Callable[[Tree, str], bool]
    place: Callable[[Tree, str], str]
    made_by: str


@dataclass(frozen=True, eq=False)
class Language:
    """One language.

    `suffixes`: of its source files. `test_paths`: matches the paths of tests and of what only they use, besides
    files below `TEST_FOLDERS`. `is_test_module`: whether a test runner can be given the path. `is_manifest`:
    whether the file describes the project, its dependencies or its tools. `foreign`: paths that are vendored or
    generated, besides those of every language. `named_test`: paths that only modules of tests have, where
    `is_test_module` includes all code of a folder. `product`: matches the beginning of paths in which the names
    of the folders that follow say nothing about tests. `not_code`: suffixes of files that hold no code.
    `product_files`: the source files of the product, whose change makes a pass. `sources_of`: the paths of what a
    file of a build's output is made of; nothing for other paths. `harness`: matches paths in lower case, of files
    that decide how tests are built and run. `junk`: matches by-products of running programs, such as compiled code
    or installed packages.

    Environments. `kind`: of `environment.kind`. `preset`: what that kind means for a repository; None: it is built
    in another way. `find_package`: the folder in which the tests of a file's folder are called. `lock`: of
    repositories that need a lock and have none. `programs`: that its tasks may need, first the one without which
    no test runs. `managers`: that install packages, of which a repository needs one. `linkers`: those of them that
    call a C compiler. `program_of`: the program that a file of the project is for, by the file's name. `installs`:
    the command that installs a program. `asks`: what a program is asked for its version, if not --version.
    `version_line`: where its answer names other programs' first. `own_files`: files of ours that every environment
    has. `offline`: variables that keep tools from their registries: attempts have them, and fetching does not.
    `registry`: variables that name the user's registry to its tools, before files of the repository; fetching has
    them. `registry_files`: files that name it to tools without such variables, by their places, in which
    {environment} and {home} stand for folders. `tools`: what its tools do with the files of an environment.

    Results. `formats`: of results, first the usual one. `traces`: how stack traces look. `class_files`: suffixes
    of files that a trace names by the class alone.

    Patches. `pass_cautions`: lines that a person should read in a patch that passes.

    Mining. `survey`: what tells it in a repository. `names`: how names are found in its code. `takes_packages`:
    its test runner is given whole packages, by any of their files. `runs_scripts`: its packages may run scripts
    of theirs when they are installed. `settings_in_code`: its tools take settings and plugins that are code, from
    the folders where packages begin. `too_old`, `too_new`: match what its tools print when they are older or
    newer than a project needs, in any letter case.

    Of `test_paths`, `harness` and `junk`, those of all languages are joined: they have no flags and no groups, and
    the path that they are matched with begins with a slash.
    """

    name: str
    suffixes: tuple[str, ...]
    test_paths: re.Pattern[str]
    is_test_module: Callable[[str], bool]
    is_manifest: Callable[[str], bool]
    foreign: re.Pattern[str] = NOTHING
    named_test: re.Pattern[str] | None = None
    product: re.Pattern[str] = NOTHING
    not_code: tuple[str, ...] = ()
    harness: re.Pattern[str] = NOTHING
    junk: re.Pattern[str] = NOTHING
    product_files: Callable[[ProjectFiles], frozenset[str]] = no_product
    sources_of: Callable[[str], tuple[str, ...]] = no_sources
    kind: str = ""
    preset: Preset | None = None
    find_package: Callable[[Tree, str], str] = find_root
    lock: LockRules | None = None
    programs: tuple[str, ...] = ()
    managers: tuple[str, ...] = ()
    linkers: tuple[str, ...] = ()
    program_of: Mapping[str, str] = field(default_factory=dict[str, str])
    installs: Mapping[str, str] = field(default_factory=dict[str, str])
    asks: Mapping[str, str] = field(default_factory=dict[str, str])
    version_line: re.Pattern[str] = NOTHING
    own_files: tuple[Path, ...] = ()
    offline: tuple[str, ...] = ()
    registry: Callable[[], Mapping[str, str]] = no_registry
    registry_files: Callable[[], Mapping[str, bytes]] = no_registry_files
    tools: ToolTraits = NO_TRAITS
    formats: tuple[ReportFormat, ...] = ()
    traces: tuple[TraceStyle, ...] = ()
    class_files: tuple[str, ...] = ()
    survey: SurveyTraits = NO_SURVEY
    names: CodeNames = NO_NAMES
    pass_cautions: PassCautions = NO_CAUTIONS
    takes_packages: bool = False
    runs_scripts: bool = False
    settings_in_code: bool = True
    too_old: re.Pattern[str] = NOTHING
    too_new: re.Pattern[str] = NOTHING

    def is_source(self, path: str) -> bool:
        """Whether the path is code of the project that people wrote and that is not for tests, their runner or the
        build."""
        code = path.endswith(self.suffixes) and not path.endswith(self.not_code)
        return code and not (is_test_path(path) or self.is_foreign(path) or is_harness(path))

    def is_foreign(self, path: str) -> bool:
        """Whether the file is vendored or generated, by its path."""
        return is_foreign(path) or self.foreign.search(path) is not None

    def test_modules(self, paths: Iterable[str]) -> tuple[str, ...]:
        """The modules of tests. Where some have a name that only tests have, other files of test folders are no
        tests but help them."""
        tests = tuple(filter(self.is_test_module, paths))
        named = tuple(path for path in tests if self.named_test and self.named_test.search(path))
        return named or tests


LANGUAGES: dict[str, Language] = {}
"""By name. The order is that of command lines and reports."""


def register(language: Language) -> None:
    """Make a language known to everything that serves languages. Every process of a campaign must do it."""
    LANGUAGES[language.name] = language
    _joined.cache_clear()


@cache
def _joined(name: str) -> re.Pattern[str]:
    """The pattern of any language, for the field of that name."""
    return re.compile("|".join(f"(?:{getattr(each, name).pattern})" for each in LANGUAGES.values()))


def is_test_path(path: str) -> bool:
    """Whether the file is a test or serves tests alone, by its path from the repository's root: below a folder
    for tests, or named as the tests of a registered language are. The one rule: what such a file holds is never
    source, and an agent's changes of it do not travel.

    >>> [is_test_path(p) for p in ("tests/a.py", "pkg/test_a.py", "pkg/contest.py", "conftest.py")]
    [True, True, False, True]
    """
    return _below_tests(path) or _joined("test_paths").search(f"/{path}") is not None


def _below_tests(path: str) -> bool:
    folders = path.split("/")[:-1]
    if TEST_FOLDERS.isdisjoint(folders):
        return False
    matches = (each.product.match(path) for each in LANGUAGES.values())
    start = next((match.end() for match in matches if match), None)
    return start is None or not TEST_FOLDERS.isdisjoint(path[:start].split("/"))


def is_harness(path: str) -> bool:
    """Whether a file decides how tests are built and run, by its name in any letter case.

    >>> [is_harness(p) for p in ("pkg/pyproject.toml", "web/vitest.config.ts", "Cargo.toml", ".mvn/jvm.config")]
    [True, True, True, True]
    >>> [is_harness(p) for p in ("build.rs", "src/cli/build.rs", "src/config.ts", "data/packages.json")]
    [True, False, False, False]
    """
    return _joined("harness").search(f"/{path.lower()}") is not None


def is_junk(path: str) -> bool:
    """Whether a path is a by-product of running programs, such as bytecode or installed packages, and never an
    intended change.

    >>> [is_junk(p) for p in ("web/node_modules/x/index.js", "core/target/classes/A.class", "src/target/cart.rs")]
    [True, True, False]
    """
    return _joined("junk").search(f"/{path}") is not None


def is_foreign(path: str) -> bool:
    """Whether the file is vendored or generated in any language, by its path.

    >>> is_foreign("third_party/a.py"), is_foreign("api/shop_pb2.py"), is_foreign("shop/cart.py")
    (True, True, False)
    """
    return bool(_GENERATED.search(path)) or is_vendored(path)


def is_vendored(path: str) -> bool:
    """Whether the file is a part of the environment, by the folders that hold it.

    >>> is_vendored("vendor/x/a.go"), is_vendored("web/.yarn/a.cjs"), is_vendored("api/shop_pb2.py")
    (True, True, False)
    """
    return not _NOT_WRITTEN_HERE.isdisjoint(path.split("/")[:-1])


def names_of(*names: str) -> str:
    """The pattern of paths, with a slash in front, whose last name is one of these.

    >>> bool(re.search(names_of("go.mod"), "/a/go.mod")), bool(re.search(names_of("go.mod"), "/cargo.mod"))
    (True, False)
    """
    return rf"/(?:{'|'.join(map(re.escape, sorted(names)))})\Z"


def manifests(pattern: str) -> Callable[[str], bool]:
    """Whether a file is one of the project and of its packages, not of its tests' data or of what it vendors.
    `pattern`: of the name."""
    names = re.compile(pattern)

    def is_manifest(path: str) -> bool:
        name = path.rpartition("/")[2]
        return names.fullmatch(name) is not None and not is_foreign(path) and not is_test_path(path)

    return is_manifest


def language_of(path: str) -> Language | None:
    """By the file's suffix.

    >>> [found.name for found in map(language_of, ("a.py", "web/a.mts", "A.kt", "a.c")) if found]
    ['Python', 'JavaScript', 'Java']
    """
    return next((language for language in LANGUAGES.values() if path.endswith(language.suffixes)), None)


def language_of_kind(kind: str) -> Language | None:
    """By the kind of an environment; None for commands of the task's own.

    >>> [found and found.name for found in map(language_of_kind, ("java", "commands"))]
    ['Java', None]
    """
    return next((language for language in LANGUAGES.values() if language.kind == kind), None)


def all_formats() -> dict[str, ReportFormat]:
    """The formats of results by name."""
    formats = (each for language in LANGUAGES.values() for each in language.formats)
    return {each.name: each for each in (*formats, ANY_JUNIT)}


def format_named(name: str) -> ReportFormat:
    """Raises `ResultError` where no registered language has such results."""
    found = all_formats().get(name)
    if found is None:
        raise ResultError(f"no language that is registered here has results of the format {name}")
    return found
