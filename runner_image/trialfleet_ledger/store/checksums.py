"""What the headers of a store's answer say about its body."""

from __future__ import annotations

import hashlib
import re
import zlib
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import lru_cache

_MD5 = re.compile(r"[0-9a-f]{32}")
_MULTIPART = re.compile(r"[0-9a-f]{32}-[0-9]+")
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

    def doubt(self, headers: Mapping[str, str], body: bytes) -> str | None:
        """Why `body` may not be the object that the answer is about; None: nothing contradicts it, and its ETag
        proves it where ETags are MD5 sums. `headers`: with names in lower case."""
        for name, checksum in _DECLARED.items():
            if (declared := headers.get(name)) and "-" not in declared and declared != checksum(body):
                return f"the answer's body does not match its header {name}"
        if any(headers.get(name) for name in _OPAQUE):
            self._tags_are_md5 = self._tags_are_md5 or False
            return None
        return self._doubt_tag(headers.get("etag", "").strip('"'), body)

    def _doubt_tag(self, tag: str, body: bytes) -> str | None:
        if _MULTIPART.fullmatch(tag):
            return None
        if _MD5.fullmatch(tag) and hashlib.md5(body, usedforsecurity=False).hexdigest() == tag:
            self._tags_are_md5 = True
            return None
        if self._tags_are_md5 is False:
            return None
        return "the MD5 sum of the answer's body is not its ETag" if tag else "the answer has no ETag"

    def learn_opaque(self) -> bool:
        """Two whole answers agree and contradict their ETag: this store's are no MD5 sums. False: they are, for
        others have matched."""
        self._tags_are_md5 = self._tags_are_md5 or False
        return not self._tags_are_md5


@lru_cache(maxsize=8)
def checksums_of(address: str) -> Checksums:
    """The one instance for a server (host and port)."""
    del address
    return Checksums()


class AgreedAnswer:
    """The tries of one request: a doubtful answer counts only if another is equal to it."""

    def __init__(self, checksums: Checksums) -> None:
        self._checksums = checksums
        self._doubtful: list[bytes | None] = []

    def accept(self, value: bytes | None, doubt: str | None) -> bool:
        """Whether `value` is what the store says. None: the answer is that there is nothing."""
        if doubt is None:
            return True
        if value in self._doubtful:
            return value is None or self._checksums.learn_opaque()
        self._doubtful.append(value)
        return False
