"""A call of a test runner that a project declares: what of it can be used to run single tests of a task. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from packaging.utils import canonicalize_name

# Options that decide which tests can pass, with the package that has them; None: pytest itself.
WITH_VALUE: Mapping[str, str | None] = {
    "-p": None, "-c": None, "--config-file": None, "--rootdir": None, "-o": None, "--override-ini": None,
    "-W": None, "--pythonwarnings": None, "--import-mode": None, "--confcutdir": None, "--assert": None,
    "--ds": "pytest-django", "--dc": "pytest-django", "--asyncio-mode": "pytest-asyncio",
}  # fmt: skip
# Variables that the runner sets itself, that only name the machine or its tools, or that agents' programs read.
_OWN_VARIABLES = re.compile(
    r"PATH|HOME|TMPDIR|USER|SHELL|TERM|PS1|PYTHONHASHSEED|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE|COLUMNS|CI|FORCE_COLOR"
    r"|NO_COLOR|PY_COLORS|VIRTUAL_ENV|(?:COVERAGE|COV|TOX|NOX|PIP|UV|PDM|POETRY|HATCH|GITHUB|RUNNER|CODECOV|XDG|CCACHE)_.*"
)
_REFUSED_VARIABLES = re.compile(
    r"(?:LD|DYLD|GIT|OPENAI|ANTHROPIC|CLAUDE|CODEX|GEMINI|GOOGLE|AWS|AZURE|COPILOT|TRIALFLEET)_.*|PYTHON(?:HOME|STARTUP)"
    r"|.*(?:TOKEN|SECRET|PASSWORD|API_KEY)|\w+_PROXY",
    re.IGNORECASE,
)
UNKNOWN_TEXT = re.compile(r"[$`*?]|\{(?!workspace\}|home\})|\0")


@dataclass(frozen=True)
class DeclaredCall:
    """`place`: the file that says it. `arguments`: of pytest. `needs`: packages that have some of the arguments.
    `env`: variables. `pythonpath`: folders of the repository, None where nothing is said. `refused`: what is not
    used, and may be missed. `runner`: words that call a runner that is built on unittest; none: pytest. `targets`:
    folders and files that it names, none: its settings name them."""

    place: str
    arguments: tuple[str, ...] = ()
    needs: Mapping[str, str] = field(default_factory=dict[str, str])
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    pythonpath: tuple[str, ...] | None = None
    refused: tuple[str, ...] = ()
    runs_another: bool = False  # than pytest
    runner: tuple[str, ...] = ()
    targets: tuple[str, ...] = field(default=(), compare=False, repr=False)
    is_doctest: bool = field(default=False, compare=False, repr=False)  # it also runs examples

    def among(self, packages: Collection[str]) -> DeclaredCall:
        """Without the arguments of packages that the environment lacks."""
        names = {canonicalize_name(name) for name in packages}
        lacking = {
            word: package for word, package in self.needs.items() if canonicalize_name(package) not in names
        }
        kept = tuple(word for word in _paired(self.arguments) if " ".join(word) not in lacking)
        said = tuple(f"{word} (the environment has no {package})" for word, package in lacking.items())
        return replace(self, arguments=tuple(w for pair in kept for w in pair), refused=(*self.refused, *said))

    @property
    def key(self) -> str:
        """What is equal for calls that run alike, wherever they are declared."""
        return repr((self.runner, self.arguments, sorted(self.env.items()), self.pythonpath))

    @property
    def program(self) -> str:
        """As sentences name it."""
        return shlex.join(self.runner or ("pytest", *self.arguments))

    @property
    def given(self) -> tuple[str, ...]:
        """What is used, as a shell writes it."""
        arguments = (shlex.join(words) for words in (*filter(None, (self.runner,)), *_paired(self.arguments)))
        return (*(f"{name}={shlex.quote(value)}" for name, value in self.env.items()), *arguments)

    @property
    def unused(self) -> str | None:
        """In words."""
        return f"not used of its command in {self.place}: {', '.join(self.refused)}" if self.refused else None


def _paired(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    left = list(words)
    while left:
        size = 2 if left[0] in WITH_VALUE and len(left) > 1 else 1
        yield tuple(left[:size])
        del left[:size]


def usable_variables(
    env: Mapping[str, str],
) -> tuple[dict[str, str], tuple[str, ...] | None, tuple[str, ...], list[str]]:
    """(Variables, folders of PYTHONPATH, arguments of pytest, what is refused)."""
    kept: dict[str, str] = {}
    folders: tuple[str, ...] | None = None
    more: tuple[str, ...] = ()
    refused: list[str] = []
    for name, value in env.items():
        if _OWN_VARIABLES.fullmatch(name):
            continue
        entries = [entry.removeprefix("{workspace}").strip("/") or "." for entry in value.split(":") if entry]
        if UNKNOWN_TEXT.search(value) or not value.isprintable() or _REFUSED_VARIABLES.fullmatch(name):
            refused.append(name)
        elif name == "PYTEST_ADDOPTS":
            more = tuple(value.split())
        elif name == "PYTHONPATH":
            folders = tuple(entries) if all(".." not in entry.split("/") for entry in entries) else None
        else:
            kept[name] = value
    return kept, folders, more, refused
