"""`trialfleet pull`: copies a campaign's results to a folder that every reading command accepts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from trialfleet_controller.commands.options import store_option
from trialfleet_ledger.plurals import plural

if TYPE_CHECKING:
    from trialfleet_ledger.store.protocol import ListedKey, Store

# Keys of a campaign that are copied. Grants are not: a grant permits its holder to write a verdict.
_RECORDS = re.compile(
    r"campaign\.json|cancel(-now)?\.json|(amendments|halts|looks|decisions|journal)/[0-9]+\.json|epochs/[0-9]+\.(json|beat)"
    r"|attempts/[a-z2-7]{26}/[1-9][0-9]*/(intent|start|patch|end)\.json"
    r"|attempts/[a-z2-7]{26}/[1-9][0-9]*/(bundle\.tar|live\.log)\.zst"
    r"|outcomes/[a-z2-7]{26}\.json|quarantine/[a-z2-7]{26}/[1-9][0-9]*\.json|tables/([A-Za-z0-9._-]+\.table|seal\.json)"
)
_LEFT_OUT = ("grants/", "pulled.json", "tables/answer.json", "tables/trials.parquet", "tables/attempts.parquet")
_BUNDLE = "bundle.tar.zst"
_TABLE = "tables/trials.table"
_BARE = (
    "the store has no tables, so `report` on this copy cannot compare verdicts with bundles: run `trialfleet "
    "tables {}` first, then pull again, or pull without --no-bundles"
)
_REPLACED = re.compile(r"epochs/[0-9]+\.beat|attempts/.*/live\.log\.zst|tables/.*")


@click.command("pull")
@click.argument("campaign")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@store_option
@click.option("--no-bundles", is_flag=True, help="Copy records without bundles and live logs.")
def pull(campaign: str, folder: Path, store: str | None, no_bundles: bool) -> None:
    """Copy the results of CAMPAIGN into FOLDER. `show`, `status` and `report` then read that folder offline.

    A repeated pull copies what is new. Unexpected files are named and not copied.
    """
    from trialfleet_controller.campaigns import find
    from trialfleet_ledger import keys
    from trialfleet_ledger.errors import OperatorError
    from trialfleet_ledger.interim_results import record_shown_outcomes
    from trialfleet_ledger.ledger import Ledger
    from trialfleet_ledger.pulled_copy import omits_bundles
    from trialfleet_ledger.store.open import open_folder_store

    found = find(campaign, store)
    plan = found.ledger.plan()
    target = open_folder_store(folder)
    if found.store.url == target.url:
        raise OperatorError(
            "the folder is the campaign's own store", where=str(folder), hint="name another folder"
        )
    copied = Ledger(target, found.name)
    if target.get(keys.plan(found.name)) is not None and (other := copied.plan()).uid != plan.uid:
        raise OperatorError(
            f"the folder holds another campaign of this name: {other.title}",
            where=str(folder / found.name),
            hint="name another folder",
        )
    record_shown_outcomes(found.ledger, plan, by="trialfleet pull")
    odd: list[str] = []
    wanted = list(_wanted(_listed(found.store, found.name), found.name, odd, no_bundles=no_bundles))
    there = {entry.key for entry in target.list(f"{found.name}/") if not _is_replaced(found.name, entry.key)}
    missing = [key for key in wanted if key not in there]
    omits = no_bundles or omits_bundles(found.store, found.name)
    _mark(target, found.name, omits_bundles=True)  # until the last is there
    _copy(found.store, target, found.name, missing)
    _mark(target, found.name, omits_bundles=omits)
    present = len(wanted) - len(missing)
    click.echo(f"{plural(len(missing), 'file')} pulled into {folder / found.name}, {present} already present")
    if no_bundles and f"{found.name}/{_TABLE}" not in {*wanted, *there}:
        click.echo(_BARE.format(campaign), err=True)
    for key in odd[:20]:
        click.echo(f"not copied, not a file of a campaign: {key!r}", err=True)
    if len(odd) > 20:
        click.echo(f"… and {len(odd) - 20} more", err=True)


def _mark(target: Store, campaign: str, *, omits_bundles: bool) -> None:
    from trialfleet_ledger import keys
    from trialfleet_ledger.canonical import canonical_json
    from trialfleet_ledger.pulled_copy import PulledCopy

    if omits_bundles:
        target.put(keys.pulled(campaign), canonical_json(PulledCopy(omitted=("bundles",))))
    else:
        target.delete(keys.pulled(campaign))


def _copy(source: Store, target: Store, campaign: str, keys: Sequence[str]) -> None:
    """Bundles last: the ends name their digests. A value that is not what it must be is read again; what the store
    holds is copied, so that readers of the copy find the same faults."""
    bundles = [key for key in keys if key.endswith(_BUNDLE)]
    for key, raw in source.get_many([key for key in keys if not key.endswith(_BUNDLE)]):
        if _is_replaced(campaign, key):
            if raw is not None:
                target.put(key, raw)
        elif (value := _settled(source, key, raw, _record_of)) is not None:
            target.create(key, value)
    for key, raw in source.get_many(bundles):
        end = target.get(f"{key.removesuffix(_BUNDLE)}end.json")
        value = _settled(source, key, raw, partial(_bundle_of, _digest_in(end)))
        if value is not None:
            target.create(key, value)


def _settled(source: Store, key: str, raw: bytes | None, check: Callable[[bytes | None], bytes]) -> bytes | None:
    """The value that the store holds, whether or not it is right; None: it is absent."""
    from trialfleet_ledger.store.rereading import WHILE_READING_S, WrongValue, settle_value

    try:
        return settle_value(source, key, raw, check, over_s=WHILE_READING_S)
    except WrongValue as error:
        return error.value


def _record_of(raw: bytes | None) -> bytes:
    from pydantic_core import from_json

    from trialfleet_ledger.store.rereading import WrongValue

    try:
        from_json(raw or b"", allow_inf_nan=False)
    except ValueError as error:
        raise WrongValue(f"not a record: {error}") from None
    return raw or b""


def _bundle_of(digest: str | None, raw: bytes | None) -> bytes:
    from trialfleet_ledger.canonical import sha256
    from trialfleet_ledger.store.rereading import WrongValue

    if raw is None or digest not in (None, sha256(raw)):
        raise WrongValue("the bundle is not what its end names")
    return raw


def _digest_in(end: bytes | None) -> str | None:
    """The SHA-256 of the bundle that an end names; None: it names none, or cannot be read."""
    from pydantic_core import from_json

    try:
        value: Any = from_json(end or b"null", allow_inf_nan=False)
    except ValueError:
        return None
    return cast("dict[str, Any]", value).get("bundle") if isinstance(value, dict) else None


def _listed(store: Store, campaign: str) -> Iterator[ListedKey]:
    """A record is listed before those that it rests on: an epoch before the entries of the journal that it counts,
    an entry before the records that it names, a decision before its outcomes, an outcome before its attempts. Of
    what is written while the copy is made, it then lacks nothing that it names."""
    from trialfleet_ledger import keys

    kinds: tuple[keys.Kind, ...] = ("epochs", "journal", "decisions")
    early = (*(keys.folder(campaign, kind) for kind in kinds), keys.outcomes(campaign))
    for folder in early:
        yield from store.list(folder)
    for entry in store.list(f"{campaign}/"):
        if not entry.key.startswith(early):
            yield entry


def _wanted(entries: Iterator[ListedKey], campaign: str, odd: list[str], *, no_bundles: bool) -> Iterator[str]:
    for entry in entries:
        name = entry.key.removeprefix(f"{campaign}/")
        if name.startswith(_LEFT_OUT):
            continue
        if not _RECORDS.fullmatch(name):
            odd.append(entry.key)
        elif not (no_bundles and name.endswith(".zst")):
            yield entry.key


def _is_replaced(campaign: str, key: str) -> bool:
    return _REPLACED.fullmatch(key.removeprefix(f"{campaign}/")) is not None
