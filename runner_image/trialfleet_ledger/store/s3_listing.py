"""Pages of a bucket's listing: whether one is an answer to what was asked, and its keys without repetition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trialfleet_ledger.store.protocol import ListedKey

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import ListObjectsV2OutputTypeDef


def doubt_page(page: ListObjectsV2OutputTypeDef, prefix: str, token: str | None) -> str | None:
    """Why this is not the page that was asked for; None: it is. `token`: where it continues, as asked.

    A page of HTML or an empty body parses as a page without keys, which would mean that there are none.
    """
    items = page.get("Contents", ())
    if "IsTruncated" not in page:
        return "the answer is not a listing"
    if page.get("Prefix", prefix) != prefix:
        return f"the listing is of {page.get('Prefix')!r}"
    if page.get("KeyCount", len(items)) != len(items):
        return "the listing does not have as many keys as it counts"
    if any(not item.get("Key", "").startswith(prefix) for item in items):
        return "the listing has a key of another folder"
    if not page["IsTruncated"]:
        return None
    following = page.get("NextContinuationToken")
    if not following:
        return "the listing is truncated and does not say where it continues"
    return "the listing does not advance" if following == token else None


def keys_of(page: ListObjectsV2OutputTypeDef) -> Iterator[ListedKey]:
    for item in page.get("Contents", ()):
        at = item.get("LastModified")
        yield ListedKey(
            item.get("Key", ""), item.get("Size", 0), item.get("ETag", ""), at.timestamp() if at else None
        )


class NewKeys:
    """Leaves out keys that this page or the page before had already: some servers repeat keys or whole pages."""

    def __init__(self) -> None:
        self._before: frozenset[str] = frozenset()

    def of(self, page: ListObjectsV2OutputTypeDef) -> Iterator[ListedKey]:
        entries = {entry.key: entry for entry in keys_of(page)}
        fresh = [entry for key, entry in entries.items() if key not in self._before]
        self._before = frozenset(entries)
        return iter(fresh)
