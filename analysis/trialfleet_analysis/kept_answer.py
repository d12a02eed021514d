"""A finished campaign's answer, kept next to its tables. Computing it takes seconds.

One digest names its words and the tables, the few records and the very programs that it was made of. What is of
another digest is not read.
"""

from __future__ import annotations

import importlib.metadata
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import ValidationError

from trialfleet_analysis.tables.read import CampaignTables
from trialfleet_ledger.canonical import canonical_json, digest, sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.base import Frozen, Record, Sha256
from trialfleet_ledger.store.protocol import Store, StoreError

COMPUTE = (  # packages
    *("trialfleet_statistics", "trialfleet_designs", "trialfleet_analysis"),
    *("trialfleet_deliveries", "trialfleet_ledger"),  # some of its words
)


class CampaignAnswer(Frozen):
    """What was found, as the report says it first. `cautions`: what must be known before relying on it.
    `next_step`: what to do next; None: nothing is declared, or the sentences say it."""

    banner: str | None
    sentences: tuple[str, ...]
    cautions: tuple[str, ...]
    next_step: str | None


class KeptAnswer(Record):
    """`tables/answer.json`. `made_of`: digest of tables, records, programs and the answer itself."""

    made_of: Sha256
    answer: CampaignAnswer


def keep_answer(store: Store, found: CampaignTables, answer: CampaignAnswer) -> None:
    """Nothing is written where the store keeps no tables, or may not be written."""
    made_of = _made_of(found, answer)
    if made_of is not None:
        with suppress(StoreError, OperatorError):
            store.put(_key(found), canonical_json(KeptAnswer(made_of=made_of, answer=answer)))


def kept_answer(store: Store, found: CampaignTables) -> CampaignAnswer | None:
    """None: there is none of these tables, by these programs, or it was changed."""
    raw = store.get(_key(found)) if found.sealed is not None else None
    try:
        kept = None if raw is None else KeptAnswer.model_validate_json(raw)
    except ValidationError:
        return None
    return kept.answer if kept is not None and kept.made_of == _made_of(found, kept.answer) else None


def versions() -> dict[str, str]:
    """Of the packages that compute a report."""
    names = ("trialfleet", "numpy", "scipy", "statsmodels")
    return {name: importlib.metadata.version(name) for name in names}


def _key(found: CampaignTables) -> str:
    return f"{found.frame.plan.campaign}/tables/answer.json"


def _made_of(found: CampaignTables, answer: CampaignAnswer) -> str | None:
    if found.sealed is None:
        return None
    frame = found.frame
    records = (*frame.amendments, *frame.halts, *frame.looks, *frame.decisions, *frame.quarantine)
    facts: dict[str, Any] = {
        "tables": found.sealed,
        "plan": frame.plan_sha256,
        "records": [record.model_dump(mode="json") for record in records],
        "cancel": frame.cancel and frame.cancel.model_dump(mode="json"),
        "out_of_time": frame.out_of_time,
        "faults": dict(frame.faults),
        "programs": [versions(), _sources()],
        "answer": answer.model_dump(mode="json"),
    }
    return digest(facts)


@cache
def _sources() -> str:
    """Digest of the files that compute it: a version names a release, not what a checkout holds."""
    folders, found = [files(name) for name in COMPUTE], dict[str, str]()
    while folders:
        for one in folders.pop().iterdir():
            if one.is_dir():
                folders.append(one)
            elif one.name.endswith(".py"):
                found[str(one)] = sha256(one.read_bytes())
    return digest(sorted(found.values()))
