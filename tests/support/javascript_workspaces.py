"""A workspace of two JavaScript packages for each package manager, which writes its lock in the test, and one
without a lock."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.programs import npm_programs
from tests.support.git_repositories import Made


@dataclass(frozen=True)
class Workspace:
    """`name`: row of tests/programs.tsv. `lock`: argv that writes the lock, () for none. `runner`: package of the
    test runner, with its version, and `script`: how the package calls it. `linked`: the version by which a package
    asks for another one of the workspace. `imports`: first line of its tests. `modules`: its code is in modules of
    ECMAScript. `projects`: Vitest is called in the workspace and tests every package; in a package alone it finds
    no project."""

    name: str
    lock: tuple[str, ...]
    script: str
    linked: str
    runner: tuple[str, str] | None = None
    imports: str = ""
    modules: bool = True
    projects: bool = False

    @property
    def title(self) -> str:
        return self.name if self.lock else f"{self.name}-without-lock"

    @property
    def programs(self) -> tuple[str, ...]:
        return ("node", self.name)

    @property
    def path(self) -> str:
        """PATH with this package manager first."""
        return f"{npm_programs(self.name)}{os.pathsep}{os.environ['PATH']}"


WORKSPACES: Sequence[Workspace] = (
    Workspace(
        "npm",
        ("npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit"),
        "node --test test/",
        "1.0.0",
        imports='import { describe, it } from "node:test";',
    ),
    Workspace("npm", (), "node --test test/", "1.0.0", imports='import { describe, it } from "node:test";'),
    Workspace(
        "pnpm",
        ("pnpm", "install", "--lockfile-only", "--ignore-scripts"),
        "vitest run",
        "workspace:*",
        ("vitest", "3.2.4"),
        'import { describe, it } from "vitest";',
        projects=True,
    ),
    Workspace("yarn", ("yarn", "install", "--ignore-scripts"), "mocha", "1.0.0", ("mocha", "10.8.2")),
    Workspace(
        "yarn-berry",
        ("yarn", "install", "--mode=update-lockfile"),
        "jest",
        "workspace:^",
        ("jest", "29.7.0"),
        modules=False,
    ),
    Workspace(
        "bun",
        ("bun", "install", "--lockfile-only"),
        "bun test",
        "workspace:*",
        imports='import { describe, it } from "bun:test";',
    ),
)


_PROJECTS = 'export default { test: { projects: ["packages/*"] } };\n'
_MERGED = 'export { default } from "../../vitest.config.mjs";\n'


def history(workspace: Workspace, folder: Path) -> tuple[Made, dict[str, str]]:
    """Commits by the finding that each must give. The fix of `kept` is in one package, its test in another, whose
    dependencies are the first and a package of the registry."""
    made = Made(folder)
    shop: dict[str, object] = {"name": "shop", "private": True, "workspaces": ["packages/*"]}
    if workspace.projects and workspace.runner:
        shop |= {"scripts": {"test": workspace.script}, "devDependencies": dict([workspace.runner])}
        made.write("vitest.config.mjs", _PROJECTS)
        made.write("packages/cart/vitest.config.mjs", _MERGED)
    made.write("package.json", json.dumps(shop))
    if workspace.name == "pnpm":
        made.write("pnpm-workspace.yaml", "packages: ['packages/*']\n")
    _package(made, workspace, "money", {})
    _package(
        made, workspace, "cart", {"@shop/money": workspace.linked, "is-number": "7.0.0"}, test=workspace.script
    )
    _write(made, workspace, "packages/money/src/index.js", [], "add", "a - b + b")
    numbers = [("isNumber", "is-number"), ("money", "@shop/money")]
    _write(made, workspace, "packages/cart/src/total.js", numbers, "total", "isNumber(b) ? money.add(a, b) : 0")
    made.write(".gitignore", "node_modules\n.yarn\n")
    environment = {**os.environ, "PATH": workspace.path}
    if workspace.lock:
        subprocess.run(workspace.lock, cwd=folder, check=True, capture_output=True, env=environment)
    else:
        made.write(".npmrc", "package-lock=false\n")
    made.commit("Start")
    _write(made, workspace, "packages/money/src/index.js", [], "add", "a + b")
    _test(made, workspace, "total")
    found = {"kept": made.commit("Add what is to be added")}
    if workspace.name != "npm":  # for one of them: a second commit with the same lock
        return made, found
    _write(made, workspace, "packages/cart/src/total.js", numbers, "total", "isNumber(a) ? money.add(a, b) : 0")
    _test(made, workspace, "again")
    found["already_green"] = made.commit("Look at the first number")
    return made, found


def _package(made: Made, workspace: Workspace, name: str, dependencies: dict[str, str], test: str = "") -> None:
    facts = {
        "name": f"@shop/{name}",
        "version": "1.0.0",
        "type": "module" if workspace.modules else "commonjs",
        "main": "src/index.js",
        "scripts": {"test": test} if test else {},
        "dependencies": dependencies,
        "devDependencies": dict([workspace.runner]) if workspace.runner and test else {},
    }
    if test == "jest":  # a coverage that no test reaches, which would make every run fail
        threshold = {"global": {"lines": 100}}
        facts["jest"] = {"collectCoverage": True, "collectCoverageFrom": ["*.js"], "coverageThreshold": threshold}
        made.write(f"packages/{name}/untested.js", "exports.untested = () => 1;\n")
    made.write(f"packages/{name}/package.json", json.dumps(facts))


def _imported(workspace: Workspace, name: str, module: str, *, default: bool) -> str:
    if not workspace.modules:
        return f'const {name} = require("{module}");\n'
    return f'import {name if default else f"* as {name}"} from "{module}";\n'


def _write(
    made: Made, workspace: Workspace, path: str, imports: Sequence[tuple[str, str]], name: str, value: str
) -> None:
    head = "".join(_imported(workspace, what, module, default=module == "is-number") for what, module in imports)
    exported = f"export const {name}" if workspace.modules else f"exports.{name}"
    made.write(path, f"{head}{exported} = (a, b) => ({value});\n")


def _test(made: Made, workspace: Workspace, name: str) -> None:
    head = workspace.imports + "\n" + _imported(workspace, "assert", "node:assert", default=True)
    head += _imported(workspace, "code", "../src/total.js", default=False)
    adds = 'it("adds", () => assert.equal(code.total(1, 2), 3));'
    zero = 'it("is zero", () => assert.equal(code.total(0, 0), 0));'
    made.write(
        f"packages/cart/test/{name}.test.js", f'{head}\ndescribe("total", () => {{\n  {adds}\n  {zero}\n}});\n'
    )
