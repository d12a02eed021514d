"""Facts of every version of every file that the cases need, learnt in one go.

A prediction parses in processes of its own, which can be ended; an evaluation asks for hundreds of commits, and a
process for each would take longer than all of its files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trialfleet_targets.encoding import encoded
from trialfleet_targets.evaluation.cases import Case, family
from trialfleet_targets.kept import Kept
from trialfleet_targets.parsing import parse
from trialfleet_targets.repository import Entry, GitError, Repository
from trialfleet_targets.source_files import Row, facts_key
from trialfleet_targets.testfiles import is_test

LARGEST = 2**20  # bytes of a file


def rows(repository: Repository, case: Case) -> dict[str, Row]:
    """The files of the case's language at its parent, in the order of their paths, without very large ones."""
    missing = repository.missing(case.parent)
    entries = [
        entry
        for entry in repository.tree(case.parent)
        if family(entry.path) == case.language and _readable(entry) and entry.blob not in missing
    ]
    sizes = repository.sizes([entry.blob for entry in entries])
    return {
        entry.path: Row(entry.blob, facts_key(entry.path, entry.blob), is_test(entry.path))
        for entry in sorted(entries, key=lambda entry: entry.path)
        if sizes.get(entry.blob, LARGEST + 1) <= LARGEST
    }


def learn(repository: Repository, kept: Kept, trees: Iterable[Mapping[str, Row]], *, tests: bool) -> None:
    """Keeps the facts of all these files, of tests only when asked to. Raises `GitError` for a missing object."""
    wanted = {row.key: (path, row) for tree in trees for path, row in tree.items() if tests or not row.test}
    for key in kept.known(list(wanted)):
        del wanted[key]
    versions: dict[str, list[tuple[str, Row]]] = {}
    for path, row in wanted.values():
        versions.setdefault(row.blob, []).append((path, row))
    for blob, data in repository.contents(versions):
        kept.put({row.key: encoded(parse(path, data)) for path, row in versions[blob]})


def learn_for(repository: Repository, kept: Kept, cases: Iterable[Case]) -> None:
    """`learn`, tests included, for the parents of all cases. What cannot be read is left to who asks for it."""
    for case in cases:
        try:
            learn(repository, kept, [rows(repository, case)], tests=True)
        except GitError:
            continue


def _readable(entry: Entry) -> bool:
    return not (entry.link or entry.submodule) and entry.path.isprintable()
