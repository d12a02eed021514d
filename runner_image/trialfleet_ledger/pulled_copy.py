"""What a copy that `trialfleet pull` made says of itself."""

from __future__ import annotations

from typing import Literal

from trialfleet_ledger import keys
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.parsed_records import parse_record
from trialfleet_ledger.records.base import Record
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.store.rereading import WHILE_READING_S


class PulledCopy(Record):
    """`pulled.json` *replaced*: what of the campaign was not copied."""

    omitted: tuple[Literal["bundles"], ...] = ()


def omits_bundles(store: Store, campaign: str) -> bool:
    """Whether bundles that are absent were not pulled. Whoever can write `pulled.json` can hide that a bundle was
    deleted, so an answer says that verdicts were not checked. What cannot be read says nothing."""
    key = keys.pulled(campaign)
    try:
        copy = parse_record(store, key, store.get(key), PulledCopy, over_s=WHILE_READING_S)
    except OperatorError:
        return False
    return copy is not None and "bundles" in copy.omitted
