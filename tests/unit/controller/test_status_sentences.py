"""What `status` prints agrees with its own data and with the report, in random campaigns; and the command that it
advises has every option that it needs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support import ledgers, printed_samples, records
from tests.support.random_ledgers import DrawnLedger, draw_ledger
from trialfleet_analysis.kept_answer import CampaignAnswer
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.tables.read import CampaignTables, open_campaign
from trialfleet_analysis.viewer.addresses import ServedAddresses
from trialfleet_analysis.viewer.campaign_state import WatchedCampaign
from trialfleet_analysis.viewer.site import CampaignSite
from trialfleet_analysis.viewer.trial_list import query_of, selected
from trialfleet_controller.commands.plan import plan
from trialfleet_controller.status.campaign_status import CampaignStatus, State, read_status
from trialfleet_controller.status.status_text import lines
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.spent_money import price_chain
from trialfleet_ledger.trial_order import trials

PARTS = 6
SEEDS = (63, 866, *range(45))  # 39 and 63 were given reps after their last look; 866: its last trials are dear
COMPARE_ALIKE = ("fixed", "looks", "bets", "trend")  # without values, and without looks at a question


@pytest.mark.parametrize("part", range(PARTS))
def test_status_and_report_agree(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, part: int) -> None:
    printed_samples.leave_out_what_takes_long(monkeypatch)
    for seed in SEEDS[part::PARTS]:
        assert_agreement(draw_ledger(seed, tmp_path / str(seed)), str(seed))


def test_status_and_report_of_halvings_agree(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    printed_samples.leave_out_what_takes_long(monkeypatch)
    for seed in range(12):
        assert_agreement(draw_ledger(seed, tmp_path / str(seed), kind="halving"), f"halving {seed}")


def assert_agreement(drawn: DrawnLedger, where: str) -> None:
    status, report = read_status(drawn.store, drawn.name), ledgers.read(drawn.store, drawn.name)
    found = [*contradictions(status), *differences(drawn, status, report), *other_counts(drawn, status)]
    assert found == [], (where, drawn.happened)


def other_counts(drawn: DrawnLedger, status: CampaignStatus) -> Iterator[str]:
    """Of the viewer's chip, of what it says of now, of its list, and of `plan`."""
    watched = WatchedCampaign(drawn.store, drawn.name, compute=_unanswered)
    tables, counts = watched.state().tables, (status.terminal, status.planned)
    progress, activity = watched.progress(), watched.activity()
    listed = selected(tables.trials, query_of({})).num_rows
    for where, found in (
        ("page", (tables.trials.num_rows, tables.frame.planned)),
        ("chip", (progress["terminal"], progress["planned"])),
        ("now", (activity.terminal, activity.planned)),
        ("list", (listed, status.planned)),
    ):
        if found != counts:
            yield f"{where}: {found}, not {counts}"
    if drawn.plan.cost_usd_campaign and status.terminal < status.planned:
        chains = (
            Ledger(drawn.store, drawn.name).attempts.chain(one.id) for one in trials(drawn.plan, status.reps)
        )
        spent = sum(price_chain(chain, 1.0) for chain in chains)
        if status.out_of_money != (spent + 1.0 > drawn.plan.cost_usd_campaign + 1e-9):
            yield f"of {drawn.plan.cost_usd_campaign} {spent} are spent, and out of money is {status.out_of_money}"
    said = CliRunner().invoke(plan, [f"{drawn.store.url}/{drawn.name}"]).output
    if not said.startswith(f"{status.planned:,} trial") or f" = {status.planned:,}\n" not in said:
        yield f"plan: {said.splitlines()[:1]}, not {status.planned}"
    if (status.state in (State.DECIDED, State.CANCELLED)) > ("and nothing more starts" in said):
        yield f"plan says of a campaign that is {status.state}: {said.splitlines()[0]}"


def _unanswered(_: CampaignTables) -> CampaignAnswer:
    raise OperatorError("not asked for")


def contradictions(status: CampaignStatus) -> list[str]:
    """In the status alone."""
    found, text = list[str](), "\n".join(lines(status))
    for name, one in status.conditions.items():
        if one.measured + one.abandoned + one.running + one.pending > one.planned:
            found.append(f"{name}: more trials than planned")
        if one.interim_measured > one.measured or one.interim_passed > one.interim_measured:
            found.append(f"{name}: rates of more trials than were measured")
    if sum(one.lost_attempts for one in status.conditions.values()) != sum(status.losses.values()):
        found.append("lost attempts by condition and by class differ")
    if sum(one.interrupted for one in status.conditions.values()) != sum(status.stops.values()):
        found.append("stopped attempts by condition and by class differ")
    money = [float(one.replace(",", "")) for one in re.findall(r"\$([\d,.]+\d)", text)]
    if money != sorted(money):
        found.append("all trials cost less than those measured so far")
    if re.search(r"check after block *$", text, re.MULTILINE):
        found.append("a table of looks without a look")
    if status.looks_taken == status.looks_planned and "what is seen in between" in text:
        found.append("a warning about looks that are over")
    return found


def differences(drawn: DrawnLedger, status: CampaignStatus, report: Report) -> list[str]:
    found, progress = list[str](), report.progress
    counts = status.planned, status.terminal, status.complete_blocks, status.blocks
    measured = sum(one.measured for one in status.conditions.values())
    if (*counts, measured) != (
        *(progress.planned, progress.terminal, progress.complete_blocks, progress.blocks, progress.measured),
    ):
        found.append(f"other counts: {counts}, {measured}: {progress}")
    rates = {
        one.condition: (one.passes, one.valid, _rounded(one.these_tasks.estimate)) for one in report.conditions
    }
    shown = {
        name: (one.interim_passed, one.interim_measured, _rounded(one.interim_rate))
        for name, one in status.conditions.items()
    }
    if drawn.happened[0] in COMPARE_ALIKE and shown != rates:
        found.append(f"other rates: {shown}: {rates}")
    decided = status.state is State.DECIDED
    if progress.interim and status.state is not State.CANCELLED and decided != (report.state == "decided"):
        found.append(f"{status.state} and {report.state}")
    says = re.search(r"`(trialfleet resume[^`]*)`", "\n".join(lines(status)))
    way_on = open_campaign(drawn.store, drawn.name, verify=False).way_on
    if progress.interim and says is not None and status.refused is None and says[0] not in way_on:
        found.append(f"{says[0]}: {way_on}")
    return found


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 9)


STOPPED = (State.STALLED, State.HALTED, State.INCOMPLETE)


@pytest.mark.parametrize(
    ("state", "halts", "time", "money"), list(itertools.product(STOPPED, *[(False, True)] * 3))
)
def test_the_advised_command_has_the_options_that_it_needs(
    state: State, *, halts: bool, time: bool, money: bool
) -> None:
    halts = halts or state is State.HALTED
    open_still = next(one for one in printed_samples.statuses() if one.state is state)
    status = replace(open_still, halts=["the campaign: x"] * halts, out_of_time=time, out_of_money=money)
    [command] = re.findall(r"`(trialfleet resume[^`]*)`", "\n".join(lines(status)))
    needed = {"--lift": halts, "--wall-clock": time, "--cost": money}
    assert {option: option in command for option in needed} == needed


@pytest.mark.parametrize("condition", ["none", "unknown"])
def test_an_outcome_without_a_place_in_the_plan_is_named_and_not_counted(tmp_path: Path, condition: str) -> None:
    store = ledgers.write(tmp_path, ledgers.plan(reps=2), lambda _: ledgers.Fate())
    known = ledgers.trials(ledgers.plan(reps=3))[-1]
    trial = known.model_copy(update={"condition": condition, "id": "b" * 26})
    ledgers.put(store, f"demo/outcomes/{trial.id}.json", records.outcome(trial, Verdict.PASSED))
    text = lines(read_status(store, "demo"))
    assert text[0] == "demo: complete; 8 of 8 trials"
    assert "left out: 1 outcome that the plan has no place for" in text
    assert "Left out: 1 outcome that the plan has no place for." in ledgers.read(store).cautions
    watched = WatchedCampaign(store, "demo", compute=_unanswered)
    assert "8 of 8 trials over" in CampaignSite(watched, ServedAddresses()).home({})
    assert (watched.progress()["terminal"], watched.progress()["planned"]) == (8, 8)
