"""What a package builds before its tests run, and what its tests read of that. Scripts are only read."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from posixpath import dirname, normpath

from trialfleet_ledger.untrusted import mapping
from trialfleet_repository.languages.ecmascript.formats import SUFFIXES
from trialfleet_repository.languages.ecmascript.module_places import list_module_places
from trialfleet_repository.languages.ecmascript.test_script import find_test_script_name, runners_of
from trialfleet_repository.languages.manifest_files import file_in
from trialfleet_repository.languages.project_files import joined_path
from trialfleet_repository.languages.protocol import is_foreign, is_test_path
from trialfleet_repository.trees import ROOT, Tree

_MOST_STEPS, _MOST_CHARS = 40, 4000
_MOST_FILES, _MOST_BYTES = 600, 2**16  # that are searched, and of each
_QUOTED_OR_END = re.compile(r"('[^']*'|\"(?:\\.|[^\"\\])*\")|&&|;|\n")
_CALLS_SCRIPT = re.compile(
    r"(?:npm run(?:-script)?|yarn(?: run)?|pnpm(?: run)?|bun run)(?: (?:-s|--silent))* ([\w:.-]+)\s*"
)
_CALLS_SEVERAL = re.compile(r"(?:run-s|npm-run-all)((?: [\w:.-]+)+)\s*")
_ONLY_CHECKS = re.compile(  # or needs what no sandbox has
    r"^(?:\S+=\S*\s+|cross-env\s+|npx\s+)*(?:\S*/)?(?:eslint|tslint|prettier|standard|xo|biome|stylelint|jshint|jscs"
    r"|tsd|dtslint|attw|publint|knip|depcheck|madge|size-limit|bundlesize|commitlint|markdownlint|cspell|oxlint|dprint"
    r"|lint-staged|codecov|c8|nyc|echo|true|husky|git|docker|docker-compose|curl|wget|check-\S+|vue-tsc)\b"
    r"|\b(?:npm|pnpm|yarn|bun) (?:ci|i|install|add|audit|pack|publish|link)\b|--noEmit\b|\blint\b|\btype-?check\b",
)
_USUAL_OUTPUT = (
    *(
        "dist",
        "build",
        "lib",
        "out",
        "es",
        "esm",
        "cjs",
        "compiled",
        "output",
        ".tmp",
        "tmp",
        "test-dist",
        "dist-test",
    ),
    *("build-test", ".test", ".build", ".compiled"),
)
_OUT_DIR = re.compile(rb'"(?:outDir|declarationDir)"\s*:\s*"([^"\n]{1,200})"')
_OUT_OPTION = re.compile(r"(?:--(?:outDir|out-dir|outdir|dist|dist-dir|destination)|-d)[ =]([\w./-]+)")
_ENTRIES = ("main", "module", "browser", "bin", "exports", "types", "typings")
_QUOTED = re.compile(rb"[\"'`]((?:[\w@.-]|/){1,200})[\"'`]")
_IMPORT = re.compile(rb"\b(?:from|import|require)\s{0,9}\(?\s{0,9}[\"'](\.{1,2}/[\w./-]{1,200})[\"']")
_TEST_FOLDER = re.compile(r"(?:roots|rootDir|testMatch|spec|file)[\"']?\s*:\s*(\[[^\]]*\]|[\"'][^\"'\n]*[\"'])")
_YAML_PLACE = re.compile(r"^[ \t]*(?:-|spec:|file:)[ \t]+[\"']?([\w./*{},-]+)", re.MULTILINE)
_PROGRAM = re.compile(r"\b(?:node|tsx|ts-node|bun|sh|bash|babel-node)(?: --?[\w-]+(?:=\S+)?)* ([\w./-]+)")
_FALLBACK = ("build", "compile")


@dataclass(frozen=True)
class BuildBeforeTests:
    """`commands`: of the shell, in the package's folder. `makes`: paths from there that the build makes. `reads`:
    folders of these from which the test runner takes its test files."""

    commands: tuple[str, ...]
    makes: tuple[str, ...]
    reads: tuple[str, ...]


def find_build(tree: Tree, package: str, facts: Mapping[str, object]) -> BuildBeforeTests | None:
    """The build that the tests of a package need; None where they read nothing that is made. Pure.

    `facts`: its manifest. A build is needed if the runner or a test reads a folder that no file of the tree is in,
    or a module of the package imports one that is not there."""
    scripts = _scripts(facts)
    before, call = _before_tests(scripts)
    commands = before or _usual_build(scripts)
    if not commands:
        return None
    reading = _BuiltReading(tree, package, facts, (*scripts.values(), *commands))
    reads = tuple(dict.fromkeys(reading.of_runner(call)))
    made = {*(out for path in reads if (out := reading.output_of(path))), *reading.of_tests(most=not before)}
    made |= set(reading.missing_modules()) if before else set()
    if not made:
        return None
    return BuildBeforeTests(commands, tuple(sorted(made | reading.declared)), reads)


def find_build_scripts(facts: Mapping[str, object]) -> tuple[str, ...]:
    """The files, from the package's folder, that its builds run as programs.

    >>> find_build_scripts({"scripts": {"pretest": "node ./tools/gen.js --all", "test": "mocha"}})
    ('tools/gen.js',)
    """
    scripts = _scripts(facts)
    steps = (*_before_tests(scripts)[0], *_usual_build(scripts))
    return tuple(
        dict.fromkeys(place for step in steps for word in _PROGRAM.findall(step) if (place := _plain(word)))
    )


def _before_tests(scripts: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """The commands that make something before the call of the test runner, and that call."""
    steps, call = _split_at_call(scripts)
    return tuple(step for step in steps if not _ONLY_CHECKS.search(step)), call


def _usual_build(scripts: Mapping[str, str]) -> tuple[str, ...]:
    """The commands of the script that builds, where the one that tests does not call it."""
    steps = next((found for name in _FALLBACK if (found := tuple(_steps(scripts, name)))), ())
    return tuple(step for step in steps if not _ONLY_CHECKS.search(step))


def _scripts(facts: Mapping[str, object]) -> dict[str, str]:
    return {name: text for name, text in mapping(facts.get("scripts")).items() if isinstance(text, str)}


def _split_at_call(scripts: Mapping[str, str]) -> tuple[list[str], str]:
    """The steps before the call of the test runner, and that call."""
    for name in dict.fromkeys(("test", find_test_script_name(scripts))):
        steps = list(_steps(scripts, name))
        at = next((at for at, step in enumerate(steps) if runners_of(step)), None)
        if at is not None:
            return steps[:at], steps[at]
    return [], ""


def _steps(scripts: Mapping[str, str], name: str) -> Iterator[str]:
    """The commands of a script and of those that it calls, with what runs before and after each.

    >>> scripts = {"pretest": "npm run build", "test": "mocha", "build": "tsc && cp a b", "prebuild": "rm -rf b"}
    >>> list(_steps(scripts, "test"))
    ['rm -rf b', 'tsc', 'cp a b', 'mocha']
    """
    return islice(_all_steps(scripts, name, (name,)), _MOST_STEPS)


def _all_steps(scripts: Mapping[str, str], name: str, above: tuple[str, ...]) -> Iterator[str]:
    for part in (f"pre{name}", name, f"post{name}") if name in scripts else ():
        text = scripts.get(part, "")[:_MOST_CHARS].replace("\\\n", " ")
        for step in _QUOTED_OR_END.sub(lambda found: found[1] or "\0", text).split("\0"):
            called = [each for each in _called_scripts(step.strip()) if each in scripts]
            for each in called:
                if each not in above:
                    yield from _all_steps(scripts, each, (*above, each))
            if step.strip() and not called:
                yield step.strip()


def _called_scripts(step: str) -> Sequence[str]:
    one, several = _CALLS_SCRIPT.fullmatch(step), _CALLS_SEVERAL.fullmatch(step)
    return (one[1],) if one else several[1].split() if several else ()


@dataclass(frozen=True)
class _BuiltReading:
    """What is read of a package's build. Paths are from its folder, but those of `tree`."""

    tree: Tree
    package: str
    facts: Mapping[str, object]
    texts: Sequence[str]

    @cached_property
    def declared(self) -> frozenset[str]:
        """Folders without a file of the tree that settings or scripts name as a build's output."""
        options = (found for text in self.texts for found in _OUT_OPTION.findall(text))
        names = (*self._out_dirs, *options)
        return frozenset(name for name in map(_plain, names) if name and self._is_absent(name))

    @cached_property
    def _out_dirs(self) -> tuple[str, ...]:
        start = "" if self.package == ROOT else f"{self.package}/"
        settings = (
            entry.data
            for path, entry in self.tree.items()
            if path.startswith(f"{start}tsconfig") and "/" not in path[len(start) :]
        )
        return tuple(found.decode(errors="replace") for data in settings for found in _OUT_DIR.findall(data))

    @cached_property
    def _outputs(self) -> tuple[str, ...]:
        """The deepest first."""
        usual = (name for name in _USUAL_OUTPUT if self._is_absent(name))
        return tuple(sorted({*self.declared, *usual}, key=lambda name: (-name.count("/"), name)))

    @cached_property
    def _all_folders(self) -> frozenset[str]:
        folders = {dirname(path) for path in self.tree}
        return frozenset(folder[:end] for each in folders for folder in (f"{each}/",) for end in _ends(folder))

    def _is_absent(self, name: str) -> bool:
        place = joined_path(self.package, name)
        return place is not None and place != ROOT and place not in self._all_folders and place not in self.tree

    def output_of(self, path: str) -> str | None:
        """The output that a path lies in or is.

        `path`: from the package's folder."""
        return next((out for out in self._outputs if path == out or path.startswith(f"{out}/")), None)

    def of_runner(self, call: str) -> Iterator[str]:
        """Folders of outputs from which the call of the runner, or its settings, take files."""
        for text in (*_words(call), *self._runner_settings()):
            base = _without_pattern(_plain(text) or "")
            if base and self.output_of(base) is not None:
                yield dirname(base) if base.endswith((".js", ".cjs", ".mjs")) else base

    def _runner_settings(self) -> Iterator[str]:
        """What they name as places of test files."""
        manifest = json.dumps([{key: self.facts.get(key) for key in ("mocha", "jest")}])
        names = (".mocharc.json", ".mocharc.jsonc", ".mocharc.js", ".mocharc.cjs", ".mocharc.yml", ".mocharc.yaml")
        files = [
            self.tree.get(file_in(self.package, name)) for name in (*names, "jest.config.js", "jest.config.cjs")
        ]
        texts = [entry.data[:_MOST_BYTES].decode(errors="replace") for entry in files if entry]
        for text in (manifest, *texts):
            for found in _TEST_FOLDER.findall(text):
                yield from re.findall(r"[\"'](?:<rootDir>/)?([^\"'\n]+)[\"']", found)
            yield from _YAML_PLACE.findall(text)

    def of_tests(self, *, most: bool) -> frozenset[str]:
        """The outputs that test files name. `most`: none unless half of the files do."""
        named = [frozenset(self._named_by(path, data)) for path, data in self._files(tests=True)]
        reading = sum(map(bool, named))
        every: frozenset[str] = frozenset(name for names in named for name in names)
        return frozenset[str]() if most and 2 * reading < len(named) else every

    def _named_by(self, path: str, data: bytes) -> Iterator[str]:
        folder, name = dirname(path) or ROOT, str(self.facts.get("name") or "")
        for quoted in dict.fromkeys(_QUOTED.findall(data)):
            found = self._named_output(quoted.decode(), folder, name)
            if found is not None:
                yield found

    def _named_output(self, quoted: str, folder: str, name: str) -> str | None:
        """`folder`: of the file that names it."""
        if quoted.startswith("."):
            place = joined_path(folder, quoted)
            inner = None if place is None else self._inside(place)
            return self._entry_output if inner == ROOT else self.output_of(inner) if inner else None
        if name and quoted == name:
            return None if self._is_alias(name) else self._entry_output
        return self.output_of(quoted) if "/" in quoted and quoted.endswith((".js", ".cjs", ".mjs")) else None

    def _inside(self, place: str) -> str | None:
        """A path of the repository from the package's folder."""
        if self.package == ROOT or place == self.package:
            return place if self.package == ROOT else ROOT
        return place.removeprefix(f"{self.package}/") if place.startswith(f"{self.package}/") else None

    @cached_property
    def _entry_output(self) -> str | None:
        """Where the package's first entry is, if a build makes it."""
        texts = _strings([self.facts.get(name) for name in _ENTRIES])
        places = (place for text in texts if (place := _plain(text)) and not place.endswith((".d.ts", ".d.mts")))
        return next((out for place in places if (out := self.output_of(place))), None)

    def _is_alias(self, name: str) -> bool:
        """Whether settings of tools say what the package's name stands for in its own tests."""
        quoted = re.compile(rb"[\"'`^]" + re.escape(name.encode()) + rb"(?:[\"'`$/])")
        of_tools = re.compile(r"(?:tsconfig[^/]*\.json|(?:vite|vitest|jest|babel)\.config\.\w+)\Z")
        settings = (entry.data for path, entry in self.tree.items() if of_tools.search(path))
        own = json.dumps(self.facts.get("jest")).encode()
        return any(quoted.search(data[:_MOST_BYTES]) for data in (*settings, own))

    def missing_modules(self) -> Iterator[str]:
        """Modules that code of the package imports and that are not there: made by a generator of code."""
        for path, data in self._files(tests=False):
            for name in dict.fromkeys(_IMPORT.findall(data)):
                place = joined_path(dirname(path) or ROOT, name.decode())
                inner = None if place is None else self._inside(place)
                if place and inner and not self._resolves(place):
                    yield from _made_files(inner)

    def _resolves(self, place: str) -> bool:
        return place in self._all_folders or any(path in self.tree for path in list_module_places(place))

    def _files(self, *, tests: bool) -> Iterator[tuple[str, bytes]]:
        start = "" if self.package == ROOT else f"{self.package}/"
        paths = (
            path
            for path in self.tree
            if path.startswith(start)
            and path.endswith(SUFFIXES)
            and is_test_path(path) == tests
            and not is_foreign(path)
        )
        for path in islice(paths, _MOST_FILES):
            yield path, self.tree[path].data[:_MOST_BYTES]


def _made_files(specifier: str) -> Sequence[str]:
    """Where the module may be; nothing for what is no code.

    >>> _made_files("src/parser.js"), _made_files("src/parser"), _made_files("src/a.css")
    (('src/parser.js', 'src/parser.ts'), ('src/parser', 'src/parser.js', 'src/parser.ts'), ())
    """
    stem, dot, _ = specifier.rpartition(".")
    if not dot or "/" in specifier[len(stem) :]:
        return (specifier, f"{specifier}.js", f"{specifier}.ts")
    return (f"{stem}.js", f"{stem}.ts") if specifier.endswith((".js", ".ts")) else ()


def _ends(folder: str) -> Iterator[int]:
    """Where each folder of a path, which ends with a slash, ends."""
    return (at for at, letter in enumerate(folder) if letter == "/")


def _plain(path: str) -> str | None:
    """Without dots; None for one that leaves its folder.

    >>> _plain("./build/"), _plain("../dist"), _plain("{a,b}/**")
    ('build', None, '{a,b}/**')
    """
    found = normpath(path) if path else ROOT
    return None if found.startswith(("..", "/")) or found == ROOT else found


def _without_pattern(path: str) -> str:
    """The folder in which a pattern begins.

    >>> _without_pattern("build/test/**/*.js"), _without_pattern("build/a.js")
    ('build/test', 'build/a.js')
    """
    parts = path.split("/")
    at = next((at for at, part in enumerate(parts) if re.search(r"[*?{}()\[\]!]", part)), len(parts))
    return "/".join(parts[:at])


def _words(call: str) -> list[str]:
    try:
        words = shlex.split(call)
    except ValueError:
        return []
    return [word.partition("=")[2] if word.startswith("-") else word for word in words]


def _strings(value: object) -> Iterable[str]:
    """Of nested lists and tables."""
    todo, texts = [value], list[str]()
    for inner in todo:
        if len(todo) > 2000:
            break
        texts += [inner] if isinstance(inner, str) else []
        todo += inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ()
    return texts
