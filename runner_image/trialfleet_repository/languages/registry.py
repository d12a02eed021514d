"""Which registry a language's tools fetch from: the user's, not one that a repository names."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit


def no_registry() -> Mapping[str, str]:
    """Of a language whose registry nothing here names."""
    return {}


def no_registry_files() -> Mapping[str, bytes]:
    """Of a language whose tools are told their registry by variables, or not at all."""
    return {}


def without_login(url: str) -> str:
    """
    >>> without_login("https://ann:secret@index.example/simple"), without_login("direct")
    ('https://index.example/simple', 'direct')
    """
    parts = urlsplit(url)
    return url if "@" not in parts.netloc else urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
