"""The images as a kubelet runs them: under `restricted`, as 65532, with a root that nobody may write to."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.cluster import CHECKOUT, applied_base, done, ended, kubectl, restricted_pod
from trialfleet_agents.pinned import pinned
from trialfleet_controller.images.environments import image_environments
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments.environment import RECIPE_CHARS, recipe

pytestmark = [pytest.mark.cluster, pytest.mark.needs("cluster", "image", "controller-image")]

CLAUDE = pinned()["claude-code"].version
CONTROLLER_BYTES = 700e6  # it is loaded into every node of a cluster that has no registry
TOOLCHAINS = {"cc", "gcc", "node", "npm"}  # of the tasks in Go and JavaScript that the image is built for

# Runs inside, without any package: what the image is made of.
LOOK = r"""
import json, os, pathlib, re, shutil, subprocess, sys
def said(*argv):
    ran = subprocess.run(argv, capture_output=True, text=True)
    return (ran.stdout + ran.stderr).strip()
def writable(folder):
    try:
        pathlib.Path(folder, "x").write_text("x")
        return True
    except OSError:
        return False
baked = pathlib.Path(os.environ.get("TRIALFLEET_BAKED", "/absent"))
environments = sorted(p.name for p in baked.iterdir()) if baked.is_dir() else []
caches = ("/var/lib/apt/lists", "/var/cache/apt", "/build", "/tmp")
leftovers = [f"{at}/{f}" for c in caches for at, _, files in os.walk(c) for f in files if f != "x"]
def size():  # bytes of the root's file system, whose files may name the devices of the layers below
    total = 0
    for at, folders, files in os.walk("/"):
        folders[:] = [f for f in folders if os.lstat(f"{at}/{f}").st_dev == os.lstat("/").st_dev]
        total += sum(os.lstat(f"{at}/{f}").st_size for f in files)
    return total
sources = r"^# code object from (/\S+\.py)$"  # said by -v of a module that had to be compiled
print(json.dumps({
    "uid": [os.getuid(), os.getgid()],
    "home": os.path.expanduser("~"),
    "prefix": sys.prefix,
    "writable": [f for f in ("/", "/opt", sys.prefix, "/usr/local", str(baked), "/tmp") if writable(f)],
    "tools": [t for t in ("cc", "gcc", "g++", "make", "npm", "node", "uv", "pip") if shutil.which(t)],
    "bytes": size(),
    "git": said("git", "--version") if shutil.which("git") else None,
    "version": said(f"{sys.prefix}/bin/trialfleet", "--version"),
    "leftovers": leftovers,
    "histories": [str(p) for p in pathlib.Path("/opt").rglob(".git")],
    "packages": sorted(p.name for p in pathlib.Path(sys.prefix).glob("lib/python3*/site-packages/trialfleet_*")),
    "environments": environments,
    "pytest": {e: said(str(baked / e / "bin/python"), "-c", "import pytest, sys; print(sys.prefix)")
               for e in environments if (baked / e / "pyvenv.cfg").exists()},
    "claude": said("claude", "--version") if shutil.which("claude") else None,
    "compiled": re.findall(sources, said(sys.executable, "-v", "-c", sys.argv[1]), re.M),
    "imported": said(sys.executable, "-c", sys.argv[1] + "; print('ok')"),
}))
"""


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with applied_base(tmp_path_factory.mktemp("overlay"), "image") as name:
        yield name


def output(namespace: str, name: str, image: str, *argv: str) -> str:
    """What a pod of the image printed, after it succeeded."""
    done(kubectl("-n", namespace, "create", "-f", "-", stdin=restricted_pod(name, image, *argv)))
    phase = ended(namespace, name)
    said = kubectl("-n", namespace, "logs", name).stdout
    assert phase == "Succeeded", said
    return said


def look(namespace: str, name: str, image: str, imports: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        output(namespace, name, image, "/opt/trialfleet/bin/python", "-c", LOOK, f"import {imports}")
    )
    return found


@pytest.fixture(scope="module")
def runner(namespace: str) -> dict[str, Any]:
    return look(namespace, "runner", os.environ["TRIALFLEET_TEST_IMAGE"], "trialfleet_runner.pod.run")


@pytest.fixture(scope="module")
def controller(namespace: str) -> dict[str, Any]:
    image = os.environ["TRIALFLEET_TEST_CONTROLLER_IMAGE"]
    return look(namespace, "controller", image, "ray, kubernetes, boto3, trialfleet_controller.commands.resume")


@pytest.fixture(params=["runner", "controller"])
def image(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.getfixturevalue(request.param)
    return found


def test_runs_as_nobody_and_writes_to_its_volume_only(image: dict[str, Any]) -> None:
    assert image["uid"] == [65532, 65532]
    assert image["home"] == "/tmp"
    assert image["writable"] == ["/tmp"]


def test_the_program_is_there_apart_from_the_bases_python(image: dict[str, Any]) -> None:
    assert image["prefix"] == "/opt/trialfleet"
    assert re.fullmatch(r"trialfleet, version \S+", image["version"])
    assert image["imported"] == "ok"


def test_an_attempt_has_git_and_a_controller_does_not(runner: dict[str, Any], controller: dict[str, Any]) -> None:
    assert runner["git"].startswith("git version 2")
    assert controller["git"] is None


def test_the_controllers_image_is_small(controller: dict[str, Any]) -> None:
    assert controller["bytes"] <= CONTROLLER_BYTES


def test_holds_nothing_that_building_it_took(image: dict[str, Any]) -> None:
    assert set(image["tools"]) <= TOOLCHAINS
    assert image["leftovers"] == []
    assert image["histories"] == []


def test_bytecode_is_there_for_all_that_is_imported(image: dict[str, Any]) -> None:
    assert image["compiled"] == []


def test_a_runner_holds_the_runner_alone(runner: dict[str, Any], controller: dict[str, Any]) -> None:
    assert runner["packages"] == [
        "trialfleet_agents",
        "trialfleet_deliveries",
        "trialfleet_git",
        "trialfleet_ledger",
        "trialfleet_repository",
        "trialfleet_runner",
        "trialfleet_sandbox",
        "trialfleet_search",
    ]
    assert controller["tools"] == []
    also = ["trialfleet_controller", "trialfleet_designs", "trialfleet_statistics", "trialfleet_tasks"]
    assert controller["packages"] == sorted([*also, *runner["packages"]])


def test_the_demos_environments_are_baked_in(runner: dict[str, Any]) -> None:
    demo = image_environments([CHECKOUT / "tasks/quickstart/demo.yaml"], cache=Cache.default(), mirrors={})
    wanted = {recipe(each.environment)[:RECIPE_CHARS] for each in demo.recipes}
    assert wanted <= set(runner["environments"])
    folder = "/opt/trialfleet-environments"
    assert runner["pytest"] == {name: f"{folder}/{name}" for name in wanted}


def test_claude_code_runs_without_a_home_of_its_own(runner: dict[str, Any]) -> None:
    assert runner["claude"] == f"{CLAUDE} (Claude Code)"


def test_the_supervisor_starts_without_any_package(namespace: str) -> None:
    program = (
        "import runpy, sys; sys.path.insert(0, '/opt/trialfleet'); runpy.run_path('/opt/trialfleet/supervise.py')"
    )
    argv = (
        "/opt/trialfleet/bin/python",
        "-I",
        "-S",
        "-c",
        f"{program}; print('trialfleet_runner' in sys.modules)",
    )
    assert output(namespace, "supervisor", os.environ["TRIALFLEET_TEST_IMAGE"], *argv) == "False\n"
