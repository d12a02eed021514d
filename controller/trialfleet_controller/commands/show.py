"""`trialfleet show`: prints everything recorded about one trial."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from trialfleet_controller.commands.options import store_option
from trialfleet_ledger.display_text import one_line, printable_json, visible
from trialfleet_ledger.plurals import plural

if TYPE_CHECKING:
    from trialfleet_ledger.bundle import Bundle
    from trialfleet_ledger.fold import StoredAttempt
    from trialfleet_ledger.ledger import Ledger
    from trialfleet_ledger.records.attempt import End, Start
    from trialfleet_ledger.records.outcome import Outcome
    from trialfleet_ledger.records.verdicts import Scored

PARTS = {
    "prompt": ("system.txt", "prompt.txt"),
    "patch": ("patch.diff",),
    "tests": ("tests/results.json", "tests/output.log"),
    "trajectory": ("trajectory.jsonl",),
}
_STOPS = {
    "finished": "finished",
    "max_turns": "ran out of turns",
    "timeout": "ran out of time",
    "cost": "ran out of money",
    "error": "ended with an error",
    "crashed": "crashed before it began to work",
    "memory": "ran out of memory",
    "disk": "ran out of disk",
}
LIMIT = 200_000  # characters printed of one file


@click.command("show")
@click.argument("campaign")
@click.argument("trial")
@store_option
@click.option("--attempt", type=click.IntRange(1), help="Number of the attempt. [default: the last with a bundle]")
@click.option(
    "--part",
    type=click.Choice([*PARTS, "attempts"]),
    multiple=True,
    help="Print only this part. Repeatable. [default: all]",
)
@click.option(
    "--file",
    "member",
    metavar="PATH",
    help="Print one file of the bundle; what would act unseen appears as marks.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the records and the bundle's file list as JSON.")
def show(
    campaign: str,
    trial: str,
    store: str | None,
    attempt: int | None,
    part: tuple[str, ...],
    member: str | None,
    as_json: bool,
) -> None:
    """Show everything about one TRIAL of CAMPAIGN: prompt, patch, tests, trajectory and attempts."""
    from trialfleet_controller.campaigns import find
    from trialfleet_controller.lookup import trial_id
    from trialfleet_ledger.interim_results import record_shown_outcomes

    found = find(campaign, store)
    ledger = found.ledger
    plan = ledger.plan()
    wanted = trial_id(found.store, found.name, trial)
    record_shown_outcomes(ledger, plan, by="trialfleet show")
    chain, outcome = ledger.attempts.chain(wanted), ledger.attempts.outcome(wanted)
    bundle, fault = open_bundle(ledger, chain, attempt)
    if member is not None:
        _print_member(bundle, member, fault)
        return
    if as_json:
        click.echo(
            printable_json({"dry_run": plan.dry_run, **_plain(wanted, chain, outcome, bundle, fault)}, indent=1)
        )
        return
    parts = part or (*PARTS, "attempts")
    if plan.dry_run:
        click.echo(plan.title)
    for line in lines_of(wanted, chain, outcome, bundle, fault, parts, full="tests" in part):
        click.echo(line)


def open_bundle(
    ledger: Ledger, chain: tuple[StoredAttempt, ...], n: int | None
) -> tuple[Bundle | None, str | None]:
    """The bundle of attempt `n` (default: the last with a bundle), or the reason why it cannot be shown."""
    from trialfleet_ledger import keys
    from trialfleet_ledger.bundle import ABSENT, BundleError, unpack
    from trialfleet_ledger.store.rereading import WHILE_READING_S, settle_value

    end = _last_with_bundle(chain, n)
    if end is None:
        return None, "no bundle: the attempt was lost before one was written, or is still running"
    store, digest = ledger.store, end.bundle
    key = keys.attempt_file(ledger.campaign, end.trial, end.attempt, "bundle.tar.zst")
    try:
        return settle_value(
            store, key, store.get(key), lambda raw: unpack(raw, digest), over_s=WHILE_READING_S
        ), None
    except BundleError as error:
        if str(error).startswith(ABSENT):
            return None, "the bundle is missing from the store"
        return None, f"the bundle does not match its end record: {error}"


def _last_with_bundle(chain: tuple[StoredAttempt, ...], n: int | None) -> End | None:
    """The last end that names a bundle: of attempt `n`, or of all."""
    from trialfleet_ledger.errors import OperatorError

    if n is not None and n > len(chain):
        raise OperatorError(
            f"the trial has {plural(len(chain), 'attempt')}", where="--attempt", hint=f"give 1 to {len(chain)}"
        )
    candidates = chain if n is None else chain[n - 1 : n]
    return next((a.end for a in reversed(candidates) if a.end is not None and a.end.bundle is not None), None)


def _print_member(bundle: Bundle | None, path: str, fault: str | None) -> None:
    from trialfleet_ledger.errors import OperatorError

    if bundle is None:
        raise OperatorError(fault or "no bundle", where=path)
    text = bundle.text(path)
    if text is None:
        raise OperatorError("no such file in the bundle", where=path, hint=f"one of: {', '.join(bundle.files)}")
    click.echo(visible(text, LIMIT))


def _plain(
    trial: str,
    chain: tuple[StoredAttempt, ...],
    outcome: Outcome | None,
    bundle: Bundle | None,
    fault: str | None,
) -> dict[str, Any]:
    return {
        "trial": trial,
        "outcome": outcome.model_dump(mode="json") if outcome else None,
        "attempts": [
            {
                "intent": a.intent.model_dump(mode="json"),
                "start": a.start.model_dump(mode="json") if a.start else None,
                "end": a.end.model_dump(mode="json") if a.end else None,
                "quarantined": a.quarantined,
            }
            for a in chain
        ],
        "manifest": bundle.manifest.model_dump(mode="json") if bundle else None,
        "fault": fault,
    }


def lines_of(
    trial: str,
    chain: tuple[StoredAttempt, ...],
    outcome: Outcome | None,
    bundle: Bundle | None,
    fault: str | None,
    parts: tuple[str, ...],
    *,
    full: bool,
) -> Iterator[str]:
    """The lines that describe one trial."""
    yield f"trial {trial}"
    if outcome is not None:
        t = outcome.trial
        yield f"task {t.task}, condition {t.condition}, rep {t.rep}, seed {t.seed}"
        yield f"outcome: {_verdict(outcome)}"
    else:
        yield "outcome: none yet"
    if "attempts" in parts:
        yield from ("", "── attempts")
        yield from (_attempt(attempt) for attempt in chain)
    if bundle is None:
        yield from ("", fault or "")
        return
    for name, members in PARTS.items():
        if name in parts:
            for path in members:
                yield from _member(bundle, name, path, full=full)
    cut = _cut(bundle)
    files = ", ".join(f"{one_line(path)}{cut.get(path, '')}" for path in bundle.files)
    yield from ("", f"files in the bundle (print one with --file PATH): {files}")


def _cut(bundle: Bundle) -> dict[str, str]:
    """Path -> note, for files that were cut because they were too long."""
    return {
        file.path: f" (cut: {file.left_out:,} bytes omitted)" for file in bundle.manifest.files if file.left_out
    }


def _verdict(outcome: Outcome) -> str:
    if outcome.scored is None:
        assert outcome.abandoned is not None
        return f"abandoned ({outcome.abandoned.words}) after {plural(outcome.attempts, 'attempt')}"
    s = outcome.scored
    again = f", attempt {outcome.attempts}" if outcome.attempts > 1 else ""
    tests = f"tests {'passed' if s.tests_passed else 'did not pass'}{_cause(s)}"
    return f"{s.verdict} (the agent {_STOPS[s.stop]}, {tests}{again})"


def _cause(scored: Scored) -> str:
    """What the tests needed apart from the product's changes."""
    if scored.unsteady:
        return ", also without any change"
    if not scored.needed:
        return ""
    files = ", ".join(one_line(path) for path in scored.needed)
    return f", {'by these files alone' if scored.verdict == 'forged' else 'only with'} {files}"


def _attempt(attempt: StoredAttempt) -> str:
    at = datetime.fromtimestamp(attempt.intent.at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    head = f"{attempt.intent.attempt}  {at}{'  scoring only' if attempt.intent.score_only else ''}"
    end = attempt.end
    if end is None:
        start = attempt.start
        return f"{head}  no end yet: {'not started' if start is None else _place(start)}"
    if end.loss is not None:
        loss = end.loss.loss
        how = loss.words if loss.by_operator else f"lost ({loss}, recorded by the {end.by})"
        return f"{head}  {how}: {one_line(end.loss.message)}"
    assert end.scored is not None
    return f"{head}  {end.scored.verdict}{'  QUARANTINED' if attempt.quarantined else ''}"


def _place(start: Start) -> str:
    """Where the attempt's runner runs or ran."""
    if start.pod is not None:
        return f"started in pod {one_line(start.host)} on node {one_line(start.node or 'unknown')}"
    return f"started on {one_line(start.host)}, pid {start.pid}"


def _member(bundle: Bundle, title: str, path: str, *, full: bool) -> Iterator[str]:
    text = bundle.text(path)
    if not text:
        return
    yield from ("", f"── {title}: {path}{_cut(bundle).get(path, '')}")
    yield _tests(text, full=full) if path == "tests/results.json" else visible(text.rstrip("\n"), LIMIT)


def _tests(text: str, *, full: bool) -> str:
    """One line per test, those that did not pass first; passed tests are only counted unless `full`. Text that is
    not a list of results is returned unchanged."""
    try:
        results = json.loads(text)
        rows = [(str(r["outcome"]), str(r["id"])) for r in results]
    except (ValueError, TypeError, KeyError, RecursionError):
        return visible(text, LIMIT)
    failing = [f"{one_line(outcome):8} {one_line(name)}" for outcome, name in sorted(rows) if outcome != "passed"]
    passed = [f"{one_line(outcome):8} {one_line(name)}" for outcome, name in sorted(rows) if outcome == "passed"]
    if passed and not full:
        passed = [f"{len(passed)} passed (--part tests names them)"]
    return visible("\n".join([*failing, *passed]), LIMIT)
