"""A repository of two packages below the root, in four languages: the bug is in one, its test in the other."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.git_repositories import Made
from tests.support.language_histories import java_test

Files = Mapping[str, str]


@dataclass(frozen=True)
class LanguageWorkspace:
    """`base`: files of the first commit, `fix`: those of the second. `fails`: the test that passes after the fix.
    `lock`: what writes the lock, where one is needed. `directory`: where the tests are called, None for the
    root."""

    language: str
    programs: tuple[str, ...]
    base: Files
    fix: Files
    fails: str
    lock: tuple[str, ...] = ()
    directory: str | None = None


_GO_TEST = """package cart

import "testing"

func TestTotal(t *testing.T) {
	if Total(1, 2) != 3 {
		t.Error("not three")
	}
}

func TestZero(t *testing.T) {
	if Total(0, 0) != 0 {
		t.Error("not zero")
	}
}
"""
_GO_MONEY = "package money\n\nfunc Add(a, b int) int {{ return {} }}\n"
GO = LanguageWorkspace(
    language="Go",
    programs=("go",),
    base={
        "go.work": "go 1.19\n\nuse (\n\t./cart\n\t./money\n)\n",
        "money/go.mod": "module example.com/money\n\ngo 1.19\n",
        "money/money.go": _GO_MONEY.format("a - b + b"),
        "cart/go.mod": "module example.com/cart\n\ngo 1.19\n",
        "cart/cart.go": 'package cart\n\nimport "example.com/money"\n\n'
        "func Total(a, b int) int { return money.Add(a, b) }\n",
    },
    fix={"money/money.go": _GO_MONEY.format("a + b"), "cart/cart_test.go": _GO_TEST},
    fails="example.com/cart::TestTotal",
    directory="cart",
)

_RUST_MONEY = "pub fn add(a: i32, b: i32) -> i32 {{\n    {}\n}}\n"
# A crate without a library: its tests call its program.
_RUST_TEST = """use std::process::Command;

fn total(a: &str, b: &str) -> String {
    let ended = Command::new(env!("CARGO_BIN_EXE_shop-cart")).args([a, b]).output().unwrap();
    String::from_utf8(ended.stdout).unwrap()
}

#[test]
fn adds() {
    assert_eq!(total("1", "2"), "3");
}

#[test]
fn is_zero() {
    assert_eq!(total("0", "0"), "0");
}
"""
_RUST_PROGRAM = """fn main() {
    let given: Vec<i32> = std::env::args().skip(1).map(|word| word.parse().unwrap()).collect();
    print!("{}", shop_money::add(given[0], given[1]));
}
"""


def _crate(name: str, dependencies: str) -> str:
    return (
        f'[package]\nname = "shop-{name}"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\n{dependencies}\n'
    )


RUST = LanguageWorkspace(
    language="Rust",
    programs=("cargo",),
    base={
        "Cargo.toml": '[workspace]\nresolver = "2"\nmembers = ["crates/*"]\n',
        "crates/money/Cargo.toml": _crate("money", 'itoa = "1"'),
        "crates/money/src/lib.rs": _RUST_MONEY.format("a - b + b"),
        "crates/cart/Cargo.toml": _crate("cart", 'shop-money = { path = "../money" }'),
        "crates/cart/src/main.rs": _RUST_PROGRAM,
    },
    fix={"crates/money/src/lib.rs": _RUST_MONEY.format("a + b"), "crates/cart/tests/total.rs": _RUST_TEST},
    fails="crates/cart/tests/total.rs::adds",
    lock=("cargo", "generate-lockfile"),
)

_PARENT = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.example</groupId><artifactId>shop</artifactId><version>1</version><packaging>pom</packaging>
  <modules><module>money</module><module>cart</module></modules>
  <properties>
    <maven.compiler.source>11</maven.compiler.source><maven.compiler.target>11</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies><dependency>
    <groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter</artifactId><version>5.10.2</version>
    <scope>test</scope>
  </dependency></dependencies>
  <build><plugins><plugin>
    <artifactId>maven-surefire-plugin</artifactId><version>3.2.5</version>
  </plugin></plugins></build>
</project>
"""
_MAIN, _TEST = "src/main/java/org/example", "src/test/java/org/example"


def _module(name: str, dependencies: str = "") -> str:
    parent = "<groupId>org.example</groupId><artifactId>shop</artifactId><version>1</version>"
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        f"<parent>{parent}</parent><artifactId>{name}</artifactId>{dependencies}</project>\n"
    )


def _java(name: str, value: str) -> str:
    body = f"    public static int of(int a, int b) {{\n        return {value};\n    }}\n"
    return f"package org.example;\n\npublic class {name} {{\n{body}}}\n"


_ON_MONEY = (
    "<dependencies><dependency><groupId>org.example</groupId><artifactId>money</artifactId><version>1</version>"
    "</dependency></dependencies>"
)
JAVA = LanguageWorkspace(
    language="Java",
    programs=("java", "mvn"),
    base={
        "pom.xml": _PARENT,
        "money/pom.xml": _module("money"),
        f"money/{_MAIN}/First.java": _java("First", "a + b"),
        f"money/{_MAIN}/Money.java": _java("Money", "a - b + b"),
        f"money/{_TEST}/FirstTest.java": java_test("first", "sums")[f"{_TEST}/FirstTest.java"],
        "cart/pom.xml": _module("cart", _ON_MONEY),
        f"cart/{_MAIN}/Total.java": _java("Total", "Money.of(a, b)"),
    },
    fix={
        f"money/{_MAIN}/Money.java": _java("Money", "a + b"),
        f"cart/{_TEST}/TotalTest.java": java_test("total", "sums")[f"{_TEST}/TotalTest.java"],
    },
    fails="org.example.TotalTest::adds",
)

_PYTHON_MONEY = "def add(a, b):\n    return {}\n"
_PYTHON_TEST = """from shop_cart import total

def test_adds():
    assert total(1, 2) == 3

def test_zero():
    assert total(0, 0) == 0
"""


def _distribution(name: str, dependencies: str) -> str:
    return f'[project]\nname = "shop-{name}"\nversion = "1"\ndependencies = [{dependencies}]\n'


PYTHON = LanguageWorkspace(
    language="Python",
    programs=(),
    base={
        "pyproject.toml": '[tool.uv.workspace]\nmembers = ["packages/*"]\n',
        "packages/money/pyproject.toml": _distribution("money", '"iniconfig"'),
        "packages/money/src/shop_money/__init__.py": "import iniconfig\n" + _PYTHON_MONEY.format("a - b + b"),
        "packages/cart/pyproject.toml": _distribution("cart", '"shop-money"'),
        "packages/cart/src/shop_cart/__init__.py": "import shop_money\n\ndef total(a, b):\n"
        "    return shop_money.add(a, b)\n",
    },
    fix={
        "packages/money/src/shop_money/__init__.py": "import iniconfig\n" + _PYTHON_MONEY.format("a + b"),
        "packages/cart/tests/test_total.py": _PYTHON_TEST,
    },
    fails="packages/cart/tests/test_total.py::test_adds",
)


def history(workspace: LanguageWorkspace, folder: Path) -> tuple[Made, str]:
    """The repository, and the commit of the fix."""
    made = Made(folder)
    for name, content in workspace.base.items():
        made.write(name, content)
    if workspace.lock:
        subprocess.run(workspace.lock, cwd=folder, check=True, capture_output=True)
    made.write(".gitignore", "target\n")
    made.commit("Start")
    for name, content in workspace.fix.items():
        made.write(name, content)
    return made, made.commit("Add what is to be added")
