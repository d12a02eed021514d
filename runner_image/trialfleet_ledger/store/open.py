"""From a campaign's `store:` to a Store."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.store.retry_policy import Patience
from trialfleet_ledger.store.server_address import is_remote
from trialfleet_ledger.user_folders import expand_home

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_FILE_URL = re.compile(
    r"file:(?://(?:localhost)?)?(/(?!/).*)", re.DOTALL
)  # also with a bare `#` or `?` in the path
_FORMS = "write s3://bucket/prefix, or a directory"


def open_store(
    url: str,
    *,
    base: Path | None = None,
    where: str | None = None,
    endpoint: str | None = None,
    grant_endpoint: str | None = None,
    path_style: bool | None = None,
    patience: Patience | None = None,
) -> Store:
    """The store that `url` names: `s3://bucket/prefix`, a directory (relative to `base`, default the working
    directory) or file:///directory. Nothing is contacted or made yet; `probe` does that.

    Where an S3 server is belongs to the machine, not to the campaign: `endpoint` or, as for every AWS tool,
    $AWS_ENDPOINT_URL_S3 or $AWS_ENDPOINT_URL; none means AWS. Grants are signed for `grant_endpoint`
    (default: the same), where runners see the server under another address. `path_style` (default:
    $TRIALFLEET_S3_PATH_STYLE, else whenever there is an endpoint) puts the bucket into the path.
    `patience` bounds how long S3 calls are retried (default 120 s).
    `where` names the file and field for the message. Raises OperatorError on a malformed url.
    """
    if is_remote(url):
        from trialfleet_ledger.store.s3 import open_s3

        bucket, prefix = _bucket_and_prefix(url, where)
        return open_s3(
            bucket,
            prefix,
            endpoint=endpoint,
            grant_endpoint=grant_endpoint,
            path_style=path_style,
            patience=patience,
        )
    named = _FILE_URL.fullmatch(url)
    if named is not None:
        return DirectoryStore(Path(unquote(named[1])).absolute())
    if not url or "://" in url:
        raise OperatorError(f"{url!r} is not a store", where=where, hint=_FORMS)
    return DirectoryStore(Path((base or Path()) / expand_home(url, where=where or "store")).absolute())


def open_folder_store(folder: Path) -> Store:
    """The store that is `folder` (relative to the working directory), which need not exist."""
    return DirectoryStore(folder.absolute())


def _bucket_and_prefix(url: str, where: str | None) -> tuple[str, str]:
    """("bucket", "a/b") of s3://bucket/a/b/."""
    parts = urlsplit(url)
    if parts.query or parts.fragment:
        raise OperatorError(
            f"{url!r} has more than a bucket and a prefix",
            where=where,
            hint="set the endpoint with $AWS_ENDPOINT_URL_S3 and path style with $TRIALFLEET_S3_PATH_STYLE=1",
        )
    if not _BUCKET.fullmatch(parts.netloc):
        raise OperatorError(f"{parts.netloc!r} cannot be a bucket's name", where=where, hint=_FORMS)
    prefix = parts.path.strip("/")
    if any(part in ("", ".", "..") for part in prefix.split("/")) and prefix:
        raise OperatorError(f"{url!r}: empty or relative part in the prefix", where=where, hint=_FORMS)
    return parts.netloc, prefix
