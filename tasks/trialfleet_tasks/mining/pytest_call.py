"""What of a command line that runs pytest can be used to run single tests of a task. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from posixpath import join, normpath

from trialfleet_tasks.mining.declared_call import UNKNOWN_TEXT, WITH_VALUE, DeclaredCall, usable_variables
from trialfleet_tasks.mining.unittest_call import read_unittest_call

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_PYTEST = re.compile(r"(?:.*/)?(?:pytest|py\.test)")
_NO_CALL = frozenset({"install", "add", "echo", "cd", "printf", "uninstall", "which"})  # pytest is only named
_OTHER_RUNNER = re.compile(r"(?:^| )(?:(?:\S*/)?(?:manage\.py test|runtests\.py)|ward)(?: |$)")
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


def parsed(place: str, line: str, env: Mapping[str, str], paths: Collection[str]) -> DeclaredCall | None:
    """The call of a shell line, None where no test runner is called. `env`: variables around it; what of a word
    or value is not known is a "\\0". `paths`: of the repository.

    >>> parsed("tox.ini", "LANG=C coverage run -m pytest -n4 -p no:randomly tests", {"A": "1"}, ())
    DeclaredCall(place='tox.ini', arguments=('-p', 'no:randomly'), needs={}, env={'A': '1', 'LANG': 'C'}, \
pythonpath=None, refused=(), runs_another=False, runner=())
    """
    folder = ""
    for words in _commands(line):
        if words[0] == "cd":
            folder = words[1] if len(words) > 1 else ""
        at = next((n for n, word in enumerate(words) if _PYTEST.fullmatch(word)), None)
        if at is None and _NO_CALL.isdisjoint(words):
            other = read_unittest_call(place, words, {**env, **_assigned(words)}, folder, paths)
            if other is not None:
                return other
        if at is None and _OTHER_RUNNER.search(" ".join(words)) and _NO_CALL.isdisjoint(words):
            said = f"`{' '.join(words)[:80]}` (tests are run by pytest)"
            return DeclaredCall(place, refused=(said.replace("\0", "…"),), runs_another=True)
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


def _call(place: str, words: Sequence[str], env: Mapping[str, str], paths: Collection[str]) -> DeclaredCall:
    variables, folders, more, refused = usable_variables(env)
    kept: list[str] = []
    needs: dict[str, str] = {}
    targets: list[str] = []
    for option, given in _options((*more, *words)):
        if not option:
            targets.append((given or "").partition("::")[0].replace("{workspace}/", ""))
            continue
        value = given and given.replace("{workspace}/", "").replace("{workspace}", ".")
        said = option if value is None else f"{option} {value}"
        package = {**WITH_VALUE, **_FLAGS}.get(option, "")
        if package == "" or (value is not None and not _usable(option, value, paths)):
            refused.append(said.replace("\0", "…"))
            continue
        if option == "-p":
            package = _package_of(value or "", paths)
        if package:
            needs[said] = package
        kept += [option] if value is None else [option, value]
    return DeclaredCall(
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
        if name in WITH_VALUE and (equals or left):
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
    if UNKNOWN_TEXT.search(value) or "{" in value or value in _OURS or not value.isprintable():
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
