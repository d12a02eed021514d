"""One trial at its permanent address."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from xml.etree.ElementTree import Element

from trialfleet_analysis.report.html.markup import Node, breakable, frame, h, section
from trialfleet_analysis.viewer.addresses import Addresses
from trialfleet_analysis.viewer.bundle_parts import BundleParts
from trialfleet_analysis.viewer.pages import parts
from trialfleet_analysis.viewer.pages.patch import patch
from trialfleet_analysis.viewer.pages.receipts_table import render_receipts
from trialfleet_analysis.viewer.pages.scaffold import block, chip, document, main, notice, top, way_back
from trialfleet_analysis.viewer.pages.trajectory import trajectory
from trialfleet_analysis.viewer.trial_record import TrialRecord
from trialfleet_ledger.display_text import visible
from trialfleet_ledger.fold import StoredAttempt
from trialfleet_ledger.plan import PlannedTask
from trialfleet_ledger.records.measurements import Metrics


def trial_page(campaign: str, record: TrialRecord, task: PlannedTask | None, to: Addresses) -> str:
    """`task`: as the plan has it; None: the trial's task is not known, or not of the plan."""
    name = name_of(record)
    shows_bug = task.order.fail_to_pass if task else ()
    body = [
        top(
            "trialfleet view · trial",
            breakable(name),
            h("ul", chips(record), class_="chips"),
            h("p", id="away", class_="banner bad", role="status", hidden=""),
            warnings_of(record),
        ),
        way_back(campaign, to, *_contents(record)),
        main(
            output_section(record) if record.output is not None else None,
            section("attempts", "Attempts", _attempts(record, to)),
            _bundle(record, record.parts, shows_bug, to) if record.parts else None,
        ),
    ]
    scripts = ["refresh.js"] if record.output is not None and to.served else []
    if record.parts is not None:
        scripts.append("steps.js")
    return document(f"{name} · {campaign}", body, to, scripts=scripts)


def name_of(record: TrialRecord) -> str:
    trial = record.trial
    return f"{trial.task} × {trial.condition}, rep {trial.rep}" if trial else f"trial {record.id}"


def chips(record: TrialRecord) -> list[Element]:
    """The outcome, why the agent stopped, and the id."""
    outcome = record.outcome
    found = [chip("no outcome yet", "interim")] if outcome is None else []
    if outcome is not None and outcome.scored is not None:
        passed = outcome.scored.verdict == "passed"
        found.append(chip(str(outcome.scored.verdict).replace("_", " "), "final" if passed else "failed"))
        found.append(chip(f"agent: {str(outcome.scored.stop).replace('_', ' ')}"))
        found += [chip("tests also pass without any change", "interim")] if outcome.scored.unsteady else []
    elif outcome is not None:
        found.append(chip(f"abandoned: {outcome.abandoned}", "interim"))
    if record.quarantine is not None:
        found.append(chip("quarantined", "failed"))
    return [*found, h("li", h("code", record.id), class_="chip")]


def warnings_of(record: TrialRecord) -> Node:
    """Everything that is wrong with the record or its bundle, and what a pass rests on apart from the product."""
    said = [notice(f"A record cannot be read: {visible(fault)}", "bad") for fault in record.faults]
    scored = None if record.outcome is None else record.outcome.scored
    if scored is not None and scored.needed:
        files = visible(", ".join(scored.needed))
        forged = scored.verdict == "forged"
        words = "Forged: the tests pass by these files alone" if forged else "The tests pass only with these files"
        said.append(notice(f"{words}, which are not the product’s: {files}", "bad" if forged else "note"))
    if record.quarantine is not None:
        words = "Quarantined: this bundle is missing data and is never counted"
        said.append(notice(f"{words}: {visible(record.quarantine)}", "bad"))
    if record.bundle_fault is not None:
        said.append(notice(f"Attempt {record.shown}: {visible(record.bundle_fault)}", "bad"))
    if record.parts is not None:
        said += [notice(f"Damaged or missing: {fault}", "bad") for fault in record.parts.faults]
        said += [notice(visible(words)) for words in record.parts.warnings]
    return said


def scored_metrics(record: TrialRecord) -> Metrics | None:
    """Of the attempt that is shown."""
    end = record.chain[record.shown - 1].end if 0 < record.shown <= len(record.chain) else None
    return end.scored.metrics if end and end.scored else None


def _contents(record: TrialRecord) -> list[Element]:
    names = ["Attempts"]
    if record.parts is not None:
        names += ["Prompt", "Trajectory", "Hooks", "Patch", "Tests", "Metrics", "Files"]
    return [h("a", name, href=f"#{name.lower()}") for name in names]


def output_section(record: TrialRecord) -> Element:
    """What a running attempt has printed; a script asks for it again until the attempt has ended."""
    if record.output is None:
        words = h("p", "This attempt has ended. ", h("a", "Show what it left", href=f"/trial/{record.id}"))
        return section("output", "Output", words)
    shown = block(record.output, "Output so far") if record.output else h("p", "No output yet.", class_="muted")
    made = section("output", "Output so far", shown)
    made.set("data-refresh", f"/trial/{record.id}/{record.shown}/output")
    return made


def _bundle(record: TrialRecord, found: BundleParts, shows_bug: Sequence[str], to: Addresses) -> list[Element]:
    return [
        section("prompt", "Prompt", _prompt(record, found)),
        section("trajectory", "Trajectory", trajectory([found.steps], ["Steps"], [found.firings])),
        section("hooks", "Hook firings", parts.firings(found.firings)),
        section("patch", "Patch", patch(found.patch, "Patch")),
        section("tests", "Tests", parts.tests([found.tests], ["Outcome"], shows_bug), _output(found)),
        section("metrics", "Metrics and cost", parts.metrics([scored_metrics(record)], ["This trial"])),
        section("received", "What the model received", render_receipts(found.receipts)),
        section("files", "Files of the bundle", _files(record, found, to)),
    ]


def _prompt(record: TrialRecord, found: BundleParts) -> list[Node]:
    if found.prompt is None:
        return [h("p", "The prompt is missing.", class_="bad")]
    known = record.task_text is not None
    words = (
        "Marked: what the condition added to the task’s text." if known else "The task’s text is not in the store."
    )
    return [
        h("p", words, class_="muted"),
        parts.prompt(found.prompt, record.task_text, "Prompt"),
        _folded("System prompt that the condition added", found.system),
        _folded("Answer of the pre-flight", found.preflight),
    ]


def _output(found: BundleParts) -> Node:
    return _folded("Output of the tests", found.test_output)


def _folded(title: str, content: str | None) -> Node:
    return h("details", h("summary", title), block(content, title)) if content else None


def _attempts(record: TrialRecord, to: Addresses) -> Element:
    if not record.chain:
        return h("p", "No attempt can be shown.")
    names = ("Attempt", "Intended", "Where", "End", "Why")
    head = h("tr", [h("th", name, scope="col", class_="text") for name in names])
    rows = [_attempt(one, record, to) for one in record.chain]
    return frame("Attempts, each with its end", head, rows)


def _attempt(one: StoredAttempt, record: TrialRecord, to: Addresses) -> Element:
    n, end = one.intent.attempt, one.end
    link = to.trial(record.id, n) if end and end.bundle else ""
    name: Node = h("a", n, href=link) if link and n != record.shown else n
    shown = h("small", " shown") if n == record.shown else None
    scoring = h("small", " scoring only") if one.intent.score_only else None
    place = one.start.node or one.start.host if one.start else "no start record"
    why = visible(end.loss.message) if end and end.loss else ""
    cells = [
        h("td", _moment(one.intent.at), class_="text"),
        h("td", visible(place), class_="text"),
        _end(one),
        h("td", why, class_="text long"),
    ]
    return h("tr", h("th", name, shown, scoring, scope="row"), cells)


def _end(one: StoredAttempt) -> Element:
    if one.end is None:
        return h("td", "none yet", class_="text")
    if one.end.loss is not None:
        return h("td", f"lost: {one.end.loss.loss}", h("small", f" said the {one.end.by}"), class_="text bad")
    verdict = one.end.scored.verdict if one.end.scored else ""
    refused = h("small", " quarantined", class_="bad") if one.quarantined else None
    return h("td", str(verdict).replace("_", " "), refused, class_="text")


def _moment(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{at:g} s"


def _files(record: TrialRecord, found: BundleParts, to: Addresses) -> Element:
    head = h("tr", h("th", "File", scope="col"), h("th", "Bytes", scope="col"), h("th", "Left out", scope="col"))
    rows = [
        h(
            "tr",
            h("th", _file_name(path, to.file(record.id, record.shown, path)), scope="row"),
            h("td", f"{size:,}"),
            h("td", f"{found.left_out[path]:,}" if path in found.left_out else ""),
        )
        for path, size in found.files.items()
    ]
    return frame("Files of the bundle", head, rows)


def _file_name(path: str, link: str) -> Node:
    return h("a", visible(path), href=link) if link else visible(path)
