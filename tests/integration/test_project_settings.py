"""Settings that select, stop, repeat, reorder or rename tests do not decide which count, whatever the runner."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from trialfleet_ledger.records.task_order import ResultFormat
from trialfleet_repository.languages import format_named
from trialfleet_repository.languages.run_files import RunFiles
from trialfleet_repository.languages.settings_record import read_settings_record
from trialfleet_repository.read_results import read_results
from trialfleet_repository.testrun import TestRun
from trialfleet_sandbox.protocol import Exit
from trialfleet_tasks.validate.judge import not_all_ran

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PACKAGES = {"jest": "29.7.0", "mocha": "10.8.2", "vitest": "3.2.4"}
OLD_MOCHAS = ("1.21.5", "2.5.3", "5.2.0", "6.2.3", "7.2.0")  # where its programs, options or reports changed


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the three runners in node_modules, and older ones of Mocha."""
    folder = tmp_path_factory.mktemp("runners")
    older = {f"mocha-{version}": f"npm:mocha@{version}" for version in OLD_MOCHAS}
    (folder / "package.json").write_text(json.dumps({"name": "x", "devDependencies": PACKAGES | older}))
    argv = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
    subprocess.run(argv, cwd=folder, check=True, timeout=300)
    return folder


def run(folder: Path, argv: Sequence[str], results: ResultFormat, tests: Sequence[str], **own: str) -> TestRun:
    """As `run_tests` calls it, without a sandbox."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    chosen = format_named(results)
    ours = folder / "ours"
    ours.mkdir(exist_ok=True)
    for name, file in chosen.plugin.files.items():
        shutil.copyfile(file, ours / name)
    env = {name: value for name, value in os.environ.items() if name != "NODE_OPTIONS"} | {
        "HOME": str(home),
        "CI": "1",
    }
    env |= {
        name: os.environ.get(name, str(Path.home() / f".{name.partition('_')[0].lower()}"))
        for name in ("CARGO_HOME", "RUSTUP_HOME")
    }
    env |= own
    env |= chosen.plugin.variables(env, str(ours))
    words = [word.replace("{junit}", str(home / "junit.xml")) for word in argv]
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        code = subprocess.run(words, cwd=folder, env=env, stdout=out, stderr=err, check=False).returncode
        if chosen.listing:
            subprocess.run(["sh", "-c", chosen.listing, "list", *tests], cwd=folder, env=env, check=True)
    files = RunFiles(home / "junit.xml", folder, folder, str(folder), (folder / "stdout").read_text())
    found, settings = read_results(results, files), read_settings_record(home, str(folder))
    if found.collected is not None:
        settings = replace(settings, collected=found.collected)
    output = files.output + (folder / "stderr").read_text()
    return TestRun(Exit(code, "itself", 1, 1), output, found.cases, format=results, settings=settings)


def outcomes(ended: TestRun) -> dict[str, str]:
    return {test.rpartition("::")[2]: outcome for test, outcome in ended.outcomes(()).items()}


OUTCOMES = {"s > a": "failed", "s > b": "passed", "c": "passed", "flaky": "failed"}
TEST = """
let runs = 0;
describe("s", () => {
  it("a", () => assert.equal(1, 2));
  it("b", () => {});
});
it("c", () => {});
it("flaky", () => { runs += 1; assert.equal(runs, 2); });
"""
REQUIRE = 'const assert = require("node:assert");\n'
IMPORT = 'import assert from "node:assert";\nimport { describe, it } from "vitest";\n'
COMMANDS: Mapping[ResultFormat, tuple[str, ...]] = {
    "jest": (
        "jest",
        "--ci",
        "--coverage=false",
        "--json",
        "--outputFile={junit}",
        "--runTestsByPath",
        "a.test.js",
    ),
    "mocha": ("mocha", "--reporter", "json", "--reporter-options", "output={junit}", "a.test.js"),
    "vitest": ("vitest", "run", "--no-coverage", "--reporter=junit", "--outputFile.junit={junit}", "a.test.mjs"),
}
_JEST = """module.exports = {
  bail: 1, testFailureExitCode: 0, randomize: true, passWithNoTests: true, collectCoverage: true,
  coverageThreshold: { global: { lines: 100 } }, testResultsProcessor: "<rootDir>/rename.js",
  testSequencer: "<rootDir>/none.js", reporters: ["<rootDir>/ends.js"],
};
"""
_MOCHA = {
    "bail": True,
    "grep": "nothing",
    "retries": 3,
    "forbid-only": True,
    "sort": True,
    "spec": ["other.test.js"],
    "timeout": 4000,
}
_VITEST = """export default { test: { bail: 1, retry: 3, testNamePattern: /nothing/, passWithNoTests: true,
  sequence: { shuffle: true }, coverage: { enabled: true, thresholds: { lines: 100 } } } };
"""
FILES: Mapping[ResultFormat, Mapping[str, str]] = {
    "jest": {
        "jest.config.js": _JEST,
        "rename.js": 'module.exports = (all) => { all.testResults[0].name = "x"; return all; };\n',
        "none.js": "module.exports = class { sort() { return []; } allFailedTests() { return []; } "
        "shard(tests) { return tests; } cacheResults() {} };\n",
        "ends.js": 'module.exports = class { onRunComplete() {} getLastError() { return new Error("no"); } };\n',
        "a.test.js": REQUIRE + TEST,
    },
    "mocha": {
        ".mocharc.json": json.dumps(_MOCHA),
        "a.test.js": REQUIRE + TEST,
        "other.test.js": 'it("other", () => {});',
    },
    "vitest": {"vitest.config.mjs": _VITEST, "a.test.mjs": IMPORT + TEST},
}
TAKEN: Mapping[ResultFormat, tuple[str, ...]] = {
    "jest": (
        *("bail", "coverageThreshold", "passWithNoTests", "randomize", "reporters", "testFailureExitCode"),
        *("testResultsProcessor", "testSequencer"),
    ),
    "mocha": ("--bail", "--forbid-only", "--grep", "--retries", "--sort", "spec"),
    "vitest": ("bail", "passWithNoTests", "retry", "sequence.shuffle", "testNamePattern"),
}


def package(folder: Path, installed: Path, results: ResultFormat) -> tuple[str, ...]:
    (folder / "node_modules").symlink_to(installed / "node_modules")
    (folder / "package.json").write_text('{"name": "shop"}')
    for path, text in FILES[results].items():
        (folder / path).write_text(text)
    program, *words = COMMANDS[results]
    return ("node", f"node_modules/.bin/{program}", *words)


@pytest.mark.needs("node", "npm")
@pytest.mark.parametrize("results", COMMANDS)
def test_all_tests_of_javascript_count(results: ResultFormat, installed: Path, tmp_path: Path) -> None:
    ended = run(tmp_path, package(tmp_path, installed, results), results, ())
    assert outcomes(ended) == OUTCOMES, ended.output
    assert ended.settings.taken_back == TAKEN[results]
    assert ended.exit.code == (2 if results == "mocha" else 1)
    assert results == "jest" or len(ended.settings.collected or ()) == len(OUTCOMES)
    assert not_all_ran(ended) is None


@pytest.mark.needs("node", "npm")
@pytest.mark.parametrize("version", OLD_MOCHAS)
def test_all_tests_of_old_mochas_count_with_their_files(version: str, installed: Path, tmp_path: Path) -> None:
    """Their reports lack files before 7.2; their options are in test/mocha.opts, which 1 reads too late for us."""
    modules = tmp_path / "node_modules"
    modules.mkdir()
    for package in (installed / "node_modules").iterdir():
        if package.name not in ("mocha", ".bin"):
            (modules / package.name).symlink_to(package)
    shutil.copytree(modules / f"mocha-{version}", modules / "mocha", symlinks=True)
    (tmp_path / "test").mkdir()
    (tmp_path / "test/mocha.opts").write_text("--timeout 4000\n" + "--bail --grep b\n" * (version[0] != "1"))
    (tmp_path / "a.test.js").write_text(REQUIRE + TEST)
    argv = ("node", "node_modules/mocha/bin/mocha", *COMMANDS["mocha"][1:])
    ended = run(tmp_path, argv, "mocha", ())
    assert outcomes(ended) == OUTCOMES, ended.output
    assert {case.classname for case in ended.cases or ()} == {"a.test.js"}
    assert ended.settings.taken_back == (() if version[0] == "1" else ("--bail", "--grep"))
    assert outcomes(run(tmp_path, (*argv, "--grep", "b"), "mocha", ())) == {"s > b": "passed"}


@pytest.mark.needs("node", "npm")
def test_what_the_command_itself_selects_stays(installed: Path, tmp_path: Path) -> None:
    argv = (*package(tmp_path, installed, "mocha"), "--grep", "b")
    ended = run(tmp_path, argv, "mocha", ())
    assert outcomes(ended) == {"s > b": "passed"}
    assert "--grep" not in ended.settings.taken_back


GO_MAIN = """package shop

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Set("test.run", "TestA")
	os.Exit(m.Run())
}

func TestA(t *testing.T) {}
func TestB(t *testing.T) { t.Error("b") }
"""


@pytest.mark.needs("go")
def test_a_main_of_go_that_selects_is_seen(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module example.com/shop\n\ngo 1.19\n")
    (tmp_path / "a_test.go").write_text(GO_MAIN)
    (tmp_path / "b_test.go").write_text("//go:build slow\n\npackage shop\n")
    cache = subprocess.run(["go", "env", "GOCACHE"], capture_output=True, text=True, check=True).stdout.strip()
    ended = run(tmp_path, ("go", "test", "-json", "-count=1", "."), "go", (".",), GOCACHE=cache, GOFLAGS="")
    problem = not_all_ran(ended)
    assert problem is not None, ended.output
    assert "1 of 2 tests that are collected have no result, such as example.com/shop::TestB" in problem.message
    assert ended.settings.ignored == ("b_test.go",)


RUST = """
#[test] fn a() {}
#[test] fn b() { std::process::exit(0) }
#[test] fn c() { panic!("c") }
"""


@pytest.mark.needs("cargo")
def test_a_program_of_rust_that_ends_early_is_seen(tmp_path: Path) -> None:
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n')
    for path, text in {"src/lib.rs": "", "tests/a.rs": RUST, ".cargo/config.toml": SETTINGS}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    words = "exec cargo test --offline --no-fail-fast --message-format=json-render-diagnostics --tests 2>&1"
    ended = run(tmp_path, ("sh", "-c", words), "libtest", ())
    problem = not_all_ran(ended)
    assert problem is not None, ended.output
    assert "of 3 tests that are collected have no result, such as tests/a.rs::test " in problem.message


SETTINGS = '[env]\nRUST_TEST_NOCAPTURE = "1"\nRUST_TEST_THREADS = "1"\n[alias]\ntest = "build"\n'
