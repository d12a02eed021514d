"""Locks of a Python commit's requirements, as of its time. No package is built, unless that is permitted."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from packaging.utils import canonicalize_name, is_normalized_name

from trialfleet_ledger.atomic_file import write_whole
from trialfleet_ledger.canonical import digest
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.interpreters import find_interpreter, uv_program
from trialfleet_repository.cache import scratch
from trialfleet_repository.environments.python_builds import BuildAnswer, building_uv, needs_build
from trialfleet_repository.environments.python_environment import uv_variables
from trialfleet_tasks.mining.resolver_input import require_resolvable

_COMPILE_S = 300
_LATER = timedelta(days=3 * 365)
# Packages whose older releases were deleted and uploaded again. Without them, a resolver that looks at dates takes
# an older version of what needs them: pytest 3.5 for 3.6 to 5.2.
_UPLOADED_AGAIN = {"atomicwrites": (date(2022, 7, 9), "1.4.1")}  # that day, and the first newer release
_PYTEST = date(2016, 9, 1)  # 3.0 had just come, the first release with the options of our call
_OPTIONS = ("--quiet", "--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url", "--no-config")
# Of uv's hints and refusals.
_NO_WHEEL = re.compile(
    r"(?:Wheels are required for `|Because )([A-Za-z0-9._-]+)"
    r"(?:`|\s+was\s+not\s+found\s+in\s+the\s+package\s+registry)"
)
_TOO_OLD = re.compile(r"\b[Bb]ecause\s+only\s+([A-Za-z0-9._-]+?)<=\S+\s+is\s+available\s+and\b")


@dataclass(frozen=True)
class WantedLock:
    """What is locked: `requirements`, with versions as of `before`. `pins`: `name==version` of a lock in the tree.
    `later`: packages that had no wheel then; a version of the three years after may be taken. `project`: its own
    name; where others need it, as pytest needed attrs, it is the workspace's. Raises `ValueError` for a line that
    could be more than a requirement or a pin: all that uv reads is here."""

    requirements: tuple[str, ...]
    pins: tuple[str, ...]
    python: str
    before: date
    later: frozenset[str] = frozenset()
    project: str | None = None

    def __post_init__(self) -> None:
        require_resolvable((*self.requirements, *self.pins))

    @property
    def name(self) -> str:
        """Equal for equal wishes."""
        facts = {"requirements": self.requirements, "pins": self.pins, "python": self.python}
        later = {name: str(newest) for name, newest in self._newest.items()}
        return digest(facts | {"before": str(self.before), "later": later, "project": self.project})[:12]

    @property
    def _newest(self) -> dict[str, date]:
        """The last day of the packages that may be newer than the others."""
        firsts = {name: day for name, (day, _) in _UPLOADED_AGAIN.items()} | {"pytest": _PYTEST}
        needed = {name: day for name, day in firsts.items() if self.before < day}
        return dict.fromkeys(sorted(self.later), self.before + _LATER) | needed

    @property
    def uploaded_again(self) -> tuple[str, ...]:
        """Constraints to the releases that were there before."""
        return tuple(f"{name}<{new}" for name, (day, new) in _UPLOADED_AGAIN.items() if self.before < day)

    @property
    def text(self) -> bytes:
        """As uv reads it from stdin."""
        return "\n".join(self.requirements).encode()

    def arguments(self, constraints: Path) -> tuple[str, ...]:
        """Of uv."""
        return (
            *("pip", "compile", "-", *_OPTIONS),
            *([f"--no-emit-package={self.project}"] if self.project and is_normalized_name(self.project) else []),
            *("--python-version", self.python, "--constraints", str(constraints)),
            *("--exclude-newer", str(self.before)),
            *(f"--exclude-newer-package={name}={newest}" for name, newest in self._newest.items()),
        )


def compiled(wanted: WantedLock, folder: Path, *, build: bool) -> str | OperatorError:
    """The lock's place, below the parent of `folder`; why there is none."""
    lock = folder / f"{wanted.name}.txt"
    if lock.exists():
        return f"{folder.name}/{lock.name}"
    folder.mkdir(parents=True, exist_ok=True)
    with scratch(folder, ".lock-") as place:  # another mining of the repository may lock the same now
        constraints = place / "constraints"
        constraints.write_text("\n".join((*wanted.pins, *wanted.uploaded_again)) + "\n")
        try:
            ended = _building(wanted, constraints) if build else _resolved(wanted, constraints)
        except subprocess.TimeoutExpired:
            return OperatorError(f"its requirements could not be resolved within {_COMPILE_S} s")
    if ended.code:
        return OperatorError(
            f"its requirements cannot be locked: {ended.errors.strip()[-1500:]}", hint=_hint(ended.errors)
        )
    write_whole(lock, ended.output)
    return f"{folder.name}/{lock.name}"


def _resolved(wanted: WantedLock, constraints: Path) -> BuildAnswer:
    """No code of a package runs."""
    argv = (uv_program(), *wanted.arguments(constraints), "--no-build")
    ended = subprocess.run(
        argv, input=wanted.text, env=uv_variables(), cwd="/", capture_output=True, timeout=_COMPILE_S, check=False
    )
    return BuildAnswer(ended.returncode, ended.stdout, ended.stderr.decode(errors="replace"))


def _building(wanted: WantedLock, constraints: Path) -> BuildAnswer:
    """What a package without a wheel needs is known when it is built."""
    python = find_interpreter((wanted.python,)).path
    with scratch(constraints.parent, ".build-") as place:
        return building_uv(
            wanted.arguments(constraints), place, python=python, reads=(constraints,), stdin=wanted.text
        )


def without_wheels(refusal: OperatorError) -> frozenset[str]:
    """The packages of which uv found no wheel, nothing at all, or nothing new enough for such a package.

    >>> said = "hint: Wheels are required for `Blinker` because building from source is disabled"
    >>> sorted(without_wheels(OperatorError(said)))
    ['blinker']
    """
    names = (*_NO_WHEEL.findall(str(refusal)), *_TOO_OLD.findall(str(refusal)))
    return frozenset(map(canonicalize_name, names))


def _hint(refusal: str) -> str | None:
    if needs_build(refusal):
        return "a package has no wheel: --build permits to build it, which runs its code in the sandbox"
    return None
