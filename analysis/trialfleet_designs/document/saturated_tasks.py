"""Tasks that always passed or always failed, and totals of the others with which a test cannot reject."""

from __future__ import annotations

from trialfleet_ledger.plurals import plural


def name_saturated(tasks: int, informative: int, under: str = "under both conditions") -> str | None:
    """How many tasks do not bear on the comparison of the conditions, as a clause; None where all of them do.

    >>> name_saturated(4, 1)
    '3 of the 4 tasks always passed or always failed under both conditions'
    >>> name_saturated(1, 0)
    'the one task always passed or always failed under both conditions'
    """
    if informative == tasks:
        return None
    whose = f"{f'{tasks - informative:,}' if informative else 'each'} of the {plural(tasks, 'task')}"
    return f"{whose if tasks > 1 else 'the one task'} always passed or always failed {under}"


def explain_impossible(
    tasks: int,
    informative: int,
    alpha: float,
    *,
    under: str = "under both conditions",
    between: str = "the two",
    so_far: bool = False,
) -> str:
    """Why the test could not reject, as a clause. It says that of these totals alone: with others, which as many
    trials could have had, it may reject.

    >>> explain_impossible(2, 2, 0.05)
    'given how often these tasks passed in all, no split of their passes between the two reaches p ≤ 0.05'
    >>> explain_impossible(2, 0, 0.05)
    'each of the 2 tasks always passed or always failed under both conditions'
    """
    few = name_saturated(tasks, informative, under)
    if few and not informative:
        return few
    whose, their = (
        ("the rest", "their") if few else ("this task", "its") if tasks == 1 else ("these tasks", "their")
    )
    passed = f"given how often {whose} passed {'so far' if so_far else 'in all'}"
    why = f"{passed}, no split of {their} passes between {between} reaches p ≤ {alpha:g}"
    return f"{few}, and {why}" if few else why
