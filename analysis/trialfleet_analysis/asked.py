"""What the command line asks of a report beyond its plan: light to import."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Asked:
    """`contrasts`: TREATMENT:CONTROL, as written. `packages`: conditions that differ in several deliveries may be
    compared, as packages."""

    contrasts: tuple[str, ...] = ()
    packages: bool = False


NOTHING = Asked()
