"""What of a command line that runs pytest can be used to run single tests of a task. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from posixpath import join, normpath

from packaging.utils import canonicalize_name

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_PYTEST = re.compile(r"(?:.*/)?(?:pytest|py\.test)")
_NO_CALL = frozenset({"install", "add", "echo", "cd", "printf", "uninstall", "which"})  # pytest is only named
_OTHER_RUNNER = re.compile(
    r"(?:^| )(?:-m (?:unittest|nose2?|twisted\.trial)|(?:\S*/)?(?:setup|manage)\.py test|(?:\S*/)?runtests\.py"
    r"|nosetests|ward|trial)(?: |$)"
)
# Options that decide which tests can pass, with the package that has them; None: pytest itself.
_WITH_VALUE: Mapping[str, str | None] = {
    "-p": None, "-c": None, "--config-file": None, "--rootdir": None, "-o": None, "--override-ini": None,
    "-W": None, "--pythonwarnings": None, "--import-mode": None, "--confcutdir": None, "--assert": None,
    "--ds": "pytest-django", "--dc": "pytest-django", "--asyncio-mode": "pytest-asyncio",
}  # fmt: skip
_FLAGS: Mapping[str, str | None] = {
    "--noconftest": None, "--nomigrations": "pytest-django", "--no-migrations": "pytest-django",
    "--forked": "pytest-forked",
}  # fmt: skip
# Options that choose tests, or change only how they are shown or how fast they run: what is after them in the
# second group is a value.
_DROPPED = re.compile(
    r"-[vqsxlf]+|-[rn]\w+|--(?:verbose|quiet|exitfirst|maxfail|durations|durations-min|tb|color|code-highlight|showlocals"
    r"|capture|show-capture|strict|strict-markers|strict-config|cov[\w-]*|no-cov[\w-]*|numprocesses|dist|tx|maxprocesses"
    r"|junit-?xml|junit-prefix|html|self-contained-html|report-log|json-report[\w-]*|md-report[\w-]*|timeout[\w-]*"
    r"|reruns[\w-]*|only-rerun|benchmark[\w-]*|ignore|ignore-glob|deselect|last-failed|lf|failed-first|ff|new-first|nf"
    r"|stepwise|sw|cache-clear|doctest[\w-]*|randomly-seed|random-order[\w-]*|no-header|no-summary|disable-warnings"
    r"|disable-pytest-warnings|instafail|sugar|pdb|full-trace|force-sugar|splits|group|store-durations|durations-path"
    r"|reuse-db|create-db|disable-socket|allow-hosts|allow-unix-socket|basetemp|runslow|xdist[\w-]*)(?:=.*)?"
)
_DROPPED_VALUE = frozenset({
    "-k", "-m", "-n", "-r", "--maxfail", "--durations", "--tb", "--color", "--capture", "--numprocesses", "--dist",
    "--junitxml", "--junit-xml", "--ignore", "--ignore-glob", "--deselect", "--cov-config", "--cov-report",
    "--timeout", "--reruns", "--reruns-delay", "--maxprocesses", "--html", "--basetemp", "--allow-hosts",
    "--splits", "--group", "--cov-fail-under", "--timeout-method", "--report-log", "--doctest-glob",
})  # fmt: skip
_OURS = frozenset({"no:junitxml", "no:terminal"})
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
_UNKNOWN = re.compile(r"[$`*?]|\{(?!workspace\}|home\})|\0")


@dataclass(frozen=True)
class PytestCall:
    """`place`: the file that says it. `arguments`: of pytest. `needs`: packages that have some of the arguments.
    `env`: variables. `pythonpath`: folders of the repository, None where nothing is said. `refused`: what is not
    used, and may be missed. `targets`: folders and files that it names, none: its settings name them."""

    place: str
    arguments: tuple[str, ...] = ()
    needs: Mapping[str, str] = field(default_factory=dict[str, str])
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    pythonpath: tuple[str, ...] | None = None
    refused: tuple[str, ...] = ()
    runs_another: bool = False  # than pytest
    targets: tuple[str, ...] = field(default=(), compare=False, repr=False)
    is_doctest: bool = field(default=False, compare=False, repr=False)  # it also runs examples

    def among(self, packages: Collection[str]) -> PytestCall:
        """Without the arguments of packages that the environment lacks."""
        names = {canonicalize_name(name) for name in packages}
        lacking = {
            word: package for word, package in self.needs.items() if canonicalize_name(package) not in names
        }
        kept = tuple(word for word in _paired(self.arguments) if " ".join(word) not in lacking)
        said = tuple(f"{word} (the environment has no {package})" for word, package in lacking.items())
        return replace(self, arguments=tuple(w for pair in kept for w in pair), refused=(*self.refused, *said))

    @property
    def given(self) -> tuple[str, ...]:
        """What is used, as a shell writes it."""
        arguments = (shlex.join(words) for words in _paired(self.arguments))
        return (*(f"{name}={shlex.quote(value)}" for name, value in self.env.items()), *arguments)

    @property
    def unused(self) -> str | None:
        """In words."""
        return f"not used of its command in {self.place}: {', '.join(self.refused)}" if self.refused else None


def _paired(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    left = list(words)
    while left:
        size = 2 if left[0] in _WITH_VALUE and len(left) > 1 else 1
        yield tuple(left[:size])
        del left[:size]


def parsed(place: str, line: str, env: Mapping[str, str], paths: Collection[str]) -> PytestCall | None:
    """The call of a shell line, None where no test runner is called. `env`: variables around it; what of a word
    or value is not known is a "\\0". `paths`: of the repository.

    >>> parsed("tox.ini", "LANG=C coverage run -m pytest -n4 -p no:randomly tests", {"A": "1"}, ())
    PytestCall(place='tox.ini', arguments=('-p', 'no:randomly'), needs={}, env={'A': '1', 'LANG': 'C'}, \
pythonpath=None, refused=(), runs_another=False)
    """
    folder = ""
    for words in _commands(line):
        if words[0] == "cd":
            folder = words[1] if len(words) > 1 else ""
        at = next((n for n, word in enumerate(words) if _PYTEST.fullmatch(word)), None)
        if at is None and _OTHER_RUNNER.search(" ".join(words)) and _NO_CALL.isdisjoint(words):
            said = f"`{' '.join(words)[:80]}` (tests are run by pytest)"
            return PytestCall(place, refused=(said.replace("\0", "…"),), runs_another=True)
        if at is not None and _NO_CALL.isdisjoint(words[:at]):
            found = _call(place, words[at + 1 :], {**env, **_assigned(words[:at])}, paths)
            inside = (f"cd {folder} (tests are run in the root)",) if folder not in ("", ".") else ()
            places = tuple(normpath(join(folder, target)) for target in found.targets or ("",))
            return replace(found, refused=(*found.refused, *inside), targets=places)
    return None


def _commands(line: str) -> Iterator[list[str]]:
    """The words of each command of the line."""
    reader = shlex.shlex(line, posix=True, punctuation_chars=";&|")
    reader.whitespace_split = True
    words: list[str] = []
    try:
        for word in (*reader, ";"):
            if set(word) <= set(";&|"):
                if words:
                    yield words
                words = []
            else:
                words.append(word)
    except ValueError:  # an open quotation
        return


def _assigned(words: Sequence[str]) -> dict[str, str]:
    matches = (_ASSIGNMENT.fullmatch(word) for word in words)
    return {match[1]: match[2] for match in matches if match}


def _call(place: str, words: Sequence[str], env: Mapping[str, str], paths: Collection[str]) -> PytestCall:
    variables, folders, more, refused = _variables(env)
    kept: list[str] = []
    needs: dict[str, str] = {}
    targets: list[str] = []
    for option, given in _options((*more, *words)):
        if not option:
            targets.append((given or "").partition("::")[0].replace("{workspace}/", ""))
            continue
        value = given and given.replace("{workspace}/", "").replace("{workspace}", ".")
        said = option if value is None else f"{option} {value}"
        package = {**_WITH_VALUE, **_FLAGS}.get(option, "")
        if package == "" or (value is not None and not _usable(option, value, paths)):
            refused.append(said.replace("\0", "…"))
            continue
        if option == "-p":
            package = _package_of(value or "", paths)
        if package:
            needs[said] = package
        kept += [option] if value is None else [option, value]
    return PytestCall(
        *(place, tuple(kept), needs, variables, folders, tuple(dict.fromkeys(refused))),
        targets=tuple(targets),
        is_doctest=any(word.startswith("--doctest") for word in (*more, *words)),
    )


def _options(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Option and value, without those that only choose tests or how they are shown; "" and what is no option."""
    left = list(words)
    while left:
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if name in _WITH_VALUE and (equals or left):
            yield name, value if equals else left.pop(0)
        elif word[:2] in ("-p", "-c", "-o", "-W") and len(word) > 2 and word[1] != "-":
            yield word[:2], word[2:]
        elif word in _DROPPED_VALUE and left:
            left.pop(0)
        elif not word.startswith("-"):
            yield "", word
        elif not _DROPPED.fullmatch(word):
            yield word, None


def _usable(option: str, value: str, paths: Collection[str]) -> bool:
    if _UNKNOWN.search(value) or "{" in value or value in _OURS or not value.isprintable():
        return False
    if option in ("-c", "--config-file"):
        return value.removeprefix("./") in paths
    if option in ("--rootdir", "--confcutdir"):
        return value in (".", "./") or any(path.startswith(value.strip("./") + "/") for path in paths)
    return not (option in ("-o", "--override-ini") and value.startswith(("junit_", "cache_dir")))


def _package_of(plugin: str, paths: Collection[str]) -> str | None:
    """The package that a plugin is of; None for one that is left out, pytest's own or the repository's."""
    file = plugin.replace(".", "/")
    own = any(f"/{path}".endswith((f"/{file}.py", f"/{file}/__init__.py")) for path in paths)
    return None if plugin.startswith("no:") or plugin == "pytester" or own else plugin.partition(".")[0]


def _variables(
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
        if _UNKNOWN.search(value) or not value.isprintable() or _REFUSED_VARIABLES.fullmatch(name):
            refused.append(name)
        elif name == "PYTEST_ADDOPTS":
            more = tuple(value.split())
        elif name == "PYTHONPATH":
            folders = tuple(entries) if all(".." not in entry.split("/") for entry in entries) else None
        else:
            kept[name] = value
    return kept, folders, more, refused
