"""Where a campaign stands, `status` names a command, and that command changes where it stands."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import ledgers
from tests.support.campaign_site import FAST, Site
from tests.support.plans import CAMPAIGN, make_plan, priced
from tests.support.simulated_cluster import ClusterBackend
from trialfleet_analysis.tables.read import open_campaign
from trialfleet_controller.dispatch import epochs
from trialfleet_controller.dispatch.dispatcher import Dispatcher
from trialfleet_controller.dispatch.drive_options import AmendedLimits, DriveOptions
from trialfleet_controller.dispatch.shards import Ending, Lease
from trialfleet_controller.planning.amending import amend
from trialfleet_controller.status.campaign_status import CampaignStatus, State, read_status
from trialfleet_controller.status.status_text import lines
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.looks import StopRule
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.trial_order import trials

PLAN = make_plan(tasks=1, reps=2)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.cluster.close()


def resume(site: Site, plan: Plan, command: str = "trialfleet resume", *, first: int | None = None) -> Ending:
    """As the command line does. `first`: only so many trials are driven, as if the controller were stopped."""
    ledger = Ledger(site.store, CAMPAIGN)  # of another process: it remembers no plan
    ledger.freeze(plan)
    driver = epochs.claim(site.store, CAMPAIGN, epochs.HeartbeatConfig())
    try:
        seconds = 1e6 if "--wall-clock" in command else None
        cost = 50.0 if "--cost" in command else None
        amend(ledger, lift="--lift" in command, wall_clock_s=seconds, cost_usd=cost)
        said = ledger.directives
        limits = AmendedLimits.of(plan, said.amendments(), said.first_driven_at(), said.decisions())
        options = {"lease": Lease.whole(DriveOptions.of(plan), limits.cost_usd), "ends_at": limits.ends_at}
        backend = ClusterBackend(site.cluster)
        some = trials(plan)[:first]
        return Dispatcher(
            plan, some, ledger, backend, driver, tell=site.told.append, intervals=FAST, **options
        ).run()
    finally:
        driver.end()


def advice(status: CampaignStatus) -> str:
    """The first command that status advises."""
    found = re.search(r"`(trialfleet resume[^`]*)`", "\n".join(lines(status)))
    assert found is not None
    return found[1]


def stop_early(site: Site) -> Plan:
    resume(site, PLAN, first=2)
    return PLAN


def halt_campaign(site: Site) -> Plan:
    stop_early(site)
    site.ledger.directives.halt(None, "the key is refused")
    return PLAN


def halt_task(site: Site) -> Plan:
    stop_early(site)
    site.ledger.directives.halt("task-0", "its image is broken")
    return PLAN


def halt_condition(site: Site) -> Plan:
    stop_early(site)
    site.ledger.directives.halt_condition("none", "its agent crashed")
    return PLAN


def run_out_of_time(site: Site) -> Plan:
    plan = PLAN.model_copy(update={"wall_clock_s": 1e-6})
    assert resume(site, plan) is Ending.OUT_OF_TIME
    return plan


def run_out_of_money(site: Site) -> Plan:
    plan = priced(PLAN, trial=1.0, campaign=1.5)
    assert resume(site, plan) is Ending.OUT_OF_MONEY
    return plan


def lose_out_of_money(site: Site) -> Plan:
    """What lost attempts have cost counts."""
    plan = priced(PLAN, trial=1.0, campaign=1.5)
    site.cluster.losing = {trial.id for trial in trials(plan)}
    assert resume(site, plan) is Ending.OUT_OF_MONEY
    site.cluster.losing = set()
    return plan


def halt_out_of_time(site: Site) -> Plan:
    plan = run_out_of_time(site)
    site.ledger.directives.halt(None, "the key is refused")
    return plan


def halt_out_of_money(site: Site) -> Plan:
    plan = run_out_of_money(site)
    site.ledger.directives.halt("task-0", "its image is broken")
    return plan


CAUSES = (
    *(stop_early, halt_campaign, halt_task, halt_condition, run_out_of_time, run_out_of_money),
    *(halt_out_of_time, halt_out_of_money, lose_out_of_money),
)


@pytest.mark.parametrize("cause", CAUSES)
def test_the_advised_command_continues(site: Site, cause: Callable[[Site], Plan]) -> None:
    plan = cause(site)
    before = read_status(site.store, CAMPAIGN)
    assert before.terminal < before.planned
    assert open_campaign(site.store, CAMPAIGN, verify=False).way_on.split("`")[1] == advice(before)
    assert resume(site, plan, advice(before)) is Ending.COMPLETE
    assert read_status(site.store, CAMPAIGN).state is State.COMPLETE


@pytest.mark.parametrize("cause", CAUSES[1:])
def test_control_without_the_advised_option_nothing_changes(site: Site, cause: Callable[[Site], Plan]) -> None:
    plan = cause(site)
    before = read_status(site.store, CAMPAIGN).terminal
    assert resume(site, plan) is not Ending.COMPLETE
    left = read_status(site.store, CAMPAIGN)
    assert left.terminal == before or cause is halt_condition
    assert left.state is not State.COMPLETE


def test_a_measurement_that_is_quarantined_has_cost_what_it_says(site: Site) -> None:
    plan = run_out_of_money(site)
    [outcome] = site.ledger.attempts.outcomes(sorted(site.ledger.attempts.outcome_ids()))
    ledgers.quarantine(site.store, plan, outcome, named_plan=outcome.plan)
    status = read_status(site.store, CAMPAIGN)
    assert (status.quarantined, status.out_of_money) == (1, True)
    assert open_campaign(site.store, CAMPAIGN, verify=False).way_on.split("`")[1] == advice(status)
    assert resume(site, plan) is Ending.OUT_OF_MONEY


def remove_trial(site: Site, saved: Path) -> str:
    """All records of a trial that has ended, and a copy of them in `saved`."""
    gone, folder = trials(PLAN)[0].id, site.store.root / CAMPAIGN
    shutil.copytree(folder, saved)
    shutil.rmtree(folder / "attempts" / gone)
    (folder / "outcomes" / f"{gone}.json").unlink()
    return gone


@pytest.mark.parametrize("open_trials", [True, False], ids=["others-open", "others-over"])
def test_status_resume_and_report_agree_on_deleted_records(
    site: Site, tmp_path: Path, *, open_trials: bool
) -> None:
    """The others run, the trial does not, and nothing sends the operator around."""
    resume(site, PLAN, first=2 if open_trials else None)
    gone = remove_trial(site, tmp_path / "saved")
    launches = dict(site.cluster.launches)
    assert resume(site, PLAN) is Ending.INCOMPLETE
    assert [site.cluster.launches[one] for one in launches] == list(launches.values())
    status = read_status(site.store, CAMPAIGN)
    assert (status.state, status.terminal, status.left_out) == (State.INCOMPLETE, 4, 1)
    text = "\n".join(lines(status))
    assert "1 trial left out as missing data and never run again" in text
    assert "continues" not in text
    tables = open_campaign(site.store, CAMPAIGN, verify=False)
    assert [row["trial"] for row in tables.rows if row["tampered"]] == [gone]
    assert not tables.interim
    assert any("tampered: 1 trial left out, never run again; restore" in line for line in site.told)


def test_records_that_are_restored_count(site: Site, tmp_path: Path) -> None:
    resume(site, PLAN)
    remove_trial(site, tmp_path / "saved")
    assert "restore" in "\n".join(lines(read_status(site.store, CAMPAIGN)))
    shutil.copytree(tmp_path / "saved", site.store.root / CAMPAIGN, dirs_exist_ok=True)
    assert resume(site, PLAN) is Ending.COMPLETE
    assert read_status(site.store, CAMPAIGN).state is State.COMPLETE


@pytest.mark.parametrize("name", ["journal/1.json", "campaign.json"])
def test_what_resume_refuses_status_does_not_advise(site: Site, tmp_path: Path, name: str) -> None:
    stop_early(site)
    path = site.store.root / CAMPAIGN / name
    path.rename(tmp_path / "saved")
    if name == "campaign.json":
        path.write_bytes((tmp_path / "saved").read_bytes().replace(b'"created":', b'"created": '))
    with pytest.raises(OperatorError, match=re.escape(name)) as caught:
        resume(site, PLAN)
    text = "\n".join(lines(read_status(site.store, CAMPAIGN)))
    assert "`trialfleet resume` refuses it" in text
    assert "continues" not in text
    assert (caught.value.hint or "") in text
    (tmp_path / "saved").replace(path)
    assert resume(site, PLAN) is Ending.COMPLETE


def test_no_look_waits_for_a_trial_that_is_left_out(site: Site, tmp_path: Path) -> None:
    """It counts as lost there, as in tables. Waiting for it, nothing of later blocks would ever start."""
    primary = Primary(treatment="flat_llm", control="none", stop=StopRule(looks=(1, 2), futility="none"))
    plan = make_plan(tasks=2, reps=2, primary=primary)
    site.cluster.rates = {"flat_llm": 0.0, "none": 0.0}
    resume(site, plan, first=3)
    gone = next(trial for trial in trials(plan)[:3] if trial.condition == "flat_llm")
    folder = site.store.root / CAMPAIGN
    shutil.rmtree(folder / "attempts" / gone.id)
    (folder / "outcomes" / f"{gone.id}.json").unlink()
    site.cluster.rates = {"flat_llm": 0.0, "none": 0.0}
    assert resume(site, plan) is Ending.INCOMPLETE
    first = site.decisions[0]
    assert len(site.decisions) == 2
    assert sum(one.treatment_valid for one in first.stage) == 1
    assert site.ledger.attempts.outcome(gone.id) is None


def test_adding_reps_to_a_campaign_that_only_lacks_a_deleted_trial_is_labelled(site: Site, tmp_path: Path) -> None:
    resume(site, PLAN)
    remove_trial(site, tmp_path / "saved")
    amendment = amend(site.ledger, reps=3)
    assert amendment is not None
    assert amendment.after_look
