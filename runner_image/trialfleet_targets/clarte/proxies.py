"""Which file a test file is about, by its name: test paths say what they cover."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import PurePosixPath

import numpy as np

from trialfleet_targets.arrays import Ints
from trialfleet_targets.snapshot import SourceFile
from trialfleet_targets.syntax_facts import ParsedLanguage

MAX_COVERED = 3  # more files of one name and equally near: the name says nothing
_BEFORE = re.compile(r"^(tests?[_-]|Test(?=[A-Z]))")
_AFTER = re.compile(r"([_.-](tests?|spec)|(?<=[a-z0-9])(Tests?|TestCase|Spec|IT))$")
_FAMILY = {ParsedLanguage.TYPESCRIPT: ParsedLanguage.JAVASCRIPT}


def subject(stem: str) -> str:
    """What remains of a test's name without the words that make it one; the name itself when there are none.

    >>> [subject(stem) for stem in ("test_views", "guard.spec", "SessionTest", "TestParser", "mux_test", "latest")]
    ['views', 'guard', 'Session', 'Parser', 'mux', 'latest']
    """
    return _AFTER.sub("", _BEFORE.sub("", stem))


def covered(files: Mapping[str, SourceFile]) -> tuple[Ints, Ints]:
    """Pairs of a test and a file that it covers, as numbers of the files in the order of their paths.

    A file is covered when it is no test, of the test's language, and has the name that remains of the test's; of
    several those that share most directories with it, at most three.
    """
    number = {path: at for at, path in enumerate(sorted(files))}
    by_name: defaultdict[tuple[ParsedLanguage, str], list[PurePosixPath]] = defaultdict(list)
    for path, file in files.items():
        if not file.test:
            pure = PurePosixPath(path)
            by_name[_family(file), pure.stem.lstrip("_").lower()].append(pure)
    pairs: list[tuple[int, int]] = []
    for path, file in files.items():
        if file.test:
            test = PurePosixPath(path)
            found = _nearest(test, by_name.get((_family(file), subject(test.stem).lower()), []))
            pairs += ((number[path], number[str(one)]) for one in found)
    columns = np.asarray(sorted(pairs), dtype=np.int32).reshape(len(pairs), 2)
    return columns[:, 0].copy(), columns[:, 1].copy()


def _nearest(test: PurePosixPath, named: list[PurePosixPath]) -> list[PurePosixPath]:
    around = set(test.parts[:-1])
    shared = [len(around & set(one.parts[:-1])) for one in named]
    best = [one for one, count in zip(named, shared, strict=True) if count == max(shared)]
    return best if len(best) <= MAX_COVERED else []


def _family(file: SourceFile) -> ParsedLanguage:
    return _FAMILY.get(file.facts.language, file.facts.language)
