"""Messages keep what the cluster, the pod's events and the runner itself say."""

from __future__ import annotations

from trialfleet_controller.backends.kube.diagnosis import explained
from trialfleet_controller.backends.kube.signals import PodEvent
from trialfleet_controller.backends.runner_termination import RunnerTermination, classify
from trialfleet_ledger.records.verdicts import MESSAGE_CHARS, HaltScope, Loss, LossClass

EVENTS = (PodEvent("Killing", "Stopping container runner"), PodEvent("Evicted", "The node was low on memory"))


def message(departure: RunnerTermination) -> str:
    return classify(departure, started=True, patched=False).message


def test_a_named_loss_keeps_its_class_and_gains_the_events() -> None:
    named = Loss(loss=LossClass.EVICTED, message="preempted", agent_started=False, halt=HaltScope.NONE)
    told = explained(RunnerTermination(code=137, named=named), EVENTS, "log")
    assert message(told).startswith("preempted; events: Killing: Stopping container runner | Evicted: The node")
    assert told.named is not None
    assert told.named.loss is LossClass.EVICTED


def test_an_exit_code_gains_the_log_and_the_events() -> None:
    told = explained(RunnerTermination(code=1, words="said"), EVENTS, "Traceback: boom")
    assert all(part in message(told) for part in ("exited 1", "said", "Traceback: boom", "low on memory"))


def test_nothing_to_add_changes_nothing_and_messages_stay_short() -> None:
    departure = RunnerTermination(code=1, words="said")
    assert explained(departure, (), "") == departure
    many = tuple(PodEvent("Failed", "x" * 500 + str(n)) for n in range(50))
    assert len(message(explained(departure, many, "y" * 10_000))) < MESSAGE_CHARS + 100


def test_an_event_that_repeats_is_told_once() -> None:
    assert message(explained(RunnerTermination(code=1), EVENTS * 5, "")).count("Killing") == 1
