"""A repository of each language that is mined: a commit for every finding, and a package below the root."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.git_repositories import Made
from tests.support.language_projects import pom

Files = Mapping[str, str]
# What a language's runner has to be understood for. That results differ between runs, that a run is too long and
# that a test passes before or fails after is concluded the same way in every language.
_OF_THE_RUNNER = (
    "kept",
    "cannot_run_before",
    "needs_network",
    "names_what_only_the_fix_adds",
    "cannot_run_at_fix",
)
_BESIDE_BROKEN = "price"  # of the case with this name, another test of the file always fails
CHOICES = 100  # tests of which each run passes one: the same one three times is a chance of 1 in 10,000

# Finding -> the function's value before and after its fix, and what its tests do. "": there is no function.
# What one leaves in the tree meets the tests of those after it where a runner takes a whole crate or project.
CASES: Mapping[str, tuple[str, str, str]] = {
    "kept": ("a - b + b", "a + b", "sums"),
    "already_green": ("a + b", "b + a", "sums"),
    "cannot_run_before": ("", "a + b", "sums"),
    "needs_network": ("a - b + b", "a + b", "network"),
    "fails_at_fix": ("a - b + b", "a - b", "sums"),
    "names_what_only_the_fix_adds": ("a + b", "a + b", "names"),
    "flaky": ("a - b + b", "a + b", "flaky"),
    "too_slow": ("a - b + b", "a + b", "slow"),
    "cannot_run_at_fix": ("a - b + b", "a + b", "missing"),
}


@dataclass(frozen=True)
class LanguageProject:
    """`base`: files of the first commit. `source`: (case, value) -> a function of that value; `test`: (case, what
    it does) -> its tests; `rates`: (case, names) -> a function that knows these names. `nested`: a package below
    the root, with a bug that ends in an error of its code; `nested_fix`: its fix. `lost`: a dependency that nobody
    has; `newer`: a release of the language's tools that nobody has (npm asks for none). `lock`: writes lock files,
    in the root and in the folder of the package. `fails`: the failing test of case `kept`, `nested_fails`:
    of the package. `timeout_s`: of a run of tests; `repeats`: how often they run. `cases`: those of CASES that its
    history has."""

    language: str
    programs: tuple[str, ...]
    base: Files
    source: Callable[[str, str], Files]
    test: Callable[[str, str], Files]
    rates: Callable[[str, tuple[str, ...]], Files]
    nested: Files
    nested_fix: Files
    lost: Files
    fails: str
    nested_fails: str
    timeout_s: int
    repeats: int = 3
    lock: tuple[str, ...] = ()
    directory: str | None = "tools"
    newer: Files = field(default_factory=dict[str, str])
    cases: tuple[str, ...] = tuple(CASES)


def history(project: LanguageProject, folder: Path) -> tuple[Made, dict[str, str]]:
    """The repository, and its commits by the finding that each must give; `nested`: the one of the package."""
    made = Made(folder)
    cases = {name: CASES[name] for name in project.cases}
    before = {name: project.source(name, value) for name, (value, _, _) in cases.items() if value}
    before["names_what_only_the_fix_adds"] = project.rates("names_what_only_the_fix_adds", ("base",))
    _write(made, project.base, project.nested, *before.values())
    made.write(".gitignore", "node_modules\ntarget\nbuild\n.gradle\n")
    for place in (".", project.directory or ".") if project.lock else ():
        subprocess.run(project.lock, cwd=folder / place, check=True, capture_output=True)
    made.commit("Start")
    found: dict[str, str] = {}
    for name, (_, value, kind) in cases.items():
        after = project.rates(name, ("base", "luxury")) if kind == "names" else project.source(name, value)
        _write(made, after, project.test(name, kind))
        found[name] = made.commit(f"Case {name}")
    _write(made, project.nested_fix)
    found["nested"] = made.commit("Case of a package below the root")
    name = "environment_failed"
    _write(made, project.lost, project.source(name, "a - b + b"))
    made.commit("Depend on what nobody has")
    _write(made, project.source(name, "a + b"), project.test(name, "sums"))
    found[name] = made.commit(f"Case {name}")
    name = "toolchain_too_old"
    if project.newer:
        _write(made, project.newer, project.source(name, "a - b + b"))
        made.commit("Need newer tools than there are")
        _write(made, project.source(name, "a + b"), project.test(name, "sums"))
        found[name] = made.commit(f"Case {name}")
    return made, found


def _write(made: Made, *files: Files) -> None:
    for name, content in (item for one in files for item in one.items()):
        made.write(name, content)


def _camel(case: str) -> str:
    return "".join(word.capitalize() for word in case.split("_"))


# --- Go -------------------------------------------------------------------------------------------------


def _go(package: str, value: str) -> str:
    return f"package {package}\n\nfunc Total(a, b int) int {{ return {value} }}\n"


_GO_SUMS = """t.Run("two", func(t *testing.T) {
		if Total(1, 2) != 3 {
			t.Error("not three")
		}
	})"""
_GO_FLAKY = f"""chosen := int(time.Now().UnixNano() / 1000 % {CHOICES})
	for i := 0; i < {CHOICES}; i++ {{
		t.Run(fmt.Sprint(i), func(t *testing.T) {{
			if Total(1, 2) != 3 || i != chosen {{
				t.Error(i)
			}}
		}})
	}}"""
_GO_NETWORK = """if _, err := net.Dial("tcp", "shop.invalid:80"); err != nil || Total(1, 2) != 3 {
		t.Fatal(err)
	}"""
_GO_BODIES = {  # imports, statements
    "sums": ("", _GO_SUMS),
    "missing": ("", "if NoSuchThing(1) != 3 {\n\t\tt.Error(1)\n\t}"),
    "flaky": ('"fmt"\n"time"\n', _GO_FLAKY),
    "slow": ('"time"\n', "time.Sleep(300 * time.Second)"),
    "network": ('"net"\n', _GO_NETWORK),
    "names": ("", 'if Rate("luxury") != 2 {\n\t\tt.Error("not two")\n\t}'),
}
_GO_ZERO = "\nfunc TestZero(t *testing.T) {\n\tif Total(0, 0) != 0 {\n\t\tt.Error(0)\n\t}\n}\n"


def _go_test(case: str, kind: str) -> Files:
    package = case.replace("_", "")
    imports, body = _GO_BODIES[kind]
    head = f'package {package}\n\nimport (\n{imports}"testing"\n)\n\n'
    zero = "" if kind in ("names", "network") else _GO_ZERO
    broken = 'func TestBroken(t *testing.T) {\n\tt.Error("it is")\n}\n\n' if case == _BESIDE_BROKEN else ""
    text = f"{head}{broken}func TestTotal(t *testing.T) {{\n\t{body}\n}}\n{zero}"
    return {f"{package}/{package}_test.go": text}


def _go_rates(case: str, names: tuple[str, ...]) -> Files:
    package, rows = case.replace("_", ""), "".join(f'"{name}": {n + 1}, ' for n, name in enumerate(names))
    known = f"package {package}\n\nvar rates = map[string]int{{{rows}}}\n\n"
    return {f"{package}/{package}.go": f"{known}func Rate(name string) int {{ return rates[name] }}\n"}


_GO_MOD = "module example.com/shop\n\ngo 1.19\n\nrequire github.com/google/uuid v1.6.0\n"
GO = LanguageProject(
    language="Go",
    programs=("go",),
    base={
        "go.mod": _GO_MOD,
        "cart/id.go": 'package cart\n\nimport "github.com/google/uuid"\n\nvar ID = uuid.Nil\n',
        "cannotrunbefore/cannotrunbefore.go": "package cannotrunbefore\n",
    },
    source=lambda case, value: {
        f"{case.replace('_', '')}/{case.replace('_', '')}.go": _go(case.replace("_", ""), value)
    },
    test=_go_test,
    rates=_go_rates,
    nested={
        "tools/go.mod": "module example.com/tools\n\ngo 1.19\n",
        "tools/price/price.go": _go("price", "[]int{a}[b]"),
    },
    nested_fix={
        "tools/price/price.go": _go("price", "a + b"),
        # A panic ends all tests: the one that passes comes first.
        "tools/price/price_test.go": _go_test("price", "sums")["price/price_test.go"].replace(
            "func TestTotal", _GO_ZERO.lstrip() + "\nfunc TestTotal"
        )[: -len(_GO_ZERO)],
    },
    lost={"go.mod": _GO_MOD + "\nrequire shop.invalid/lost v1.0.0\n"},
    newer={"go.mod": _GO_MOD.replace("1.19", "1.99")},
    lock=("go", "mod", "tidy"),
    fails="example.com/shop/kept::TestTotal/two",
    nested_fails="example.com/tools/price::TestTotal/two",
    timeout_s=8,
)

# --- JavaScript -----------------------------------------------------------------------------------------


def _js_test(case: str, kind: str, source: str | None = None) -> Files:
    body = {
        "sums": 'it("adds", () => assert.equal(code.total(1, 2), 3));',
        "missing": 'it("adds", () => assert.equal(code.total(1, 2), 3));',
        "flaky": (
            f"const chosen = Math.floor(Math.random() * {CHOICES});\n"
            f"for (let i = 0; i < {CHOICES}; i++)\n"
            "    it(`is ${i}`, () => assert.ok(code.total(1, 2) === 3 && i === chosen));"
        ),
        "slow": 'it("waits", () => new Promise((done) => setTimeout(done, 300000)));',
        "network": 'it("asks", async () => { await lookup("shop.invalid"); assert.equal(code.total(1, 2), 3); });',
        "names": 'it("rates", () => assert.equal(code.rate("luxury"), 2));',
    }[kind]
    zero = "" if kind in ("names", "network") else '  it("is zero", () => assert.equal(code.total(0, 0), 0));\n'
    if case == _BESIDE_BROKEN:
        zero = f'  it("is broken", () => assert.fail());\n{zero}'
    text = (
        'import assert from "node:assert";\nimport { lookup } from "node:dns/promises";\n'
        'import { describe, it } from "node:test";\n'
        + ('import "./no_such_module.js";\n' if kind == "missing" else "")
        + f'import * as code from "{source or f"../src/{case}.js"}";\n\n'
        f'describe("total", () => {{\n  {body}\n{zero}}});\n'
    )
    if kind == "sums" and case == "cannot_run_before":
        text = text.replace("import * as code", "import { total } ").replace("code.total", "total")
    return {f"test/{case}.test.js": text}


def _package(name: str, **dependencies: str) -> str:
    facts = {"name": name, "version": "1.0.0", "type": "module", "scripts": {"test": "node --test test/"}}
    return json.dumps({**facts, "dependencies": dependencies})


_USING = 'import isNumber from "is-number";\nexport const total = (a, b) => (isNumber(b) ? {} : 0);\n'
NODE = LanguageProject(
    language="JavaScript",
    programs=("node", "npm"),
    base={
        "package.json": _package("shop", **{"is-number": "7.0.0"}),
        "src/cannot_run_before.js": "export const a = 1;\n",
    },
    source=lambda case, value: {f"src/{case}.js": _USING.format(value)},
    test=_js_test,
    rates=lambda case, names: {
        f"src/{case}.js": f"const rates = {json.dumps({name: n + 1 for n, name in enumerate(names)})};\n"
        "export const rate = (name) => rates[name];\n"
    },
    nested={
        "tools/package.json": _package("tools", **{"is-odd": "3.0.1"}),
        "tools/src/price.js": _USING.format("a.plus(b)")
        .replace("is-number", "is-odd")
        .replace("isNumber(b)", "isNumber(a)"),
    },
    nested_fix={
        "tools/src/price.js": _USING.format("a + b")
        .replace("is-number", "is-odd")
        .replace("isNumber(b)", "isNumber(a)"),
        "tools/test/price.test.js": _js_test("price", "sums")["test/price.test.js"],
    },
    lost={"package.json": _package("shop", **{"is-number": "7.0.0", "nobody-has-this-one-at-all": "1.0.0"})},
    fails="test/kept.test.js::total > adds",
    nested_fails="tools/test/price.test.js::total > adds",
    timeout_s=8,
    lock=("npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit"),
)

# --- Rust -----------------------------------------------------------------------------------------------


def _rust_test(case: str, kind: str) -> Files:
    adds = "#[test]\nfn adds() {\n    assert_eq!(total(1, 2), 3);\n}\n"
    body = {
        "sums": adds,
        "missing": "use shop::no_such_module::nothing;\n\n" + adds.replace("total(1, 2)", "nothing()"),
        "network": (
            '#[test]\nfn asks() {\n    std::net::TcpStream::connect("shop.invalid:80").unwrap();\n'
            "    assert_eq!(total(1, 2), 3);\n}\n"
        ),
        "names": '#[test]\nfn rates() {\n    assert_eq!(rate("luxury"), 2);\n}\n',
    }[kind]
    used = "rate" if kind == "names" else "total"
    zero = (
        "" if kind in ("names", "network") else "\n#[test]\nfn is_zero() {\n    assert_eq!(total(0, 0), 0);\n}\n"
    )
    broken = "\n#[test]\nfn is_broken() {\n    panic!();\n}\n" if case == _BESIDE_BROKEN else ""
    return {f"tests/{case}.rs": f"#![allow(unused)]\nuse shop::{case}::{used};\n\n{body}{zero}{broken}"}


def _crate(name: str, **dependencies: str) -> str:
    rows = "".join(f'{crate} = "{version}"\n' for crate, version in dependencies.items())
    return f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\n{rows}'


_LATER = ("environment_failed", "toolchain_too_old")
_RUST = "pub fn total(a: i32, b: i32) -> i32 {{\n    {}\n}}\n"
RUST = LanguageProject(
    language="Rust",
    programs=("cargo",),
    base={
        "Cargo.toml": _crate("shop", itoa="1"),
        "src/lib.rs": "".join(f"pub mod {case};\n" for case in (*_OF_THE_RUNNER, *_LATER)),
        "src/cannot_run_before.rs": "\n",
        **{f"src/{case}.rs": "\n" for case in _LATER},
    },
    source=lambda case, value: {f"src/{case}.rs": _RUST.format(value)},
    test=_rust_test,
    rates=lambda case, names: {
        f"src/{case}.rs": "pub fn rate(name: &str) -> i32 {\n    match name {\n"
        + "".join(f'        "{name}" => {n + 1},\n' for n, name in enumerate(names))
        + "        _ => 0,\n    }\n}\n"
    },
    nested={
        "tools/Cargo.toml": _crate("tools"),
        "tools/src/lib.rs": "pub mod price;\n",
        "tools/src/price.rs": _RUST.format("[a][b as usize]"),
    },
    nested_fix={
        "tools/src/price.rs": _RUST.format("a + b"),
        "tools/tests/price.rs": _rust_test("price", "sums")["tests/price.rs"].replace("shop::", "tools::"),
    },
    lost={"Cargo.toml": _crate("shop", itoa="1", **{"nobody-has-this-one-at-all": "7"})},
    newer={"Cargo.toml": _crate("shop", itoa="1").replace("edition", 'rust-version = "1.999"\nedition', 1)},
    fails="tests/kept.rs::adds",
    nested_fails="tools/tests/price.rs::adds",
    timeout_s=45,
    lock=("cargo", "generate-lockfile"),
    repeats=2,
    cases=_OF_THE_RUNNER,
)

# --- Java -----------------------------------------------------------------------------------------------

_LOST = "<dependency><groupId>invalid.shop</groupId><artifactId>lost</artifactId><version>1</version></dependency>"
_MAIN, _TEST = "src/main/java/org/example", "src/test/java/org/example"


def _java(name: str, value: str) -> str:
    body = f"    public static int of(int a, int b) {{\n        return {value};\n    }}\n"
    return f"package org.example;\n\npublic class {name} {{\n{body}}}\n"


def java_test(case: str, kind: str, annotation: str = "org.junit.jupiter.api") -> Files:
    """`annotation`: the package of `@Test`."""
    name = _camel(case)
    adds = f"@Test public void adds() {{ check({name}.of(1, 2) == 3); }}"
    body = {
        "sums": adds,
        "missing": adds.replace("of(1, 2)", "noSuchMethod()"),
        "network": "@Test public void asks() throws Exception {\n"
        '        new java.net.URL("http://shop.invalid/").openStream();\n'
        f"        check({name}.of(1, 2) == 3);\n    }}",
        "names": f'@Test public void rates() {{ check({name}.rate("luxury") == 2); }}',
    }[kind]
    zero = "" if kind in ("names", "network") else f"@Test public void isZero() {{ check({name}.of(0, 0) == 0); }}"
    if case == _BESIDE_BROKEN:
        zero += "\n    @Test public void isBroken() { check(false); }"
    head = f"package org.example;\n\nimport {annotation}.Test;\n\npublic class {name}Test {{\n"
    fails = 'if (!holds) throw new AssertionError("no");'
    check = f"    private static void check(boolean holds) {{\n        {fails}\n    }}\n}}\n"
    text = f"{head}    {body}\n    {zero}\n\n{check}"
    return {f"{_TEST}/{name}Test.java": text}


JAVA = LanguageProject(
    language="Java",
    programs=("java", "mvn"),
    base={
        "pom.xml": pom("shop"),
        f"{_MAIN}/First.java": _java("First", "a + b"),
        **{
            f"{_TEST}/AFirstTest.java": java_test("first", "sums")[f"{_TEST}/FirstTest.java"].replace(
                "class FirstTest", "class AFirstTest"
            )
        },
        f"{_MAIN}/CannotRunBefore.java": "package org.example;\n\npublic class CannotRunBefore {}\n",
    },
    source=lambda case, value: {f"{_MAIN}/{_camel(case)}.java": _java(_camel(case), value)},
    test=java_test,
    rates=lambda case, names: {
        f"{_MAIN}/{_camel(case)}.java": f"package org.example;\n\npublic class {_camel(case)} {{\n"
        "    public static int rate(String name) {\n        switch (name) {\n"
        + "".join(f'            case "{name}": return {n + 1};\n' for n, name in enumerate(names))
        + "            default: return 0;\n        }\n    }\n}\n"
    },
    nested={
        "tools/pom.xml": pom("tools"),
        f"tools/{_MAIN}/Price.java": _java("Price", "new int[] {a}[b]"),
        f"tools/{_MAIN}/First.java": _java("First", "a + b"),
        f"tools/{_TEST}/FirstTest.java": java_test("first", "sums")[f"{_TEST}/FirstTest.java"],
    },
    nested_fix={
        f"tools/{_MAIN}/Price.java": _java("Price", "a + b"),
        f"tools/{_TEST}/PriceTest.java": java_test("price", "sums")[f"{_TEST}/PriceTest.java"],
    },
    lost={"pom.xml": pom("shop", _LOST)},
    newer={"pom.xml": pom("shop").replace(">11<", ">99<")},
    fails="org.example.KeptTest::adds",
    nested_fails="org.example.PriceTest::adds",
    timeout_s=45,
    repeats=2,  # a JVM takes seconds
    cases=_OF_THE_RUNNER,
)

_BUILD = """apply plugin: 'java'
repositories { mavenCentral() }
dependencies { testImplementation 'junit:junit:4.13.2' }
test {
    ignoreFailures = true
    exclude '**/*'
}
"""


def gradle_history(folder: Path) -> tuple[Made, dict[str, str]]:
    """A build of two projects; the commits by the finding that each must give. The last: a wrapper's Gradle."""
    made = Made(folder)
    before = JAVA.source("kept", CASES["kept"][0])
    build = {
        "settings.gradle": "include 'core', 'extra'\n",
        "core/build.gradle": _BUILD,
        "extra/build.gradle": _BUILD,
    }
    other = {**JAVA.source("first", "a + b"), **java_test("first", "sums", "org.junit")}
    empty = {f"{_MAIN}/CannotRunBefore.java": JAVA.base[f"{_MAIN}/CannotRunBefore.java"]}
    _write(made, build, _in("extra", other), *(_in("core", files) for files in (before, empty)))
    made.write(".gitignore", "build\n.gradle\n")
    made.commit("Start")
    found: dict[str, str] = {}
    for name in ("kept", "cannot_run_before"):
        _write(
            made, _in("core", JAVA.source(name, CASES[name][1])), _in("core", java_test(name, "sums", "org.junit"))
        )
        found[name] = made.commit(f"Case {name}")
    made.write("gradlew", '#!/bin/sh\necho "Downloading Gradle 0.9" >&2\nexit 1\n').chmod(0o755)
    version = "distributionUrl=https\\://shop.invalid/distributions/gradle-0.9-bin.zip\n"
    made.write("gradle/wrapper/gradle-wrapper.properties", version)
    name = "environment_failed"
    _write(made, _in("core", JAVA.source(name, "a")))
    made.commit("Use a wrapper")
    _write(made, _in("core", JAVA.source(name, "a + b")), _in("core", java_test(name, "sums", "org.junit")))
    found[name] = made.commit(f"Case {name}")
    return made, found


def _in(folder: str, files: Files) -> Files:
    return {f"{folder}/{path}": content for path, content in files.items()}
