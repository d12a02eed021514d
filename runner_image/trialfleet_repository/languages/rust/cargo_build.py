"""What cargo says while it compiles: the source file of each executable, and what could not be compiled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from trialfleet_repository.results.limits import BoundedText, as_list, as_object, as_text, check_count

_NOT_COMPILED = re.compile(r'error: could not compile `([^`]+)`(?: \((lib|\w+ "[^"]*")?[^)]*\))?')
_BUILD_SCRIPT = re.compile(r"error: failed to run custom build command for `([^ `]+)")
_LOCATION = re.compile(r"\s*--> (.+?):\d+:\d+$")
_LIBRARIES = frozenset({"lib", "rlib", "dylib", "cdylib", "staticlib", "proc-macro"})


@dataclass(frozen=True)
class BuildFailure:
    """`unit`: the source path of the target where it is known, otherwise the name of the crate."""

    unit: str
    text: str


class CargoBuild:
    """Takes the lines that come before the first test program. `workspace`: what paths are made relative to."""

    def __init__(self, workspace: str) -> None:
        self._root = workspace.rstrip("/") + "/"
        self._sources: dict[str, str] = {}  # file name of an executable -> source path
        self._libraries: dict[str, str] = {}  # crate -> source path of its library
        self._text = BoundedText()
        self._located: set[str] = set()
        self._unfinished: str | None = None
        self._failures: list[BuildFailure] = []

    def source(self, executable: str) -> str | None:
        """The source path of an executable."""
        return self._sources.get(PurePosixPath(executable).name)

    def message(self, message: dict[str, object]) -> None:
        """One JSON message of cargo."""
        target = as_object(message.get("target")) or {}
        source = as_text(target.get("src_path")).removeprefix(self._root)
        if message.get("reason") != "compiler-artifact" or not source:
            return
        check_count(len(self._sources) + len(self._libraries))
        executable = as_text(message.get("executable"))
        if executable:
            self._sources[PurePosixPath(executable).name] = source
        if any(kind in _LIBRARIES for kind in as_list(target.get("kind")) if isinstance(kind, str)):
            self._libraries[package_name(as_text(message.get("package_id")))] = source

    def line(self, line: str) -> None:
        """One line for people. Text is kept from the first error on."""
        if not self._text and not line.startswith("error"):
            return
        self._text.add(line)
        location = _LOCATION.match(line.rstrip("\n"))
        if location and len(self._located) < 1000:
            self._located.add(location[1].removeprefix(self._root))
        failed = _NOT_COMPILED.match(line)
        if failed:
            check_count(len(self._failures))
            self._failures.append(BuildFailure(self._unit(failed[1], failed[2] or ""), str(self._text)))
            self._text, self._located = BoundedText(), set()
        script = _BUILD_SCRIPT.match(line)
        if script:
            self._unfinished = script[1]

    def failures(self, *, ran: bool) -> Iterator[BuildFailure]:
        """What could not be compiled. `ran`: a test program was started. When cargo ended with an error before it
        compiled anything, the unit is "Cargo.toml"."""
        yield from self._failures
        if self._unfinished is not None:
            yield BuildFailure(self._unfinished, str(self._text))
        elif not ran and not self._failures and self._text:
            yield BuildFailure("Cargo.toml", str(self._text))

    def _unit(self, crate: str, target: str) -> str:
        if target == "lib" and crate in self._libraries:
            return self._libraries[crate]
        kind, _, quoted = target.partition(" ")
        name = quoted.strip('"')
        ends = {
            "lib": ("src/lib.rs",),
            "test": (f"tests/{name}.rs", f"tests/{name}/main.rs"),
            "bin": (f"src/bin/{name}.rs", "src/main.rs"),
        }.get(kind, ())
        found = [path for path in self._located if path.startswith(ends) or path.endswith(_below(ends))]
        return found[0] if len(found) == 1 else crate


def package_name(package_id: str) -> str:
    """The name in a package id of cargo, whose form changed in 1.77.

    >>> package_name("path+file:///w/crates/x#tiny-x@0.1.0"), package_name("path+file:///w/tiny-y#0.1.0")
    ('tiny-x', 'tiny-y')
    >>> package_name("tiny-x 0.1.0 (path+file:///w/crates/x)")
    'tiny-x'
    """
    if " " in package_id:
        return package_id.partition(" ")[0]
    address, _, fragment = package_id.partition("#")
    name, at, _ = fragment.partition("@")
    return name if at else PurePosixPath(address.partition("?")[0]).name


def _below(ends: tuple[str, ...]) -> tuple[str, ...]:
    return tuple("/" + end for end in ends)
