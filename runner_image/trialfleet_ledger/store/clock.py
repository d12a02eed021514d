"""What time it is at the store: signatures begin and end by its clock, and this machine's may be wrong."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

NEAR_S = 60.0  # answers travel and say whole seconds: so much is no difference
_AGAIN_S = 10.0  # a date that was just read is not read again


class StoreClock:
    """Follows the dates of a client's answers, refusals included. May be shared between threads."""

    def __init__(self) -> None:
        self._ahead = timedelta(0)
        self._heard_at: float | None = None

    def listen(self, client: S3Client) -> None:
        cast("Any", client.meta.events).register("after-call.s3", self._heard)

    def now(self) -> datetime:
        """UTC."""
        return datetime.now(UTC) + self._ahead

    def told(self, date: str | None) -> None:
        """`date`: an answer's header. Anything that is not a date is ignored."""
        try:
            ahead = parsedate_to_datetime(date or "").astimezone(UTC) - datetime.now(UTC)
        except (ValueError, OverflowError):
            return
        self._ahead = ahead if abs(ahead.total_seconds()) > NEAR_S else timedelta(0)

    def _heard(self, http_response: Any, **_: object) -> None:
        now = time.monotonic()
        if self._heard_at is None or now - self._heard_at >= _AGAIN_S:
            self._heard_at = now
            headers: Mapping[str, str] = http_response.headers
            self.told(headers.get("Date"))
