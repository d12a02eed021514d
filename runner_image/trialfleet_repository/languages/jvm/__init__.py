"""Java and Kotlin."""

from __future__ import annotations

import re

from trialfleet_repository.languages.protocol import Language, manifests, names_of

_TEST_MODULE = re.compile(
    r"(?:^|/)src/test/(?:.*/)?(?:[^/]*(?:Tests?|TestCase|IT)|Test[^/]*|[^/]*Spec(?=\.kt))\.(?:java|kt)$"
)


def _is_test_module(path: str) -> bool:
    return _TEST_MODULE.search(path) is not None and not JVM.is_foreign(path)


JVM = Language(
    name="Java",
    suffixes=(".java", ".kt"),
    test_paths=re.compile(  # source sets besides src/main
        r"(?:\A|/)src/(?:test|(?:[A-Za-z]+Tests?|testFixtures|it|jmh)/(?:java|kotlin|groovy|resources))/"
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
        + r"|(?:\A|/)(?:\.mvn|buildsrc)/|[^/]\.gradle(?:\.kts)?\Z"
    ),
    junk=re.compile(  # a source folder may be called target, too
        r"(?:\A|/)target/(?:classes|test-classes|surefire-reports|maven-status|maven-archiver|generated-sources"
        r"|generated-test-sources)(?:/|\Z)"
        r"|(?:\A|/)build/(?:test-results|classes/(?:java|kotlin)|reports/tests|tmp/compile\w*Java)(?:/|\Z)"
        r"|(?:\A|/)\.gradle/(?:\d|buildOutputCleanup/|vcs)"
    ),
    product=re.compile(r"(?:[\s\S]*?/)?src/main/(?=(?:java|kotlin)/[\s\S]*\.(?:java|kt)\Z)"),
)
