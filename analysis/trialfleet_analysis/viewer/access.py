"""Who may read the viewer's pages: requests with its token, that come from its own pages."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from enum import Enum


class Admission(Enum):
    ADMITTED = "admitted"
    ENTERING = "entering"  # the token stands in the address: it becomes a cookie
    REFUSED = "refused"


@dataclass(frozen=True)
class Access:
    """The token of one process that listens at 127.0.0.1:`port`."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    @property
    def cookie(self) -> str:
        """Its name: browsers share cookies among the ports of a host."""
        return f"trialfleet-{self.port}"

    @property
    def address(self) -> str:
        """What to open; a secret."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def judge(self, *, host: str, origin: str | None, token: str | None, cookie: str | None) -> Admission:
        """`host`, `origin`: as the request's headers say; a name that another site has led here is refused.

        >>> access = Access(80, "right")
        >>> access.judge(host="127.0.0.1:80", origin=None, token=None, cookie="right")
        <Admission.ADMITTED: 'admitted'>
        >>> access.judge(host="evil.example:80", origin=None, token="right", cookie=None)
        <Admission.REFUSED: 'refused'>
        """
        hosts = (f"127.0.0.1:{self.port}", f"localhost:{self.port}")
        if host not in hosts or (origin is not None and origin != f"http://{host}"):
            return Admission.REFUSED
        if token is not None:
            return Admission.ENTERING if self._is_token(token) else Admission.REFUSED
        return Admission.ADMITTED if cookie is not None and self._is_token(cookie) else Admission.REFUSED

    def _is_token(self, said: str) -> bool:
        return hmac.compare_digest(said.encode(), self.token.encode())
