"""Which packages of Node are built before their tests run, and with what."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from trialfleet_agents.context_files import is_context_file
from trialfleet_ledger.task import ToolEnvironment
from trialfleet_repository.excluded_paths import Exclusions
from trialfleet_repository.languages import LANGUAGES, is_harness
from trialfleet_repository.languages.built_paths import BUILT_TESTS
from trialfleet_repository.languages.ecmascript.build_steps import BuildBeforeTests, find_build
from trialfleet_repository.languages.ecmascript.product import find_javascript_product
from trialfleet_repository.languages.project_files import ProjectFiles
from trialfleet_repository.test_call import CalledTests
from trialfleet_repository.trees import TreeEntry
from trialfleet_tasks.presets.preset import preset

Scripts = Mapping[str, str]
_TESTED = {"test/a.test.ts": "import { total } from '../src/a';\n", "src/a.ts": "export const total = 1;\n"}
_OF_BUILD = {"test/a.test.js": "const { total } = require('../dist/a');\n", "src/a.ts": ""}
_COMPILED = {"tsconfig.json": '{"compilerOptions": {"outDir": "./build/compiled"}}'}


def _build_of(
    scripts: Scripts, files: Mapping[str, str], folder: str = ".", **facts: object
) -> BuildBeforeTests | None:
    start = "" if folder == "." else f"{folder}/"
    manifest: dict[str, object] = {"scripts": scripts, **facts}
    tree = {f"{start}{path}": TreeEntry(text.encode()) for path, text in files.items()}
    return find_build({**tree, f"{start}package.json": TreeEntry(json.dumps(manifest).encode())}, folder, manifest)


@pytest.mark.parametrize(
    ("scripts", "files", "commands", "makes", "reads"),
    [
        (
            {"test": "rimraf ./build && tsc && mocha --file ./build/compiled/test/a.js ./build/compiled/test"},
            _TESTED | _COMPILED,
            ("rimraf ./build", "tsc"),
            ("build/compiled",),
            ("build/compiled/test",),
        ),
        (
            {"pretest": "npm run build", "build": "tsc", "test": "node --test dist/"},
            _TESTED,
            ("tsc",),
            ("dist",),
            ("dist",),
        ),
        (
            {"pretest": "yarn build", "build": "tsc -p .", "test": "mocha"},
            {**_TESTED, ".mocharc.yml": "spec:\n  - lib/test/**/*.js\n"},
            ("tsc -p .",),
            ("lib",),
            ("lib/test",),
        ),
        (
            {"test": "run-s lint build unit", "lint": "eslint .", "build": "rollup -c", "unit": "mocha"},
            _OF_BUILD,
            ("rollup -c",),
            ("dist",),
            (),
        ),
        ({"build": "tsup", "test": "vitest run"}, _OF_BUILD, ("tsup",), ("dist",), ()),
        (
            {"pretest": "node tools/gen.js", "test": "jest"},
            {"src/a.js": "export * from './parser.js';\n", "tools/gen.js": "", "test/a.test.js": ""},
            ("node tools/gen.js",),
            ("src/parser.js", "src/parser.ts"),
            (),
        ),
    ],
)  # fmt: skip
def test_what_is_built_and_read(
    scripts: Scripts,
    files: Mapping[str, str],
    commands: tuple[str, ...],
    makes: tuple[str, ...],
    reads: tuple[str, ...],
) -> None:
    assert _build_of(scripts, files) == BuildBeforeTests(commands, makes, reads)
    assert _build_of(scripts, files, "packages/a") == BuildBeforeTests(commands, makes, reads), (
        "from its own folder"
    )


@pytest.mark.parametrize(
    ("scripts", "files"),
    [
        ({"pretest": "npm run build", "build": "tsc", "test": "mocha -r ts-node/register test"}, _TESTED),
        ({"test": "tsc --noEmit && vitest --run"}, _OF_BUILD),
        ({"pretest": "eslint lib", "test": "mocha test"}, {"lib/a.js": "", "test/a.js": "require('../lib/a');"}),
        ({"test": "mocha", "build": "tsc"}, {**_TESTED, "test/d.js": "require('../dist/a')", "test/b.ts": ""}),
        ({"test": "mocha dist"}, _TESTED),
        ({"test": "npm test"}, _OF_BUILD),
        ({"pretest": "npm run test", "test": "npm run pretest"}, _OF_BUILD),
        ({"pretest": "npm run a", "a": "yarn b && yarn b", "b": "yarn a; yarn a", "test": "mocha"}, _OF_BUILD),
    ],
)  # fmt: skip
def test_what_needs_no_build(scripts: Scripts, files: Mapping[str, str]) -> None:
    assert _build_of(scripts, files) is None


def test_its_own_name_stands_for_its_build() -> None:
    scripts, files = {"pretest": "tsup", "test": "vitest run"}, {"test/a.test.ts": "import { a } from 'shop';\n"}
    facts = {"name": "shop", "exports": {".": {"import": "./dist/index.js"}}}
    assert _build_of(scripts, files, **facts) == BuildBeforeTests(("tsup",), ("dist",), ())
    aliased = {**files, "vitest.config.ts": "export default { resolve: { alias: { 'shop': './src' } } };\n"}
    assert _build_of(scripts, aliased, **facts) is None


def test_the_call_and_what_is_no_change_of_the_agents() -> None:
    scripts = {"test": "tsc && NODE_ENV=test mocha build/test"}
    texts = {**_TESTED, "package.json": json.dumps({"scripts": scripts}), "yarn.lock": ""}
    tree = {f"web/{path}": TreeEntry(text.encode()) for path, text in texts.items()}
    found = preset(ToolEnvironment(kind="node", directory="web"), tree)
    assert found.test_command == (
        "node", "{environment}/built_tests.mjs", "--report={junit}", "--makes=build", "--reads=build/test",
        "--build=tsc", "--", "env", "NODE_ENV=test", "node_modules/.bin/mocha", "--reporter", "json",
        "--reporter-options", "output={junit}", "+tests", "{tests}",
    )  # fmt: skip
    built = CalledTests(found.test_command, found.results, "web").built
    assert built == ("web/build",)
    exclusions = Exclusions(tree, (), built=built, is_context=is_context_file)
    assert [exclusions.excludes(path) for path in ("web/build/a.js", "web/src/build.ts")] == [True, False]
    there = Exclusions({*tree, "web/build/kept.js"}, (), built=built, is_context=is_context_file)
    assert not there.excludes("web/build/a.js"), "people write files there"
    assert CalledTests(("node", "x.js", "--makes=src"), "node").built == ()


def test_scripts_of_a_build_are_test_side() -> None:
    manifest = json.dumps({"main": "src/index.js", "scripts": {"pretest": "node src/gen.js", "test": "mocha"}})
    texts = {
        "package.json": manifest,
        "src/index.js": "import './gen.js'; import './a.js';",
        "src/gen.js": "",
        "src/a.js": "",
    }
    tree = {path: TreeEntry(text.encode()) for path, text in texts.items()}
    sources = frozenset(texts)
    assert find_javascript_product(ProjectFiles((tree,), sources, ("src/a.js",))) == {"src/index.js", "src/a.js"}
    assert "src/gen.js" in find_javascript_product(ProjectFiles((tree,), sources, ("src/gen.js",))), (
        "the fix changes it"
    )
    names = ("rollup.config.mjs", "web/webpack.config.js", "tsup.config.ts", "gulpfile.js", "web/Gruntfile.js")
    assert all(map(is_harness, names))
    assert not is_harness("src/rollup.js")


@pytest.mark.needs("node")
@pytest.mark.parametrize(
    ("build", "code"), [("mkdir -p build/test && cp test/a.mts build/test/a.mjs", 1), ("exit 127", 1)]
)
def test_the_runner_gets_what_was_compiled_and_the_report_names_its_source(
    tmp_path: Path, build: str, code: int
) -> None:
    """The report is of Mocha's kind; its runner here writes what it was given."""
    runner = tmp_path / "node_modules/.bin/runner"
    runner.parent.mkdir(parents=True)
    given = "JSON.stringify({ file: require('path').resolve(process.argv[3]) }, null, 1)"
    writes = f"require('fs').writeFileSync(process.argv[2], {given})"
    runner.write_text(f"#!/usr/bin/env node\n{writes}; process.exit(process.argv.length - 3)\n")
    runner.chmod(0o755)
    package, report = tmp_path / "web", tmp_path / "report.json"
    (package / "test").mkdir(parents=True)
    (package / "test/a.mts").write_text("")
    script = next(file for file in LANGUAGES["JavaScript"].own_files if file.name == BUILT_TESTS)
    options = [f"--report={report}", "--makes=build", "--reads=build/test", f"--build={build}"]
    words = ["node_modules/.bin/runner", str(report), "+tests", "test/a.mts"]
    argv = ["node", str(script), *options, "--", *words]
    ended = subprocess.run(argv, cwd=package, capture_output=True, text=True, check=False)
    assert ended.returncode == code, ended.stderr
    assert ended.stdout == ""
    if build.startswith("exit"):
        assert "the build before the tests failed: exit 127 of exit 127" in ended.stderr
        assert not report.exists()
    else:
        assert json.loads(report.read_text()) == {"file": str(package / "test/a.mts")}
