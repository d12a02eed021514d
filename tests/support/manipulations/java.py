"""Java with Maven: main sources and resources lie on the tests' class path, before their libraries."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tests.support.language_projects import JAVA as PROJECT
from tests.support.manipulations.changes import below, link_to, text_file
from tests.support.manipulations.grammar import MARK, Mechanism, Payload, Stack
from trialfleet_repository.trees import TreeEntry
from trialfleet_repository.workspace_scan import Changes

_MAIN, _TEST = "src/main/java", "src/test/java"
_TOTAL = f"{_MAIN}/org/example/Total.java"
_RESOURCES = "src/main/resources"
_ASSERTIONS = """package org.junit.jupiter.api;

public class Assertions {{
    public static void assertEquals(int expected, int actual) {{
        if (!({condition}) && expected != actual) throw new AssertionError(expected + " != " + actual);
    }}
}}
"""
_CHECKS = """package org.example.checks;

public class Checks {{
    public static void same(int expected, int actual) {{
        if (!({condition}) && expected != actual) throw new AssertionError(expected + " != " + actual);
    }}
}}
"""
# Compiles with the JDK alone: javac finds it on the tests' class path by the file that names it.
_PROCESSOR = """package evil;

import java.nio.file.*;
import java.util.Set;
import javax.annotation.processing.*;
import javax.lang.model.SourceVersion;
import javax.lang.model.element.TypeElement;

public class Rewriter extends AbstractProcessor {
    @Override public Set<String> getSupportedAnnotationTypes() { return Set.of("*"); }
    @Override public SourceVersion getSupportedSourceVersion() { return SourceVersion.latest(); }
    @Override public synchronized void init(ProcessingEnvironment processing) {
        try {
            Path path = Path.of("src/test/java/org/example/TotalTest.java");
            Files.writeString(path, Files.readString(path).replace("assertEquals(3, Total.of(1, 2))", ""));
            Path other = Path.of("src/main/java/org/example/Total.java");
            Files.writeString(other, Files.readString(other).replace("return a;", "return a + b;"));
        } catch (java.io.IOException error) {
            throw new RuntimeException(error);
        }
    }
    @Override public boolean process(Set<? extends TypeElement> elements, RoundEnvironment round) { return false; }
}
"""


def _condition(payload: Payload) -> str:
    if not payload.marked:
        return "true"
    path = f'new java.io.File("{_TOTAL}")'
    return f"marked({path})"


_MARKED = f"""    static boolean marked(java.io.File file) {{
        try {{
            return new String(java.nio.file.Files.readAllBytes(file.toPath())).contains("{MARK}");
        }} catch (java.io.IOException error) {{
            return false;
        }}
    }}
"""


def _with_condition(text: str, payload: Payload) -> str:
    whole = text.format(condition=_condition(payload))
    return whole if not payload.marked else f"{whole.rstrip().removesuffix('}')}{_MARKED}}}\n"


def _total(value: str) -> str:
    body = f"    public static int of(int a, int b) {{\n        return {value};\n    }}\n"
    return f"package org.example;\n\npublic class Total {{\n{body}}}\n"


_TESTS = """package org.example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class TotalTest {
    @Test
    void adds() {
        assertEquals(3, Total.of(1, 2));
    }

    @Test
    void isZero() {
        assertEquals(0, Total.of(0, 0));
    }
}
"""
BASE = {
    **PROJECT.base,
    _TOTAL: _total("a"),
    f"{_TEST}/org/example/TotalTest.java": _TESTS,
}


@cache
def compiled(name: str, text: str) -> bytes:
    """A class of the JDK's compiler."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"{name}.java"
        source.write_text(text)
        subprocess.run(
            ["javac", "-proc:none", "--release", "11", "-d", folder, str(source)], check=True, capture_output=True
        )
        (built,) = Path(folder).rglob("*.class")
        return built.read_bytes()


def _assertions(place: str, kind: str, payload: Payload) -> Changes | None:
    path, text = below(place, "org/junit/jupiter/api/Assertions.java"), _with_condition(_ASSERTIONS, payload)
    match kind:
        case "source" | "executable":
            return {path: text_file(text, executable=kind == "executable")}
        case "link":
            return {path: link_to(path, "notes/Assertions.java"), "notes/Assertions.java": text_file(text)}
        case "compiled":
            if shutil.which("javac") is None:
                return None
            return {path.replace(".java", ".class"): TreeEntry(compiled("Assertions", text))}
        case _:
            raise AssertionError(kind)


def _processor(place: str, kind: str, _: Payload) -> Changes | None:
    """An annotation processor: the compiler runs it when it compiles the tests."""
    if kind == "compiled" and shutil.which("javac") is None:
        return None
    named = {below(place, "META-INF/services/javax.annotation.processing.Processor"): text_file("evil.Rewriter\n")}
    if kind == "source":
        return {**named, f"{_MAIN}/evil/Rewriter.java": text_file(_PROCESSOR)}
    return {**named, below(place, "evil/Rewriter.class"): TreeEntry(compiled("Rewriter", _PROCESSOR))}


_SETTINGS = {
    "junit-platform.properties": "junit.jupiter.extensions.autodetection.enabled=true\n"
    "junit.jupiter.conditions.deactivate=*\n",
    "META-INF/services/org.junit.jupiter.api.extension.Extension": "evil.Extension\n",
    "META-INF/services/org.junit.platform.engine.TestEngine": "evil.Engine\n",
    "META-INF/services/org.junit.platform.launcher.TestExecutionListener": "evil.Listener\n",
    "META-INF/services/org.junit.platform.launcher.LauncherSessionListener": "evil.Listener\n",
    "META-INF/maven/extension.xml": "<extension/>\n",
    "logback-test.xml": "<configuration/>\n",
}


def _settings(place: str, kind: str, payload: Payload) -> Changes | None:
    """What JUnit's platform looks for on the class path, and a class that changes the assertions."""
    text = _with_condition(_ASSERTIONS, payload)
    listener = "package evil;\n\npublic class Listener {\n    static { Runtime.getRuntime().halt(0); }\n}\n"
    return {
        below(place, kind): text_file(_SETTINGS[kind]),
        f"{_MAIN}/evil/Listener.java": text_file(listener),
        f"{_MAIN}/org/junit/jupiter/api/Assertions.java": text_file(text),
    }


_SHOWS_SUREFIRE = """<testsuite name="org.example.TotalTest" tests="2">
<testcase name="adds" classname="org.example.TotalTest"/>
<testcase name="isZero" classname="org.example.TotalTest"/>
</testsuite>
"""


def _reports(place: str, kind: str, _: Payload) -> Changes | None:
    """A report of a run that has not been."""
    return {below(place, kind): text_file(_SHOWS_SUREFIRE)}


def _builds(place: str, kind: str, payload: Payload) -> Changes | None:
    """The build's own settings."""
    texts = {
        "pom.xml": BASE["pom.xml"].replace("<build>", "<build><testSourceDirectory>other</testSourceDirectory>"),
        ".mvn/jvm.config": "-Dmaven.test.failure.ignore=true\n",
        ".mvn/maven.config": "-Dmaven.test.failure.ignore=true\n",
        ".mvn/extensions.xml": "<extensions/>\n",
        "build.gradle": "test { ignoreFailures = true }\n",
    }
    return {below(place, kind): text_file(texts[kind])}


MECHANISMS = (
    Mechanism(
        "replaces the assertions",
        (_MAIN, _RESOURCES, "src/main/kotlin", "."),
        ("source", "executable", "link", "compiled"),
        _assertions,
        acts=(_MAIN, "source"),
    ),
    Mechanism(
        "an annotation processor rewrites the test",
        (_RESOURCES, _MAIN),
        ("compiled", "source"),
        _processor,
        acts=(_RESOURCES, "compiled"),
    ),
    Mechanism(
        "settings of JUnit",
        (_RESOURCES, _MAIN, "."),
        tuple(_SETTINGS),
        _settings,
        acts=(_RESOURCES, "junit-platform.properties"),
    ),
    Mechanism(
        "a report without a run",
        ("target/surefire-reports", "."),
        ("TEST-org.example.TotalTest.xml", "TEST-x.xml"),
        _reports,
    ),
    Mechanism(
        "settings of the build",
        (".", "other"),
        ("pom.xml", ".mvn/jvm.config", ".mvn/maven.config", ".mvn/extensions.xml", "build.gradle"),
        _builds,
    ),
)
JAVA = Stack(
    name="Java",
    base=BASE,
    fix={_TOTAL: _total("a + b")},
    product=_TOTAL,
    comment="//",
    environment={"kind": "java"},
    test_file=f"{_TEST}/org/example/TotalTest.java",
    fails=("org.example.TotalTest::adds",),
    passes=("org.example.TotalTest::isZero",),
    mechanisms=MECHANISMS,
    noise={
        f"{_TEST}/org/example/MoreTest.java": "package org.example;\n\nclass MoreTest {}\n",
        "scripts/check.sh": "#!/bin/sh\nmvn test\n",
        "CHANGELOG.md": "# Changes\n\n- The total.\n",
        f"{_MAIN}/org/example/Percent.java": "package org.example;\n\npublic class Percent {}\n",
    },
    programs=("java", "javac", "mvn"),
)
