"""The search: trace the failure, read suspicious files, try edits best first, keep an edit that passes."""

from __future__ import annotations

import heapq
import random
import time
from dataclasses import dataclass, replace
from typing import Literal

from . import localise, observe
from .config import Config
from .context import GuidedReader, Hook
from .edit import Candidate, Edit
from .facts import Facts
from .generate import candidates, written
from .guidance import Guidance
from .localise import Lines
from .probe import is_test_path, names
from .report import PytestReport
from .source import ParsedSource
from .testrun import PytestRunner
from .transcript import BudgetSpent, Transcript
from .workspace import Workspace

_READ_VALUE = 1.6  # a file is read when its best line times this exceeds the best candidate
_GUIDED_READS = 3  # files named by texts that are read first
_FILES = 12
_OPERATOR_FAILED, _LINE_FAILED, _FILE_FAILED = 0.94, 0.95, 0.985


class OutOfTime(Exception):
    """The time budget is nearly spent."""


@dataclass(frozen=True)
class PartialRepair:
    """Edits that are kept because they made more tests pass, and how many tests pass with them."""

    edits: dict[str, tuple[Edit, ...]]
    passing: int
    reached: int  # line of the test at which a single failing test stopped; 0: not comparable


class RepairSearch:
    """One trial. `run` changes the workspace only by a confirmed repair."""

    def __init__(self, config: Config, transcript: Transcript) -> None:
        self.config, self.transcript = config, transcript
        self.rng = random.Random(config.seed)  # noqa: S311  # an experiment's seed, no secret
        self.workspace = Workspace(config.workspace)
        self.guidance = Guidance(self.workspace.python_files())
        self.reader = GuidedReader(
            self.workspace,
            transcript,
            self.guidance,
            Hook(config.hook, config.workspace, f"search-{config.seed}"),
        )
        self.deadline = time.monotonic() + config.time_limit_s
        self.tests = PytestRunner(config.tests, config.workspace, config.temporary, self.deadline)
        self.sources: dict[str, ParsedSource] = {}
        self.queue: list[tuple[float, int, Candidate]] = []
        self.tried: set[tuple[str, bytes]] = set()
        self.facts = Facts()
        self.lines: Lines = {}
        self.targets: set[str] = set()
        self.before: PytestReport | None = None
        self.base = PartialRepair({}, 0, 0)
        self.whole: set[str] | None = None  # tests of the whole files that pass without a repair, once known
        self.failed: dict[tuple[str, str, int], int] = {}
        self._count = 0

    def run(self) -> None:
        """Search until it is solved or turns, time or candidates run out; the transcript's last line says
        which."""
        try:
            self._prepare()
            solved = bool(self.config.tests) and self._search()
        except BudgetSpent:
            self._give_up("max_turns", "no turns left")
        except OutOfTime:
            self._give_up("finished", "no time left")
        else:
            if solved:
                self.workspace.keep()
                self.transcript.end("finished", "the failing tests pass")
            else:
                self._give_up(
                    "finished", "no candidates left" if self.config.tests else "no tests to run: they are hidden"
                )
        finally:
            self.workspace.restore()
            self.tests.close()

    def _give_up(self, stop: Literal["finished", "max_turns"], why: str) -> None:
        self.workspace.restore()
        self.transcript.end(stop, f"not repaired: {why}")

    # --- before the first edit ---

    def _prepare(self) -> None:
        self.guidance.add_text(self.config.system)
        self.guidance.add_text(self.config.prompt)
        self.reader.root()
        if self.config.tests:
            self._run_baseline()
        self._read_guided()

    def _run_baseline(self) -> None:
        """Run the failing tests once with tracing, read their files, and locate suspicious lines."""
        self.transcript.use_turn("run", None, "the failing tests, traced")
        run = self.tests.baseline()
        self.before = run.report
        if run.report is None:
            self.transcript.record("message", None, f"not traced (exit {run.code}): {self.tests.last_output()}")
            self.lines = localise.from_prompt(self.config.prompt, self.workspace.python_files())
            return
        self.targets = self._failing_targets(run.report)
        self.lines = localise.suspicious(run.report, self.targets)
        sources: dict[str, str] = {}
        for path in self.tests.pytest.files[:2]:
            if path.endswith(".py") and (data := self.reader.read(path)) is not None:
                sources[path] = data.decode("utf-8", errors="replace")
        self.facts = observe.facts(run.report, self.targets, sources)
        self.base = self._reached(run.report)
        executed = sum(len(lines) for lines in self.lines.values())
        self.transcript.record("message", None, f"{len(self.targets)} tests fail, {executed} suspicious lines")

    def _failing_targets(self, report: PytestReport) -> set[str]:
        named = {t for t in report.failing if any(names(target, t) for target in self.tests.pytest.targets)}
        return named or report.failing

    def _reached(self, report: PytestReport) -> PartialRepair:
        """How many targets pass and, for a single failing one, the line of the test that it reached."""
        failing = [t for t in sorted(self.targets) if report.outcomes.get(t) in ("failed", "error", None)]
        frames = [f for t in failing[:1] if t in report.failures for f in report.failures[t].frames]
        own = [line for path, line, function in frames if is_test_path(path) and function.startswith("test")]
        reached = own[0] if len(failing) == 1 and own else 0
        return PartialRepair({}, len(self.targets) - len(failing), reached)

    def _read_guided(self) -> None:
        """Read the files that texts name, right or wrong: each uses a turn."""
        named = sorted(self.guidance.paths, key=lambda p: (-self.guidance.path(p), p))
        mine = [p for p in named if p not in self.sources and not is_test_path(p)]
        for path in mine[:_GUIDED_READS]:
            self._open(path)

    # --- best first ---

    def _search(self) -> bool:
        while True:
            if time.monotonic() > self.deadline - 2:
                raise OutOfTime
            path, value = self._next_file()
            best = -self.queue[0][0] if self.queue else 0.0
            if path is not None and value >= best:
                self._open(path)
            elif not self.queue:
                return False
            elif (one := self._next()) is not None and self._try(one):
                return True

    def _next(self) -> Candidate | None:
        """The best candidate. None when failures of related candidates made another the best: it is queued
        again."""
        _, count, one = heapq.heappop(self.queue)
        value = one.score
        for key, share in self._failure_keys(one).items():
            value *= share ** self.failed.get(key, 0)
        if self.queue and value < -self.queue[0][0]:
            heapq.heappush(self.queue, (-value, count, one))
            return None
        return one

    @staticmethod
    def _failure_keys(one: Candidate) -> dict[tuple[str, str, int], float]:
        """The properties that a failed candidate counts against, with the factor for related candidates."""
        return {
            ("operator", one.operator, 0): _OPERATOR_FAILED,
            ("line", one.path, one.line): _LINE_FAILED,
            ("file", one.path, 0): _FILE_FAILED,
        }

    def _next_file(self) -> tuple[str | None, float]:
        """The most suspicious file that was not read yet, and its value."""
        closed = [p for p in self.lines if p not in self.sources and not is_test_path(p)]
        if not closed or len(self.sources) >= _FILES:
            return None, 0.0
        best = max(closed, key=lambda p: (self._file_value(p), p))
        return best, self._file_value(best) * _READ_VALUE

    def _file_value(self, path: str) -> float:
        return max(self.lines[path].values(), default=0.0) * (1 + 0.5 * self.guidance.path(path))

    def _open(self, path: str) -> None:
        """Read a file, which uses a turn, and queue its candidates."""
        lines = self.lines.pop(path, {})
        data = self.reader.read(path)
        if data is None:
            return
        try:
            source = ParsedSource(path, data)
        except (SyntaxError, ValueError, RecursionError) as error:
            self.transcript.record("message", path, f"not Python for this interpreter: {error}")
            return
        self.sources[path] = source
        found, broken = candidates(source, lines, self.facts, self.guidance, self.rng)
        note = f", {broken} places skipped" if broken else ""
        self.transcript.record("message", path, f"{len(found)} candidates{note}")
        for one in found:
            self._queue(one)

    def _queue(self, one: Candidate) -> None:
        self._count += 1
        heapq.heappush(self.queue, (-one.score, self._count, one))

    def _try(self, one: Candidate) -> bool:
        """Try one candidate, which uses a turn. True: confirmed, and left in place."""
        source = self.sources[one.path]
        whole = self._on_base(one)
        data = written(source, whole)
        if data is None or (one.path, data) in self.tried:
            return False
        self.tried.add((one.path, data))
        self.transcript.begin_turn()
        self.transcript.record("edit", one.path, f"{one.operator} at line {one.line}: {shown(source, whole)}")
        self.workspace.put(one.path, data)
        self.transcript.record("run", None, "the failing tests, then the others of their files")
        run = self.tests.candidate()
        if run.passed and self._is_confirmed(one.path, data):
            return True
        for key in self._failure_keys(one):
            self.failed[key] = self.failed.get(key, 0) + 1
        if run.passed or run.report is None or not self._keep_if_better(run.report, one, whole):
            self._write_base(one.path)
        return False

    def _on_base(self, one: Candidate) -> Candidate:
        kept = self.base.edits.get(one.path, ())
        return replace(one, edits=tuple(sorted({*kept, *one.edits})))

    def _is_confirmed(self, path: str, data: bytes) -> bool:
        """Whether the repair breaks no test of the same files that passed before, and passes with the task's own
        command. The traced tests run as part of the same turn."""
        if self.before is not None and not self._still_pass(self.before.named("passed")):
            return False
        if self.before is not None and self.before.passed_over:
            passing = self._passing_without(path, data)
            self.transcript.use_turn("run", None, "all tests of the same files")
            if not self._still_pass(passing):
                return False
        self.transcript.use_turn("run", None, "confirmation in a fresh process")
        return self.tests.confirm().passed

    def _passing_without(self, path: str, data: bytes) -> set[str]:
        """The tests of the whole files that pass without a repair; they run once, for a turn."""
        if self.whole is None:
            self.transcript.use_turn("run", None, "all tests of the same files, without the repair")
            self._write_base(path)
            report = self.tests.whole_files().report
            self.whole = report.named("passed") if report is not None else set()
            self.workspace.put(path, data)
        return self.whole

    def _still_pass(self, passing: set[str]) -> bool:
        report = self.tests.neighbours(passing).report if passing else None
        broken = passing - report.named("passed") if report is not None else None
        if broken:
            self.transcript.record("message", None, f"breaks {len(broken)} tests that passed: {min(broken)}")
        return not broken

    def _keep_if_better(self, report: PytestReport, one: Candidate, whole: Candidate) -> bool:
        """Keep an edit that makes more of the failing tests pass, or moves the only failure forward."""
        now = self._reached(report)
        further = now.passing == self.base.passing and now.reached > self.base.reached > 0
        if now.passing <= self.base.passing and not further:
            return False
        self.base = replace(now, edits={**self.base.edits, one.path: whole.edits})
        self.transcript.record("message", one.path, f"kept: {now.passing} of {len(self.targets)} pass now")
        self._prefer(one.operator)
        return True

    def _prefer(self, operator: str) -> None:
        """Double the score of the operator's other candidates: a repair often has the same edit elsewhere."""
        queued, self.queue = self.queue, []
        for _, _, one in queued:
            self._queue(replace(one, score=one.score * 2) if one.operator == operator else one)

    def _write_base(self, path: str) -> None:
        """Write the original file with the edits kept so far."""
        kept = self.base.edits.get(path, ())
        source = self.sources[path]
        data = written(source, Candidate(path, "kept", 0, kept, 0.0)) if kept else source.data
        self.workspace.put(path, data if data is not None else source.data)


def shown(source: ParsedSource, candidate: Candidate) -> str:
    parts = [
        f"{source.data[e.start : e.end].decode('utf-8', 'replace')!r} -> {e.text.decode('utf-8', 'replace')!r}"
        for e in candidate.edits
    ]
    return "; ".join(parts)
