"""The dates of commits. git stores any number of seconds and any zone, and anybody may have written them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from trialfleet_repository.git import git

_RAW = ("--date=raw", "--format=%ct %cd")  # the last word is the zone; beyond 64 bits the seconds of %cd are 0
_ZONE = re.compile(r"([+-])(\d\d)(\d\d)")
_WIDEST = timedelta(hours=14)  # the zones of the earth
_LAST = datetime(9000, 1, 1, tzinfo=UTC)  # so that a few years more are a date as well
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_commit_date(git_dir: Path, commit: str) -> date | None:
    """The day on which it was committed, where that was; None where the commit has no date that can be read."""
    words = git(("log", "-1", *_RAW, commit, "--"), git_dir=git_dir).decode().split()
    return parse_commit_date(words[0], words[-1]) if words else None


def parse_commit_date(seconds: str, zone: str) -> date | None:
    """The day of a commit where it was made. A zone that the earth does not have counts as UTC. None unless the
    seconds are a number and lie between 1970 and 9000.

    >>> parse_commit_date("1700000000", "+0200"), parse_commit_date("1700000000", "+9999")
    (datetime.date(2023, 11, 15), datetime.date(2023, 11, 14))
    >>> parse_commit_date("1000000000000", "+0000"), parse_commit_date("-5", "+0000"), parse_commit_date("", "")
    (None, None, None)
    """
    if not re.fullmatch(r"[0-9]{1,18}", seconds) or int(seconds) > (_LAST - _EPOCH).total_seconds():
        return None
    return (_EPOCH + timedelta(seconds=int(seconds)) + _offset(zone)).date()


def _offset(zone: str) -> timedelta:
    parts = _ZONE.fullmatch(zone)
    if parts is None:
        return timedelta()
    offset = timedelta(hours=int(parts[2]), minutes=int(parts[3]))
    if offset > _WIDEST:
        return timedelta()
    return -offset if parts[1] == "-" else offset
