"""A pinned agent's program on this machine: where it is, which version, and what it needs to be visible."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from trialfleet_agents.pinned import pinned
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec

_VERSION_TIMEOUT_S = 60


def find_program(kind: str, given: str | None) -> Path:
    """`agent.options.binary`, else $TRIALFLEET_<PROGRAM>, else the program on PATH; links resolved.

    Raises `OperatorError` with the install command when there is none.
    """
    return launcher(kind, given).resolve()


def launcher(kind: str, given: str | None) -> Path:
    """The same with its links: a program of a virtual environment is known by its place."""
    pin = pinned()[kind]
    name = given or os.environ.get(pin.variable) or pin.program
    found = shutil.which(name)
    if found is None:
        raise OperatorError(
            f"the agent {kind} is not on this machine ({name} cannot be run)",
            where=f"agent: {kind}",
            hint=f"{pin.install()}, or name it in ${pin.variable}",
        )
    return Path(found).absolute()


def version_of(kind: str, program: Path, pattern: str, env: Mapping[str, str] | None = None) -> str:
    """What `program --version` says where `pattern` (its first group) matches; asked once per program and change
    of it. `env`: variables beyond HOME, a fresh folder, and PATH; "{home}" in one stands for that folder.

    Raises `OperatorError` when it says nothing of the kind.
    """
    return _ask(kind, program, program.stat().st_mtime_ns, pattern, tuple(sorted((env or {}).items())))


def checked_version(spec: AgentSpec, found: str) -> str:
    """`found`. Raises `OperatorError` when the campaign names another version."""
    if spec.version not in (None, found):
        raise OperatorError(
            f"the agent {spec.kind} here is {found}, the campaign names {spec.version}",
            where="agent: version",
            hint=f"{pinned()[spec.kind].install(spec.version)}, or write version: {found}",
        )
    return found


@cache
def _ask(kind: str, program: Path, _: int, pattern: str, env: tuple[tuple[str, str], ...]) -> str:
    ran = _ran(kind, program, ("--version",), env)
    match = re.search(pattern, ran.stdout, re.MULTILINE)
    if ran.returncode or match is None:
        raise _unusable(kind, program, (ran.stderr or ran.stdout).strip()[:300] or f"exit code {ran.returncode}")
    return match[1]


def output_of(kind: str, program: Path, *words: str) -> str:
    """What the program prints when it is called with these words, in an empty HOME. Raises `OperatorError` when it
    fails."""
    ran = _ran(kind, program, words, ())
    if ran.returncode:
        raise _unusable(kind, program, ran.stderr.strip()[-300:] or f"exit code {ran.returncode}", *words)
    return ran.stdout


def _ran(
    kind: str, program: Path, words: tuple[str, ...], env: tuple[tuple[str, str], ...]
) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory(prefix="trialfleet-version-") as home:
        given = {name: value.replace("{home}", home) for name, value in env}
        try:
            return subprocess.run(
                [program, *words],
                env={"HOME": home, "PATH": os.defpath, **given},
                cwd=home,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=_VERSION_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _unusable(kind, program, str(error), *words) from error


def _unusable(kind: str, program: Path, why: str, *words: str) -> OperatorError:
    return OperatorError(
        f"{' '.join([str(program), *(words or ['--version'])])} does not work: {why}",
        where=f"agent: {kind}",
        hint=f"install it again: {pinned()[kind].install()}",
    )


def shown(program: Path) -> Path:
    """What must be visible for the program to run: its npm package, or the single file of a native install."""
    for folder in list(program.parents)[:3]:
        if (folder / "package.json").is_file():
            return folder
    return program
