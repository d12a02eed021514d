"""How long a caller retries a store that does not answer, at which intervals, and when a refusal is believed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_THROTTLED = {"SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests"}
_TRY_AGAIN = {"RequestTimeout", "ConditionalRequestConflict", "OperationAborted"}
_FOR_GOOD = {501, 505, 507}  # of the server errors: waiting changes nothing
_FULL = ("quota", "storagefull", "storageexceeded", "insufficientstorage")
MORE_ROOM = "free space in the store or raise its quota"
ANSWERS = 8  # equal refusals in a row until one is believed: a proxy sends some that the store never gave
BETWEEN_S = (0.5, 1.0)  # the pause between them: a revoked key must stop a controller within seconds
RANDOM = random.SystemRandom()


def is_transient(status: int, code: str) -> bool:
    """Whether an S3 answer says "not now" (HTTP status, S3 error code or ""). 409 is that only with its
    known codes or none: some servers use it for keys that they cannot hold."""
    if status == 409:
        return code in ("", "409", *_TRY_AGAIN)
    if is_throttled(status, code) or code in _TRY_AGAIN:
        return True
    return (status >= 500 and status not in _FOR_GOOD) or status in (408, 425)


def is_throttled(status: int, code: str) -> bool:
    """Whether the store asks for fewer requests."""
    return status in (429, 503) or code in _THROTTLED


def is_full(status: int, code: str) -> bool:
    """Whether the store has no room left: its disk is full, or a quota is spent.

    >>> is_full(403, "QuotaExceeded"), is_full(403, "AccessDenied"), is_full(507, "")
    (True, False, True)
    """
    return status == 507 or any(word in code.lower() for word in _FULL)


@dataclass(frozen=True)
class Patience:
    """Tries with jittered pauses that double from `first_s` to `longest_s`, for `total_s` in all, and for
    `throttled_s` if that is longer and the store says that it is throttled. `clock` and `sleep`: in seconds.

    Not tenacity: it cannot lengthen its patience by what the store answers.

    Source of "full jitter" (a pause uniform between 0 and the bound): Brooker, Exponential Backoff And
    Jitter, AWS Architecture Blog, 2015.
    """

    total_s: float = 120
    first_s: float = 0.2
    longest_s: float = 5
    throttled_s: float = 0
    clock: Callable[[], float] = field(default=time.monotonic, compare=False, repr=False)
    sleep: Callable[[float], None] = field(default=time.sleep, compare=False, repr=False)
    uniform: Callable[[float, float], float] = field(default=RANDOM.uniform, compare=False, repr=False)

    def tries(self) -> Tries:
        """The tries of one request."""
        return Tries(self)


@dataclass
class Tries:
    """The tries of one request, and what the store has answered so far. Iterating yields the seconds that are
    left, at once and then after each pause, until none are.

    >>> now = iter([0, 0, 4, 11]).__next__
    >>> list(Patience(total_s=10, clock=now, sleep=lambda s: None).tries())
    [10, 6]
    """

    patience: Patience
    trouble: object = "no time to try"  # why the last try gave nothing
    tried: int = 0  # tries that have failed
    throttled: bool = False  # whether the last answer was that the store is throttled
    _refusal: tuple[int, str] = (0, "")  # the last one
    _equal: int = 0  # refusals in a row that are equal to it

    def __iter__(self) -> Iterator[float]:
        began, bound = self.patience.clock(), self.patience.first_s
        while (left := began + self._total_s - self.patience.clock()) > 0:
            yield left
            pause_s = self.patience.uniform(*(BETWEEN_S if self._equal else (0, bound)))
            self.patience.sleep(min(pause_s, self._total_s))
            bound = min(2 * bound, self.patience.longest_s)

    def note_failure(self, trouble: object) -> None:
        """Note a try without an answer."""
        self.trouble, self.throttled, self.tried = trouble, False, self.tried + 1
        self._equal = 0

    def believes(self, status: int, code: str, trouble: object) -> bool:
        """Note an answer that is no success. True: it is final, for the store has given it `ANSWERS` times in a
        row."""
        self.trouble, self.throttled, self.tried = trouble, is_throttled(status, code), self.tried + 1
        if is_transient(status, code):
            self._equal = 0
            return False
        self._equal = self._equal + 1 if self._refusal == (status, code) else 1
        self._refusal = status, code
        return self._equal >= ANSWERS

    @property
    def summary(self) -> str:
        """One clause about why the time was spent in vain."""
        if self.throttled:
            return f"the store is throttled: no success within {self._total_s:.0f} s; last: {self.trouble}"
        return f"no answer within {self._total_s:.0f} s; last: {self.trouble}"

    @property
    def _total_s(self) -> float:
        total_s = self.patience.total_s
        return max(total_s, self.patience.throttled_s) if self.throttled else total_s
