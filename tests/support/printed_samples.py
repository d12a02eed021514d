"""Samples of everything that the product prints of a campaign, by surface, for the list of sentences."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.ledgers import Fate, lifelike, lifelike_plan, plan, read, trials, write, write_running
from tests.support.sentence_shapes import of_lines, of_markdown, of_page
from tests.unit.analysis.report_fixture import made, on_terminal
from trialfleet_analysis import rates
from trialfleet_analysis.analysis_plan import analyse
from trialfleet_analysis.analysis_plan.measures import MeasureContrast
from trialfleet_analysis.analysis_plan.power_summary import PowerSummary, power_summary
from trialfleet_analysis.commands.power import power
from trialfleet_analysis.report.assemble import worded
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.report.github import to_github
from trialfleet_analysis.report.html.page import to_html
from trialfleet_analysis.report.markdown import to_markdown
from trialfleet_analysis.viewer.addresses import ServedAddresses
from trialfleet_analysis.viewer.answer_process import computed
from trialfleet_analysis.viewer.campaign_state import WatchedCampaign
from trialfleet_analysis.viewer.site import CampaignSite
from trialfleet_controller.backends.protocol import Wait
from trialfleet_controller.dispatch.unplaced_attempts import unplaced_message
from trialfleet_controller.status.campaign_status import CampaignStatus, ConditionStatus, Controller, State
from trialfleet_controller.status.status_text import lines
from trialfleet_deliveries.equal_arms import EqualArms
from trialfleet_designs.comparison.columns import CellCounts, Scheme
from trialfleet_designs.comparison.correction import Corrected
from trialfleet_designs.metric import effort
from trialfleet_ledger.amendments import explain_void
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.records.agent import Limits
from trialfleet_ledger.records.directives import Halt
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_statistics.intervals import PooledInterval, pooled_random

DRAWN = range(561)  # seeds, every shape of every kind: without what takes long
READ = DRAWN[::2]  # of these every sentence is looked up
WHOLE = range(2_000, 2_012)  # with what takes long
TASKS = Path(__file__).parents[2] / "tasks" / "quickstart"
NIGHTLY = "https://ci.example/runs/7"
PRIMARY = Primary(treatment="intent_layer", control="none", effect=0.2)


@functools.cache
def _one_model() -> PooledInterval:
    return pooled_random([3, 5], [9, 9])


def _void() -> Iterator[str | None]:
    """Why looks are not taken."""
    names = ("none", "flat_llm", "intent_layer", "placebo", "preamble_only")
    frozen = plan(("alpha",), names, primary=Primary(treatment="flat_llm", control="none", halve=True))
    for several in (("none",), ("flat_llm", "none"), names[2:4]):
        halts = [Halt(number=n, at=1.0, condition=name, reason="x") for n, name in enumerate(several, 1)]
        yield explain_void(frozen, frozen.reps, (), halts)


def _no_power(_: object, fixed: Scheme, counts: CellCounts) -> PowerSummary:
    return power_summary(None, fixed, counts)


def _no_metrics(*_: object) -> Corrected[MeasureContrast]:
    return Corrected[MeasureContrast]((), ())


def _nothing(*_: object) -> tuple[()]:
    return ()


def leave_out_what_takes_long(patch: pytest.MonkeyPatch) -> None:
    """Models of other tasks, power and metrics take most of the time of a drawn campaign."""

    def one_model(*_: object) -> PooledInterval:
        return _one_model()

    patch.setattr(rates, "pooled_random", one_model)
    patch.setattr(analyse, "power_summary", _no_power)
    patch.setattr(analyse, "measured", _no_metrics)
    patch.setattr(analyse, "cost_ratios", _nothing)
    patch.setattr(analyse, "drift_checks", _nothing)
    simulate_less(patch)


def simulate_less(patch: pytest.MonkeyPatch) -> None:
    for paths in ("AT_LOOKS", "AT_A_FIXED_END", "UNDER_LOSS"):
        patch.setattr(effort, paths, 1_000)


def every_sample(folder: Path) -> Iterator[tuple[str, str]]:
    """Section and sentence of each surface but the drawn campaigns. `folder`: an empty one, for stores."""
    lively = read(write(folder / "lively", lifelike_plan(reps=4), lifelike()), "preamble-vs-pull")
    reports = (lively, made(), made(1, 2), made(3, 2, declared=False), replace(made(2, 3), dry_run=True))
    for report in (*reports, *_with_equal_arms(), _between_looks()):
        yield from of_report(report)
    yield from of_status()
    yield from ((where, one.replace(str(folder), "/store")) for where, one in of_viewer(folder))
    yield from of_power(folder)


# Conditions with the same first requests: alike, of parts that act at once, and of parts that may act later
EQUAL = (
    EqualArms(("none", "placebo"), 1, (), ()),
    EqualArms(("none", "placebo"), 4, ("effort",), ()),
    EqualArms(("none", "placebo", "flat_llm"), 4, ("effort", "pull"), ("pull",)),
    EqualArms(("none", "placebo"), 4, ("effort", "settings"), ("settings",)),
)


def _between_looks() -> Report:
    found = made(2, 3)
    return worded(replace(found, progress=replace(found.progress, looked_blocks=2, complete_blocks=3)))


def _with_equal_arms() -> Iterator[Report]:
    """Where they are compared, and where the campaign declares another contrast."""
    yield worded(replace(made(2, 3), equal_arms=EQUAL))
    yield worded(replace(made(2, 3), equal_arms=(EqualArms(("placebo", "flat_llm"), 4, ("effort",), ()),)))


def of_report(report: Report) -> Iterator[tuple[str, str]]:
    """As files, on the terminal, as a comment and as a page."""
    yield from of_file(report)
    yield from (("terminal", one) for one in of_lines(on_terminal(report, width=2_000)))
    yield from (("comment", one) for _, one in of_markdown(to_github(report, NIGHTLY)))
    yield from (("page", one) for one in of_page(to_html(report)))


def of_file(report: Report) -> Iterator[tuple[str, str]]:
    """The Markdown file: section and sentence."""
    yield from ((f"report: {section}", one) for section, one in of_markdown(to_markdown(report)))


def of_viewer(folder: Path) -> Iterator[tuple[str, str]]:
    frozen = plan(("alpha", "beta"), reps=3, primary=PRIMARY)
    whole, begun = folder / "viewed", folder / "begun"
    store = write(
        whole, frozen, lambda trial: Fate(Verdict.PASSED if trial.condition == "intent_layer" else Verdict.FAILED)
    )
    started = write(begun, frozen, lambda trial: Fate() if trial.rep == 0 else None)
    open_trial = next(trial for trial in trials(frozen) if trial.rep == 1)
    write_running(started, "demo", open_trial, 1, b"a line\n")
    a, b = (
        next(one for one in trials(frozen) if (one.task, one.condition, one.rep) == ("alpha", name, 0))
        for name in ("intent_layer", "none")
    )
    site, running, nothing = (_site(*named) for named in ((store, "demo"), (started, "demo"), (store, "absent")))
    pages = (
        site.home({}),
        site.trials({}),
        site.trials({"q": "nothing-like-it"}),
        site.trial(a.id),
        site.pair(a.id, b.id),
        running.home({}),
        running.trial(open_trial.id),
        running.trials({}),
        nothing.home({}),
        _site(folder_store(folder), "preamble-vs-pull").home({}),
    )
    for page in pages:
        yield from (("viewer", one) for one in of_page(page))


def folder_store(folder: Path) -> DirectoryStore:
    return DirectoryStore((folder / "lively").absolute())


def _site(store: DirectoryStore, campaign: str) -> CampaignSite:
    return CampaignSite(WatchedCampaign(store, campaign, computed), ServedAddresses(), answer_wait_s=60)


def of_status() -> Iterator[tuple[str, str]]:
    for status in statuses():
        yield from (("status", one) for one in of_lines("\n".join(lines(status))))


def statuses() -> Iterator[CampaignStatus]:
    """In every state, with everything that may be said."""
    counts = ConditionStatus(planned=10, measured=4, abandoned=1, running=2, pending=1, lost_attempts=3)
    conditions = {"none": replace(counts, crashed=1, forged=1), "intent_layer": replace(counts, crashed=4)}
    alive = Controller(1, "host", 7, ended=False, heartbeat_age_s=3, alive=True)
    bare = CampaignStatus(
        "demo", False, "demo", State.RUNNING, 5, 5, 2, conditions, {"evicted": 2}, controller=alive
    )
    ended = replace(alive, ended=True, alive=False)
    for state in State:
        yield replace(bare, state=state, controller=None if state is State.PLANNED else ended)
    yield replace(bare, state=State.STALLED, controller=replace(ended, host=None, pid=None))
    yield replace(bare, state=State.INCOMPLETE, out_of_time=True, cost_usd=1.0)
    yield replace(bare, state=State.INCOMPLETE, out_of_money=True, cost_usd=1.0, projected_cost_usd=2.0)
    full = {name: replace(one, planned=5) for name, one in conditions.items()}
    yield replace(
        bare, state=State.INCOMPLETE, conditions=full, losses={}, stops={"terminated": 2, "cancelled": 1}
    )
    yield replace(
        bare,
        looks_planned=2,
        looks_taken=1,
        look_bounds={1: 0.0125, 2: 0.05},
        revised_from=9,
        dropped={"alpha": 2},
    )
    yield replace(bare, looks_planned=2, looks_taken=0, look_bounds={3: 0.0125, 5: 0.05})
    for decided in ("benefit", "harm", "futility"):
        yield replace(bare, state=State.DECIDED, looks_planned=2, looks_taken=1, decided=decided, after_look=True)
        yield replace(bare, state=State.DECIDED, looks_planned=2, looks_taken=3, anytime=True, decided=decided)
    for taken in (0, 1, 3):
        yield replace(bare, looks_planned=5, looks_taken=taken, anytime=True)
    for left_out in (1, 24):
        yield replace(bare, halving_after=2, to_halve=left_out)
    for void in _void():
        yield replace(bare, halving_after=2, no_look=void)
        yield replace(bare, looks_planned=2, looks_taken=1, look_bounds={1: 0.0125, 2: 0.05}, no_look=void)
    yield replace(bare, halving_after=1, halved=["placebo", "flat_llm"])
    for wait in Wait:
        yield replace(bare, pending={wait: 1}, unplaced=unplaced_message({wait: 1}, 5, Limits()))
    yield replace(bare, tampered=[f"end of trial {n}" for n in range(20)], left_out=1, quarantined=2, unplanned=1)
    yield replace(bare, equal_arms=[one.describe_equality() for one in EQUAL])
    yield replace(bare, left_out=2, refused="its plan was changed", state=State.INCOMPLETE, controller=ended)
    yield replace(
        bare,
        cancelled="somebody",
        halts=["task alpha: its tests do not run"],
        unreadable=["halts/1.json: no JSON"],
    )


def of_power(folder: Path) -> Iterator[tuple[str, str]]:
    for words in _questions(folder):
        ran = CliRunner().invoke(power, words, env={"COLUMNS": "2000"}, catch_exceptions=False)
        assert ran.exit_code == 0, ran.output
        yield from (("power", one) for one in of_lines(ran.output))


def _questions(folder: Path) -> Iterator[tuple[str, ...]]:
    yield from (("--from", "0.4", "--to", "0.6"), ("--reps", "25"), ("--reps", "5", "--from", "0.2"))
    yield ("--from", "0.4", "--to", "0.6", "--reps", "7,9")
    yield ("--tasks", "4", "--reps", "5,10", "--from", "0.3", "--to", "0.6", "--icc", "0.2", *_QUICK)
    yield ("--budget", "700", "--cost-task", "75", "--cost-rep", "5")
    pilot = str(folder / "pilot" / "demo")
    write(folder / "pilot", plan(("alpha", "beta", "gamma", "delta"), reps=5, primary=PRIMARY), _piloted)
    yield ("--pilot", pilot, "--reps", "10", *_QUICK)
    yield ("--pilot", pilot, "--reps", "10", "--details", *_QUICK)
    yield ("--pilot", pilot, "--budget", "100")
    yield ("--from-campaign", pilot, "--reps", "10,20", "--cost-rep", "0.5", *_QUICK)
    yield ("--from-campaign", pilot, "--reps", "25", "--to", "0.7", *_QUICK)
    yield ("--from-campaign", pilot, "--reps", "25", "--to", "0.7", "--cost-rep", "0.5", "--details", *_QUICK)
    for number, primary in enumerate(_DECLARED):
        file = folder / f"{number}.yaml"
        file.write_text(_HEAD.format(tasks=TASKS) + f"primary: {{{primary}}}\n")
        yield (str(file), *_QUICK)
        yield (str(file), "--details", *_QUICK)
        if "stop" in primary or "difference" in primary:
            yield (str(file), "--reps", "3", *_QUICK)


_QUICK = ("--simulations", "100")
_HEAD = """\
campaign: declared
seed: 1
tasks: ['{tasks}/tasks/*.yaml']
conditions: [none, flat_llm]
reps: 10
agent: {{kind: search}}
store: store
"""
_SIDES = "treatment: flat_llm, control: none"
_DECLARED = (
    _SIDES,
    f"{_SIDES}, estimand: tasks_like_these",
    f"{_SIDES}, effect: 0.2, stop: {{looks: 2}}",
    f"{_SIDES}, effect: 0.2, stop: {{anytime: half}}",
    f"{_SIDES}, question: not_worse, margin: 10",
    f"{_SIDES}, question: equivalent, margin: 10, stop: {{looks: 2}}",
    f"{_SIDES}, question: not_worse, margin: 10, estimand: tasks_like_these",
    f"{_SIDES}, question: cheaper_and_not_worse, margin: 10",
    f"{_SIDES}, metric: cost_usd",
    f"{_SIDES}, metric: cost_usd, stop: {{looks: [5, 10]}}",
    f"{_SIDES}, metric: cost_usd, scale: difference",
)


def _piloted(trial: Trial) -> Fate:
    passed = trial.rep < ("alpha", "beta", "gamma", "delta").index(trial.task) + (
        trial.condition == "intent_layer"
    )
    return Fate(Verdict.PASSED if passed else Verdict.FAILED)
