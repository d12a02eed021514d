"""What of a command line that runs unittest, or a runner that is built on it, can be used to run single tests of a
task. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from posixpath import join, normpath

from trialfleet_tasks.mining.declared_call import UNKNOWN_TEXT, DeclaredCall, usable_variables

UNITTEST = ("python", "-m", "unittest")
_MODULES = {"unittest", "nose", "nose2", "twisted.trial", "testtools.run", "stestr"}
_PROGRAMS = {"nosetests", "nose2", "trial", "stestr", "ostestr"}
_AS_THEY_ARE = {"unittest": UNITTEST, "nose2": ("python", "-m", "nose2")}
_SCRIPTS = re.compile(r"(?:.*/)?(manage|runtests|setup)\.py")
# Options that decide which tests can pass.
_KEPT = ("--settings", "--pythonpath", "--testrunner", "--debug-mode")
_FLAGS = frozenset({"--debug-mode"})
_ROOTS = (
    "-t",
    "--top-level-directory",
    "-s",
    "--start-directory",
    "--start-dir",
)  # the first of them that is given
_VALUED = frozenset({"-p", "--pattern", "-k", "--durations", "-v", "--verbosity", "--tag", "--exclude-tag", "-j"})
# Options that choose tests, or change how they are shown or how fast they run.
_DROPPED = re.compile(
    r"-[vqfbcdr]+|-W.*|-v\d|-k.+|-j\d+|--(?:verbose|verbosity|quiet|failfast|buffer|catch|locals|durations|pattern|no-?input"
    r"|parallel|keepdb|reverse|shuffle|timing|tag|exclude-tag|debug-sql|traceback|no-color|force-color|pdb|enable-faulthandler"
    r"|slowest|serial|concurrency|with-coverage|cover[\w-]*|fail-under|log-capture|junit-xml|rng-seed|jobs)(?:=.*)?"
)


def read_unittest_call(
    place: str, words: Sequence[str], env: Mapping[str, str], folder: str, paths: Collection[str]
) -> DeclaredCall | None:
    """The call of a command that is made in `folder`. None where no such runner is called, or its script is not
    one of `paths`.

    >>> call = read_unittest_call("tox.ini", ("python", "-m", "unittest", "discover", "-s", "tests"), {}, "", ())
    >>> call and (call.runner, call.pythonpath, call.targets)
    (('python', '-m', 'unittest'), ('tests',), ('tests',))
    >>> call = read_unittest_call("x", ("python", "manage.py", "test", "--parallel"), {}, "a", ["a/manage.py"])
    >>> call and call.runner
    ('python', 'a/manage.py', 'test', '--noinput')
    """
    found = _find_runner(words, folder, paths)
    if found is None:
        return None
    runner, rest, notes = found
    given = list(_options(rest))
    variables, folders, _, refused = usable_variables(env)
    kept: list[str] = []
    for option, value in given:
        if option in _ROOTS or not option:
            continue
        said = option if value is None else f"{option}={value}"
        if option.partition("=")[0] in _KEPT and not UNKNOWN_TEXT.search(said) and said.isprintable():
            kept.append(said)
        elif not _DROPPED.fullmatch(said) and option not in _VALUED:
            refused.append(said.replace("\0", "…"))
    starts = {option: value for option, value in given if option in _ROOTS and value}
    root = next((_path(folder, starts[option]) for option in _ROOTS if option in starts), _path(folder, ""))
    roots = (root,) if root != "." and not UNKNOWN_TEXT.search(root) and not root.startswith("..") else ()
    targets = [starts.get("-s") or starts.get("--start-directory") or starts.get("--start-dir")]
    targets += [_target(value) for option, value in given if not option and value]
    return DeclaredCall(
        place,
        env=variables,
        pythonpath=tuple(dict.fromkeys((*(folders or ()), *roots))) if roots or folders else folders,
        refused=tuple(dict.fromkeys((*refused, *notes))),
        runs_another=True,
        runner=(runner[0], *_warnings(words), *runner[1:], *kept),
        targets=tuple(_path(folder, target) for target in targets if target) or (_path(folder, ""),),
    )


def _find_runner(
    words: Sequence[str], folder: str, paths: Collection[str]
) -> tuple[tuple[str, ...], Sequence[str], tuple[str, ...]] | None:
    """(The words that call it, its arguments, what to say of it)."""
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else ""
        script = _SCRIPTS.fullmatch(word)
        if script and (script[1] == "runtests" or following == "test"):
            if script[1] == "setup":
                return UNITTEST, (), ("setup.py test (tests are run by unittest)",)
            path = _path(folder, word.replace("{workspace}/", ""))
            if path not in paths:
                return None
            if script[1] == "manage":
                return ("python", path, "test", "--noinput"), words[at + 2 :], ()
            return ("python", path), words[at + 1 :], ()
        name = following if word == "-m" else word
        if (word == "-m" and name in _MODULES) or ((at == 0 or words[at - 1] != "-m") and name in _PROGRAMS):
            rest = words[at + 2 :] if word == "-m" else words[at + 1 :]
            runner = _AS_THEY_ARE.get(name)
            if runner is not None:
                return runner, rest, ()
            return UNITTEST, (), (f"{name} (tests are run by unittest)",)
    return None


def _warnings(words: Sequence[str]) -> tuple[str, ...]:
    """What an interpreter is told of warnings, which fail tests where they are errors.

    >>> _warnings(("python", "-W", "error", "-Wd", "-m", "unittest"))
    ('-Werror', '-Wd')
    """
    joined = re.sub(r"(?<!\S)-W ", "-W", " ".join(words))
    return tuple(word for word in joined.split() if word.startswith("-W") and not UNKNOWN_TEXT.search(word))


def _options(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Option and value; "" and what is no option. What follows `discover` is a start and a root."""
    left = list(words)
    places = ["-s", "-p", "-t"] if left[:1] == ["discover"] else []
    left = left[1:] if places else left
    while left:
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if name in (*_ROOTS, *_KEPT) and name not in _FLAGS and (equals or left):
            yield name, value if equals else left.pop(0)
        elif word in _VALUED and left and not left[0].startswith("-"):
            yield word, left.pop(0)
        elif word == "--parallel" and left and left[0].isdigit():
            left.pop(0)
        elif word.startswith("-"):
            yield word, None
        else:
            yield (places.pop(0) if places else ""), word


def _path(folder: str, path: str) -> str:
    return normpath(join(folder, path) or ".")


def _target(label: str) -> str:
    """The path of a dotted name.

    >>> _target("tests.test_cart"), _target("tests/test_cart.py")
    ('tests/test_cart', 'tests/test_cart.py')
    """
    return label if "/" in label or label.endswith(".py") else label.replace(".", "/")
