"""Lost and forged runs that could change an answer."""

from __future__ import annotations

from trialfleet_ledger.plurals import plural


def warn_of_lost_runs(
    lost: int,
    *,
    forged: bool = False,
    enough: int | None = None,
    sure: bool = True,
    same_without: bool = True,
) -> str:
    """As sentences. `forged`: some of them were measured, and forged; `enough`: so many of them change the answer,
    and not `sure`: fewer may do; None: how many is not known. `same_without`: the answer is the same without the
    trials; else it rests on what was measured of them in the end, and no number is named.

    >>> warn_of_lost_runs(31, enough=14)
    'Careful: 31 trials lost their first run. If 14 of those had gone the other way, the answer would change.'
    >>> warn_of_lost_runs(1, forged=True, enough=1)
    'Careful: 1 trial lost its first run or was forged. If it had gone the other way, the answer would change.'
    >>> warn_of_lost_runs(3, same_without=False)
    'Careful: 3 trials lost their first run. Without them, the answer would be another one.'
    """
    what = "lost its first run" if lost == 1 else "lost their first run"
    also = f" or {'was' if lost == 1 else 'were'} forged" if forged else ""
    careful = f"Careful: {plural(lost, 'trial')} {what}{also}."
    if not same_without:
        return f"{careful} Without {'it' if lost == 1 else 'them'}, the answer would be another one."
    those = "it" if lost == 1 else "those" if enough is None else f"{enough:,} of those"
    fewer = "" if sure else ", or fewer,"
    would = "could" if enough is None else "would"
    return f"{careful} If {those}{fewer} had gone the other way, the answer {would} change."
