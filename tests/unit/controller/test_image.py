"""The build context of an image: what is in it, what is not, and that it follows from its inputs alone."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import get_args

import pytest
import yaml
from click.testing import CliRunner
from pydantic import TypeAdapter

from tests.support.scripts import write_script
from trialfleet_controller.commands import image as command
from trialfleet_controller.images.build import (
    BUILDERS,
    ENVIRONMENTS,
    Build,
    context,
    options,
    run_builder,
    working_builder,
    write,
)
from trialfleet_controller.images.environments import ImageEnvironments, image_environments
from trialfleet_controller.images.toolchains import Toolchains
from trialfleet_controller.planning.campaign_file import load_campaign
from trialfleet_deliveries.texts import TextName
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.interpreters import Interpreter, find_interpreter
from trialfleet_ledger.records.environment import Recipe
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments import environment
from trialfleet_repository.trees import unpack
from trialfleet_runner.pod.bake import read_source
from trialfleet_tasks.taskfile import load_task_file

CHECKOUT = Path(__file__).parents[3]
DEMO = CHECKOUT / "tasks/quickstart/demo.yaml"
TASK_FILE = CHECKOUT / "tasks/quickstart/tasks/werkzeug.yaml"


NONE = ImageEnvironments()


def environments_for(*files: Path) -> ImageEnvironments:
    return image_environments(files, cache=Cache.default(), mirrors={})


def copied_from_context() -> set[str]:
    """What the Dockerfile copies, but for what one stage takes of another."""
    lines = re.findall(r"^COPY (?!--from)(.+)$", (CHECKOUT / "Dockerfile").read_text(), re.MULTILINE)
    return {source for line in lines for source in line.split()[:-1]}


def test_holds_all_that_the_dockerfile_copies() -> None:
    files = context(NONE, CHECKOUT)
    for source in copied_from_context():
        assert any(name == source or name.startswith(source.rstrip("/") + "/") for name in files), source


def test_a_build_by_hand_sees_what_the_dockerfile_copies() -> None:
    shown = {line[1:] for line in (CHECKOUT / ".dockerignore").read_text().split() if line.startswith("!")}
    assert all({source, source.split("/")[0]} & shown for source in copied_from_context())


def test_holds_neither_task_data_nor_tests_nor_history() -> None:
    files = context(environments_for(DEMO), CHECKOUT)
    tops = {name.split("/")[0] for name in files}
    packages = {"runner_image", "tasks", "controller", "analysis"}
    assert tops == {"Dockerfile", "pyproject.toml", "requirements", *packages}
    assert all(name.startswith("tasks/trialfleet_tasks/") for name in files if name.startswith("tasks/"))
    assert not [name for name in files if "__pycache__" in name or "/tests/" in name or name.endswith(".pyc")]
    assert "requirements/dev.txt" not in files


def test_holds_every_text_that_models_read() -> None:
    files = context(NONE, CHECKOUT)
    for name in get_args(TextName):
        assert f"runner_image/trialfleet_deliveries/texts/{name}.md" in files


def test_environments_are_there_only_when_asked_for() -> None:
    assert ENVIRONMENTS not in context(NONE, CHECKOUT)
    assert ENVIRONMENTS in context(environments_for(TASK_FILE), CHECKOUT)


def test_a_campaign_stands_for_its_tasks() -> None:
    of_demo = environments_for(DEMO)
    folder = DEMO.parent / "tasks"
    assert of_demo == environments_for(*(folder / f"{n}.yaml" for n in ("sqlparse", "markdown")))
    assert of_demo == environments_for(DEMO, folder / "sqlparse.yaml"), "each environment once"


def test_the_demo_on_kind_is_the_same_demo() -> None:
    on_kind = load_campaign(CHECKOUT / "k8s/kind/demo.yaml").spec
    here = load_campaign(DEMO).spec
    same = {"seed", "conditions", "reps", "agent", "primary"}
    assert on_kind.model_dump(include=same) == here.model_dump(include=same)
    assert environments_for(CHECKOUT / "k8s/kind/demo.yaml") == environments_for(DEMO)


def test_recipes_are_what_planning_asks_the_image_for() -> None:
    task = load_task_file(TASK_FILE).tasks[0]
    lock = task.lock_path.read_bytes()
    planned = environment.environment_ref(task.environment, lock, find_interpreter(task.environment.python))
    (found,) = [r for r in environments_for(TASK_FILE).recipes if r.environment.lock == sha256(lock)]
    assert environment.recipe(found.environment) == environment.recipe(planned)
    assert sha256((found.lock or "").encode()) == planned.lock


def test_recipes_leave_this_machines_patch_release_out(monkeypatch: pytest.MonkeyPatch) -> None:
    here = environments_for(TASK_FILE)
    minor = find_interpreter(("3.11", "3.12", "3.13")).minor
    monkeypatch.setattr(
        "trialfleet_tasks.task_environment.find_interpreter",
        lambda *_, **__: Interpreter(Path("/python"), f"{minor}.99"),
    )
    assert environments_for(TASK_FILE) == here


# --- tasks in other languages -------------------------------------------------------------------------------


def other_task(folder: Path, *, tools: dict[str, str] | None = None, fetch: list[list[str]] | None = None) -> Path:
    """A task file of kind commands, whose repository is two folders."""
    for name, text in (("before", "a"), ("after", "b")):
        (folder / name / "tests").mkdir(parents=True)
        (folder / name / "source").write_text(text)
    (folder / "after/tests/one.sh").write_text("true\n")
    environment = {
        "kind": "commands",
        "tools": tools or {},
        "fetch": fetch or [],
        "inputs": ["lock"],
        "test_command": ["./run", "{tests}", "{junit}"],
        "results": "junit",
    }
    task = {
        "id": "one",
        "source": {"kind": "path", "pre_fix": "before", "fixed": "after"},
        "prompt_source": "commit_message",
        "commit_message": "Fix it",
        "test_file": "tests/one.sh",
    }
    file = folder / "tasks.yaml"
    file.write_text(yaml.safe_dump({"repo": {"environment": environment}, "tasks": [task]}))
    return file


def test_a_recipe_of_another_language_names_a_tree_that_the_context_holds(tmp_path: Path) -> None:
    found = environments_for(other_task(tmp_path, tools={"git": ""}))
    (made,) = found.recipes
    assert (made.lock, found.tools) == (None, {"git"})
    folder = tmp_path / "context"
    write(context(found, CHECKOUT), folder)
    listed = folder / ENVIRONMENTS
    (read,) = TypeAdapter(tuple[Recipe, ...]).validate_json(listed.read_bytes())
    tree = unpack(read_source(read, listed.parent))
    assert {path: entry.data for path, entry in tree.items()} == {"source": b"a"}, "without the tests of the fix"
    assert environment.recipe(read.environment) == environment.recipe(
        environments_for(tmp_path / "tasks.yaml").recipes[0].environment
    )


def test_a_recipe_pins_the_versions_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = other_task(tmp_path, tools={"git": ""})
    (here,) = environments_for(file).recipes
    monkeypatch.setattr("trialfleet_tasks.task_environment.find_tool", lambda _: (Path("/git"), "0.1"))
    (there,) = environments_for(file).recipes
    assert here.environment.versions.startswith("git ")
    assert there.environment.versions == "git 0.1"
    assert environment.recipe(here.environment) != environment.recipe(there.environment)


def test_a_tree_that_is_not_what_its_name_says_is_refused(tmp_path: Path) -> None:
    found = environments_for(other_task(tmp_path))
    (made,) = found.recipes
    with pytest.raises(OperatorError, match="not what its name says"):
        read_source(made, tmp_path)
    (tmp_path / "trees").mkdir()
    (tmp_path / f"trees/{made.environment.source}.tar").write_bytes(b"else")
    with pytest.raises(OperatorError, match="not what its name says"):
        read_source(made, tmp_path)


def test_the_command_says_which_packages_tools_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = Toolchains((), ("gcc", "libc6-dev"))
    monkeypatch.setattr(
        "trialfleet_controller.images.toolchains.toolchains", lambda names: needed if names else Toolchains()
    )
    given = ["build", "--tag", "t", "--for", str(other_task(tmp_path, tools={"git": ""})), "--out"]
    ran = CliRunner().invoke(command.image, [*given, str(tmp_path / "a")], catch_exceptions=False)
    assert "--build-arg 'TOOL_PACKAGES=gcc libc6-dev'" in ran.output
    ran = CliRunner().invoke(
        command.image, [*given, str(tmp_path / "b"), "--base-has-tools"], catch_exceptions=False
    )
    assert "TOOL_PACKAGES" not in ran.output


# --- what is written, and who builds it ---------------------------------------------------------------------


def test_writes_the_same_bytes_and_times_again(tmp_path: Path) -> None:
    files = context(NONE, CHECKOUT)
    for name in ("a", "b"):
        write(files, tmp_path / name)

    def facts(folder: Path) -> list[tuple[str, int, int, bytes]]:
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        stats = [(path, path.stat()) for path in paths]
        return [(str(p.relative_to(folder)), s.st_mode, int(s.st_mtime), p.read_bytes()) for p, s in stats]

    assert facts(tmp_path / "a") == facts(tmp_path / "b")
    assert len(facts(tmp_path / "a")) == len(files)


def test_writes_into_an_empty_folder_only(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(OperatorError, match="not an empty folder"):
        write({}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_what_is_installed_makes_the_same_image_as_its_checkout() -> None:
    assert context(NONE) == context(NONE, CHECKOUT)


def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"lacks Dockerfile.*\n.*what is installed is used"):
        context(NONE, tmp_path)


def test_options_carry_what_was_asked_for() -> None:
    asked = Build("t:1", base="python:3.12-bookworm", agents=("claude-code@1.2.3",), bake_packages=("gcc", "make"))
    assert options(asked) == (
        *("--tag", "t:1", "--target", "runner"),
        *("--build-arg", "BASE=python:3.12-bookworm"),
        *("--build-arg", "AGENTS=claude-code@1.2.3"),
        *("--build-arg", "BAKE_PACKAGES=gcc make"),
    )


def test_every_build_argument_is_one_of_the_dockerfile() -> None:
    declared = set(re.findall(r"^ARG (\w+)", (CHECKOUT / "Dockerfile").read_text(), re.MULTILINE))
    assert declared == set(Build("t", "runner", "b", ("a",), ("p",), ("q",)).arguments)


def test_leaves_the_context_and_says_how_it_is_built(tmp_path: Path) -> None:
    folder = tmp_path / "context"
    given = ["build", "--tag", "t:1", "--out", str(folder), "--for", str(DEMO), "--agents", "claude-code"]
    ran = CliRunner().invoke(command.image, given, catch_exceptions=False)
    assert ran.output == (f"docker build --tag t:1 --target runner --build-arg AGENTS=claude-code {folder}\n")
    assert (folder / ENVIRONMENTS).is_file()
    assert (folder / "Dockerfile").read_bytes() == (CHECKOUT / "Dockerfile").read_bytes()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--builder", "none"], "add --out DIR"),
        (["--target", "controller", "--for", str(DEMO)], "only a runner image contains environments"),
    ],
)
def test_refuses_what_cannot_be_meant(given: list[str], says: str) -> None:
    with pytest.raises(OperatorError, match=says):
        CliRunner().invoke(command.image, ["build", "--tag", "t", *given], catch_exceptions=False)


@pytest.mark.parametrize("name", ["auto", *BUILDERS])
def test_without_a_builder_says_the_way_out(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OperatorError, match=r"works here|work here") as refused:
        working_builder(name)
    assert "--out DIR" in (refused.value.hint or "")


@pytest.mark.needs("buildah")
def test_a_builder_gives_the_images_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = tmp_path / "storage.conf"
    storage.write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{tmp_path}/images"\nrunroot = "{tmp_path}/run"\n')
    monkeypatch.setenv("CONTAINERS_STORAGE_CONF", str(storage))
    (tmp_path / "context").mkdir()
    dockerfile = tmp_path / "context/Dockerfile"
    dockerfile.write_text("FROM scratch\nCOPY Dockerfile /\n")
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", run_builder("buildah", ("--tag", "t"), dockerfile.parent))
    dockerfile.write_text("FROM scratch\nCOPY absent /\n")
    with pytest.raises(OperatorError, match="buildah ended with exit code"):
        run_builder("buildah", ("--tag", "t"), dockerfile.parent)


def test_docker_builds_with_buildkit_and_without_attestations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    write_script(
        tmp_path / "docker", 'echo "$DOCKER_BUILDKIT $BUILDX_NO_DEFAULT_ATTESTATIONS"; echo sha256:0 >"$3"'
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_BUILDKIT", "0")
    assert run_builder("docker", (), tmp_path) == "sha256:0"
    assert capfd.readouterr().err == "1 1\n"
