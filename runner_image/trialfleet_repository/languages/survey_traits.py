"""What tells a language in a repository."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field


def _no_runners(_name: str, _data: bytes) -> Iterable[str]:
    return ()


@dataclass(frozen=True)
class SurveyTraits:
    """`names`: by suffixes, as people name the language of such a file. `manifests`, `locks`: names of files.
    `test_runners`: those that a file of the project tells, by its last name and content. `test_command`: matches a
    line of CI that runs tests."""

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    manifests: tuple[str, ...] = ()
    locks: tuple[str, ...] = ()
    test_runners: Callable[[str, bytes], Iterable[str]] = _no_runners
    test_command: re.Pattern[str] = re.compile(r"(?!)")


NO_SURVEY = SurveyTraits()
