"""What the workspace itself says of an agent's edits, joined with the turns that the agent says or the gateway
counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from trialfleet_ledger.trajectory import Step, WorkspaceChange
from trialfleet_repository.workspace_watch import WatchLost

MOST_STEPS = 1_000  # changes that a trajectory shows; all are counted


def describe_failure(error: Exception) -> str:
    """Why the edits are not known; never empty.

    >>> describe_failure(WatchLost("more than 9 files")), describe_failure(TypeError("no"))
    ('more than 9 files', 'TypeError: no')
    """
    return (str(error) if isinstance(error, WatchLost) else "") or f"{type(error).__name__}: {error}"


@dataclass(frozen=True)
class ObservedEdits:
    """`changes`: in order; None: they could not be observed, and `lost` says why. `find_unseen`: of paths that
    have changed, those that should be among the changes: all, if nothing was observed."""

    changes: tuple[WorkspaceChange, ...] | None = ()
    lost: str = ""
    find_unseen: Callable[[Iterable[str]], list[str]] = list

    def confirm(self, changed: Iterable[str]) -> ObservedEdits:
        """As they are if they hold every file of the patch, which has `changed`; else they are incomplete, and
        nothing is known. Raises nothing: whatever fails here, the patch is the same."""
        if self.changes is None:
            return self
        try:
            unseen = self.find_unseen(changed)
        except Exception as error:
            return replace(self, changes=None, lost=describe_failure(error))
        lost = f"the change of {unseen[0]} was not seen when it happened" if unseen else ""
        return replace(self, changes=None, lost=lost) if lost else self

    def with_single_turn(self, turns: int | None) -> ObservedEdits:
        """Of a session of so many turns: a single one made every change."""
        if turns != 1 or self.changes is None:
            return self
        return replace(self, changes=tuple(one.model_copy(update={"turn": 1}) for one in self.changes))


def join_changes(steps: Sequence[Step], changes: Iterable[WorkspaceChange]) -> tuple[Step, ...]:
    """The trajectory with the changes, each after the last step of its turn; without those whose turn is not
    known.

    >>> steps = [Step(turn=1, kind="read", path="a"), Step(turn=2, kind="run"), Step(turn=3, kind="message")]
    >>> change = WorkspaceChange(path="a", how="changed", turn=2, at_s=1.5)
    >>> [(step.turn, step.kind) for step in join_changes(steps, [change])]
    [(1, 'read'), (2, 'run'), (2, 'change'), (3, 'message')]
    """
    waiting = [_step_of(one, one.turn) for one in changes if one.turn is not None][:MOST_STEPS][::-1]
    last = {step.turn: place for place, step in enumerate(steps)}
    joined: list[Step] = []
    for place, step in enumerate(steps):
        while waiting and waiting[-1].turn < step.turn:
            joined.append(waiting.pop())
        joined.append(step)
        while waiting and waiting[-1].turn == step.turn and place == last[step.turn]:
            joined.append(waiting.pop())
    return (*joined, *waiting[::-1])


def _step_of(change: WorkspaceChange, turn: int) -> Step:
    return Step(turn=turn, at_s=change.at_s, kind="change", path=change.path, detail=change.how)
