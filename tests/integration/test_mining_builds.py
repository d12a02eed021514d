"""A TypeScript package whose test runner reads what `tsc` makes: mined by the command, then attempted."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.integration.test_languages import ORACLE_AND_NOP, ran
from tests.support.git_repositories import Made
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_tasks.commands.mine import tasks
from trialfleet_tasks.taskfile import load_task_file

pytestmark = [pytest.mark.needs("bwrap", "node", "npm"), pytest.mark.slow, pytest.mark.timeout(900)]

MANIFEST = {
    "name": "shop",
    "version": "1.0.0",
    "main": "./build/src/total.js",
    "scripts": {
        "pretest": "npm run lint && npm run compile",
        "lint": "eslint .",
        "compile": "node tools/clean.js && tsc",
        "test": "mocha --file ./build/test/setup.js 'build/test/**/*.test.js'",
    },
    "devDependencies": {
        "mocha": "10.8.2",
        "typescript": "5.6.3",
        "@types/mocha": "10.0.9",
        "@types/node": "20.16.0",
    },
}
SETTINGS = {
    "compilerOptions": {
        "outDir": "./build",
        "module": "commonjs",
        "target": "es2022",
        "strict": True,
        "esModuleInterop": True,
        "skipLibCheck": True,
    },
    "include": ["src", "test"],
}
SOURCE = "export function total(a: number, b: number): number {{\n  return {};\n}}\n"
TEST = """import assert from "node:assert";
import {{ total }} from "../src/total";
{}
describe("total", () => {{
  it("adds", () => assert.strictEqual(total(1, 2), 3));
  it("is zero", () => assert.strictEqual(total(0, 0), 0));
  it("is set up", () => assert.strictEqual(Reflect.get(globalThis, "ready"), true));
}});
"""
CLEAN = "require('node:fs').rmSync('build', { recursive: true, force: true });\n"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Made, str, str]:
    """The repository, a fix, and a commit whose test does not compile before it."""
    made = Made(tmp_path_factory.mktemp("built") / "shop")
    made.write("package.json", json.dumps(MANIFEST))
    made.write("tsconfig.json", json.dumps(SETTINGS))
    made.write(".gitignore", "node_modules\nbuild\n")
    made.write("tools/clean.js", CLEAN)
    made.write("test/setup.ts", 'Reflect.set(globalThis, "ready", true);\n')
    made.write("src/total.ts", SOURCE.format("a - b"))
    lock = ("npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit")
    subprocess.run(lock, cwd=made.folder, check=True, capture_output=True)
    made.commit("Start")
    made.write("src/total.ts", SOURCE.format("a + b"))
    made.write("test/total.test.ts", TEST.format(""))
    fix = made.commit("Add what is given")
    made.write("src/total.ts", SOURCE.format("a + b") + "export const rate = 2;\n")
    made.write("test/total.test.ts", TEST.format('import { rate } from "../src/total";\n') + "assert.ok(rate);\n")
    return made, fix, made.commit("Know a rate")


def test_it_is_built_before_its_tests(history: tuple[Made, str, str], tmp_path: Path) -> None:
    made, fix, uncompiled = history
    argv = ["mine", str(made.folder), "--language", "JavaScript", "--repeats", "2", "--timeout", "300", "--json"]
    said = CliRunner().invoke(tasks, argv, catch_exceptions=False)
    assert said.exit_code == 0, said.output
    outcomes = {row["commit"]: (row["outcome"], row["detail"]) for row in json.loads(said.stdout)["findings"]}
    assert outcomes[fix] == ("kept", "")
    assert outcomes[uncompiled][0] == "cannot_run_before"
    file = made.folder / "trialfleet/tasks/mined.yaml"
    (task,) = load_task_file(file).tasks
    assert task.spec.fail_to_pass == ("test/total.test.ts::total > adds",), "of the file that people wrote"
    assert task.spec.pass_to_pass == (
        "test/total.test.ts::total > is zero",
        "test/total.test.ts::total > is set up",
    )

    mend = "sed -i s/a.-.b/a+b/ src/total.ts"
    builds = ["/bin/sh", "-c", f"{mend} && node_modules/.bin/tsc && ls build/src && echo // >> tools/clean.js"]
    forges = ["/bin/sh", "-c", "mkdir -p build/src && echo 'exports.total = (a, b) => a + b' > build/src/total.js"]
    script = "process.exitCode = 0; const p = 'src/total.ts'; const fs = require('fs');"
    script += "fs.writeFileSync(p, fs.readFileSync(p, 'utf8').replace('a - b', 'a + b'))"
    forges_script = ["/bin/sh", "-c", f'echo "{script}" >> tools/clean.js']
    agents = {
        **ORACLE_AND_NOP,
        "builds": ({"kind": "command", "options": {"argv": builds}}, Verdict.PASSED),
        "forges": ({"kind": "command", "options": {"argv": forges}}, Verdict.FAILED),
        "forges_script": ({"kind": "command", "options": {"argv": forges_script}}, Verdict.FAILED),
    }
    conditions = {name: {"agent": dict(agent)} for name, (agent, _) in agents.items()}
    verdicts = {name: verdict for name, (_, verdict) in agents.items()}
    outcomes_of = ran(tmp_path, file, verdicts, agent={"kind": "nop"}, conditions=conditions)
    changed = {
        each.trial.condition: each.scored.metrics.files_changed for each in outcomes_of if each.scored is not None
    }
    assert (changed["builds"], changed["forges"]) == (2, 0), "what a build makes is no change"
