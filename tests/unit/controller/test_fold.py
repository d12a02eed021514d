"""The fold of a chain, and what many controllers, zombies and replays make of one trial."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import records
from trialfleet_controller.backends.runner_termination import RunnerTermination, classify
from trialfleet_ledger.campaign_spec import RetrySpec
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.fold import (
    BrokenChain,
    Conclude,
    Intend,
    LaunchAttempt,
    StoredAttempt,
    WatchAttempt,
    next_step,
    progress,
    score_from,
)
from trialfleet_ledger.lifecycle import TrialPhase
from trialfleet_ledger.records.attempt import End, Intent, Start
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.verdicts import Loss, LossClass, Verdict
from trialfleet_ledger.retries import INTERRUPTIONS
from trialfleet_ledger.stage_reached import Stage

TRIAL = records.trial()
RETRIES = RetrySpec(before_agent=2, mid_run=1, scoring=2, disruptions=3)
BUNDLE = sha256(b"bundle")


def make_intent(n: int, previous: str | None, *, score_only: bool = False, nonce: str = "n") -> Intent:
    return records.intent(
        trial=TRIAL.id, attempt=n, nonce=f"{nonce}{n}", previous_end=previous, score_only=score_only
    )


def make_start(intent: Intent, pid: int = 1) -> Start:
    return records.start(trial=TRIAL.id, attempt=intent.attempt, nonce=intent.nonce, pid=pid, isolation="uid")


def make_end(intent: Intent, *, loss: Loss | None = None, by: str = "runner", verdict: str = "failed") -> End:
    result = loss or records.scored(Verdict(verdict))
    return records.end(result, trial=TRIAL.id, attempt=intent.attempt, nonce=intent.nonce, by=by)


def ended(intent: Intent, end: End, **more: object) -> StoredAttempt:
    raw = canonical_json(end)
    bundle = "bundle" if end.scored else None
    return replace(StoredAttempt(intent, end=end, end_sha256=sha256(raw), bundle=bundle), **more)  # type: ignore[arg-type]


def lost(*, started: bool, patched: bool = False, loss: LossClass = LossClass.TERMINATED) -> Loss:
    return Loss(loss=loss, message="m", agent_started=started, patched=patched)


# --- single chains ----------------------------------------------------------------------------------


def test_an_empty_chain_wants_its_first_intent() -> None:
    assert next_step(TRIAL, (), RETRIES) == Intend(1, None, None)


def test_an_intent_alone_is_placed_and_a_started_one_watched() -> None:
    intent = make_intent(1, None)
    assert next_step(TRIAL, (StoredAttempt(intent),), RETRIES) == LaunchAttempt(1, None)
    assert next_step(TRIAL, (StoredAttempt(intent, start=make_start(intent)),), RETRIES) == WatchAttempt(1)


def test_a_verdict_concludes_also_when_the_agent_failed() -> None:
    attempt = ended(make_intent(1, None), make_end(make_intent(1, None)))
    step = next_step(TRIAL, (attempt,), RETRIES)
    assert isinstance(step, Conclude)
    assert step.outcome.scored is not None
    assert (step.outcome.bundle, step.outcome.bundle_sha256) == ("bundle", BUNDLE)


def test_a_quarantined_verdict_is_abandoned_and_never_rolled_again() -> None:
    attempt = ended(make_intent(1, None), make_end(make_intent(1, None)), quarantined=True)
    step = next_step(TRIAL, (attempt,), RETRIES)
    assert isinstance(step, Conclude)
    assert step.outcome.abandoned is LossClass.QUARANTINED
    assert step.outcome.bundle is None


def test_a_loss_is_followed_by_an_intent_that_names_its_end() -> None:
    attempt = ended(make_intent(1, None), make_end(make_intent(1, None), loss=lost(started=True)))
    assert next_step(TRIAL, (attempt,), RETRIES) == Intend(2, attempt.end_sha256, None)


def test_after_the_patch_only_scoring_is_repeated() -> None:
    first = ended(make_intent(1, None), make_end(make_intent(1, None), loss=lost(started=True, patched=True)))
    step = next_step(TRIAL, (first,), RETRIES)
    assert step == Intend(2, first.end_sha256, 1)
    intent = make_intent(2, first.end_sha256, score_only=True)
    second = ended(intent, make_end(intent, loss=lost(started=False, loss=LossClass.SCORING)))
    assert next_step(TRIAL, (first, second), RETRIES) == Intend(3, second.end_sha256, 1)
    assert score_from((first, second)) == 1


def test_chains_that_no_controller_writes_are_refused() -> None:
    intent = make_intent(1, None)
    verdict = ended(intent, make_end(intent))
    loss = ended(intent, make_end(intent, loss=lost(started=True)))
    broken: list[tuple[StoredAttempt, ...]] = [
        (verdict, StoredAttempt(make_intent(2, verdict.end_sha256))),  # after a verdict
        (loss, StoredAttempt(make_intent(2, "0" * 64))),  # does not follow from end 1
        (loss, StoredAttempt(make_intent(2, loss.end_sha256, score_only=True))),  # no patch to score
        (StoredAttempt(intent), StoredAttempt(make_intent(2, "0" * 64))),  # before end 1
        (ended(intent, make_end(make_intent(1, None, nonce="x"))),),  # end of another intent
        (StoredAttempt(make_intent(2, "0" * 64)),),  # the first is missing
    ]
    for chain in broken:
        with pytest.raises(BrokenChain):
            progress(chain, RETRIES)


# --- many actors on one trial -----------------------------------------------------------------------


@dataclass(eq=False)
class Runner:
    intent: Intent
    started: bool = False


@dataclass
class World:
    """One trial's contended keys, as a store keeps them: the first write stands."""

    intents: dict[int, Intent] = field(default_factory=dict)
    starts: dict[int, Start] = field(default_factory=dict)
    patches: set[int] = field(default_factory=set)
    ends: dict[int, End] = field(default_factory=dict)
    outcome: Outcome | None = None
    launched: list[Runner] = field(default_factory=list)  # that may still act
    executions: int = 0

    def chain(self) -> tuple[StoredAttempt, ...]:
        return tuple(self._attempt(n) for n in sorted(self.intents))

    def _attempt(self, n: int) -> StoredAttempt:
        end = self.ends.get(n)
        return StoredAttempt(
            self.intents[n],
            start=self.starts.get(n),
            patched=n in self.patches,
            end=end,
            end_sha256=sha256(canonical_json(end)) if end else None,
            bundle=f"bundle-{n}" if end and end.scored else None,
        )


def controller_turn(world: World, who: int, view: tuple[StoredAttempt, ...]) -> None:
    """One step of a controller that sees `view`, which may be stale. Crashing between steps is not taking one."""
    match next_step(TRIAL, view, RETRIES):
        case Intend(n, previous, score):
            made = make_intent(n, previous, score_only=score is not None, nonce=f"{who}-")
            world.intents.setdefault(n, made)
        case LaunchAttempt(n, _):
            world.launched.append(Runner(world.intents[n]))
        case WatchAttempt(n) if not any(runner.intent.attempt == n for runner in world.launched):
            gone = classify(RunnerTermination(), started=n in world.starts, patched=n in world.patches)
            world.ends.setdefault(n, make_end(world.intents[n], loss=gone, by="controller"))
        case WatchAttempt():
            pass
        case Conclude(outcome):
            world.outcome = world.outcome or outcome
            assert world.outcome == outcome, "two controllers folded one chain differently"


def runner_turn(world: World, which: int, fate: str) -> None:
    """A launched runner claims its start; at a later turn it comes to its fate, whatever happened in between."""
    runner = world.launched[which % len(world.launched)]
    intent, n = runner.intent, runner.intent.attempt
    if not runner.started:
        if fate == "killed early" or n in world.starts:
            world.launched.remove(runner)
            return
        world.starts[n] = make_start(intent)
        runner.started = True
        world.executions += not intent.score_only
        return
    world.launched.remove(runner)
    if fate == "mid-run loss":
        world.ends.setdefault(n, make_end(intent, loss=lost(started=True)))
    if fate == "evicted":  # its last words, which a controller adopted
        world.ends.setdefault(n, make_end(intent, loss=lost(started=True, loss=LossClass.EVICTED)))
    if fate == "interrupted":
        world.ends.setdefault(n, make_end(intent, loss=lost(started=True, loss=LossClass.INTERRUPTED)))
    if fate in ("killed early", "killed", "mid-run loss", "evicted", "interrupted"):
        return
    if not intent.score_only:
        world.patches.add(n)
    if fate in ("scoring loss", "interrupted while scoring"):
        loss = LossClass.SCORING if fate == "scoring loss" else LossClass.INTERRUPTED
        patched = lost(started=True, patched=True, loss=loss)
        world.ends.setdefault(n, make_end(intent, loss=patched))
    elif fate != "killed after patch":
        world.ends.setdefault(n, make_end(intent, verdict=fate))


fates = st.sampled_from(
    [
        *("passed", "failed", "killed early", "killed", "mid-run loss", "evicted", "killed after patch"),
        *("scoring loss", "interrupted", "interrupted while scoring"),
    ]
)
turns = st.one_of(
    st.tuples(st.just("controller"), st.integers(0, 2), st.booleans()),
    st.tuples(st.just("runner"), st.integers(0, 5), fates),
    st.tuples(st.just("zombie loss"), st.integers(0, 2), st.booleans()),
    st.tuples(st.just("late patch"), st.integers(1, 4), st.booleans()),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(turns, max_size=60))
def test_many_controllers_zombies_and_runners_agree(schedule: list[tuple[str, int, object]]) -> None:
    world = World()
    stale: dict[int, tuple[StoredAttempt, ...]] = {}
    for actor, number, detail in schedule:
        if actor == "controller":
            # A controller may act on what it read before; what it may then do was decided by the same fold.
            view = stale.get(number, ()) if detail else world.chain()
            stale[number] = world.chain()
            controller_turn(world, number, view)
        elif actor == "runner" and world.launched:
            runner_turn(world, number, str(detail))
        elif actor == "zombie loss":
            # A controller that believes the last attempt dead, rightly or not.
            for n in sorted(world.intents)[-1:]:
                gone = classify(RunnerTermination(), started=n in world.starts, patched=n in world.patches)
                world.ends.setdefault(n, make_end(world.intents[n], loss=gone, by="controller"))
        elif actor == "late patch" and number in world.starts:
            end = world.ends.get(number)
            if end is not None and end.by == "controller":
                world.patches.add(number)
        _check(world)


def _check(world: World) -> None:
    chain = world.chain()
    now = progress(chain, RETRIES)  # never broken
    verdicts = [end for end in world.ends.values() if end.scored is not None]
    assert len(verdicts) <= 1
    if verdicts:
        assert now.phase is TrialPhase.MEASURED
    drawn_again = [one for one in now.losses if one.loss is LossClass.INTERRUPTED and one.stage is Stage.MID_RUN]
    assert len(drawn_again) <= INTERRUPTIONS + (now.abandoned is LossClass.INTERRUPTED)
    stages = [one.stage for one in now.losses]
    if Stage.AFTER_PATCH in stages:
        assert Stage.MID_RUN not in stages[stages.index(Stage.AFTER_PATCH) :], "an ended agent was drawn again"
    for n in world.intents:
        if n > 1:
            before = world.ends[n - 1]
            assert before.loss is not None
            assert world.intents[n].previous_end == sha256(canonical_json(before))
    if world.outcome is not None:
        assert now.terminal
        step = next_step(TRIAL, chain, RETRIES)
        assert step == Conclude(world.outcome)
    for n in range(len(chain)):
        prefix = progress(chain[:n], RETRIES)
        assert not prefix.terminal, "an attempt after a terminal chain"


@settings(deadline=None)  # a loaded machine is no fault of the fold
@given(st.lists(fates, min_size=1, max_size=12))
def test_replays_of_a_whole_life_change_nothing(lives: list[str]) -> None:
    """One controller that is killed after every step and replays it reaches what an undisturbed one reaches."""

    def live(replays: int) -> tuple[Outcome | None, list[bytes]]:
        world = World()
        for fate in lives:
            for _ in range(4 * (replays + 1)):
                for _ in range(replays + 1):
                    controller_turn(world, 0, world.chain())
                if world.launched:
                    del world.launched[1:]  # the same attempt, launched twice: the second leaves at the start
                    runner_turn(world, 0, fate)
                    if world.launched:
                        runner_turn(world, 0, fate)
                    break
        return world.outcome, [canonical_json(world.ends[n]) for n in sorted(world.ends)]

    assert live(0) == live(2)
