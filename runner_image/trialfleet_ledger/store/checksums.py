"""What the headers of a store's answer say about its body."""

from __future__ import annotations

import hashlib
import re
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache

_MD5 = re.compile(r"[0-9a-f]{32}")
_MULTIPART = re.compile(r"[0-9a-f]{32}-[0-9]+")
_NO_TAG = "the answer has no ETag"
_OTHER_TAG = "the MD5 sum of the answer's body is not its ETag"
_UNPROVEN = "no checksum of the answer proves its body"
_AGREEING = 2  # equal answers that count, where at most an ETag contradicts them that may be no MD5 sum
_CONTRADICTED = 3  # where a checksum contradicts them that this store is known to give
_OPAQUE = ("x-amz-server-side-encryption-customer-algorithm", "x-amz-server-side-encryption-aws-kms-key-id")


def _base64_of(algorithm: str) -> Callable[[bytes], str]:
    return lambda body: b64encode(hashlib.new(algorithm, body, usedforsecurity=False).digest()).decode()


_DECLARED: Mapping[str, Callable[[bytes], str]] = {
    "x-amz-checksum-sha256": _base64_of("sha256"),
    "x-amz-checksum-sha1": _base64_of("sha1"),
    "x-amz-checksum-crc32": lambda body: b64encode(zlib.crc32(body).to_bytes(4, "big")).decode(),
}


class Checksums:
    """Compares bodies with the checksums of one store. An ETag is the body's MD5 sum on most servers, but not for
    objects in several parts or with keys of a key service, and not on every server: whether it is one, the answers
    tell. Threads may share an instance."""

    def __init__(self) -> None:
        self._tags_are_md5: bool | None = None

    def doubt(self, headers: Mapping[str, str], body: bytes, *, proof: bool = False) -> str | None:
        """Why `body` may not be the object that the answer is about; None: nothing contradicts it, and its ETag
        proves it where ETags are MD5 sums. `headers`: with names in lower case. `proof`: a body that no checksum
        proves is doubtful, too."""
        for name, checksum in _DECLARED.items():
            if (declared := headers.get(name)) and "-" not in declared:
                matches = declared == checksum(body)
                return None if matches else f"the answer's body does not match its header {name}"
        tag = headers.get("etag", "").removeprefix("W/").strip('"')
        if _MD5.fullmatch(tag) and hashlib.md5(body, usedforsecurity=False).hexdigest() == tag:
            self._tags_are_md5 = True
            return None
        if any(headers.get(name) for name in _OPAQUE):
            self._tags_are_md5 = self._tags_are_md5 or False
        elif not _MULTIPART.fullmatch(tag) and (not tag or self._tags_are_md5 is not False):
            return _OTHER_TAG if tag else _NO_TAG
        return _UNPROVEN if proof else None

    def believes(self, doubt: str, equal: int) -> bool:
        """Whether so many equal answers count though each was in doubt. An answer without an ETag counts only for
        a store that gives none, and says nothing about the ETags of others."""
        if doubt == _NO_TAG and self._tags_are_md5 is not None:
            return False
        if doubt == _OTHER_TAG and not self._tags_are_md5 and equal >= _AGREEING:
            self._tags_are_md5 = False
            return True
        return equal >= (_AGREEING if doubt == _UNPROVEN else _CONTRADICTED)


@lru_cache(maxsize=8)
def checksums_of(address: str) -> Checksums:
    """The one instance for a server (host and port)."""
    del address
    return Checksums()


class AgreedAnswer:
    """The tries of one request: a doubtful answer counts only if others are equal to it."""

    def __init__(self, checksums: Checksums) -> None:
        self._checksums = checksums
        self._doubtful: Counter[str | None] = Counter()

    def accept(self, value: bytes | None, doubt: str | None) -> bool:
        """Whether `value` is what the store says. None: the answer is that there is nothing."""
        if doubt is None:
            return True
        digest = None if value is None else hashlib.sha256(value).hexdigest()
        self._doubtful[digest] += 1
        equal = self._doubtful[digest]
        return equal >= _AGREEING if value is None else self._checksums.believes(doubt, equal)
