"""What of a repository's text may reach uv, which resolves outside the sandbox with the user's logins.

A line of requirements can name another index, another file, or an address that uv fills with the values of
variables. So only what matches these patterns is passed on: no line break, option, address or variable does.
"""

from __future__ import annotations

import re

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")  # PEP 508
_VERSION = re.compile(r"[A-Za-z0-9.!+_-]+")  # characters of PEP 440
_LINE = re.compile(r"[A-Za-z0-9._+!*<>=~,;()\[\]'\" -]+")  # name, extras, versions and markers


def format_pin(name: str, version: str) -> str | None:
    r"""`name==version`, or None for what is no name or no version.

    >>> format_pin("zope.event", "5.0"), format_pin("zope", "1\n--extra-index-url https://h")
    ('zope.event==5.0', None)
    """
    if not _NAME.fullmatch(name) or not _VERSION.fullmatch(version):
        return None
    try:
        Version(version)
    except InvalidVersion:
        return None
    return f"{name}=={version}"


def parse_requirement(line: str) -> Requirement | None:
    """None for a path, an option, an address, and for characters that no name, version or marker needs.

    >>> str(parse_requirement("click >=8; os_name == 'nt'")), parse_requirement("click @ https://h/click.whl")
    ('click>=8; os_name == "nt"', None)
    """
    try:
        wanted = Requirement(line)
    except InvalidRequirement:
        return None
    return wanted if wanted.url is None and _LINE.fullmatch(str(wanted)) else None


def require_resolvable(lines: tuple[str, ...]) -> None:
    """Raises `ValueError` for a line that the functions here do not give."""
    for line in lines:
        parsed = parse_requirement(line)
        if parsed is None or not _LINE.fullmatch(line):
            raise ValueError(f"not a requirement that uv may be given: {line!r}")
