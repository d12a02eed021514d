"""A package whose test runner reads what a build makes: mined by the command, then attempted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.integration.test_languages import ran
from tests.support.git_repositories import Made
from trialfleet_ledger.records.verdicts import Verdict
from trialfleet_tasks.commands.mine import tasks
from trialfleet_tasks.taskfile import load_task_file

pytestmark = [pytest.mark.needs("bwrap", "node", "npm"), pytest.mark.slow, pytest.mark.timeout(900)]

MANIFEST = {
    "name": "shop",
    "version": "1.0.0",
    "scripts": {
        "pretest": "npm run lint && npm run compile",
        "lint": "eslint .",
        "compile": "node tools/compile.js src test",
        "test": "node --test build/test",
    },
}
# A compiler in a few lines: of types it knows `: number` alone.
COMPILER = """const fs = require('node:fs');
for (const folder of process.argv.slice(2)) {
  fs.mkdirSync(`build/${folder}`, { recursive: true });
  for (const name of fs.readdirSync(folder)) {
    const text = fs.readFileSync(`${folder}/${name}`, 'utf8').replaceAll(': number', '');
    if (text.includes('const missing')) throw new Error(`${name}: it does not compile`);
    fs.writeFileSync(`build/${folder}/${name.replace(/ts$/, 'js')}`, text);
  }
}
"""
SOURCE = "exports.total = (a: number, b: number) => {};\n"
TEST = """const assert = require("node:assert");
const {{ describe, it }} = require("node:test");
const {{ total }} = require("../src/total");
{}
describe("total", () => {{
  it("adds", () => assert.strictEqual(total(1, 2), 3));
  it("is zero", () => assert.strictEqual(total(0, 0), 0));
}});
"""


def test_it_is_built_before_its_tests(tmp_path: Path) -> None:
    made = Made(tmp_path / "shop")
    made.write("package.json", json.dumps(MANIFEST))
    made.write(".gitignore", "node_modules\nbuild\n")
    made.write("tools/compile.js", COMPILER)
    made.write("src/total.ts", SOURCE.format("a - b"))
    made.commit("Start")
    made.write("src/total.ts", SOURCE.format("a + b"))
    made.write("test/total.test.ts", TEST.format(""))
    fix = made.commit("Add what is given")
    made.write("src/total.ts", SOURCE.format("a + b + 0"))
    made.write("test/other.test.ts", TEST.format("const missing = 1;"))
    uncompiled = made.commit("Nothing compiles")
    argv = ["mine", str(made.folder), "--language", "JavaScript", "--repeats", "2", "--json"]
    said = CliRunner().invoke(tasks, argv, catch_exceptions=False)
    assert said.exit_code == 0, said.output
    outcomes = {row["commit"]: (row["outcome"], row["detail"]) for row in json.loads(said.stdout)["findings"]}
    assert outcomes[fix] == ("kept", "")
    assert outcomes[uncompiled][0] == "cannot_run_at_fix"
    assert "it does not compile" in outcomes[uncompiled][1]
    file = made.folder / "trialfleet/tasks/mined.yaml"
    (task,) = load_task_file(file).tasks
    assert task.spec.fail_to_pass == ("test/total.test.ts::total > adds",), "of the file that people wrote"
    assert task.spec.pass_to_pass == ("test/total.test.ts::total > is zero",)

    mend = "sed -i 's/a - b/a + b/' src/total.ts"
    builds = ["/bin/sh", "-c", f"{mend} && node tools/compile.js src && test -f build/src/total.js"]
    forge = "sed -i 's/replaceAll(/replace(`a - b`, `a + b`).replaceAll(/' tools/compile.js"
    forges = ["/bin/sh", "-c", f"{forge} && grep -q 'a + b' tools/compile.js"]
    agents = {"builds": (builds, Verdict.PASSED), "forges": (forges, Verdict.FAILED)}
    conditions = {
        name: {"agent": {"kind": "command", "options": {"argv": argv}}} for name, (argv, _) in agents.items()
    }
    verdicts = {name: verdict for name, (_, verdict) in agents.items()}
    outcomes_of = ran(tmp_path, file, verdicts, agent={"kind": "nop"}, conditions=conditions)
    changed = {each.trial.condition: each.scored.metrics.files_changed for each in outcomes_of if each.scored}
    assert changed["builds"] == 1, "what a build makes is no change"
