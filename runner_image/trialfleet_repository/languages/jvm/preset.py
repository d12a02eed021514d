"""Projects of Maven and Gradle."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from trialfleet_ledger.errors import OperatorError
from trialfleet_repository.languages.preset import ToolPreset, VersionOf, name_place, restrict_tree
from trialfleet_repository.trees import ROOT, Tree

if TYPE_CHECKING:
    from trialfleet_ledger.task import ToolEnvironment

_NONE_ELSEWHERE = ("-DfailIfNoTests=false", "-Dsurefire.failIfNoSpecifiedTests=false")  # in modules without it
# Checks that no test needs: two of jsoup's are a fifth of a run that compiles nothing.
_UNCHECKED = ("-Drat.skip", "-Dcheckstyle.skip", "-Denforcer.skip", "-Danimal.sniffer.skip")
# A <configuration> of a pom is stronger than properties: an extension takes it back.
_EXTENSION = """
lib=$(dirname "$(readlink -f "$(command -v mvn)")")/../lib jdk=$(dirname "$(readlink -f "$(command -v java)")")
mkdir -p {environment}/maven/META-INF/plexus && cd {environment}/maven || exit
"$jdk/javac" --release 8 -Xlint:-options -cp "$lib/*" -d . ../TestSettings.java ||
"$jdk/javac" -cp "$lib/*" -d . ../TestSettings.java || exit
cat >META-INF/plexus/components.xml <<END
<component-set><components><component>
<role>org.apache.maven.AbstractMavenLifecycleParticipant</role>
<role-hint>trialfleet</role-hint>
<implementation>TestSettings</implementation>
</component></components></component-set>
END
"""
# Then properties: of a project they would skip, select, repeat or reorder tests, or stop at the first failure.
_NEUTRAL = (
    "-DskipTests=false",
    "-Dmaven.test.skip=false",
    "-Dmaven.test.failure.ignore=false",
    "-Dsurefire.skipAfterFailureCount=0",
    "-Dsurefire.rerunFailingTestsCount=0",
    "-Dsurefire.runOrder=filesystem",
    "-Dgroups=",
    "-DexcludedGroups=",
)
_LOADED = "-Dmaven.ext.class.path={environment}/maven"
_MAVEN = ("mvn", "-B", "-ntp", "-fae", _LOADED, *_UNCHECKED, *_NEUTRAL, "test")
# Builds are short: without the second compiler a small project's tests take half the core seconds (6.3, 3.2).
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
GRADLE_FILES = ("settings.gradle", "settings.gradle.kts", "build.gradle", "build.gradle.kts")
_WRAPPER = "gradle/wrapper/gradle-wrapper.properties"
_WRAPPER_VERSION = re.compile(rb"^distributionUrl=.*/gradle-(\d[\w.]*)-(?:bin|all)\.zip\s*$", re.MULTILINE)
_GRADLE = (
    "--no-daemon",
    "--console=plain",
    "--init-script={environment}/gradle_tests.gradle",
    "--continue",
    "test",
)


def make_java_preset(environment: ToolEnvironment, tree: Tree, version_of: VersionOf) -> ToolPreset:
    package = restrict_tree(tree, environment.directory)
    if "pom.xml" in package:
        return _maven(environment, package)
    if any(name in package for name in GRADLE_FILES):
        return _gradle(environment, package, version_of)
    raise OperatorError(
        f"{name_place(environment.directory)} has no pom.xml and no build of Gradle",
        where="environment",
        hint="name the project's folder as `directory`, or use kind commands with `results: junit`",
    )


def _maven(environment: ToolEnvironment, tree: Tree) -> ToolPreset:
    return ToolPreset(
        tools={"java": "", "mvn": ""},
        inputs=("pom.xml", ".mvn/*"),
        directory=environment.directory or ROOT,
        # Maven fetches some plugins only when tests run: those of one class do.
        fetch=(
            ("sh", "-c", _EXTENSION),
            (*_MAVEN, "-Dmaven.test.failure.ignore=true", *_first_test(tree), *_NONE_ELSEWHERE),
        ),
        # Which repository or mirror an artifact came from: offline, Maven would refuse what came from another.
        drop=("m2/**/_remote.repositories",),
        variables={
            "MAVEN_OPTS": f"{_SHORT_LIVED} -Duser.home={{home}} -Dmaven.repo.local={{home}}/.m2/repository"
        },
        links={"m2": "{home}/.m2/repository"},
        test_command=(*_MAVEN, "-o", "-Dtest={tests}", *_NONE_ELSEWHERE),
        results="surefire",
    )


def _first_test(tree: Tree) -> tuple[str, ...]:
    """The first by its path: neighbouring commits have the same."""
    tests = sorted(path for path in tree if path.endswith("Test.java") and "src/test/java/" in path)
    return (f"-Dtest={PurePosixPath(tests[0]).stem}",) if tests else ()


def _gradle(environment: ToolEnvironment, tree: Tree, version_of: VersionOf) -> ToolPreset:
    """By the wrapper, unless this machine has its version. It downloads Gradle when dependencies are fetched."""
    wrapper = _wrapped(tree)
    given = environment.tools is not None and "gradle" in environment.tools
    own = wrapper is None or given or _has(wrapper, version_of)
    if own and any(name.endswith(".gradle.kts") for name in tree):
        _check_kotlin(version_of)
    gradle = ("gradle",) if own else ("sh", "gradlew")
    return ToolPreset(
        tools={"java": "", "gradle": ""} if own else {"java": ""},
        inputs=("*.gradle", "*.gradle.kts", "gradle.properties", "gradle.lockfile", "*.versions.toml", _WRAPPER),
        directory=environment.directory or ROOT,
        # What tests need is resolved before Gradle finds that none has this name.
        fetch=((*gradle, *_GRADLE, "--tests", "no.test.of.this.Name"),),
        variables={"GRADLE_OPTS": f"{_SHORT_LIVED} -Duser.home={{home}}", "GRADLE_USER_HOME": "{home}/.gradle"},
        links={"gradle": "{home}/.gradle"},
        drop=("gradle/daemon", "gradle/workers"),
        test_command=(*gradle, "--offline", *_GRADLE, "{tests}"),
        results="gradle",
    )


def _wrapped(tree: Tree) -> str | None:
    """The version that the repository's wrapper would download, "" for one that it does not say; None without a
    wrapper."""
    if "gradlew" not in tree or _WRAPPER not in tree:
        return None
    found = _WRAPPER_VERSION.search(tree[_WRAPPER].data)
    return found[1].decode() if found else ""


def _check_kotlin(version_of: VersionOf) -> None:
    """Older releases take a build in Kotlin for an empty one."""
    version = version_of("gradle")
    if version.partition(".")[0] in {"1", "2", "3", "4"}:
        raise OperatorError(
            f"this machine's Gradle {version} cannot read a build in Kotlin",
            where="environment.tools",
            hint="install Gradle 5 or newer and put it first on PATH, or choose commits with a wrapper of Gradle",
        )


def _has(version: str, version_of: VersionOf) -> bool:
    try:
        return version_of("gradle") == version
    except OperatorError:
        return False
