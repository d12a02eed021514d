"""A small repository of each language, made in the test: its package manager writes its lock."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.support.git_repositories import Made


@dataclass(frozen=True)
class Project:
    """A repository of one language with a bug. `kept`: files of the commit that fixes it, before and after; its
    test shows the bug. `lock`: what writes the lock."""

    language: str
    program: str
    base: Mapping[str, str]
    kept: tuple[Mapping[str, str], Mapping[str, str]]
    fails: str
    lock: tuple[str, ...] = ()
    wrong: str = ""  # a path that the `command` agent writes


_GO_TEST = """package {package}

import "testing"

func Test{name}(t *testing.T) {{
	t.Run("two", func(t *testing.T) {{
		if {name}(1, 2) != 3 {{
			t.Error("not three")
		}}
	}})
}}

func TestZero(t *testing.T) {{
	if {name}(0, 0) != 0 {{
		t.Error("not zero")
	}}
}}
"""
_GO = "package {package}\n\nfunc {name}(a, b int) int {{ return {value} }}\n"
GO = Project(
    language="Go",
    program="go",
    base={
        "go.mod": "module example.com/shop\n\ngo 1.19\n\nrequire github.com/google/uuid v1.6.0\n",
        "cart/id.go": 'package cart\n\nimport "github.com/google/uuid"\n\nvar ID = uuid.Nil\n',
    },
    kept=(
        {"cart/total.go": _GO.format(package="cart", name="Total", value="a")},
        {
            "cart/total.go": _GO.format(package="cart", name="Total", value="a + b"),
            "cart/total_test.go": _GO_TEST.format(package="cart", name="Total"),
        },
    ),
    fails="example.com/shop/cart::TestTotal/two",
    lock=("go", "mod", "tidy"),
    wrong="cart/total.go",
)

_NODE_TEST = """import assert from "node:assert";
import {{ describe, it }} from "node:test";
import {{ {name} }} from "../src/{file}.js";

describe("{name}", () => {{
  it("adds", () => assert.equal({name}(1, 2), 3));
  it("is zero", () => assert.equal({name}(0, 0), 0));
}});
"""
NODE = Project(
    language="JavaScript",
    program="node",
    base={
        "package.json": json.dumps(
            {
                "name": "shop",
                "version": "1.0.0",
                "type": "module",
                "scripts": {"test": "node --test test/"},
                "dependencies": {"is-number": "7.0.0"},
            }
        )
    },
    kept=(
        {"src/total.js": "export const total = (a, b) => a;\n"},
        {
            "src/total.js": 'import isNumber from "is-number";\n'
            "export const total = (a, b) => (isNumber(b) ? a + b : a);\n",
            "test/total.test.js": _NODE_TEST.format(name="total", file="total"),
        },
    ),
    fails="test/total.test.js::total > adds",
    lock=("npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit"),
    wrong="src/total.js",
)

_CARGO = """[package]
name = "shop"
version = "0.1.0"
edition = "2021"

[dependencies]
itoa = "1"
"""
_RUST = "pub fn {name}(a: i32, b: i32) -> i32 {{\n    {value}\n}}\n"
_RUST_TEST = """use shop::{name}::{name};

#[test]
fn adds() {{
    assert_eq!({name}(1, 2), 3);
}}

#[test]
fn is_zero() {{
    assert_eq!({name}(0, 0), 0);
}}
"""
RUST = Project(
    language="Rust",
    program="cargo",
    base={"Cargo.toml": _CARGO, "src/lib.rs": "pub mod total;\n"},
    kept=(
        {"src/total.rs": _RUST.format(name="total", value="a - b + b")},
        {
            "src/total.rs": _RUST.format(name="total", value="a + b"),
            "tests/total.rs": _RUST_TEST.format(name="total"),
        },
    ),
    fails="tests/total.rs::adds",
    lock=("cargo", "generate-lockfile"),
    wrong="src/total.rs",
)


def pom(name: str, more: str = "") -> str:
    return f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.example</groupId><artifactId>{name}</artifactId><version>1</version>
  <properties>
    <maven.compiler.source>11</maven.compiler.source><maven.compiler.target>11</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>{more}<dependency>
    <groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter</artifactId><version>5.10.2</version>
    <scope>test</scope>
  </dependency></dependencies>
  <build><plugins><plugin>
    <artifactId>maven-surefire-plugin</artifactId><version>3.2.5</version>
    <configuration><reportNameSuffix>renamed</reportNameSuffix></configuration>
  </plugin></plugins></build>
</project>
"""


_JAVA = """package org.example;

public class {name} {{
    public static int of(int a, int b) {{
        return {value};
    }}
}}
"""
_JAVA_TEST = """package org.example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class {name}Test {{
    @Test
    void adds() {{
        assertEquals(3, {name}.of(1, 2));
    }}

    @Test
    void isZero() {{
        assertEquals(0, {name}.of(0, 0));
    }}
}}
"""
_MAIN, _TEST = "src/main/java/org/example/", "src/test/java/org/example/"
JAVA = Project(
    language="Java",
    program="mvn",
    base={
        "pom.xml": pom("shop"),
        f"{_MAIN}First.java": _JAVA.format(name="First", value="a + b"),
        f"{_TEST}FirstTest.java": _JAVA_TEST.format(name="First"),
    },
    kept=(
        {f"{_MAIN}Total.java": _JAVA.format(name="Total", value="a")},
        {
            f"{_MAIN}Total.java": _JAVA.format(name="Total", value="a + b"),
            f"{_TEST}TotalTest.java": _JAVA_TEST.format(name="Total"),
        },
    ),
    fails="org.example.TotalTest::adds",
    wrong=f"{_MAIN}Total.java",
)


def history(project: Project, folder: Path) -> tuple[Made, str]:
    """The repository, and the commit of the fix."""
    made = Made(folder)
    before, after = project.kept
    for name, content in {**project.base, **before}.items():
        made.write(name, content)
    if project.lock:
        subprocess.run(project.lock, cwd=folder, check=True, capture_output=True)
    made.write(".gitignore", "node_modules\ntarget\n")
    made.commit("Start")
    for name, content in after.items():
        made.write(name, content)
    return made, made.commit("Fix the bug")


def task_file(project: Project, folder: Path) -> Path:
    """The repository and a file of one task, whose fix is the kept commit; not validated yet. The task's id is the
    language in lower case."""
    name = project.language.lower()
    made, fix = history(project, folder / name)
    before, after = project.kept
    (test,) = set(after) - set(before)
    task = {
        "id": name,
        "pre_fix_commit": made.git("rev-parse", f"{fix}^"),
        "fix_commit": fix,
        "test_file": test,
        "prompt_source": "failing_test",
        "anchor": {"path": project.wrong},
    }
    repo = {"url": f"./{name}", "language": project.language, "environment": {"kind": KINDS[project.language]}}
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump({"repo": repo, "tasks": [task]}))
    return file


KINDS = {"Go": "go", "JavaScript": "node", "Rust": "rust", "Java": "java"}


def main(folder: Path) -> None:
    """Task files for `trialfleet image build --for`: of the languages that tests of pods need."""
    for project in (GO, NODE):
        print(task_file(project, folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
