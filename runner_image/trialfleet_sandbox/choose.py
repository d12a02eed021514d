"""Chooses the best sandbox that works on this machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from trialfleet_ledger.errors import OperatorError
from trialfleet_sandbox.protocol import Sandbox

NAMES = ("bubblewrap", "uid", "subreaper")


@dataclass(frozen=True)
class IsolationLine:
    """One kind of sandbox on this machine, for `doctor`. `missing`: why it does not work; `hint`: how to get
    it."""

    name: Literal["bubblewrap", "uid", "subreaper"]
    available: bool
    missing: str | None
    hint: str | None
    warnings: tuple[str, ...]


def isolation_report() -> tuple[IsolationLine, ...]:
    """All kinds, best first; `choose()` takes the first that is available."""
    from trialfleet_sandbox.bubblewrap import probe
    from trialfleet_sandbox.host import AnotherUid, Subreaper

    why_not = probe()
    root = os.geteuid() == 0
    return (
        IsolationLine("bubblewrap", why_not is None, why_not, _bubblewrap_hint(why_not), ()),
        IsolationLine(
            "uid",
            root,
            None if root else "only root can become another user",
            None if root else "run as root, or better: install bubblewrap",
            AnotherUid().warnings,
        ),
        IsolationLine("subreaper", True, None, None, Subreaper().warnings),
    )


def _bubblewrap_hint(why_not: str | None) -> str | None:
    if why_not is None:
        return None
    if "not installed" in why_not:
        return "apt-get install bubblewrap (or dnf, apk: the same name)"
    return (
        "allow unprivileged user namespaces: sysctl -w user.max_user_namespaces=10000, and on Ubuntu 24.04 "
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    )


def choose(prefer: str | None = None) -> Sandbox:
    """The best sandbox that works here, or the preferred one (`prefer`, else `$TRIALFLEET_ISOLATION`).
    Raises `OperatorError` if the preferred one does not work here."""
    from trialfleet_sandbox.bubblewrap import Bubblewrap, bubblewrap_program
    from trialfleet_sandbox.host import AnotherUid, Subreaper

    report = isolation_report()
    prefer = prefer or os.environ.get("TRIALFLEET_ISOLATION")
    if prefer is not None and prefer not in NAMES:
        raise OperatorError(f"unknown isolation {prefer!r}", hint=f"one of: {', '.join(NAMES)}")
    line = next(x for x in report if (x.available if prefer is None else x.name == prefer))
    if not line.available:
        raise OperatorError(f"isolation {line.name}: {line.missing}", hint=line.hint)
    match line.name:
        case "bubblewrap":
            return Bubblewrap(bubblewrap_program())
        case "uid":
            return AnotherUid()
        case "subreaper":
            return Subreaper()
