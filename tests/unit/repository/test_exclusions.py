"""What could decide the tests by itself stays behind; the agent's real work travels."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from trialfleet_agents.context_files import is_context_file
from trialfleet_repository.environments.provided import Provided, provided
from trialfleet_repository.excluded_paths import Exclusions

GIVEN = Exclusions(
    baseline=[
        "src/pkg/a.py",
        "tests/test_a.py",
        "tests/conftest.py",
        "test/sanity/x.py",
        "src/pkg/native.so",
        "pyproject.toml",
    ],
    test_files=["tests/test_a.py"],
    pythonpath=[".", "src"],
    travelling=["lib/plugins/test/files.py"],
    is_context=is_context_file,
)

OTHER_HARNESSES = """
    cart/cart_test.go web/src/a.spec.ts web/src/__tests__/a.ts core/src/test/java/ATest.java cart/testdata/a
    package.json web/package.json Package.JSON package-lock.json pnpm-lock.yaml pnpm-workspace.yaml yarn.lock
    .npmrc .yarnrc.yml bunfig.toml tsconfig.json tsconfig.build.json vitest.config.ts vitest.config.unit.mts
    vite.config.js vitest.workspace.ts jest.config.js jest.setup.ts .mocharc.yml .mocharc babel.config.cjs
    karma.conf.js karma.config.js Cargo.toml crates/a/Cargo.toml Cargo.lock build.rs crates/a/build.rs
    rust-toolchain rust-toolchain.toml .cargo/config.toml go.mod go.sum go.work pom.xml core/pom.xml
    build.gradle build.gradle.kts settings.gradle.kts gradle.properties .mvn/maven.config .mvn/wrapper/x.jar
    buildSrc/A.kt node_modules/a/index.js web/node_modules/a.js target/classes/A.class
    core/target/surefire-reports/a.xml target/debug/a target/release/a target/.rustc_info.json
    core/build/test-results/test/TEST-a.xml build/classes/java/main/A.class .gradle/8.5/checksums/a
    target/CACHEDIR.TAG
"""
OTHER_SOURCE = """
    src/cart.go web/src/a.ts web/src/vite.ts web/src/jest.ts src/build.rs src/commands/build.rs src/target/a.rs
    src/main/java/org/x/target/Cart.java web/tsconfig.md data/packages.json src/package.ts go.md target/cart.py
    src/gradle.ts
"""


@pytest.mark.parametrize(
    "path",
    [
        "tests/test_a.py",
        "tests/test_a/__init__.py",  # a package is found before a module
        "tests/test_a.so",
        "tests/test_a.cpython-311-x86_64-linux-gnu.so",
        "tests/__init__.py",
        "tests/test_b.py",
        "tests/utils.py",
        "tests/data/test_a.json",
        "tests.py",
        "src/tests.py",
        "test/sanity/y.py",
        "lib/plugins/test/other.py",
        "src/pkg/test_inner.py",
        "tests/conftest.py",
        "conftest.py",
        "src/pkg/conftest.py",
        "pytest.ini",
        "pyproject.toml",
        "setup.cfg",
        "tox.ini",
        "sitecustomize.py",
        "src/usercustomize.py",
        "pytest.py",
        "pytest/__init__.py",
        "src/_pytest/config.py",
        "json.py",
        "src/unittest/__init__.py",
        "x.dist-info/entry_points.txt",
        "src/pkg.egg-info/entry_points.txt",
        "AGENTS.md",
        "src/CLAUDE.md",
        "src/pkg/__pycache__/a.cpython-311.pyc",
        "src/pkg/b.so",
        "hook.pth",
        *OTHER_HARNESSES.split(),
    ],
)
def test_stays_behind(path: str) -> None:
    assert GIVEN.excludes(path)


@pytest.mark.parametrize(
    "path",
    [
        "src/pkg/a.py",
        "src/pkg/json.py",  # inside a package it hides nothing
        "src/pkg/new/deep.py",
        "lib/plugins/test/files.py",  # the fix changes it
        "src/pkg/testing.py",
        "src/pkg/contest.py",
        "src/pkg/native.so",
        "docs/index.rst",
        *OTHER_SOURCE.split(),
    ],
)
def test_travels(path: str) -> None:
    assert not GIVEN.excludes(path)


METADATA = "Metadata-Version: 2.1\n"
PLUGIN = "try:\n    from faker.proxy import Faker\nexcept ImportError:\n    import mimesis as Faker\n"


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Pygments, a namespace package, a plugin that uses what is there, and a library that does the same."""
    packages = tmp_path / "lib/python3.11/site-packages"
    for path, text in {
        "pygments/__init__.py": "",
        "pygments/lexers.py": "",
        "google/rpc/__init__.py": "",
        "_virtualenv.py": "",
        "packaging/__init__.py": "",
        "py.py": "",
        "native.cpython-311-x86_64-linux-gnu.so": "",
        "plugin.py": PLUGIN,
        "plugin-1.dist-info/METADATA": f"{METADATA}Name: plugin\nVersion: 1\nRequires-Dist: its.helper>=1\n",
        "plugin-1.dist-info/entry_points.txt": "[pytest11]\nplugin = plugin\n",
        "plugin-1.dist-info/RECORD": "plugin.py,,\n",
        "helper.py": "import importlib\nimportlib.import_module('colorama')\n",
        "its_helper-1.dist-info/METADATA": f"{METADATA}Name: Its-Helper\nVersion: 1\n",
        "its_helper-1.dist-info/RECORD": "helper.py,,\n",
        "library.py": "import simplejson\n'import notes'\n",
        "library-1.dist-info/METADATA": f"{METADATA}Name: library\nVersion: 1\n",
        "library-1.dist-info/RECORD": "library.py,,\n",
    }.items():
        (packages / path).parent.mkdir(parents=True, exist_ok=True)
        (packages / path).write_text(text)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(tmp_path / "bin/python3.11")
    return tmp_path


def in_environment(environment: Path, *baseline: str) -> Exclusions:
    given = ["setup.py", "src/pkg/__init__.py", "helpers/tools.py", "packaging/rpm/pkg.spec", *baseline]
    return Exclusions(
        given,
        ["tests/test_a.py"],
        [".", "src"],
        provided=lambda: provided(environment),
        is_context=is_context_file,
    )


@pytest.mark.parametrize(
    "path",
    [
        "pygments/__init__.py",
        "pygments/lexers.py",
        "pygments.py",
        "pygments",  # a link to a package
        "src/pygments/__init__.py",
        "google/__init__.py",
        "google.py",
        "google/rpc/__init__.py",
        "google/rpc.py",
        "src/google/rpc/status.py",
        "native.py",
        "_virtualenv.py",  # imported before any code of ours
        "packaging/__init__.py",  # a folder of the project's that was no package
        "json/__init__.py",
        "typing.py",
        "sitecustomize/__init__.py",
        "src/usercustomize/__init__.py",
        "faker/proxy.py",  # imported by a plugin, if it is there
        "mimesis.py",
        "colorama.py",  # by what a plugin requires
        "Evil-1.DIST-INFO/entry_points.txt",
        "src/evil.Egg-Info/entry_points.txt",
        ".coveragerc",
    ],
)
def test_nothing_new_takes_the_place_of_what_the_environment_holds(environment: Path, path: str) -> None:
    assert in_environment(environment).excludes(path)


@pytest.mark.parametrize(
    "path",
    [
        "src/pkg/json.py",
        "src/pkg/pygments/__init__.py",
        "google/cloud/__init__.py",  # another part of the namespace
        "packaging/rpm/new.spec",
        "packaging/rpm/release.py",  # below a folder that is no package: the environment's is found
        "templates/email/welcome.html",
        "pygments.cfg",
        "simplejson.py",  # imported by nothing that runs before or besides the code under test
        "notes.py",
        "helpers/pygments.py",  # as far as nobody puts helpers/ on the path: see may_hide
        "newmodule.py",
        "src/newpackage/json.py",
    ],
)
def test_new_modules_of_other_names_travel(environment: Path, path: str) -> None:
    assert not in_environment(environment).excludes(path)


@pytest.mark.parametrize("root", ["", "src/"])
def test_a_project_that_the_test_runner_needs_is_changed_as_any_other(environment: Path, root: str) -> None:
    project = in_environment(environment, f"{root}pygments/__init__.py", f"{root}py.py")
    for path in (
        "pygments/__init__.py",
        "pygments/new.py",
        "pygments/json/__init__.py",
        "py.py",
        "py/__init__.py",
    ):
        assert not project.excludes(f"{root}{path}")
    assert project.excludes("google/rpc/__init__.py")
    assert root == "" or project.excludes("pygments/__init__.py"), "not where the project's own lies"


@pytest.mark.parametrize(
    ("path", "may"),
    [
        ("helpers/pygments.py", True),
        ("helpers/google/rpc/__init__.py", True),
        ("helpers/faker.py", True),
        ("helpers/tools.py", False),  # was there
        ("helpers/more.py", False),
        ("src/pkg/pygments.py", False),  # src/pkg is a package
    ],
)
def test_folders_that_may_become_import_roots_are_watched(environment: Path, path: str, may: bool) -> None:
    assert in_environment(environment).may_hide(path) is may


def test_a_built_environment_provides_what_its_interpreter_has(environment: Path) -> None:
    found: Provided = provided(environment)
    assert found.has(["json"])
    assert not found.has(["json", "tools"])
    assert not found.has(["not a name"])


def test_thousands_of_new_modules_are_looked_up_at_once(tmp_path: Path) -> None:
    """An agent that leaves 2,000 files at the root kept its runner at work for more than a minute."""
    source = tmp_path / "runner.py"
    source.write_text(
        "import json\nname = 'optional'\n__import__('optional')\n" + "value = some.attribute(1)\n" * 60_000
    )
    provided = Provided({}, lambda: iter([source]))
    began = time.process_time()
    found = [
        name for name in ("optional", "json", "name", *(f"f{n}" for n in range(2_000))) if provided.has((name,))
    ]
    assert found == ["optional", "json"]
    assert time.process_time() - began < 5
