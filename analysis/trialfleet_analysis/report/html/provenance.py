"""Where every number comes from: trials, manifest, methods."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.document import ManifestLine, Report
from trialfleet_analysis.report.html.markup import Node, h
from trialfleet_analysis.report.html.table import section
from trialfleet_analysis.tables import TrialRow

LISTED = 4_000  # trials listed in the page; more are in report.json only

METHODS = (
    (
        "Cells",
        "Wilson’s score interval (Wilson 1927), and Clopper & Pearson’s exact interval (1934) beside it. "
        "They hold for the reps of one cell.",
    ),
    (
        "Conditions",
        "The mean of the tasks’ pass rates, each task counting once. Its interval is Wilson’s at the effective "
        "sample size p(1 − p)/V, where V is the variance of that mean over these tasks’ reps. Counts are not "
        "pooled: that would mix the differences between tasks into the noise. It is silent on tasks not run.",
    ),
    (
        "Lost trials",
        "Missing data. Rates use valid trials; the bounds count every trial whose first started run was lost as "
        "failed, or as passed.",
    ),
    (
        "Unfinished campaigns",
        "Only the longest prefix of complete blocks is used: trials that finish early are not typical.",
    ),
    (
        "No tests",
        "Nothing in this report is a significance test, and overlapping intervals are not one either.",
    ),
)


def trials(report: Report) -> Element:
    intro = h(
        "p",
        "Each trial’s prompt, patch, tests and trajectory: ",
        h("code", "trialfleet show TRIAL"),
        ". Digests of the bundles are in report.json.",
        class_="muted",
    )
    if len(report.trials) > LISTED:
        listed: Node = h("p", f"{len(report.trials):,} trials are listed in report.json only.")
    else:
        listed = list(_lists(report))
    return section("trials", "Trials", intro, listed)


def _lists(report: Report) -> Iterator[Element]:
    by_task: dict[str, dict[str, list[TrialRow]]] = {}
    for row in report.trials:
        by_task.setdefault(row.task, {}).setdefault(row.condition, []).append(row)
    for task in (row.task for row in report.tasks if row.task in by_task):
        by_condition = by_task[task]
        groups = [
            [h("h4", name), h("ul", [_trial(row) for row in by_condition[name]], class_="trials")]
            for name in report.condition_names
            if name in by_condition
        ]
        yield h("details", h("summary", task), groups)


def _trial(row: TrialRow) -> Element:
    kind = "lost" if row.verdict is None else row.verdict.value
    waiting = None if row.in_blocks else h("small", " not in a complete block")
    retried = h("small", f" attempt {row.attempts}") if row.attempts > 1 else None
    return h(
        "li",
        h("i", class_=f"key {kind}"),
        h("code", row.trial),
        f" {kind.replace('_', ' ')}",
        retried,
        waiting,
        title=row.missing,
    )


def manifest(report: Report) -> Element:
    groups: dict[str, list[ManifestLine]] = {}
    for line in report.manifest:
        groups.setdefault(line.group, []).append(line)
    parts = [
        h(
            "details",
            h("summary", group),
            h("dl", [[h("dt", line.name), h("dd", line.value)] for line in lines]),
            open="" if group in ("Campaign", "Agent") else None,
        )
        for group, lines in groups.items()
    ]
    return section("manifest", "Manifest", parts)


def methods() -> Element:
    return section(
        "methods", "How the numbers are made", h("dl", [[h("dt", name), h("dd", text)] for name, text in METHODS])
    )
