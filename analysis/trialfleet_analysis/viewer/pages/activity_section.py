"""The part of the first screen that says what runs now; a script asks for it again."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element, tostring

from trialfleet_analysis.report.html.markup import breakable, h, section
from trialfleet_analysis.viewer.activity import CampaignActivity, EndedAttempt, RunningAttempt
from trialfleet_analysis.viewer.addresses import Addresses
from trialfleet_analysis.viewer.pages.scaffold import block
from trialfleet_ledger.plurals import plural
from trialfleet_ledger.records.verdicts import LossClass
from trialfleet_ledger.trial_order import Planned

_STOPS = tuple(loss for loss in LossClass if loss.by_operator)


def placeholder() -> Element:
    return _asked_again(section("now", "Running now", h("p", "Reading the store.", role="status")))


def activity_section(found: CampaignActivity, to: Addresses) -> str:
    """HTML of the section alone. It asks for itself again until every trial has ended."""
    more = h("p", f"{found.more_running:,} more run.", class_="muted") if found.more_running else None
    rest = found.terminal < found.planned
    made = section(
        "now",
        "Running now" if rest else "Every trial has ended",
        h("p", " · ".join(_counts(found)), class_="size"),
        [_running(one, found.now, to) for one in found.running],
        more,
        [h("h3", "Newest ends"), h("ul", [_ended(one, found.now, to) for one in found.newest], class_="ends")]
        if found.newest
        else None,
    )
    return tostring(_asked_again(made) if rest else made, encoding="unicode", method="html")


def _asked_again(made: Element) -> Element:
    made.set("data-refresh", "/now")
    return made


def _counts(found: CampaignActivity) -> Iterator[str]:
    yield f"{found.terminal:,} of {plural(found.planned, 'trial')} over"
    running = len(found.running) + found.more_running
    yield f"{running:,} running"
    if found.waiting:
        yield f"{found.waiting:,} waiting to start"
    if found.per_hour is not None and found.terminal < found.planned:
        yield f"{found.per_hour:,.{1 if found.per_hour < 100 else 0}f} an hour"
        yield f"about {_time(found.left_s)} left at this rate"
    if found.cost_usd is not None:
        yield f"${found.cost_usd:,.2f} for {plural(found.costed, 'measured trial')}, lost attempts not counted"
    stops = {loss.words: found.losses[loss] for loss in _STOPS if loss in found.losses}
    lost = sum(found.losses.values()) - sum(stops.values())
    words = ", ".join(f"{loss} {count:,}" for loss, count in found.losses.items() if loss not in _STOPS)
    yield f"{plural(lost, 'lost attempt')} ({words})" if lost else "no attempt lost"
    yield from (f"{stop}: {count:,}" for stop, count in stops.items())


def _running(one: RunningAttempt, now: float, to: Addresses) -> Element:
    since = f" for {_time(now - one.since)}" if one.since is not None else ""
    name = _name(one.planned, one.trial)
    title = h("p", _link(one.planned, one.trial, one.attempt, to), h("small", f" attempt {one.attempt}{since}"))
    output = block(one.tail, f"Output of {name}") if one.tail else h("p", "No output yet.", class_="muted")
    return h("article", title, output, class_="running")


def _ended(one: EndedAttempt, now: float, to: Addresses) -> Element:
    ago = f" {_time(now - one.at)} ago" if one.at is not None else ""
    words = f"lost: {one.said}" if one.lost else one.said.replace("_", " ")
    kind = "bad" if one.lost else "good" if one.said == "passed" else None
    link = _link(one.planned, one.trial, one.attempt, to)
    return h("li", link, " ", h("span", words, class_=kind), h("small", ago))


def _link(planned: Planned | None, trial: str, attempt: int, to: Addresses) -> Element:
    return h("a", breakable(_name(planned, trial)), href=to.trial(trial, attempt))


def _name(planned: Planned | None, trial: str) -> str:
    return f"{planned.task} × {planned.condition}, rep {planned.rep}" if planned else f"trial {trial}"


def _time(seconds: float | None) -> str:
    """
    >>> _time(42), _time(3725), _time(200_000)
    ('42 s', '1 h 2 min', '2 d 7 h')
    """
    if seconds is None:
        return "an unknown time"
    for small, large, size in (("min", "h", 3600), ("h", "d", 86_400)):
        part = size // (60 if size == 3600 else 24)
        if size <= seconds and (size == 86_400 or seconds < 86_400):
            return f"{seconds // size:.0f} {large} {seconds % size // part:.0f} {small}"
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds // 60:.0f} min"
