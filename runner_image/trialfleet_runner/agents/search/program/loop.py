"""The search: watch the failure, read what is suspicious, try edits best first, keep what passes."""

from __future__ import annotations

import heapq
import random
import time
from dataclasses import dataclass, replace

from . import localise, observe
from .config import Config
from .context import Reader
from .edit import Candidate, Edit, OverlappingEdits
from .facts import Facts
from .generate import candidates, written
from .guidance import Guidance
from .hook import Hook
from .localise import Lines
from .probe import is_test_path, names
from .report import Report
from .source import Source
from .testrun import Run, Tests
from .transcript import BudgetSpent, Transcript
from .workspace import Workspace

_READ_VALUE = 1.6  # a file is opened when its best line times this beats the best candidate
_GUIDED_READS = 3  # files that a text names are read at once, as many at most
_FILES = 12
_OPERATOR_FAILED, _LINE_FAILED, _FILE_FAILED = 0.94, 0.95, 0.985


class OutOfTime(Exception):
    """The time budget is nearly spent."""


@dataclass(frozen=True)
class Base:
    """Edits already kept because they made more tests pass, and how many pass with them."""

    edits: dict[str, tuple[Edit, ...]]
    passing: int
    reached: int  # line of the test at which a single failing test stopped; 0: not comparable


class Search:
    """One trial. `run` leaves the workspace changed only by a repair that was confirmed."""

    def __init__(self, config: Config, transcript: Transcript) -> None:
        self.config, self.transcript = config, transcript
        self.chance = random.Random(config.seed)  # noqa: S311  # an experiment's seed, no secret
        self.workspace = Workspace(config.workspace)
        self.guidance = Guidance(self.workspace.python_files())
        self.reader = Reader(
            self.workspace,
            transcript,
            self.guidance,
            Hook(config.hook, config.workspace, f"search-{config.seed}"),
        )
        self.deadline = time.monotonic() + config.time_limit_s
        self.tests = Tests(config.tests, config.workspace, config.temporary, self.deadline)
        self.sources: dict[str, Source] = {}
        self.queue: list[tuple[float, int, Candidate]] = []
        self.tried: set[tuple[str, bytes]] = set()
        self.facts = Facts()
        self.lines: Lines = {}
        self.targets: set[str] = set()
        self.before: Report | None = None
        self.base = Base({}, 0, 0)
        self.whole: set[str] | None = None  # all tests of the files that pass without a repair, once known
        self.failed: dict[tuple[str, str, int], int] = {}
        self._count = 0

    def run(self) -> None:
        """Search until solved, out of turns, time or ideas; the transcript's last line says which."""
        try:
            self._prepare()
            solved = bool(self.config.tests) and self._search()
        except BudgetSpent:
            self._leave("max_turns", "the turns are spent")
        except OutOfTime:
            self._leave("finished", "the time is nearly spent")
        else:
            if solved:
                self.workspace.keep()
                self.transcript.end("finished", "the failing tests pass")
            else:
                self._leave(
                    "finished", "nothing left to try" if self.config.tests else "no tests to run: they are hidden"
                )
        finally:
            self.workspace.restore()
            self.tests.close()

    def _leave(self, stop: str, why: str) -> None:
        self.workspace.restore()
        self.transcript.end("max_turns" if stop == "max_turns" else "finished", f"not repaired: {why}")

    # --- before the first edit ---

    def _prepare(self) -> None:
        self.guidance.hear(self.config.system)
        self.guidance.hear(self.config.prompt)
        self.reader.root()
        if self.config.tests:
            self._watch()
        self._read_guided()

    def _watch(self) -> None:
        """Run the failing tests once under the probe, read them, and note where they went."""
        self.transcript.spend("run", None, "the failing tests, watched")
        run = self.tests.baseline()
        self.before = run.report
        if run.report is None:
            self.transcript.say("message", None, f"not watched (exit {run.code}): {run.output[-300:]}")
            self.lines = localise.from_prompt(self.config.prompt, self.workspace.python_files())
            return
        self.targets = self._failing_targets(run.report)
        self.lines = localise.suspicious(run.report, self.targets)
        sources: dict[str, str] = {}
        for path in (self.tests.pytest.files if self.tests.pytest else ())[:2]:
            if path.endswith(".py") and (data := self.reader.read(path)) is not None:
                sources[path] = data.decode("utf-8", errors="replace")
        self.facts = observe.facts(run.report, self.targets, sources)
        self.base = self._reached(run.report)
        executed = sum(len(lines) for lines in self.lines.values())
        self.transcript.say("message", None, f"{len(self.targets)} tests fail, {executed} lines suspected")

    def _failing_targets(self, report: Report) -> set[str]:
        wanted = self.tests.pytest.targets if self.tests.pytest else ()
        named = {t for t in report.failing if any(names(target, t) for target in wanted)}
        return named or report.failing

    def _reached(self, report: Report) -> Base:
        """How far the targets get: how many pass and, for a single failing one, to which line of the test."""
        failing = [t for t in sorted(self.targets) if report.outcomes.get(t) in ("failed", "error", None)]
        frames = [f for t in failing[:1] if t in report.failures for f in report.failures[t].frames]
        own = [line for path, line, function in frames if is_test_path(path) and function.startswith("test")]
        reached = own[0] if len(failing) == 1 and own else 0
        return Base({}, len(self.targets) - len(failing), reached)

    def _read_guided(self) -> None:
        """Files that texts name come first, right or wrong: each costs its turn."""
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
        """The best candidate when it still is the best after its kin's failures; else it goes back and None."""
        _, count, one = heapq.heappop(self.queue)
        value = one.score
        for kin, share in self._kin(one).items():
            value *= share ** self.failed.get(kin, 0)
        if self.queue and value < -self.queue[0][0]:
            heapq.heappush(self.queue, (-value, count, one))
            return None
        return one

    @staticmethod
    def _kin(one: Candidate) -> dict[tuple[str, str, int], float]:
        """What a failed candidate speaks against, and the share that its like keep."""
        return {
            ("operator", one.operator, 0): _OPERATOR_FAILED,
            ("line", one.path, one.line): _LINE_FAILED,
            ("file", one.path, 0): _FILE_FAILED,
        }

    def _next_file(self) -> tuple[str | None, float]:
        """The most promising file that was not opened yet."""
        closed = [p for p in self.lines if p not in self.sources and not is_test_path(p)]
        if not closed or len(self.sources) >= _FILES:
            return None, 0.0
        best = max(closed, key=lambda p: (self._promise(p), p))
        return best, self._promise(best) * _READ_VALUE

    def _promise(self, path: str) -> float:
        return max(self.lines[path].values(), default=0.0) * (1 + 0.5 * self.guidance.path(path))

    def _open(self, path: str) -> None:
        """Read a file for a turn and queue its candidates."""
        lines = self.lines.pop(path, {})
        data = self.reader.read(path)
        if data is None:
            return
        try:
            source = Source(path, data)
        except (SyntaxError, ValueError, RecursionError) as error:
            self.transcript.say("message", path, f"not Python that this interpreter reads: {error}")
            return
        self.sources[path] = source
        found, broken = candidates(source, lines, self.facts, self.guidance, self.chance)
        note = f", {broken} places skipped" if broken else ""
        self.transcript.say("message", path, f"{len(found)} candidates{note}")
        for one in found:
            self._queue(one)

    def _queue(self, one: Candidate) -> None:
        self._count += 1
        heapq.heappush(self.queue, (-one.score, self._count, one))

    def _try(self, one: Candidate) -> bool:
        """One candidate, one turn. True: confirmed, and left in place."""
        source = self.sources[one.path]
        whole = self._on_base(one)
        data = written(source, whole)
        if data is None or (one.path, data) in self.tried:
            return False
        self.tried.add((one.path, data))
        if self.transcript.left < 1:
            raise BudgetSpent
        self.workspace.put(one.path, data)
        self.transcript.say("edit", one.path, f"{one.operator} at line {one.line}: {shown(source, whole)}")
        self.transcript.spend("run", None, "the failing tests, then the others of their files")
        run = self.tests.candidate()
        if run.passed and self._holds(one.path, data):
            return True
        for kin in self._kin(one):
            self.failed[kin] = self.failed.get(kin, 0) + 1
        if not run.passed and run.report is not None and self._better(run, one, whole):
            return False
        self._write_base(one.path)
        return False

    def _on_base(self, one: Candidate) -> Candidate:
        kept = self.base.edits.get(one.path, ())
        return replace(one, edits=tuple(sorted({*kept, *one.edits})))

    def _holds(self, path: str, data: bytes) -> bool:
        """The repair breaks no test of the same files that passed before (the second half of the same turn), and
        passes as the task runs it."""
        if self.before is not None and self.before.named("passed"):
            run = self.tests.neighbours(self.before.named("passed"))
            if run is not None and run.report is not None:
                broken = self.before.named("passed") - run.report.named("passed")
                if broken:
                    self.transcript.say("message", None, f"breaks {len(broken)} tests that passed: {min(broken)}")
                    return False
        if self.before is not None and self.before.passed_over and not self._holds_everywhere(path, data):
            return False
        self.transcript.spend("run", None, "again, in a fresh process, to confirm")
        return self.tests.confirm().passed

    def _holds_everywhere(self, path: str, data: bytes) -> bool:
        """No test of the whole files breaks. Those passed over so far are first run without the repair."""
        if self.whole is None:
            self.transcript.spend("run", None, "all tests of the same files, without the repair")
            self._write_base(path)
            run = self.tests.whole_files()
            self.whole = run.report.named("passed") if run is not None and run.report is not None else set()
            self.workspace.put(path, data)
        self.transcript.spend("run", None, "all tests of the same files")
        run = self.tests.neighbours(self.whole) if self.whole else None
        broken = (
            self.whole - run.report.named("passed") if run is not None and run.report is not None else set[str]()
        )
        if broken:
            self.transcript.say("message", None, f"breaks {len(broken)} tests that passed: {min(broken)}")
        return not broken

    def _better(self, run: Run, one: Candidate, whole: Candidate) -> bool:
        """Keep an edit that makes more of the failing tests pass, or moves the one failure forward."""
        if run.report is None or one.operator in ("try_wrap", "delete", "condition_constant"):
            return False
        now = self._reached(run.report)
        further = now.passing == self.base.passing and now.reached > self.base.reached > 0
        if now.passing > self.base.passing or further:
            edits = {**self.base.edits, one.path: whole.edits}
            self.base = replace(now, edits=edits)
            self.transcript.say("message", one.path, f"kept: {now.passing} of {len(self.targets)} pass now")
            self._prefer(one.operator)
            return True
        return False

    def _prefer(self, operator: str) -> None:
        """Like edits elsewhere are the likely second half of a repair."""
        preferred = [replace(c, score=c.score * 2) if c.operator == operator else c for _, _, c in self.queue]
        self.queue = []
        for one in preferred:
            self._queue(one)

    def _write_base(self, path: str) -> None:
        """The file as it was, with the edits kept so far."""
        kept = self.base.edits.get(path, ())
        source = self.sources[path]
        data = written(source, Candidate(path, "kept", 0, kept, 0.0)) if kept else source.data
        self.workspace.put(path, data if data is not None else source.data)


def shown(source: Source, candidate: Candidate) -> str:
    """The edits as text: what was, and what is."""
    parts = [
        f"{source.data[e.start : e.end].decode('utf-8', 'replace')!r} -> {e.text.decode('utf-8', 'replace')!r}"
        for e in candidate.edits
    ]
    return "; ".join(parts)


__all__ = ["OutOfTime", "OverlappingEdits", "Search", "shown"]
