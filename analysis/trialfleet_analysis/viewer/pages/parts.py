"""Parts of a trial as pages show them: prompt, tests, hook firings, metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.html.markup import Node, frame, h
from trialfleet_analysis.viewer.bundle_parts import HookFiring
from trialfleet_analysis.viewer.differences import LineRun, line_runs
from trialfleet_analysis.viewer.excerpts import LONGEST, cut
from trialfleet_analysis.viewer.pages.scaffold import block, text
from trialfleet_designs.document.figures import NOTHING, quantity
from trialfleet_ledger.display_text import visible
from trialfleet_ledger.metric_table import REPORTED, Unit
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.measurements import Metrics, TestResult

FOLDED = 8  # equal lines in a row above which they are folded away
MOST_TESTS = 500
TALL = 14


def shortened(content: str) -> str:
    """A text that is compared or coloured line by line, within a page's limit."""
    return cut(visible(content), LONGEST, "characters")


# --- prompts ----------------------------------------------------------------------------------------


def prompt(content: str, task_text: str | None, label: str) -> Element:
    """The prompt; what the condition added to the task's text is marked. `task_text` None: it is not known."""
    if task_text is None:
        return block(content, label)
    return _marked(line_runs(shortened(task_text), shortened(content)), "right", label)


def two_prompts(a: str, b: str, labels: tuple[str, str]) -> Element:
    """Side by side; lines that the other prompt does not have are marked, and long equal stretches folded."""
    runs = line_runs(shortened(a), shortened(b))
    sides = [_marked(runs, side, label) for side, label in zip(("left", "right"), labels, strict=True)]
    return h("div", sides, class_="sides")


def _marked(runs: Sequence[LineRun], side: str, label: str) -> Element:
    body = [_run(run, run.left if side == "left" else run.right) for run in runs]
    return h("div", body, class_="block lines", tabindex=0, role="region", aria_label=label)


def _run(run: LineRun, lines: tuple[str, ...]) -> Node:
    if not lines:
        return None
    if not run.same:
        return text("mark", "\n".join(lines))
    if len(lines) <= FOLDED:
        return text("span", "\n".join(lines))
    words = f"{plural(len(lines) - 4, 'line')} alike"
    return [
        text("span", "\n".join(lines[:2])),
        h("details", h("summary", words), text("span", "\n".join(lines[2:-2]))),
        text("span", "\n".join(lines[-2:])),
    ]


# --- tests ------------------------------------------------------------------------------------------


def tests(
    sides: Sequence[tuple[TestResult, ...] | None], names: Sequence[str], shows_bug: Sequence[str]
) -> Element:
    """One row per test: those that differ or did not pass first. `names`: heads of the columns. `shows_bug`: ids
    of the task's fail-to-pass tests."""
    if all(side is None for side in sides):
        return h("p", "The results of the tests are missing.", class_="bad")
    results: list[dict[str, str]] = [{one.id: one.outcome for one in side or ()} for side in sides]
    ids = sorted({name for side in results for name in side}, key=lambda name: _weight(name, results, shows_bug))
    if not ids:
        return h("p", "No test was run.")
    head = h("tr", h("th", "Test", scope="col"), [h("th", name, scope="col", class_="text") for name in names])
    rows = [_test(name, results, shows_bug) for name in ids[:MOST_TESTS]]
    rest = len(ids) - MOST_TESTS
    more = h("p", f"{plural(rest, 'more test')} in tests/results.json.") if rest > 0 else None
    shown = frame("Tests with their outcome", head, rows, class_="tests tall" if len(rows) > TALL else "tests")
    return h("div", shown, more)


def _weight(
    name: str, results: Sequence[dict[str, str]], shows_bug: Sequence[str]
) -> tuple[bool, bool, bool, str]:
    found = [side.get(name) for side in results]
    return len(set(found)) == 1, found[0] == "passed", name not in shows_bug, name


def _test(name: str, results: Sequence[dict[str, str]], shows_bug: Sequence[str]) -> Element:
    mark = h("small", " shows the bug") if name in shows_bug else None
    cells = [_outcome(side.get(name)) for side in results]
    return h("tr", h("th", visible(name), mark, scope="row", class_="text"), cells)


def _outcome(outcome: str | None) -> Element:
    kind = "good" if outcome == "passed" else "" if outcome in ("skipped", None) else "bad"
    return h("td", outcome or NOTHING, class_=f"text {kind}".rstrip())


# --- hooks and metrics ------------------------------------------------------------------------------


def firings(found: Sequence[HookFiring]) -> Element:
    if not found:
        return h("p", "No hook fired.")
    head = h(
        "tr", [h("th", name, scope="col", class_="text") for name in ("Tool", "File", "Context node", "Result")]
    )
    rows = [
        h(
            "tr",
            h("th", visible(one.tool) or NOTHING, scope="row"),
            [h("td", visible(word) or NOTHING, class_="text long") for word in (one.path, one.node)],
            h("td", "denied" if one.denied else "text pushed" if one.pushed else "nothing to push", class_="text"),
        )
        for one in found
    ]
    return frame("Firings of the hooks", head, rows, class_="tall" if len(rows) > TALL else None)


def metrics(sides: Sequence[Metrics | None], names: Sequence[str]) -> Element:
    """Those that a report shows and that some side has."""
    head = h("tr", h("th", "Metric", scope="col"), [h("th", name, scope="col") for name in names])
    rows = list(_metric_rows(sides))
    if not rows:
        return h("p", "Nothing was measured.")
    return frame("Metrics", head, rows)


def _metric_rows(sides: Sequence[Metrics | None]) -> Iterator[Element]:
    for metric in REPORTED:
        values = [getattr(side, metric.name, None) if side else None for side in sides]
        if any(value is not None for value in values):
            cells = [h("td", _value(value, metric.unit)) for value in values]
            yield h("tr", h("th", metric.label, scope="row", title=metric.meaning), cells)


def _value(value: float | bool | None, unit: Unit) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return quantity(value, unit)
