"""Tests that must fail, for one task: made, run once at the fixed tree, and kept if nothing else changes there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from trialfleet_ledger.canonical import digest
from trialfleet_ledger.records.task_order import MustFailTest
from trialfleet_repository.languages import format_named
from trialfleet_repository.languages.must_fail import FailingFile, FailToPass, NoMustFail
from trialfleet_repository.shared_runs import SharedRun, judge_shared
from trialfleet_repository.testrun import TestRun
from trialfleet_repository.trees import EntryKind, Tree, TreeEntry
from trialfleet_tasks.validate.inputs import Prepared
from trialfleet_tasks.validate.judge import DiscoveredTests, not_a_run

RunFixed = Callable[[tuple[str, ...], Mapping[str, TreeEntry]], TestRun]  # tests, further files -> a run


@dataclass(frozen=True)
class PassControl:
    """`test`: None if there is none; `words`: how many, or why there is none."""

    test: MustFailTest | None
    words: str


def make_control(found: DiscoveredTests, prepared: Prepared, run: RunFixed) -> PassControl:
    """`run`: at the fixed tree, from a fresh copy; called once at most. `found`: its tests pass there."""
    if not found.fail_to_pass:
        return _none("no test fails before the fix")
    results, tree = prepared.environment.results, prepared.variants.pristine
    mark = f"z{digest([prepared.digest, 'must fail'])[:8]}"  # a word that nobody knows before
    files = dict(_test_files(found.fail_to_pass, format_named(results).suffixes, tree))
    try:
        made = format_named(results).must_fail(FailToPass(found.fail_to_pass, files, mark))
    except NoMustFail as error:
        return _none(str(error))
    if made.path in tree:
        return _none(f"{made.path} exists")
    ids = (*found.fail_to_pass, *found.pass_to_pass)
    return judge_control(run((*ids, *made.tests), {made.path: TreeEntry(made.text.encode())}), made, ids, mark)


def judge_control(run: TestRun, made: FailingFile, ids: tuple[str, ...], mark: str) -> PassControl:
    """Whether the tests fail as tests, and the others still pass. The exit code is kept if it tells that."""
    tells = run.exit.code == made.exit_code
    problem = not_a_run(replace(run, exit=replace(run.exit, code=1)) if tells else run, "fixed")
    if problem is not None:
        return _none(f"with it, {problem.message}")
    changed = next((result for result in run.results(ids) if result.outcome != "passed"), None)
    if changed is not None:
        return _none(f"with it, {changed.id}: {changed.outcome}")
    outcomes = run.function_outcomes(made.path)
    marked = {name: seen for name, seen in outcomes.items() if mark in name.partition("::")[2]}
    failed = tuple(name for name, seen in marked.items() if seen == {"failed"})
    if not failed:
        return _none("its tests do not fail")
    test = MustFailTest(path=made.path, text=made.text, ids=failed, exit_code=made.exit_code)
    if judge_shared(run, test, ids) is not SharedRun.PASSED:
        test = test.model_copy(update={"exit_code": None})
    return PassControl(test, f"{len(failed)} test{'' if len(failed) == 1 else 's'} that must fail")


def _none(reason: str) -> PassControl:
    return PassControl(None, f"none ({reason})")


def _test_files(ids: tuple[str, ...], suffixes: tuple[str, ...], tree: Tree) -> Iterator[tuple[str, str]]:
    """The files of the ids, as text; where ids name packages, the test files of folders that may be theirs."""
    units = dict.fromkeys(test.partition("::")[0] for test in ids)
    paths = [unit for unit in units if unit in tree] or [
        path
        for path in tree
        if path.endswith(suffixes) and any(f"/{unit}".endswith(f"/{path.rpartition('/')[0]}") for unit in units)
    ]
    for path in paths:
        if tree[path].kind is EntryKind.LINK:
            continue
        try:
            yield path, tree[path].data.decode("utf-8-sig")
        except UnicodeDecodeError:
            continue
