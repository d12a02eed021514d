"""What a person can fix."""

from __future__ import annotations


class TargetsError(Exception):
    """`message` says what is wrong, `where` names the repository, file or option, `hint` the way out."""

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.message, self.where, self.hint = message, where, hint
