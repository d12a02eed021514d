"""How long a caller retries a store that does not answer, and at which intervals."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_TRY_AGAIN = {"RequestTimeout", "SlowDown", "ConditionalRequestConflict", "OperationAborted", "Throttling"}
RANDOM = random.SystemRandom()


def is_transient(status: int, code: str) -> bool:
    """Whether an S3 answer says "not now" (HTTP status, S3 error code or ""). 409 is that only with its
    known codes or none: some servers use it for keys that they cannot hold."""
    if status == 409:
        return code in ("", "409", *_TRY_AGAIN)
    return status >= 500 or status in (408, 425, 429) or code in _TRY_AGAIN


@dataclass(frozen=True)
class Patience:
    """Tries with jittered pauses that double from `first_s` to `longest_s`, for `total_s` in all.

    Not tenacity: its clock cannot be injected, and the loops that need the seconds left would be as long.

    Source of "full jitter" (a pause uniform between 0 and the bound): Brooker, Exponential Backoff And
    Jitter, AWS Architecture Blog, 2015.
    """

    total_s: float = 120
    first_s: float = 0.2
    longest_s: float = 5

    def tries(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        uniform: Callable[[float, float], float] = RANDOM.uniform,
    ) -> Iterator[float]:
        """Yields the seconds that are left, at once and then after each pause, until none are.

        >>> now = iter([0, 0, 4, 11]).__next__
        >>> list(Patience(total_s=10).tries(clock=now, sleep=lambda s: None))
        [10, 6]
        """
        end = clock() + self.total_s
        bound = self.first_s
        while (left := end - clock()) > 0:
            yield left
            sleep(min(uniform(0, bound), self.total_s))
            bound = min(2 * bound, self.longest_s)
