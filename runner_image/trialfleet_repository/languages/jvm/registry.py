"""The mirrors that the user has configured for Maven."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree as Xml

from trialfleet_ledger.user_folders import home_folder
from trialfleet_repository.languages.registry import without_login

_PARTS = ("id", "mirrorOf", "url")


def find_maven_mirrors() -> Mapping[str, bytes]:
    """Settings of Maven with the mirrors of the user's own and of the system's, in this order. Logins, proxies and
    repositories stay out. Empty where there is no mirror."""
    files = (home_folder() / ".m2/settings.xml", Path("/etc/maven/settings.xml"))
    mirrors = [mirror for file in files for mirror in _read_file(file)]
    return {"{home}/.m2/settings.xml": write_maven_settings(mirrors)} if mirrors else {}


def _read_file(path: Path) -> list[Mapping[str, str]]:
    try:
        return list(read_maven_mirrors(path.read_bytes()))
    except (OSError, Xml.ParseError):
        return []


def read_maven_mirrors(settings: bytes) -> Iterator[Mapping[str, str]]:
    """`id`, `mirrorOf` and `url` of each, without its login. Left out: mirrors that block what they stand for, and
    folders of this machine. Raises `ParseError` for what is no XML.

    >>> list(read_maven_mirrors(b'''<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0"><mirrors><mirror>
    ... <id>ours</id><mirrorOf>central</mirrorOf><url>https://ann:key@maven.example/</url></mirror></mirrors>
    ... </settings>'''))
    [{'id': 'ours', 'mirrorOf': 'central', 'url': 'https://maven.example/'}]
    """
    for mirror in Xml.fromstring(settings).iterfind("{*}mirrors/{*}mirror"):  # noqa: S314 - the user's own file
        parts = {name: (mirror.findtext(f"{{*}}{name}") or "").strip() for name in (*_PARTS, "blocked")}
        if parts.pop("blocked") != "true" and parts["url"].startswith(("https://", "http://")):
            yield parts | {"url": without_login(parts["url"])}


def write_maven_settings(mirrors: list[Mapping[str, str]]) -> bytes:
    """A whole file of settings."""
    root = Xml.Element("settings")
    places = Xml.SubElement(root, "mirrors")
    for mirror in mirrors:
        place = Xml.SubElement(places, "mirror")
        for name in _PARTS:
            Xml.SubElement(place, name).text = mirror[name]
    written: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return written
