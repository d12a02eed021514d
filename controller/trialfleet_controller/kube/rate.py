"""How fast pods are created: a token bucket that a server can close for a while. Pure but for its lock."""

from __future__ import annotations

import threading


class TokenBucket:
    """`rate` tokens a second, at most `burst` saved up. Times are monotonic seconds, given by the caller.

    >>> bucket = TokenBucket(rate=2, burst=1)
    >>> bucket.reserve(now=0.0), bucket.reserve(now=0.0), bucket.reserve(now=10.0)
    (0.0, 0.5, 0.0)
    """

    def __init__(self, *, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, burst
        self._tokens, self._at = float(burst), 0.0
        self._closed_until = 0.0
        self._lock = threading.Lock()

    def reserve(self, *, now: float) -> float:
        """Take one token, which may be one of the future: the seconds to wait before it may be used."""
        with self._lock:
            self._tokens = min(float(self._burst), self._tokens + max(0.0, now - self._at) * self._rate)
            self._at = max(self._at, now)
            self._tokens -= 1
            return max(0.0, -self._tokens / self._rate, self._closed_until - now)

    def close_for(self, seconds: float, *, now: float) -> None:
        """The server asked for patience: nobody goes before it is over. What waits already is not called back."""
        with self._lock:
            self._closed_until = max(self._closed_until, now + seconds)
