"""The keys of the ledger's records. No other module spells a key."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

AttemptFile = Literal["intent.json", "start.json", "live.log.zst", "patch.json", "bundle.tar.zst", "end.json"]

Kind = Literal["epochs", "amendments", "halts", "looks", "decisions", "journal"]

_ATTEMPT = re.compile(r"attempts/([a-z2-7]{26})/([1-9][0-9]*)/([a-z.]+)")
_OF_TRIAL = re.compile(r"(?:attempts/([a-z2-7]{26})/.+|(?:outcomes|quarantine)/([a-z2-7]{26})[./].+)")
_QUARANTINE = re.compile(r"quarantine/([a-z2-7]{26})/([1-9][0-9]*)\.json")


PLAN = "campaign.json"


class AttemptKey(NamedTuple):
    trial: str
    attempt: int
    name: str


def plan(campaign: str) -> str:
    return f"{campaign}/{PLAN}"


def is_plan(key: str) -> bool:
    """Some campaign's.

    >>> is_plan("demo/campaign.json"), is_plan("demo/looks/campaign.json")
    (True, False)
    """
    campaign, _, rest = key.partition("/")
    return rest == plan(campaign).partition("/")[2]


def attempts(campaign: str, trial: str | None = None, attempt: int | None = None) -> str:
    """Prefix of all attempts, of a trial's, or of one attempt's files."""
    parts = [campaign, "attempts", *([] if trial is None else [trial])]
    return "/".join([*parts, *([] if attempt is None else [str(attempt)])]) + "/"


def attempt_file(campaign: str, trial: str, attempt: int, name: AttemptFile) -> str:
    return f"{campaign}/{below(trial, attempt, name)}"


def below(trial: str, attempt: int, name: AttemptFile) -> str:
    """An attempt's file as an outcome names it: below the campaign."""
    return f"attempts/{trial}/{attempt}/{name}"


def parse_attempt(campaign: str, key: str) -> AttemptKey | None:
    """The parts of an attempt's key; None for anything else that somebody put there."""
    match = _ATTEMPT.fullmatch(key.removeprefix(f"{campaign}/"))
    return AttemptKey(match[1], int(match[2]), match[3]) if match else None


def grants(campaign: str, trial: str, attempt: int, again: str = "") -> str:
    """`again`: tells those of a relaunch from the first."""
    return f"{campaign}/grants/{trial}/{attempt}{again and '-' + again}.json"


def all_grants(campaign: str) -> str:
    return f"{campaign}/grants/"


def trial_of_grants(key: str) -> str:
    """The trial of a key below `all_grants`.

    >>> trial_of_grants(grants("demo", "abc", 1))
    'abc'
    """
    return key.split("/")[-2]


def outcomes(campaign: str) -> str:
    return f"{campaign}/outcomes/"


def outcome(campaign: str, trial: str) -> str:
    return f"{campaign}/outcomes/{trial}.json"


def quarantine(campaign: str, trial: str, attempt: int) -> str:
    return f"{campaign}/quarantine/{trial}/{attempt}.json"


def quarantines(campaign: str) -> str:
    return f"{campaign}/quarantine/"


def parse_quarantine(campaign: str, key: str) -> tuple[str, int] | None:
    """Trial and attempt of a quarantine record; None for anything else that somebody put there.

    >>> parse_quarantine("demo", quarantine("demo", "a" * 26, 2)), parse_quarantine("demo", "demo/quarantine/x")
    (('aaaaaaaaaaaaaaaaaaaaaaaaaa', 2), None)
    """
    match = _QUARANTINE.fullmatch(key.removeprefix(f"{campaign}/"))
    return (match[1], int(match[2])) if match else None


def trial_of(name: str) -> str | None:
    """The trial that a record (its key below the campaign) is about; None: about the whole campaign.

    >>> trial_of(f"outcomes/{'a' * 26}.json"), trial_of("looks/1.json")
    ('aaaaaaaaaaaaaaaaaaaaaaaaaa', None)
    """
    match = _OF_TRIAL.fullmatch(name)
    return None if match is None else match[1] or match[2]


def pulled(campaign: str) -> str:
    """What a copy lacks; a campaign's own store has no such key."""
    return f"{campaign}/pulled.json"


def cancel(campaign: str, *, now: bool = False) -> str:
    """`cancel.json`. `--now` has another key, so that it can follow a cancellation that lets attempts finish."""
    return f"{campaign}/cancel-now.json" if now else f"{campaign}/cancel.json"


def numbered(campaign: str, kind: Kind, number: int) -> str:
    return f"{campaign}/{kind}/{number}.json"


def number_of(key: str) -> int:
    """The k of `…/<k>.json` or `…/<k>.beat`; 0 for any other name.

    >>> number_of("demo/halts/12.json"), number_of("demo/halts/notes.txt")
    (12, 0)
    """
    stem, _, suffix = key.rpartition("/")[2].rpartition(".")
    return int(stem) if suffix in ("json", "beat") and stem.isdecimal() else 0


def beat(campaign: str, epoch: int) -> str:
    return f"{campaign}/epochs/{epoch}.beat"


def is_beat(campaign: str, key: str) -> bool:
    """Some epoch's heartbeat: overwritten, and no numbered record."""
    return key.startswith(folder(campaign, "epochs")) and key.endswith(".beat") and number_of(key) > 0


def folder(campaign: str, kind: Kind) -> str:
    return f"{campaign}/{kind}/"
