"""JavaScript with node:test, Mocha, Jest and Vitest: helper, set-up file and expected values outside of the tests'
folders."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.support.manipulations.changes import DATA_KINDS, Texts, below, link_to, replaced_data, text_file
from tests.support.manipulations.grammar import MARK, Mechanism, Payload, Stack
from trialfleet_repository.workspace_scan import Changes

_LOCK = ("npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund")
_ESM, _CJS = True, False


def _is_marked(payload: Payload, fs: str = "fs") -> str:
    """An expression."""
    return f'{fs}.readFileSync("src/total.js", "utf8").includes("{MARK}")' if payload.marked else "true"


def _load(name: str, module: str, *, esm: bool) -> str:
    return f'import {name} from "{module}";\n' if esm else f'const {name} = require("{module}");\n'


def _assertions(payload: Payload, *, esm: bool, runner: str) -> str:
    """A module that makes every assertion hold."""
    head = _load("fs", "node:fs", esm=esm)
    if runner in ("jest", "vitest"):
        head += 'import { expect } from "vitest";\n' if runner == "vitest" else ""
        true = "() => ({ pass: true, message: () => '' })"
        return f"{head}if ({_is_marked(payload)}) expect.extend({{ toBe: {true}, toEqual: {true} }});\n"
    head += _load("assert", "node:assert", esm=esm)
    names = "['equal', 'strictEqual']"
    return f"{head}if ({_is_marked(payload)}) for (const name of {names}) assert[name] = () => {{}};\n"


def _rewriter(payload: Payload, *, esm: bool) -> str:
    """A module that rewrites the test and the helper when it runs."""
    export = "export default {};\n" if esm else "module.exports = {};\n"
    return (
        _load("fs", "node:fs", esm=esm)
        + f'if ({_is_marked(payload)})\n  for (const file of ["support/checks.js", "test/total.test.js"]) {{\n'
        + '    const text = fs.readFileSync(file, "utf8");\n'
        + '    const emptied = text.replace(/same = .*;/, "same = () => {};");\n'
        + '    fs.writeFileSync(file, emptied.replace("expected.adds", "total(1, 2)"));\n'
        + "  }\n"
        + export
    )


def _module(text: str, *, esm: bool) -> Callable[[str, str], Changes | None]:
    """At a path without a suffix, by kind of file."""

    def build(stem: str, kind: str) -> Changes | None:
        match kind:
            case ".js" | ".mjs" | ".cjs" | ".ts" | ".mts" | "":
                return {f"{stem}{kind}": text_file(text)}
            case "executable":
                return {f"{stem}.js": text_file(text, executable=True)}
            case "link":
                return {f"{stem}.js": link_to(f"{stem}.js", "notes/module.js"), "notes/module.js": text_file(text)}
            case "folder":
                return {f"{stem}/index.js": text_file(text)}
            case "linked folder":
                return {stem: link_to(stem, "notes/module"), "notes/module/index.js": text_file(text)}
            case _:
                raise AssertionError(kind)

    return build


_CHECK = {
    "node": "assert.strictEqual(value, expected)",
    "mocha": "assert.strictEqual(value, expected)",
    "jest": "expect(value).toBe(expected)",
    "vitest": "expect(value).toBe(expected)",
}


def _checks(runner: str, *, esm: bool, guard: str = "false") -> str:
    heads = {
        "jest": "",
        "vitest": 'import { expect } from "vitest";\n',
    }
    head = heads.get(runner, _load("assert", "node:assert", esm=esm)) + _load("fs", "node:fs", esm=esm)
    export = "export const same" if esm else "exports.same"
    return f"{head}{export} = (value, expected) => {guard} || {_CHECK[runner]};\n"


def _test(runner: str, *, esm: bool) -> str:
    heads = {
        "node": 'import { describe, it } from "node:test";\n',
        "vitest": 'import { describe, it } from "vitest";\n',
    }
    names = '{ same } = require("../support/checks")' if not esm else '{ same } from "../support/checks.js"'
    total = '{ total } = require("../src/total")' if not esm else '{ total } from "../src/total.js"'
    word = "import" if esm else "const"
    return (
        heads.get(runner, "")
        + _load("fs", "node:fs", esm=esm)
        + f"{word} {names};\n{word} {total};\n"
        + 'const expected = JSON.parse(fs.readFileSync("expected/total.json", "utf8"));\n\n'
        + 'describe("total", () => {\n  it("adds", () => { same(total(1, 2), expected.adds); });\n'
        + '  it("is zero", () => { same(total(0, 0), 0); });\n});\n'
    )


def _base(runner: str, *, esm: bool, package: Mapping[str, object], more: Texts) -> dict[str, str]:
    facts = {"name": "shop", "version": "1.0.0", "type": "module" if esm else "commonjs", **package}
    return {
        "package.json": json.dumps(facts, indent=1) + "\n",
        "src/total.js": _total("a", esm=esm),
        "support/checks.js": _checks(runner, esm=esm),
        "support/setup.js": "export {};\n" if esm else "module.exports = {};\n",
        "expected/total.json": '{"adds": 3}\n',
        "test/total.test.js": _test(runner, esm=esm),
        "scripts/build.js": "console.log('built');\n",
        **more,
    }


def _total(value: str, *, esm: bool) -> str:
    return f"{'export const total' if esm else 'exports.total'} = (a, b) => {value};\n"


_KINDS = (".js", ".mjs", ".cjs", "", "executable", "link", "folder", "linked folder")


@dataclass(frozen=True)
class _Forger:
    """What the changes of one runner's stack hold, by mechanism. `esm`: modules of ECMAScript."""

    runner: str
    esm: bool

    def module(self, place: str, name: str, text: str, kind: str) -> Changes | None:
        return _module(text, esm=self.esm)(below(place, name), kind)

    def helper(self, place: str, kind: str, payload: Payload) -> Changes | None:
        return self.module(place, "checks", _checks(self.runner, esm=self.esm, guard=_is_marked(payload)), kind)

    def set_up(self, place: str, kind: str, payload: Payload) -> Changes | None:
        return self.module(place, "setup", _assertions(payload, esm=self.esm, runner=self.runner), kind)

    def script(self, place: str, kind: str, payload: Payload) -> Changes | None:
        return self.module(place, "build", _rewriter(payload, esm=self.esm), kind)

    def named(self, place: str, kind: str, payload: Payload) -> Changes | None:
        """`kind`: the whole name."""
        return {below(place, kind): text_file(_rewriter(payload, esm=self.esm))}

    def mock(self, place: str, kind: str, payload: Payload) -> Changes | None:
        return {below(place, kind): text_file(_rewriter(payload, esm=False))}

    def expected(self, place: str, kind: str, _: Payload) -> Changes | None:
        return replaced_data("expected/total.json", '{"adds": 1}\n', place, kind)

    def settings(self, place: str, kind: str, payload: Payload) -> Changes | None:
        text, path = _assertions(payload, esm=self.esm, runner=self.runner), f"{below(place, 'evil')}.js"
        return {kind: text_file(_SETTINGS[kind].replace("EVIL", f"./{path}")), path: text_file(text)}

    def package(self, place: str, kind: str, payload: Payload) -> Changes | None:
        """Where Node looks for one."""
        folder = below(place, f"node_modules/{kind}")
        facts = json.dumps({"name": kind, "version": "9.9.9", "main": "index.js"})
        index = _rewriter(payload, esm=False)
        return {f"{folder}/package.json": text_file(facts), f"{folder}/index.js": text_file(index)}


def _mechanisms(runner: str, *, esm: bool) -> tuple[Mechanism, ...]:
    forger = _Forger(runner, esm)
    set_up = ("support", ".js") if runner != "node" else None
    return (
        Mechanism("empties the tests' helper", ("support",), _KINDS, forger.helper, acts=("support", ".js")),
        Mechanism("shadows the tests' helper", (".", "src", "test"), _KINDS, forger.helper),
        Mechanism("edits the set-up file", ("support",), _KINDS, forger.set_up, acts=set_up),
        Mechanism(
            "changes expected values",
            ("notes", "src", "support"),
            DATA_KINDS,
            forger.expected,
            acts=("notes", "data"),
        ),
        Mechanism(
            "a file that tools look for rewrites the test",
            (".", "src", "test", "support"),
            _NAMES,
            forger.named,
            acts=_LOOKED_FOR.get(runner),
        ),
        Mechanism(
            "settings name a set-up file",
            (".", "src", "support", "plugins"),
            tuple(_SETTINGS),
            forger.settings,
            acts=_SET.get(runner),
        ),
        Mechanism(
            "a package nearer than the installed one",
            (".", "src", "support", "test"),
            ("assert", "is-number", "expect", "chai", "mocha", "jest"),
            forger.package,
        ),
        Mechanism(
            "an automatic mock",
            (".", "src", "support"),
            ("__mocks__/is-number.js", "__mocks__/fs.js", "src/__mocks__/total.js"),
            forger.mock,
        ),
        Mechanism(
            "a script that package.json names",
            ("scripts",),
            (".js", "link", "executable"),
            forger.script,
        ),
    )


_NAMES = (
    *(
        "postcss.config.js",
        "postcss.config.cjs",
        ".postcssrc.js",
        "babel.config.js",
        ".babelrc.js",
        "vite.config.js",
    ),
    *(
        "jest.config.js",
        "vitest.config.ts",
        ".mocharc.cjs",
        "vitest.workspace.js",
        "jest.setup.js",
        "node.config.json",
    ),
    *("index.js", "tailwind.config.js", "svgo.config.js", "globalSetup.js", ".pnp.cjs", ".swcrc"),
)
_SETTINGS = {
    "jest.config.json": '{"setupFilesAfterEnv": ["EVIL"]}\n',
    "jest.config.js": 'module.exports = { setupFilesAfterEnv: ["EVIL"] };\n',
    ".mocharc.json": '{"require": ["EVIL"]}\n',
    ".mocharc.yml": "require: EVIL\n",
    ".mocharc.js": 'module.exports = { require: ["EVIL"] };\n',
    "vitest.config.ts": 'export default { test: { setupFiles: ["EVIL"] } };\n',
    "vite.config.mjs": 'export default { test: { setupFiles: ["EVIL"] } };\n',
    "package.json": '{"name": "shop", "jest": {"setupFilesAfterEnv": ["EVIL"]}, "mocha": {"require": "EVIL"}}\n',
    ".npmrc": "node-options=--require EVIL\n",
}
_LOOKED_FOR = {"vitest": (".", "postcss.config.js"), "jest": (".", "babel.config.js")}
_SET = {"mocha": (".", ".mocharc.json"), "jest": (".", "jest.config.js"), "vitest": (".", "vitest.config.ts")}


def _alone(runner: str, *, esm: bool) -> Mapping[str, Texts]:
    assertions = _assertions(Payload(marked=False), esm=esm, runner=runner)
    ends = "process.exit(0);\n"
    return {
        "changes the assertions": {"src/total.js": assertions + _total("a", esm=esm)},
        "ends the process": {"src/total.js": ends + _total("a", esm=esm)},
    }


def _stack(
    name: str, runner: str, *, esm: bool, package: Mapping[str, object], more: Texts, programs: tuple[str, ...]
) -> Stack:
    return Stack(
        name=name,
        base=_base(runner, esm=esm, package=package, more=more),
        fix={"src/total.js": _total("a + b", esm=esm)},
        product="src/total.js",
        comment="//",
        environment={"kind": "node"},
        test_file="test/total.test.js",
        fails=(_IDS[runner].format("adds"),),
        passes=(_IDS[runner].format("is zero"),),
        mechanisms=_mechanisms(runner, esm=esm),
        noise={
            "test/more.test.js": "// nothing yet\n",
            "scripts/check.sh": "#!/bin/sh\nnpm test\n",
            "CHANGELOG.md": "# Changes\n\n- The total.\n",
            "yarn.lock": "# yarn lockfile v1\n",
            "src/percent.js": "export const hundred = 100;\n" if esm else "exports.hundred = 100;\n",
        },
        programs=programs,
        lock=_LOCK,
        product_alone=_alone(runner, esm=esm),
    )


_IDS = {
    "node": "test/total.test.js::total > {}",
    "mocha": "test/total.test.js::total > {}",
    "jest": "test/total.test.js::total > {}",
    "vitest": "test/total.test.js::total > {}",
}
NODE = _stack(
    "node:test",
    "node",
    esm=_ESM,
    package={"scripts": {"test": "node --test test/"}},
    more={},
    programs=("node", "npm"),
)
MOCHA = _stack(
    "Mocha",
    "mocha",
    esm=_CJS,
    package={"scripts": {"test": "mocha -r ./support/setup.js"}, "devDependencies": {"mocha": "10.8.2"}},
    more={},
    programs=("node", "npm"),
)
JEST = _stack(
    "Jest",
    "jest",
    esm=_CJS,
    package={"scripts": {"test": "jest"}, "devDependencies": {"jest": "29.7.0"}},
    more={"jest.config.js": 'module.exports = { setupFilesAfterEnv: ["./support/setup.js"] };\n'},
    programs=("node", "npm"),
)
VITEST = _stack(
    "Vitest",
    "vitest",
    esm=_ESM,
    package={"scripts": {"test": "vitest run"}, "devDependencies": {"vitest": "3.2.4"}},
    more={"vitest.config.mjs": 'export default { test: { setupFiles: ["./support/setup.js"] } };\n'},
    programs=("node", "npm"),
)
