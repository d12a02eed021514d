"""Launch order: blocks, retries in front, halted tasks out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trialfleet_controller.dispatch.queue import Queue
from trialfleet_ledger.records.directives import Halt
from trialfleet_ledger.trial_order import Planned


def make_trials(blocks: int, tasks: int = 2) -> list[Planned]:
    return [Planned(f"{b}-{t}", f"task-{t}", "none", b, 0, b, t) for b in range(blocks) for t in range(tasks)]


def drain(queue: Queue) -> list[str]:
    taken = []
    while (trial := queue.take()) is not None:
        taken.append(trial.id)
    return taken


def test_plan_order_no_further_than_the_blocks_ahead() -> None:
    trials = make_trials(6)
    queue = Queue(trials, blocks_ahead=2)
    assert drain(queue) == ["0-0", "0-1", "1-0", "1-1", "2-0", "2-1"]
    queue.finish(trials[1])
    assert drain(queue) == []  # 0-0 is still open
    queue.finish(trials[0])
    assert drain(queue) == ["3-0", "3-1"]


def test_retries_come_first_in_the_order_of_losing() -> None:
    trials = make_trials(3)
    queue = Queue(trials, blocks_ahead=2)
    first, second = queue.take(), queue.take()
    assert first is not None
    assert second is not None
    queue.again(second)
    queue.again(first)
    assert [queue.take(), queue.take()] == [second, first]
    assert drain(queue) == ["1-0", "1-1", "2-0", "2-1"]


def test_done_and_held_trials_are_not_taken() -> None:
    trials = make_trials(2)
    queue = Queue(trials, blocks_ahead=0)
    queue.finish(trials[0])
    queue.hold(trials[1])
    assert drain(queue) == []
    assert queue.open == 3
    queue.again(trials[1])
    assert drain(queue) == ["0-1"]


def test_a_halted_task_neither_starts_nor_holds_others_back() -> None:
    trials = make_trials(3)
    queue = Queue(trials, blocks_ahead=0)
    lost = queue.take()
    assert lost is not None
    assert lost.task == "task-0"
    queue.again(lost)
    queue.halt(Halt(number=1, at=0.0, task="task-0", reason="broken"))
    assert drain(queue) == ["0-1"]
    queue.finish(trials[1])
    assert drain(queue) == ["1-1"]
    assert queue.open == 2


@given(st.lists(st.sampled_from(["take", "finish", "lose"]), max_size=80), st.integers(1, 3))
def test_every_trial_is_finished_once_whatever_happens(actions: list[str], ahead: int) -> None:
    trials = make_trials(4)
    queue = Queue(trials, blocks_ahead=ahead)
    out: list[Planned] = []
    finished: list[str] = []
    for action in [*actions, *["take", "finish"] * 20]:
        if action == "take" and (trial := queue.take()) is not None:
            assert trial.id not in finished
            assert trial not in out
            out.append(trial)
        elif action == "finish" and out:
            queue.finish(out[0])
            finished.append(out.pop(0).id)
        elif action == "lose" and out:
            queue.again(out.pop())
        oldest = min((t.block for t in trials if t.id not in finished), default=0)
        assert all(trial.block <= oldest + ahead for trial in out)
    assert sorted(finished) == sorted(trial.id for trial in trials)
    assert queue.open == 0
