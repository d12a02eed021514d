"""Classes of source files: what Surefire and Gradle are given to run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from trialfleet_repository.languages.report_format import ReadFile, each_once, units_of

_SOURCE_ROOT = re.compile(r"(?:.*/)?(?:java|kotlin|groovy|scala)/(.+)")
_JVM_SOURCE = re.compile(r"\.(?:java|kt|groovy|scala)$")


def give_classes(tests: Sequence[str], _: ReadFile) -> tuple[str, ...]:
    """For Surefire, which gets them joined by commas."""
    return each_once(java_class(unit).partition("$")[0] for unit in units_of(tests))


def give_filters(tests: Sequence[str], read: ReadFile) -> tuple[str, ...]:
    """For Gradle."""
    return tuple(word for name in give_classes(tests, read) for word in ("--tests", name))


def java_class(unit: str) -> str:
    """The class of a source file, as Surefire names it; a class is returned as it is.

    >>> java_class("app/src/test/java/org/x/FooTest.java"), java_class("t/FooTest.kt"), java_class("org.x.FooTest")
    ('org.x.FooTest', 'FooTest', 'org.x.FooTest')
    """
    if not _JVM_SOURCE.search(unit):
        return unit
    match = _SOURCE_ROOT.fullmatch(unit)
    path = match[1] if match else PurePosixPath(unit).name
    return _JVM_SOURCE.sub("", path).replace("/", ".")
