"""What the report says of declared texts that did not reach the model, or not all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialfleet_analysis.process import Channel
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_deliveries.registry import list_channels
from trialfleet_ledger.plurals import plural

NAMED = 4  # conditions on the first screen
ENOUGH_TRIALS = 0.9  # share of the trials in which a treatment arrived; below, the answer says so


def qualify_answer(sentences: Sequence[str], report: Report) -> tuple[str, ...]:
    """`sentences`, the first of them with what of the compared conditions did not arrive."""
    sides = [name for name in report.conditions_compared if name not in report.halted_conditions]
    clauses = [
        _describe_arrivals(one) for one in _select_claimed(report) if one.condition in sides and _is_lacking(one)
    ]
    first, *rest = sentences
    return (f"{first} Careful: {'; '.join(clauses)}." if clauses else first, *rest)


def arrival_line(report: Report) -> str | None:
    """For the first screen: of each condition, in how many trials all of its least received part arrived. None
    where
    no model was asked."""
    worst = dict[str, Channel]()
    for one in _select_claimed(report):
        known = worst.get(one.condition)
        if known is None or _share_reached(one) < _share_reached(known):
            worst[one.condition] = one
    first = sorted(worst.values(), key=_share_reached)  # what did not arrive is never among the rest
    each = "; ".join(map(_describe_least, first[:NAMED]))
    rest = f"; and {plural(len(first) - NAMED, 'condition')} more" if len(first) > NAMED else ""
    return f"Reached the model whole: {each}{rest}." if each else None


def _share_reached(one: Channel) -> float:
    return one.reached / (one.reached + one.not_reached)


def _describe_least(one: Channel) -> str:
    part = f", in part in {one.in_part:,}" if one.in_part else ""
    return f"{one.condition} in {one.reached:,} of {one.reached + one.not_reached:,}{part} ({_name_channel(one)})"


def _select_claimed(report: Report) -> Iterator[Channel]:
    """Of which anything is claimed."""
    return (one for one in report.channels if one.declared and one.reached + one.not_reached)


def _is_lacking(one: Channel) -> bool:
    """A hook pushes its last text after the last request at times: there only many such trials count."""
    asked = one.reached + one.not_reached
    pushed = list_channels()[one.channel].firings is not None
    return one.reached < ENOUGH_TRIALS * asked or (one.in_part > 0 and not pushed)


def _describe_arrivals(one: Channel) -> str:
    """
    >>> _describe_arrivals(Channel("own", "files", True, 2, 8, silent=0, unknown=0, in_part=8, share=0.876))
    'the files of own reached the model whole in 2 of 10 trials, and in part in 8 (87% of their words on average)'
    """
    asked = one.reached + one.not_reached
    of = f"{one.reached:,} of {plural(asked, 'trial')}"
    whole = f"the {_name_channel(one)} of {one.condition} reached the model whole in {of}"
    if not one.in_part or one.share is None:
        return whole
    return f"{whole}, and in part in {one.in_part:,} ({int(100 * one.share)}% of their words on average)"


def _name_channel(one: Channel) -> str:
    return list_channels()[one.channel].head.lower().replace("mcp", "MCP")
