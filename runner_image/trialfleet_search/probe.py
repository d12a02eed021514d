"""A pytest plugin that records executed lines per test, failures, and the types of variables.

Runs in the process of the tests as a standalone module: it imports neither this package nor a third-party one.
Writes one JSON file when the session ends.
"""

# these functions run for every file of the tests, and pathlib is slow
# ruff: noqa: PTH100, PTH117, PTH119, PTH122, PTH123
from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any, cast

_RETURNS_PER_FUNCTION = 12
_KINDS_PER_VARIABLE = 6
_TEXT = 2000
_PLAIN = (str, bytes, list, dict, tuple, set, frozenset, int, float, bool)


class Probe:
    """`request`: `workspace` is absolute, and only files below it are traced; `test_files` are relative. `targets`
    run first, then at most `neighbours` other collected tests, nearest first. A non-empty `only` names all tests
    that may run."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.root = request["workspace"].rstrip("/") + "/"
        self.report, self.trace = request["report"], request["trace"]
        self.test_files = set(request["test_files"])
        self.targets, self.only = list(request["targets"]), set(request["only"])
        self.most = request["neighbours"]
        self.passed_over = 0  # tests of the same files that did not run
        self.outcomes: dict[str, str] = {}
        self.failures: dict[str, dict[str, Any]] = {}
        self.failed_lines: dict[str, dict[str, list[int]]] = {}
        self.failed_setup: dict[str, dict[str, list[int]]] = {}
        self.passed_counts: dict[str, dict[int, int]] = {}
        self.kinds: dict[str, dict[str, set[str]]] = {}
        self.pairs: list[tuple[Any, Any]] = []
        self.status = cast("int | None", None)
        self._returned: dict[Any, int] = {}
        self._paths: dict[str, str | None] = {}
        self._current: dict[str, set[int]] = {}
        self._setup: dict[str, set[int]] = {}
        self._tracers: dict[str, Callable[[FrameType, str, Any], Any]] = {}

    # --- lines ---

    def start(self) -> None:
        if self.trace:
            threading.settrace(self._called)
            sys.settrace(self._called)

    def stop(self) -> None:
        if self.trace:
            sys.settrace(None)
            threading.settrace(cast("Any", None))

    def relative(self, filename: str) -> str | None:
        """The relative path of a traced file; None for test files and files outside the workspace."""
        if filename not in self._paths:
            path = self.inside(filename)
            is_test = path is not None and (path in self.test_files or is_test_path(path))
            self._paths[filename] = None if is_test else path
        return self._paths[filename]

    def inside(self, filename: str) -> str | None:
        """A path relative to the workspace; None outside it and in an environment inside it."""
        if filename.startswith("<"):
            return None
        full = filename if os.path.isabs(filename) else os.path.abspath(filename)
        if not full.startswith(self.root) or "/site-packages/" in full:
            return None
        return full[len(self.root) :]

    def _called(self, frame: FrameType, event: str, arg: Any) -> Callable[[FrameType, str, Any], Any] | None:
        path = self.relative(frame.f_code.co_filename)
        if path is None:
            return None
        self._hold(path, frame)
        return self._tracers.get(path) or self._tracer(path)

    def _tracer(self, path: str) -> Callable[[FrameType, str, Any], Any]:
        add = self._current.setdefault(path, set()).add

        def local(frame: FrameType, event: str, _arg: Any) -> Any:
            if event == "line":
                add(frame.f_lineno)
            elif event == "return":
                self._hold(path, frame)
                self._returned[frame.f_code] = self._returned.get(frame.f_code, 0) + 1
            return local

        self._tracers[path] = local
        return local

    def _hold(self, path: str, frame: FrameType) -> None:
        """Record the kinds of a frame's variables when a function begins and returns, in its first calls."""
        code = frame.f_code
        if code.co_name == "<module>" or self._returned.get(code, 0) >= _RETURNS_PER_FUNCTION:
            return
        kinds = self.kinds.setdefault(f"{path}:{code.co_firstlineno}", {})
        for name, value in list(frame.f_locals.items()):
            seen = kinds.setdefault(name, set())
            if len(seen) < _KINDS_PER_VARIABLE:
                seen.add(kind_of(value))

    def _enter(self, bucket: dict[str, set[int]]) -> None:
        self._current = bucket
        self._tracers = {}

    # --- pytest hooks ---

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        chosen = self._chosen([item.nodeid for item in items])
        kept = [items[at] for at in chosen]
        gone = [item for at, item in enumerate(items) if at not in set(chosen)]
        self.passed_over += len(gone)
        config.hook.pytest_deselected(items=gone)
        items[:] = kept

    def _chosen(self, ids: list[str]) -> list[int]:
        """Which tests run, in order."""
        if self.only:
            return [at for at, name in enumerate(ids) if name in self.only]
        wanted = [at for at, name in enumerate(ids) if any(names(target, name) for target in self.targets)]
        others = [at for at in range(len(ids)) if at not in set(wanted)]
        near = sorted(others, key=lambda at: (min((abs(at - w) for w in wanted), default=0), at))
        return [*wanted, *sorted(near[: self.most])]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Tracing starts here and not during imports, which it would slow down several times."""
        self._enter({})
        self._returned = {}
        self.pairs = []
        self.start()

    def pytest_runtest_call(self) -> None:
        """Lines that fixtures executed are recorded separately from those of the test itself."""
        self._setup = self._current
        self._enter({})

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        if call.excinfo is not None and type(call.excinfo.value).__name__ not in ("Skipped", "Exit"):
            self.failures.setdefault(item.nodeid, self._failure(call.excinfo.value))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.outcome == "failed":
            self.outcomes[report.nodeid] = "failed" if report.when == "call" else "error"
        elif report.when == "call" or report.outcome == "skipped":
            self.outcomes.setdefault(report.nodeid, report.outcome)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.stop()
        if self.outcomes.get(nodeid) in ("failed", "error"):
            self.failed_lines[nodeid] = {path: sorted(lines) for path, lines in self._current.items()}
            self.failed_setup[nodeid] = {path: sorted(lines) for path, lines in self._setup.items()}
        elif self.outcomes.get(nodeid) == "passed":
            for path in {*self._current, *self._setup}:
                counts = self.passed_counts.setdefault(path, {})
                for line in self._current.get(path, set()) | self._setup.get(path, set()):
                    counts[line] = counts.get(line, 0) + 1
        self._enter({})
        self._setup = {}

    def pytest_assertrepr_compare(self, config: Any, op: str, left: Any, right: Any) -> None:
        if len(self.pairs) < 5:
            self.pairs.append((plain(left), plain(right)))

    def pytest_unconfigure(self) -> None:
        """Runs before other plugins and skips their cleanup (five full garbage collections in pytest 8.4): the
        process ends anyway."""
        if self.status is not None:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self.status)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self.stop()
        self.status = int(exitstatus)
        with open(self.report, "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(self._record(), file)

    def _record(self) -> dict[str, Any]:
        return {
            "outcomes": self.outcomes,
            "failures": self.failures,
            "failed_lines": self.failed_lines,
            "failed_setup": self.failed_setup,
            "passed_counts": {p: sorted(c.items()) for p, c in self.passed_counts.items()},
            "imported": self._imported(),
            "kinds": {at: {n: sorted(k) for n, k in names.items()} for at, names in self.kinds.items()},
            "passed_over": self.passed_over,
            "modules": self._modules(),
        }

    def _imported(self) -> list[str]:
        files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        found = {self.relative(file) for file in files if isinstance(file, str)}
        return sorted(path for path in found if path is not None)

    def _modules(self) -> list[str]:
        """Modules from outside the workspace: a warm process may import them for the next run."""
        found: list[str] = []
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and self.inside(file) is None and not name.startswith(("_pytest", "__")):
                found.append(name)
        return found

    # --- failures ---

    def _failure(self, error: BaseException) -> dict[str, Any]:
        frames, compared = self._frames(error)
        pairs = [*self.pairs, *compared]
        return {
            "type": type(error).__name__,
            "message": safe(str, error)[:_TEXT],
            "frames": frames,
            "pairs": pairs,
        }

    def _frames(self, error: BaseException) -> tuple[list[tuple[str, int, str]], list[tuple[Any, Any]]]:
        """(path, line, function) in the workspace, outermost first, of the error and its causes, and the values
        that unittest compared."""
        frames: list[tuple[str, int, str]] = []
        pairs: list[tuple[Any, Any]] = []
        at: BaseException | None = error
        for _ in range(4):
            if at is None:
                break
            own: list[tuple[str, int, str]] = []
            for frame, line in traceback.walk_tb(at.__traceback__):
                code = frame.f_code
                if path := self.inside(code.co_filename):
                    own.append((path, line, code.co_name))
                elif code.co_filename.endswith("unittest/case.py") and len(pairs) < 5:
                    held = frame.f_locals
                    if "first" in held and "second" in held:
                        pairs.append((plain(held["first"]), plain(held["second"])))
            frames = [*frames, *own]
            at = at.__cause__ or at.__context__
        return frames[-60:], pairs


def is_test_path(path: str) -> bool:
    """Whether a relative path is a test file by the usual names."""
    *folders, name = path.split("/")
    if name == "conftest.py" or name.startswith("test_") or name.endswith("_test.py"):
        return True
    return "tests" in folders or (bool(folders) and folders[0] in ("test", "testing"))


def names(target: str, nodeid: str) -> bool:
    """Whether a reported test is the named one or belongs to it (parameters, tests of a class).

    >>> names("test/units/test_a.py::test_x", "units/test_a.py::test_x[1]")
    True
    """
    file, _, rest = target.partition("::")
    other, _, inner = nodeid.partition("::")
    if os.path.basename(file) != os.path.basename(other) and os.path.splitext(file)[1]:
        return False
    return not rest or inner == rest or inner.startswith((rest + "::", rest + "["))


def kind_of(value: Any) -> str:
    if value is None:
        return "None"
    name = type(value).__name__
    return f"empty:{name}" if type(value) in _PLAIN and not value else name


def safe(show: Callable[[Any], str], value: Any) -> str:
    try:
        return show(value)
    except Exception as error:  # a broken __repr__ or __str__ of the project
        return f"<{type(error).__name__} while showing {type(value).__name__}>"


def plain(value: Any, depth: int = 0) -> Any:
    """A value as JSON; other types by their representation, truncated."""
    if value is None or isinstance(value, (bool, int)):
        return value if not isinstance(value, int) or abs(value) < 2**53 else str(value)[:100]
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, str):
        return str(value)[:_TEXT]
    if depth < 4 and type(value) in (list, tuple):
        return [plain(item, depth + 1) for item in value[:50]]
    if depth < 4 and type(value) is dict:
        fields = cast("dict[Any, Any]", value)  # type: ignore[redundant-cast]  # pyright needs it
        return {safe(str, key)[:200]: plain(fields[key], depth + 1) for key in list(fields)[:50]}
    return safe(repr, value)[:300]
