"""Enumerates the trials of a plan in launch order. Pure: the result is the same on every machine and Python.

Block *b* holds rep *b* of every cell, in an order that depends on (seed, *b*) and the cells alone, so the trials
of 25 reps are a prefix of those of 50.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

from trialfleet_ledger.blocks import PlannedReps
from trialfleet_ledger.canonical import digest
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.plan import Cell, Plan, PlannedAgent
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.trial import Trial

MOST_TRIALS = 1_000_000
_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = [first + second for first in _LETTERS for second in _LETTERS]
_SHIFTS = range(120, -1, -10)  # 130 bits, ten at a time


class Planned(NamedTuple):
    """A trial of the plan with the fields of `contract.Trial`. Small, because a campaign may have hundreds of
    thousands."""

    id: str
    task: str
    condition: str
    rep: int
    seed: int
    block: int
    position: int

    def record(self) -> Trial:
        """The validated record that is stored and granted."""
        return Trial(**self._asdict())


class _Cell(NamedTuple):
    task: str
    condition: str
    identity: bytes


def check_size(tasks: int, conditions: int, reps: int, *, where: str) -> None:
    """Raises `OperatorError` for more trials than any machine enumerates. Before anything is enumerated."""
    planned = tasks * conditions * reps
    if planned > MOST_TRIALS:
        raise OperatorError(
            f"{tasks} tasks × {conditions} conditions × {plural(reps, 'rep')} are "
            f"{plural(planned, 'trial')}, and a campaign has at "
            f"most {MOST_TRIALS:,}",
            where=where,
            hint=f"at most {plural(MOST_TRIALS // (tasks * conditions), 'rep')} of these, or several campaigns",
        )


def trials(plan: Plan, reps: int | None = None) -> list[Planned]:
    """Every trial in launch order; `reps` (default: the plan's) may be more than planned, after an amendment.
    Raises `OperatorError` for too many."""
    cells = _cells(plan)
    count = plan.reps if reps is None else reps
    check_size(len(plan.tasks), len(plan.conditions), count, where="reps")
    return [trial for block in range(count) for trial in _block(plan.seed, block, cells)]


def planned_trials(plan: Plan, planned: PlannedReps) -> list[Planned]:
    """Those of `trials` that are planned, in launch order."""
    every = trials(plan, planned.most)
    return [trial for trial in every if planned.includes((trial.task, trial.condition), trial.block)]


def trial_id(identity: bytes, rep: int) -> str:
    """First 26 base32 characters, lower case, of SHA-256 over (task, condition, agent, input digests) and rep."""
    return base32(sha256(b"%s\0%d" % (identity, rep)).digest())


def base32(raw: bytes) -> str:
    """The first 26 characters of `raw` in base32 (RFC 4648), lower case. Two characters at a time: four times as
    fast as `base64.b32encode`, which dominated planning.

    >>> base32(bytes(17)), base32(bytes(range(17)))
    ('aaaaaaaaaaaaaaaaaaaaaaaaaa', 'aaaqeayeaudaocajbifqydiob4')
    """
    number = int.from_bytes(raw[:17], "big") >> 6
    return "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])


def agent_seed(seed: int, task: str, condition: str, rep: int) -> int:
    """A 63-bit seed for the agent: it differs between conditions and is the same in every attempt."""
    raw = sha256(f"agent\0{seed}\0{task}\0{condition}\0{rep}".encode()).digest()
    return int.from_bytes(raw[:8], "big") >> 1


def _cells(plan: Plan) -> list[_Cell]:
    agents = {name: _agent_digest(own) for name, own in plan.agents.items()}
    tasks = {planned.order.id: planned.order.digest for planned in plan.tasks}
    return [
        _Cell(
            cell.task,
            cell.condition.name,
            _identity(tasks[cell.task], cell, agents[cell.condition.name]),
        )
        for cell in plan.cells
    ]


def _agent_digest(own: PlannedAgent) -> str:
    """Its digest. Ids of trials that are no dry run are those from before there were dry runs."""
    absent = {"dry_run_of"} if own.spec.dry_run_of is None else None
    return digest([own.spec.model_dump(mode="json", exclude=absent), own.digest])


def _identity(task: str, cell: Cell, agent: str) -> bytes:
    """`task`, `agent`: their digests."""
    condition = cell.condition
    return "\0".join((cell.task, task, condition.name, condition.digest, agent)).encode()


def _block(seed: int, block: int, cells: list[_Cell]) -> list[Planned]:
    """The trials of one block. Sorting by a hash gives a random order that no Python version changes."""
    prefix = f"block\0{seed}\0{block}\0"

    def place(cell: _Cell) -> bytes:
        return sha256(f"{prefix}{cell.task}\0{cell.condition}".encode()).digest()

    return [
        Planned(
            trial_id(cell.identity, block),
            cell.task,
            cell.condition,
            block,
            agent_seed(seed, cell.task, cell.condition, block),
            block,
            position,
        )
        for position, cell in enumerate(sorted(cells, key=place))
    ]
