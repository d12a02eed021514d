"""Which campaign is meant where none is named: the one of the store at hand that was written to last."""

from __future__ import annotations

from pathlib import Path

from trialfleet_ledger.errors import OperatorError

DEFAULT_STORE = "runs"  # of the current folder, as examples have it
_NAMED = "name it: a campaign file, a campaign's folder, or a name with --store"


def find_newest_campaign(store: str | None) -> str:
    """The folder of that campaign. Raises `OperatorError` without one, and for a store that is no folder."""
    root = Path(store or DEFAULT_STORE)
    if store is not None and "://" in store:
        raise OperatorError("no campaign is named, and this store is no folder", where=store, hint=_NAMED)
    campaigns = sorted(root.glob("*/campaign.json"), key=_written_at)
    if not campaigns:
        raise OperatorError("no campaign is named, and none is in this store", where=str(root), hint=_NAMED)
    return str(campaigns[-1].parent)


def _written_at(plan: Path) -> tuple[float, str]:
    """The youngest of the campaign's folder and what lies in it. One that vanishes meanwhile is the oldest."""
    try:
        return max(one.stat().st_mtime for one in (plan.parent, *plan.parent.iterdir())), plan.parent.name
    except OSError:
        return 0.0, plan.parent.name
