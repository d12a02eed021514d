"""A campaign as columns, drawn or laid out by hand: what the plan of analysis reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trialfleet_designs.comparison.columns import Columns, Scheme
from trialfleet_ledger.conditions import PRESETS, Condition
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.records.agent import AgentSpec


def scheme(
    tasks: int,
    conditions: Sequence[str] = ("intent_layer", "none"),
    *,
    reps: int = 5,
    primary: Primary | None = None,
    declared: bool = True,
    factors: Mapping[str, Sequence[str | None]] | None = None,
    composed: Mapping[str, Condition] | None = None,
    seed: int = 7,
) -> Scheme:
    """The first condition against the second is primary, unless `declared` is False."""
    chosen = primary or Primary(treatment=conditions[0], control=conditions[1])
    return Scheme(
        seed=seed,
        tasks=tuple(f"task-{t}" for t in range(tasks)),
        conditions=tuple(conditions),
        composed={name: (composed or PRESETS).get(name, Condition()) for name in conditions},
        agents=dict.fromkeys(conditions, AgentSpec(kind="nop")),
        declared=chosen if declared else None,
        factors={name: tuple(levels) for name, levels in (factors or {}).items()},
        limit_s=100.0,
        reps=reps,
        monitored=False,
    )


def laid_out(passed: ArrayLike, *, measures: Mapping[str, ArrayLike] | None = None, **flags: ArrayLike) -> Columns:
    """`passed`: shape (tasks, conditions, reps): 1, 0, or NaN for a trial without a verdict. `measures` and
    `flags` (of `Columns`) in the same shape. Block is the rep; the order inside a block is fixed."""
    values = np.asarray(passed, dtype=np.float64)
    task, condition, rep = np.indices(values.shape).reshape(3, -1)
    order = np.lexsort((task, condition, rep))
    width = values.shape[0] * values.shape[1]

    def flat(of: ArrayLike) -> NDArray[np.generic]:
        return np.broadcast_to(np.asarray(of), values.shape).reshape(-1)[order]

    known = np.isfinite(values).reshape(-1)[order]
    told = {
        name: flat(flags.get(name, False)).astype(np.bool_)
        for name in ("own_memory", "undelivered", "cut_off", "forged")
    }
    place = np.arange(values.size) % max(width, 1)
    return Columns(
        task=task[order],
        condition=condition[order],
        block=rep[order],
        position=place,
        started_s=np.arange(values.size, dtype=np.float64),
        valid=known,
        passed=flat(np.nan_to_num(values)).astype(np.bool_),
        first_missing=flat(flags.get("first_missing", False)).astype(np.bool_) | ~known,
        first_lost=flat(flags.get("first_missing", False)).astype(np.bool_) | ~known,
        measures={name: flat(of).astype(np.float64) for name, of in (measures or {}).items()},
        **told,
    )


def drawn(rates: ArrayLike, reps: int, *, seed: int, loss: float = 0.0) -> Columns:
    """Passes drawn from rates of shape (tasks, conditions); a share `loss` of the trials without a verdict."""
    rng = np.random.default_rng(seed)
    p = np.asarray(rates, dtype=np.float64)[:, :, None]
    passed = (rng.random((p.shape[0], p.shape[1], reps)) < p).astype(np.float64)
    passed[rng.random(passed.shape) < loss] = np.nan
    return laid_out(passed)
