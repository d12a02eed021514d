"""Java and Kotlin."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from trialfleet_repository.languages.jvm.classes import give_classes, give_filters, java_class
from trialfleet_repository.languages.jvm.names import NAMES
from trialfleet_repository.languages.jvm.pass_cautions import PASS_CAUTIONS
from trialfleet_repository.languages.jvm.preset import GRADLE_FILES, make_java_preset
from trialfleet_repository.languages.jvm.product import find_jvm_product, find_jvm_sources
from trialfleet_repository.languages.jvm.project import find_project
from trialfleet_repository.languages.jvm.registry import find_maven_mirrors
from trialfleet_repository.languages.jvm.surefire import read_gradle, read_surefire
from trialfleet_repository.languages.protocol import Language, manifests, names_of
from trialfleet_repository.languages.report_format import ReportFormat
from trialfleet_repository.languages.survey_traits import SurveyTraits
from trialfleet_repository.languages.tool_traits import ToolTraits
from trialfleet_repository.languages.traces import TraceStyle

_TEST_MODULE = re.compile(
    r"(?:^|/)src/test/(?:.*/)?(?:[^/]*(?:Tests?|TestCase|IT)|Test[^/]*|[^/]*Spec(?=\.kt))\.(?:java|kt)$"
)


_SUREFIRE, _GRADLE = "target/surefire-reports/TEST-*.xml", "build/test-results/*/TEST-*.xml"
_MAVEN_COMPILED = ("classes", "test-classes", "generated-sources", "generated-test-sources", "maven-status")


def _compiled_by_maven(workspace: Path) -> Iterable[Path]:
    """Without its reports."""
    targets = [Path(folder) / "target" for folder, _, files in os.walk(workspace) if "pom.xml" in files]
    return (target / name for target in targets if not target.is_symlink() for name in _MAVEN_COMPILED)


def _is_test_module(path: str) -> bool:
    return _TEST_MODULE.search(path) is not None and not JVM.is_foreign(path)


JVM = Language(
    name="Java",
    suffixes=(".java", ".kt"),
    test_paths=re.compile(  # source sets besides src/main
        r"/src/(?:test|(?:[A-Za-z]+Tests?|testFixtures|it|jmh)/(?:java|kotlin|groovy|resources))/"
    ),
    is_test_module=_is_test_module,
    is_manifest=manifests(
        r"pom\.xml|.*\.gradle(?:\.kts)?|gradle\.properties|gradle\.lockfile|libs\.versions\.toml|maven\.config|jvm\.config"
        r"|(?:gradle|maven)-wrapper\.properties|\.java-version|\.sdkmanrc|\.tool-versions"
    ),
    foreign=re.compile(r"(?:^|/)(?:generated|generated-sources|generated-src|\.mvn|\.gradle)/"),
    harness=re.compile(
        names_of(
            *("pom.xml", "gradle.properties", "gradle.lockfile", "gradlew", "gradlew.bat", "mvnw", "mvnw.cmd"),
        )
        + r"|/(?:\.mvn|buildsrc)/|[^/]\.gradle(?:\.kts)?\Z"
    ),
    junk=re.compile(  # a source folder may be called target, too
        r"/target/(?:classes|test-classes|surefire-reports|maven-status|maven-archiver|generated-sources"
        r"|generated-test-sources)(?:/|\Z)"
        r"|/build/(?:test-results|classes/(?:java|kotlin)|reports/tests|tmp/compile\w*Java)(?:/|\Z)"
        r"|/\.gradle/(?:\d|buildOutputCleanup/|vcs)"
    ),
    product=re.compile(r"(?:[\s\S]*?/)?src/main/(?=(?:java|kotlin)/[\s\S]*\.(?:java|kt)\Z)"),
    product_files=find_jvm_product,
    sources_of=find_jvm_sources,
    kind="java",
    preset=make_java_preset,
    find_package=find_project,
    programs=("java", "mvn", "gradle"),
    program_of={"pom.xml": "mvn", "gradlew": "java", **dict.fromkeys(GRADLE_FILES, "gradle")},
    installs={"mvn": "apt-get install maven", "gradle": "apt-get install gradle"},
    asks={"java": "-version", "javac": "-version"},
    version_line=re.compile(r"(?m:^)Gradle (\d+(?:\.\d+)+)"),  # Debian's names its JVM's first
    own_files=tuple(map(Path(__file__).with_name, ("gradle_tests.gradle", "TestSettings.java"))),
    registry_files=find_maven_mirrors,
    tools=ToolTraits(  # what Gradle caches are also results of tests
        compiled_beside={"m2": _compiled_by_maven},
        written=(".bin", ".lock", ".lck"),
    ),
    formats=(
        ReportFormat(
            "surefire",
            lambda files: read_surefire(files.read_reports(_SUREFIRE), files.output),
            (".java", ".kt"),
            "JUnit",
            give_classes,
            unit_of=java_class,
        ),
        ReportFormat(
            "gradle",
            lambda files: read_gradle(files.read_reports(_GRADLE), files.output),
            (".java", ".kt"),
            "JUnit",
            give_filters,
            unit_of=java_class,
        ),
    ),
    traces=(
        TraceStyle(
            re.compile(
                r"(?:\[ERROR\] )?\s*at (?:[^\s()/]*/)*(?P<name>[\w.$<>]+)"
                r"\((?P<file>[\w.$-]+\.(?:java|kt|groovy|scala)):\d+\)"
            ),
            between=re.compile(r"\s*\.\.\. \d+ "),
            cause=re.compile(r"(?:\[ERROR\] )?\s*(?:Caused by|Suppressed): "),
        ),
    ),
    class_files=(".java", ".kt", ".groovy", ".scala"),
    names=NAMES,
    settings_in_code=False,
    pass_cautions=PASS_CAUTIONS,
    too_old=re.compile(
        r"(?i)release version [\w.]+ not supported|invalid (?:target|source) release|UnsupportedClassVersionError"
        r"|requires Maven version [\d.]+"
        r"|this machine's Gradle [\d.]+ cannot read|Minimum supported Gradle version is|requires at least Gradle"
        r"|Could not find method (?:useJUnitPlatform|dependencyResolutionManagement|toolchain|register|named)\(\)"
    ),
    too_new=re.compile(
        r"(?i)(?:source|target) option \d+ is no longer supported|unsupported class file major version"
    ),
    survey=SurveyTraits(
        {".java": "Java", ".kt": "Kotlin"},
        ("pom.xml", "build.gradle", "build.gradle.kts"),
        ("gradle.lockfile",),
        lambda name, _: ("maven",) if name == "pom.xml" else (),
        re.compile(r"\b(?:mvn|gradle)\b"),
    ),
)
