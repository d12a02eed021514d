"""Infers the environment of a Python commit: its requirements, locked as of its time. None of its code runs."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from trialfleet_ledger.atomic_file import write_whole
from trialfleet_ledger.canonical import digest
from trialfleet_ledger.errors import OperatorError
from trialfleet_runner.context.anchor import is_test_path
from trialfleet_runner.interpreters import interpreters, uv_program
from trialfleet_runner.package_index import ca_file, find_links, index_url
from trialfleet_runner.task import PythonEnvironment
from trialfleet_runner.trees import Tree
from trialfleet_tasks.mining.declared_command import declared_command, is_command_file
from trialfleet_tasks.mining.pytest_call import PytestCall
from trialfleet_tasks.mining.python_project import PythonProject
from trialfleet_tasks.mining.python_workspace import project_of_tests

# First releases of CPython: packages offer wheels for a new one only after some months.
RELEASED = {
    "3.8": date(2019, 10, 14),
    "3.9": date(2020, 10, 5),
    "3.10": date(2021, 10, 4),
    "3.11": date(2022, 10, 24),
    "3.12": date(2023, 10, 2),
    "3.13": date(2024, 10, 7),
    "3.14": date(2025, 10, 7),
}
_WHEELS_AFTER = timedelta(days=270)
_COMPILE_S = 300
_DEEPEST = 4  # folders above a package's manifest
_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)
_KEPT = ("PATH", "HOME", "TMPDIR", "UV_CACHE_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR")


@dataclass
class PythonEnvironments:
    """Environments of one repository's commits. `folder`: of the task file; their locks are written there,
    one for all commits whose requirements are the same in the same month. `build`: packages without a wheel may be
    built, which runs code of theirs. Threads may share it."""

    folder: Path
    build: bool = False
    _locks: dict[str, str | OperatorError] = field(default_factory=dict[str, "str | OperatorError"])
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def of(self, tree: Tree, committed: datetime, version: str, tests: Sequence[str]) -> PythonEnvironment:
        """The environment for a tree of that time. Raises `OperatorError` if no set of requirements can be locked.

        `tree`: all paths, with the content of `is_metadata` ones. `version`: of the project, for
        `importlib.metadata`."""
        project, sources = project_of_tests(tree, tests)
        python = _python(project, committed.date())
        lock = self._locked(project, python, _month_after(committed.date()))
        call = declared_command(tree) or PytestCall("")
        call = call.among(_LOCKED.findall((self.folder.parent / lock).read_text()))
        return PythonEnvironment(
            python=(python,),
            lock=lock,
            distribution=project.name,
            version=version if project.name else None,
            entry_points=project.entry_points if project.name else None,
            pythonpath=tuple(dict.fromkeys((*(call.pythonpath or ()), *sources))),
            test_command=_test_command(call),
            env=dict(call.env),
            import_name=_import_name(project, tree, sources[0]),
        )

    def _locked(self, project: PythonProject, python: str, before: date) -> str:
        refusal: OperatorError | None = None
        for requirements, pins in _choices(project):
            facts = {"requirements": requirements, "pins": pins, "python": python, "before": str(before)}
            name = digest(facts)[:12]
            with self._turn:
                if name not in self._locks:
                    self._locks[name] = self._compiled(name, requirements, pins, python, before)
                found = self._locks[name]
            if isinstance(found, str):
                return found
            refusal = refusal or found
        assert refusal is not None, "there is always a choice"
        raise refusal

    def _compiled(
        self, name: str, requirements: tuple[str, ...], pins: tuple[str, ...], python: str, before: date
    ) -> str | OperatorError:
        lock = self.folder / f"{name}.txt"
        if lock.exists():
            return f"{self.folder.name}/{lock.name}"
        pinned = self.folder / f".{name}.constraints"
        self.folder.mkdir(parents=True, exist_ok=True)
        pinned.write_text("\n".join(pins) + "\n")
        argv = [
            uv_program(),
            "pip",
            "compile",
            "-",
            "--quiet",
            "--generate-hashes",
            "--no-header",
            "--no-annotate",
        ]
        argv += ["--no-emit-index-url", "--no-config", "--python-version", python, "--constraints", str(pinned)]
        argv += ["--exclude-newer", str(before), *(() if self.build else ("--no-build",))]
        try:
            ended = subprocess.run(
                argv, input="\n".join(requirements), env=_variables(), cwd="/", capture_output=True, text=True,
                timeout=_COMPILE_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return OperatorError(f"its requirements could not be resolved within {_COMPILE_S} s")
        finally:
            pinned.unlink()
        if ended.returncode:
            return OperatorError(
                f"its requirements cannot be locked: {ended.stderr.strip()[-1500:]}", hint=_hint(ended.stderr)
            )
        write_whole(lock, ended.stdout.encode())
        return f"{self.folder.name}/{lock.name}"


def is_metadata(path: str) -> bool:
    """Whether `PythonEnvironments.of` reads the file.

    >>> is_metadata("pyproject.toml"), is_metadata("requirements/test.txt"), is_metadata("src/shop/cart.py")
    (True, True, False)
    >>> is_metadata("packages/cart/pyproject.toml"), is_metadata("tests/data/pyproject.toml")
    (True, False)
    """
    if is_command_file(path):
        return True
    if path.count("/") > _DEEPEST or is_test_path(path):
        return False
    known = ("pyproject.toml", "setup.cfg", "setup.py", "uv.lock", "pdm.lock", "poetry.lock", "pylock.toml")
    *_, folder, name = ("", *path.split("/"))
    return name in known or ("requirements" in f"{folder}/{name}" and name.endswith((".txt", ".in")))


def _test_command(call: PytestCall) -> tuple[str, ...]:
    """The usual one with the project's own arguments in it."""
    usual: tuple[str, ...] = PythonEnvironment.model_fields["test_command"].default
    at = usual.index("--junit-xml={junit}")
    return (*usual[:at], *call.arguments, *usual[at:])


def _choices(project: PythonProject) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """(Requirements, pins), the one most like the developers' own environment first."""
    for pins in dict.fromkeys((project.pins, ())):
        for development in (True, False):
            yield project.requirements(development=development), pins


def _month_after(day: date) -> date:
    """The first day of the next month, so that the commits of a month share their locks.

    >>> _month_after(date(2025, 12, 30))
    datetime.date(2026, 1, 1)
    """
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1)


def in_use(day: date) -> tuple[str, ...]:
    """Python's releases in the order in which an environment of that day would have them.

    >>> in_use(date(2023, 8, 1))
    ('3.11', '3.10', '3.9', '3.8', '3.12', '3.13', '3.14')
    """
    old = [minor for minor, released in RELEASED.items() if released + _WHEELS_AFTER <= day]
    return (*reversed(old), *(minor for minor in RELEASED if minor not in old))


def _python(project: PythonProject, day: date) -> str:
    try:
        wanted = SpecifierSet(project.requires_python or "")
    except InvalidSpecifier:
        wanted = SpecifierSet("")
    fitting = tuple(minor for minor in in_use(day) if wanted.contains(f"{minor}.99"))
    found = next(interpreters(fitting), None)
    if found is None:
        raise OperatorError(
            f"the project needs Python {project.requires_python}, which this machine does not have",
            hint="install it and put it on PATH, for example with apt, pyenv or `uv python install`",
        )
    return found.minor


def _import_name(project: PythonProject, tree: Tree, source: str) -> str | None:
    name = (project.name or "").lower().replace("-", "_").replace(".", "_")
    prefix = "" if source == "." else f"{source}/"
    return name if name and f"{prefix}{name}/__init__.py" in tree else None


def _hint(refusal: str) -> str | None:
    if (
        "--no-build" in refusal
        or "no usable wheels" in refusal
        or "building source distributions is disabled" in refusal
    ):
        return "a package has no wheel: --build permits to build it, which runs its code"
    return None


def _variables() -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.lower().endswith("_proxy")}
    trusted, links = ca_file(), find_links()
    found = kept | {"UV_DEFAULT_INDEX": index_url(), "UV_PYTHON_DOWNLOADS": "never"}
    return (
        found
        | ({"SSL_CERT_FILE": trusted} if trusted else {})
        | ({"UV_FIND_LINKS": ",".join(links)} if links else {})
    )
