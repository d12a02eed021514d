"""Halving of four treatments: when, which two go on, what it holds back, and who decides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.campaign_site import Site
from tests.support.plans import CAMPAIGN, make_plan
from tests.support.waiting import in_background, wait_until
from trialfleet_controller.dispatch.shards import Ending
from trialfleet_controller.planning.amending import amend
from trialfleet_controller.status.campaign_status import State, read_status
from trialfleet_controller.status.status_text import lines
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.designs.halving import HalvingResult
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_ledger.trial_order import Planned, trials

CONTROL = "none"
TREATMENTS = ("flat_llm", "intent_layer", "placebo", "preamble_only")
DECLARED = "flat_llm"
TASKS = 4


def halving(**fields: object) -> Plan:
    primary = Primary(treatment=DECLARED, control=CONTROL, halve=True)
    conditions = (CONTROL, *TREATMENTS)
    given = {"tasks": TASKS, "reps": 5, "parallel": 20, "primary": primary, "conditions": conditions}
    return make_plan(**{**given, **fields})  # type: ignore[arg-type]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.cluster.close()


def launched(site: Site, plan: Plan) -> list[Planned]:
    by_id = {trial.id: trial for trial in trials(plan, 20)}
    return [by_id[attempt.trial] for attempt in site.cluster.order]


def found(site: Site) -> HalvingResult:
    [decision] = site.decisions
    assert isinstance(decision.result, HalvingResult)
    return decision.result


def test_two_treatments_are_in_no_block_after_the_halving(site: Site) -> None:
    """The declared one passes least, and goes on."""
    plan = halving(blocks_ahead=5)
    site.cluster.rates = {CONTROL: 0.5, DECLARED: 0.0, "intent_layer": 0.0, "placebo": 1.0, "preamble_only": 0.0}
    assert site.run(plan) is Ending.COMPLETE
    [decision] = site.decisions
    assert (decision.blocks, decision.stops) == (2, False)
    assert found(site).left_out == ("intent_layer", "preamble_only")
    counts = {one.condition: (one.passed, one.valid, one.rate) for one in found(site).counts}
    assert tuple(counts) == (CONTROL, *TREATMENTS)
    assert (counts["placebo"], counts[DECLARED]) == ((8, 8, 1.0), (0, 8, 0.0))
    ran = launched(site, plan)
    assert {one.condition for one in ran if one.block >= 2} == {CONTROL, DECLARED, "placebo"}
    assert len(ran) == TASKS * (5 * 2 + 3 * 3)
    before = [one.block >= 2 for one in ran].index(True)
    assert before == TASKS * 5 * 2  # nothing later had started before all of these had ended
    status = read_status(site.store, CAMPAIGN)
    assert (status.state, status.planned, status.terminal) == (State.COMPLETE, len(ran), len(ran))
    assert (status.complete_blocks, status.looks_planned) == (5, 0)
    assert status.conditions["intent_layer"].planned == TASKS * 2
    said = "left out after block 2, by their pass rates, and not tested: intent_layer, preamble_only"
    assert said in lines(status)
    assert "left out, by their pass rates: intent_layer, preamble_only" in site.told
    assert site.run(plan) is Ending.COMPLETE  # again: nothing of them starts
    assert len(site.cluster.order) == len(ran)


def test_of_equal_treatments_the_first_in_the_file_goes_on(site: Site) -> None:
    site.cluster.rates = dict.fromkeys((CONTROL, *TREATMENTS), 0.0)
    assert site.run(halving()) is Ending.COMPLETE
    assert found(site).left_out == ("placebo", "preamble_only")


def test_lost_trials_count_neither_for_nor_against(site: Site) -> None:
    """A task that lost every trial of a condition says nothing about any of them."""
    plan = halving(retries={"mid_run": 0, "disruptions": 0})
    site.cluster.rates = dict.fromkeys((CONTROL, *TREATMENTS), 1.0)
    lost = {t.id for t in trials(plan, 2) if t.condition == "preamble_only" and t.task == "task-0"}
    half = {t.id for t in trials(plan, 1) if t.condition == "intent_layer"}
    site.cluster.losing = lost | half
    assert site.run(plan) is Ending.INCOMPLETE
    counts = {one.condition: (one.passed, one.valid, one.rate) for one in found(site).counts}
    assert counts == {
        CONTROL: (6, 6, 1.0),
        DECLARED: (6, 6, 1.0),
        "intent_layer": (3, 3, 1.0),
        "placebo": (6, 6, 1.0),
        "preamble_only": (6, 6, 1.0),
    }
    assert found(site).left_out == ("placebo", "preamble_only")


def test_tasks_that_no_primary_result_counts_are_not_asked(site: Site) -> None:
    plan = halving()
    apart = plan.tasks[0].model_copy(update={"primary": False})
    plan = plan.model_copy(update={"tasks": (apart, *plan.tasks[1:])})
    site.cluster.rates = dict.fromkeys((CONTROL, *TREATMENTS), 0.0)
    assert site.run(plan) is Ending.COMPLETE
    assert {one.valid for one in found(site).counts} == {6}
    later = {(one.task, one.condition) for one in launched(site, plan) if one.block >= 2}
    assert (apart.order.id, "placebo") not in later  # a condition is left out of all its cells


def test_reps_are_added_only_after_the_halving_and_leave_the_same_out(site: Site) -> None:
    plan = halving()
    site.ledger.freeze(plan)
    with pytest.raises(OperatorError, match="halves its treatments after block 2, and has not done so"):
        amend(site.ledger, reps=6)
    site.cluster.rates = {CONTROL: 0.5, DECLARED: 0.5, "intent_layer": 0.0, "placebo": 0.0, "preamble_only": 1.0}
    assert site.run(plan) is Ending.COMPLETE
    before = len(site.cluster.order)
    amendment = amend(site.ledger, reps=7)
    assert amendment is not None
    assert amendment.after_look
    assert site.run(plan, reps=7) is Ending.COMPLETE
    added = launched(site, plan)[before:]
    assert {one.condition for one in added} == {CONTROL, DECLARED, "preamble_only"}
    assert len(added) == TASKS * 3 * 2
    assert len(site.decisions) == 1
    assert site.state is State.COMPLETE


def test_shards_and_a_second_controller_leave_out_the_same(site: Site) -> None:
    plan = halving(blocks_ahead=6)  # nobody renews the shards' leases here
    site.cluster.rates = dict.fromkeys((CONTROL, *TREATMENTS), 0.5)
    running = [in_background(site.dispatcher(plan, shard=n % 2, shards=2).run) for n in range(4)]
    assert {run.result(60) for run in running} == {Ending.COMPLETE}
    [decision] = site.decisions
    result = found(site)
    assert {(one.condition, one.block) for one in launched(site, plan)} == {
        (name, block) for name in (CONTROL, *TREATMENTS) for block in range(2 if name in result.left_out else 5)
    }
    other = result.model_copy(update={"left_out": ("flat_llm", "placebo")})
    assert site.ledger.directives.decide(decision.model_copy(update={"result": other})) == decision
    assert site.state is State.COMPLETE


def test_before_the_halving_the_status_says_when_it_is(site: Site) -> None:
    plan = halving()
    site.ledger.freeze(plan)
    status = read_status(site.store, CAMPAIGN)
    assert (status.planned, status.halving_after, status.halved) == (TASKS * (5 * 2 + 3 * 3), 2, None)
    said = (
        "treatments are left out after block 2, and 24 trials of the table with them; nothing later starts until "
    )
    assert f"{said}then" in lines(status)


def test_its_controller_counts_no_trial_that_the_halving_leaves_out(site: Site) -> None:
    site.cluster.full = True
    dispatcher = site.dispatcher(plan := halving())
    running = in_background(dispatcher.run)
    wait_until(lambda: dispatcher.report().left_out == 24)
    assert site.ledger.directives.planned_reps(plan).trials(plan.cell_names) == TASKS * 5 * 5 - 24
    site.cluster.place()
    assert running.result(60) is Ending.COMPLETE
    report = dispatcher.report()
    assert (report.left_out, sum(one.planned for one in report.conditions.values())) == (0, TASKS * 5 * 5 - 24)


def test_a_halted_side_keeps_all_treatments(site: Site) -> None:
    site.ledger.freeze(halving())
    site.ledger.directives.halt_condition(DECLARED, "its agent crashed")
    status = read_status(site.store, CAMPAIGN)
    assert status.planned == TASKS * 5 * 5
    said = f"nothing waits for one, since a side of the comparison is halted: {DECLARED}"
    assert f"no look is taken, and {said}" in lines(status)


def test_a_late_outcome_changes_no_halving(site: Site) -> None:
    plan = halving()
    site.cluster.rates = dict.fromkeys((CONTROL, *TREATMENTS), 0.0)
    assert site.run(plan) is Ending.COMPLETE
    passed = [one for one in site.ledger.attempts.outcomes([t.id for t in trials(plan, 2)]) if one.scored]
    assert not any(one.scored and one.scored.verdict is Verdict.PASSED for one in passed)
    decision = site.decisions[0]
    assert site.run(plan) is Ending.COMPLETE
    assert site.decisions == (decision,)
