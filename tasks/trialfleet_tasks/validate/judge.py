"""Judges a task from test runs on both trees. Pure: outcomes in, problems out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from trialfleet_repository import testrun
from trialfleet_repository.passed_runs import agrees
from trialfleet_repository.results.junit import JunitCase, collection_failures
from trialfleet_repository.testrun import TestRun
from trialfleet_tasks.validate.left_out import DESELECTED, DIFFERS, LATE, NAMES_A_PLACE, UNTOLD, explain_left_out
from trialfleet_tasks.validate.record import OUTPUT_CHARS, Problem, ProblemKind, TreeName

_ERROR = re.compile(r"(?:E\s+|ERROR:?\s+)?[\w.]*(?:Error|Exception|ERROR)\b")
_COMPILER = re.compile(r"(?:\S+: )?error(?:\[\w+\]| TS\d+)?: (?!could not compile|aborting due to)")
_NETWORK = re.compile(
    r"name resolution|Name or service not known|Network is unreachable|No address associated with hostname|"
    r"Failed to establish a new connection|All connection attempts failed|getaddrinfo|Could not resolve host|"
    r"dial (?:tcp|udp)\d?: lookup |no such host|UnknownHostException|"
    r"Connection ?refused|ECONNREFUSED|Cannot connect to the Docker daemon|find a valid Docker environment",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^_{2,} (?:ERROR at (?:setup|teardown) of )?(\S.*?) _{2,}$", re.MULTILINE)  # pytest's
# Of vitest, Bun, node:test, Jest, Mocha, pytest-timeout and JUnit, at the start of a failure
_TIME_LIMIT = re.compile(
    r"(?:[\w.$]+:\s+)?[\"']?(?:(?:this )?test |execution |[\w.$]+\([^()\n]{0,200}\) )?"
    r"(?:timed out (?:in|after) [\d.]+ ?(?:ms|s|milli|sec|min)|exceeded timeout of [\d.]+ ?m?s\b"
    r"|timeout of [\d.]+ ?m?s exceeded|timeout \(?>\s?[\d.]+s)",
    re.IGNORECASE,
)
NO_PYTEST = "the task's environment has no pytest"
_NO_PYTEST = re.compile(r"No module named '?pytest'?\s*$", re.MULTILINE)
Outcomes = Mapping[str, str]  # test id -> outcome of one run; absent: missing

_HINTS: Mapping[str, str] = {
    "collection_error": "a test that cannot be collected fails for every agent: choose tests that can be imported "
    "at the pre-fix tree, or add what is missing to the lock",
    "no_tests_collected": "check test_file, test_pattern and the test runner's options in the repository",
    "usage_error": "check the test ids, test_file and test_command",
    "internal_error": "run the command by hand; a plugin may be missing from the lock",
    "interrupted": "run the command by hand",
    "timeout": "raise the time limit of the tests, or choose fewer tests",
    "resources": "raise the memory limit",
    "missing_interpreter": "check the first word of test_command",
    "not_executable": "check the first word of test_command",
    "signal": "the interpreter crashed: check the lock",
    "no_junit": "test_command must write its results, for pytest JUnit XML, to {junit}",
}
_WAITED = (
    "the tests waited rather than computed: they run without a network, which some tools try again for long; "
    "choose others, or raise the time limit of the tests"
)
_SAID = {
    "collection_error": "the tests cannot be collected",
    "no_tests_collected": "no test was collected",
    "usage_error": "pytest refused its arguments (a wrong path or option)",
    "internal_error": "pytest failed with an internal error",
    "interrupted": "the tests were interrupted",
    "timeout": "the tests took too long",
    "resources": "the tests ran out of memory or disk",
    "missing_interpreter": "the program of test_command does not exist",
    "not_executable": "the program of test_command cannot be executed",
    "signal": "the tests were killed by a signal",
    "no_junit": "no results were written",
}


def words(tree: TreeName) -> str:
    """As sentences name it."""
    return "fixed tree" if tree == "fixed" else "pre-fix tree"


def not_a_run(run: TestRun, tree: TreeName) -> Problem | None:
    """The reason why this run has no test results, or why no attempt with the fix could pass."""
    found = testrun.trouble(run)
    if found is None:
        return None if tree == "pre_fix" or agrees(run) else _disagreement(run, tree)
    if found == "no_junit" and _NO_PYTEST.search(run.output):
        return Problem(
            kind=ProblemKind.NO_JUNIT,
            message=f"at the {words(tree)}: {NO_PYTEST}",
            hint="add pytest to environment.lock; `uv pip compile --generate-hashes` writes it",
            tree=tree,
        )
    return Problem(
        kind=ProblemKind(found),
        message=f"at the {words(tree)}: {_SAID[found]} ({_ended(run)}){_detail(run)}",
        hint=_WAITED if _waited(run) else _HINTS[found],
        tree=tree,
        output=run.output[-OUTPUT_CHARS:],
    )


def _disagreement(run: TestRun, tree: TreeName) -> Problem:
    failed = sum(case.outcome in ("failed", "error") for case in run.cases or ())
    said = f"{failed or 'no'} test{'' if failed == 1 else 's'}"
    return Problem(
        kind=ProblemKind.EXIT_CODE,
        message=f"at the {words(tree)}: exit {run.exit.code}, though {said} failed{_detail(run)}",
        hint="a pass needs an exit code that agrees with the results: a setting or plugin of the project may "
        "change the exit code, as --cov-fail-under of pytest-cov does; leave it out of the test command",
        tree=tree,
        output=run.output[-OUTPUT_CHARS:],
    )


def describe_settings(run: TestRun) -> tuple[str, ...]:
    """The project's own options that the run did without, as one sentence."""
    options = ", ".join(run.settings.taken_back)
    return (f"the project's settings have no effect on which tests count: {options}",) if options else ()


def not_all_ran(run: TestRun) -> Problem | None:
    """At the fixed tree: a test that its runner has and that has no result. Where no result has the id of a test,
    ids tell nothing."""
    collected = run.settings.collected or ()
    missing = [result.id for result in run.results(collected) if result.outcome == "missing"]
    if not missing or len(missing) == len(collected):
        return None
    return Problem(
        kind=ProblemKind.TESTS_LEFT_OUT,
        message=f"at the fixed tree: {len(missing)} of {len(collected)} tests that are collected have no result, "
        f"such as {missing[0]}",
        hint="a plugin, conftest.py, TestMain, test runner or test of the project ends the run early, selects "
        "tests, or gives them other names in the report",
        tree="fixed",
        output=run.output[-OUTPUT_CHARS:],
    )


def _ended(run: TestRun) -> str:
    """Of a time-out, how much of a core the tests had: with little, they waited, or others had the cores."""
    wall_s, core_s = run.exit.wall_s, run.exit.core_s
    if run.exit.cause != "timeout" or core_s is None:
        return f"exit {run.exit.code}"
    return f"ended after {wall_s:.0f} s, with {core_s:.0f} s of core time"


def _waited(run: TestRun) -> bool:
    """Whether it was ended while the tests had less than half of a core."""
    wall_s, core_s = run.exit.wall_s, run.exit.core_s
    return run.exit.cause == "timeout" and core_s is not None and core_s < wall_s / 2


def _detail(run: TestRun) -> str:
    """The line that names an error, otherwise the last lines."""
    failures = collection_failures(run.cases or ())
    text = failures[0].text if failures else run.output
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    named = [line for line in lines if _ERROR.match(line)][-1:]
    compiled = [line for line in lines if _COMPILER.match(line)][:1]  # the first: others follow from it
    return ": " + " | ".join(named or compiled or lines[-3:])[:400] if lines else ""


def needs_network(run: TestRun) -> bool:
    """Whether every test that failed says that it could not reach a network, or a service such as a database: in
    its failure, or in what pytest captured of it. A test whose output was cut off is not asked.

    Tests run without any: what they print is the resolver's or the kernel's own message.
    """
    failed = [case for case in run.cases or () if case.outcome in ("failed", "error")]
    printed = _HEADING.split(run.output)[1:]  # a heading and what is below it, in turn
    asked = 0
    for case in failed:
        below = [
            text
            for heading, text in zip(printed[::2], printed[1::2], strict=True)
            if heading == case.name or heading.endswith(f".{case.name}")
        ]
        if _NETWORK.search("\n".join((case.message, case.text, *below))):
            asked += 1
        elif below or not run.left_out:
            return False
    return asked > 0


def out_of_time(run: TestRun, ids: Iterable[str]) -> tuple[str, ...]:
    """Those of `ids` that failed by a time limit of their runner alone: a faster machine passes them."""
    ids = tuple(ids)
    rest = replace(run, cases=tuple(case for case in run.cases or () if not _late(case)))
    still = {result.id for result in rest.results(ids) if result.outcome == "failed"}
    return tuple(r.id for r in run.results(ids) if r.outcome == "failed" and r.id not in still)


def _late(case: JunitCase) -> bool:
    return any(_TIME_LIMIT.match(text.lstrip()) for text in (case.message, case.text))


def in_time(found: DiscoveredTests, late: Collection[str]) -> DiscoveredTests:
    """Without the fail-to-pass tests that are out of time before the fix."""
    fail = tuple(test for test in found.fail_to_pass if test not in late)
    if fail or not late:
        return found.keep_failing(fail, LATE)
    return DiscoveredTests((), (), found.warnings, late_problems(late)[:1])


def late_problems(late: Iterable[str]) -> tuple[Problem, ...]:
    return tuple(
        Problem(
            kind=ProblemKind.TIMEOUT,
            message=f"{test}: fails at the pre-fix tree by its own time limit alone",
            hint="a faster machine passes it without the fix: choose a test that fails by what it checks",
            tree="pre_fix",
        )
        for test in late
    )


@dataclass(frozen=True)
class DiscoveredTests:
    """Ids that a discovery found, and its warnings. `left_out`: id of a test that does not count, or path of a
    file -> why."""

    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    warnings: tuple[str, ...] = field(default=())
    problems: tuple[Problem, ...] = field(default=())
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])

    def keep_failing(self, fail: Iterable[str], why: str) -> DiscoveredTests:
        """With these fail-to-pass tests alone; the others are left out for this reason."""
        kept = tuple(fail)
        lost = dict.fromkeys((test for test in self.fail_to_pass if test not in kept), why)
        return replace(self, fail_to_pass=kept, left_out={**self.left_out, **lost})


def discover(
    before: Outcomes, after: Outcomes, *, places: Iterable[str] = (), deselected: Collection[str] = ()
) -> DiscoveredTests:
    """Fail-to-pass: fails as a test before and passes after. Pass-to-pass: passes both times, and is none of
    `deselected`, which the project's own settings leave out: slow tests, or those that fail by chance.

    An id that holds one of `places` (paths that are others on other machines, as in a test's parameters) is left
    out: elsewhere no test has it.
    """
    bound = tuple(i for i in after if any(place in i for place in places))
    before, after = ({i: said for i, said in run.items() if i not in bound} for run in (before, after))
    fail = tuple(i for i in after if after[i] == "passed" and before.get(i) == "failed")
    keep = tuple(i for i in after if after[i] == "passed" and before.get(i) == "passed")
    left = {**dict.fromkeys(bound, NAMES_A_PLACE), **dict.fromkeys(set(keep).intersection(deselected), DESELECTED)}
    keep = tuple(i for i in keep if i not in left)
    left |= {
        i: explain_left_out(before.get(i), after.get(i))
        for i in {**after, **before}
        if i not in {*fail, *keep, *left}
    }
    local = tuple(f"{i}: excluded, because it names a path of this machine" for i in bound)
    warnings = local + tuple(
        f"{i}: {before[i]} before and {after.get(i, 'missing')} after the fix"
        for i in before
        if before[i] in ("failed", "error") and i not in fail
    )
    if fail:
        return DiscoveredTests(fail, keep, warnings, left_out=left)
    backwards = tuple(i for i in before if before[i] == "passed" and after.get(i) == "failed")
    if backwards:
        return DiscoveredTests((), keep, warnings, (_swapped(backwards),), left)
    if any(outcome in ("failed", "error") for outcome in before.values()):
        broken = any(after.get(i) in ("failed", "error") for i, said in before.items() if said != "passed")
        problem = Problem(
            kind=ProblemKind.FAILS_AT_FIX if broken else ProblemKind.NO_FAIL_TO_PASS,
            message="no test that fails at the pre-fix tree passes at the fixed one: " + "; ".join(warnings[:3]),
            hint="check the two trees and the lock",
        )
    else:
        problem = _nothing_fails([i for i, outcome in after.items() if outcome == "skipped"], ran=bool(keep))
    return DiscoveredTests((), keep, warnings, (problem,), left)


def _nothing_fails(skipped: Sequence[str], *, ran: bool) -> Problem:
    """At the pre-fix tree. `ran`: whether any test did."""
    if skipped and not ran:
        return Problem(
            kind=ProblemKind.ALL_SKIPPED,
            message=f"every test is skipped, for example {skipped[0]}",
            hint="`pytest -rs` says what they ask for, such as a program",
        )
    also = f"; {len(skipped)} more are skipped" if skipped else ""
    return Problem(
        kind=ProblemKind.ALREADY_PASSES,
        message=f"every test passes at the pre-fix tree already{also}",
        hint="choose the tests that show the bug",
    )


def told(found: DiscoveredTests, untold: Mapping[str, str]) -> DiscoveredTests:
    """Without the fail-to-pass tests that use a name which no prompt tells. `untold`: test -> that name."""
    fail = tuple(test for test in found.fail_to_pass if test not in untold)
    if fail or not found.fail_to_pass:
        return found.keep_failing(fail, UNTOLD)
    test, name = next(iter(untold.items()))
    problem = Problem(kind=ProblemKind.NAMES_WHAT_ONLY_THE_FIX_ADDS, message=f"{test} uses {name}")
    return DiscoveredTests((), (), found.warnings, (problem,))


def steady(
    found: DiscoveredTests,
    before: Sequence[Outcomes],
    after: Sequence[Outcomes],
    alone: Sequence[Outcomes] = (),
) -> DiscoveredTests:
    """The ids whose outcome is the same in all repeated runs; flaky ids are dropped and named. `alone`: runs of
    the fail-to-pass tests without the others, before."""
    failing = (*before, *alone)
    fail = tuple(i for i in found.fail_to_pass if _always(i, failing, "failed") and _always(i, after, "passed"))
    keep = tuple(i for i in found.pass_to_pass if _always(i, (*before, *after), "passed"))
    lost = [i for i in (*found.fail_to_pass, *found.pass_to_pass) if i not in {*fail, *keep}]
    warnings = (*found.warnings, *(f"{i}: dropped, because its outcome is not stable" for i in lost))
    left = {**found.left_out, **dict.fromkeys(lost, DIFFERS)}
    if fail or found.problems:
        return DiscoveredTests(fail, keep, warnings, found.problems, left)
    problem = Problem(
        kind=ProblemKind.FLAKY,
        message="no fail-to-pass test is stable: " + "; ".join(lost[:3]),
        hint="choose tests that do not depend on time, order or network",
    )
    return DiscoveredTests((), keep, warnings, (problem,), left)


def check(
    fail: Iterable[str], keep: Iterable[str], before: Sequence[Outcomes], after: Sequence[Outcomes]
) -> tuple[Problem, ...]:
    """Problems of ids that the task file names: every fail-to-pass fails as a test before, all pass after."""
    fail, keep = tuple(fail), tuple(keep)
    if fail and all(_always(i, before, "passed") and _always(i, after, "failed") for i in fail):
        return (_swapped(fail),)
    found = [_judged(i, [run.get(i, "missing") for run in before], "failed", "pre-fix tree") for i in fail]
    found += [_judged(i, [run.get(i, "missing") for run in after], "passed", "fixed tree") for i in (*fail, *keep)]
    return tuple(problem for problem in found if problem is not None)


def _swapped(tests: Sequence[str]) -> Problem:
    return Problem(
        kind=ProblemKind.SWAPPED,
        message=f"passes at the pre-fix tree and fails at the fixed tree: {', '.join(tests[:3])}",
        hint="the two trees look swapped: exchange pre_fix and fixed, or pre_fix_commit and fix_commit",
    )


def _always(test: str, runs: Sequence[Outcomes], wanted: str) -> bool:
    return all(run.get(test) == wanted for run in runs)


def _judged(test: str, seen: Sequence[str], wanted: str, tree: str) -> Problem | None:
    if all(outcome == wanted for outcome in seen):
        return None
    if wanted in seen:
        said = ", ".join(seen)
        return Problem(
            kind=ProblemKind.FLAKY,
            message=f"{test}: at the {tree}: {said}",
            hint="choose tests that do not depend on time, order or network",
        )
    outcome = seen[0]
    if outcome == "missing":
        return Problem(
            kind=ProblemKind.MISSING_TEST,
            message=f"{test}: was not run at the {tree}",
            hint="check the id; with an empty list `validate --write` fills in the ids",
        )
    if wanted == "failed":
        if outcome == "passed":
            return Problem(kind=ProblemKind.ALREADY_PASSES, message=f"{test}: passes at the {tree} already")
        return Problem(
            kind=ProblemKind.NOT_AS_TEST,
            message=f"{test}: {outcome} at the {tree}; it must fail as a test",
            hint="choose tests that fail because of the bug: an error in a fixture or a skip does not show it",
        )
    return Problem(
        kind=ProblemKind.FAILS_AT_FIX,
        message=f"{test}: {outcome} at the {tree}",
        hint="check the lock: newer packages may break old tests",
    )
