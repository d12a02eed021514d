"""What comes with the program beside its packages."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from trialfleet_controller.commands.examples import EXAMPLES, demo, examples, k8s
from trialfleet_controller.planning.campaign_file import load_campaign
from trialfleet_controller.shared_files import copy_shared, find_checkout, find_package, find_shared
from trialfleet_ledger.child_program import python_module
from trialfleet_ledger.errors import OperatorError
from trialfleet_runner.cli import GROUPS, SUMMARIES, root
from trialfleet_tasks.taskfile import campaign_tasks

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_this_is_an_editable_install_of_its_checkout() -> None:
    assert find_checkout() == ROOT
    assert find_shared("k8s/base") == ROOT / "k8s" / "base"
    assert find_package("tasks/trialfleet_tasks") == ROOT / "tasks" / "trialfleet_tasks"
    with pytest.raises(OperatorError, match="has no k8s/other"):
        find_shared("k8s/other")


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_an_example_is_copied_and_says_what_is_next(name: str, tmp_path: Path) -> None:
    into = tmp_path / "with a blank"
    for _ in range(2):  # what is there already stays
        ran = CliRunner().invoke(examples, ["copy", name, str(into)], catch_exceptions=False)
        assert ran.exit_code == 0, ran.output
        for folder, source in EXAMPLES[name].parts.items():
            assert content(into / folder) == content(ROOT / source)
    *_, file = shlex.split(ran.output.removeprefix("next: "))
    assert Path(file).is_file()
    assert name in CliRunner().invoke(examples, ["list"]).output


@pytest.mark.parametrize("name", ["quickstart", "shop"])
def test_a_copy_needs_nothing_outside_of_itself(name: str, tmp_path: Path) -> None:
    """Every campaign with its tasks, their contexts and locks."""
    into = tmp_path / "a" / "b"
    EXAMPLES[name].copy(into)
    campaigns = [path for path in into.rglob("*.yaml") if "campaign: " in path.read_text(encoding="utf-8")]
    assert len(campaigns) >= 2
    for path in campaigns:
        for task in campaign_tasks(load_campaign(path).loaded):
            named = [*task.files, *(task.folder / context for context in task.contexts.values())]
            assert all(one.resolve().is_relative_to(into.resolve()) and one.exists() for one in named)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """Also nothing is written beside it."""
    (tmp_path / "campaign.yaml").write_text("mine\n")
    (tmp_path / "task.yaml").symlink_to("/etc/passwd")
    with pytest.raises(OperatorError, match=r"campaign\.yaml: this file exists"):
        copy_shared("examples/shop", tmp_path)
    assert content(tmp_path).keys() == {"campaign.yaml", "task.yaml"}
    (tmp_path / "campaign.yaml").unlink()
    with pytest.raises(OperatorError, match=r"task\.yaml: this file exists"):
        copy_shared("examples/shop", tmp_path)


@pytest.mark.parametrize("overlay", ["base", "kuberay", "kueue", "kind"])
def test_manifests_are_those_of_the_checkout(overlay: str, tmp_path: Path) -> None:
    words = ["manifests", "--out", str(tmp_path), *([] if overlay == "base" else [f"--{overlay}"])]
    ran = CliRunner().invoke(k8s, words, catch_exceptions=False)
    assert ran.exit_code == 0
    for name in {"base", overlay}:
        assert content(tmp_path / name) == content(ROOT / "k8s" / name)
    assert ran.output == f"next: kubectl apply --server-side -k {tmp_path / overlay}\n"


def test_the_demo_is_the_makefile_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same commands, on a copy whose results are in `runs` of the current folder."""
    called: list[list[str]] = []

    class Ended:
        returncode = 0

    def run(words: list[str], **_: object) -> Ended:
        called.append(list(words[len(python_module("")) :]))
        return Ended()

    monkeypatch.setattr("subprocess.run", run)
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(demo, catch_exceptions=False).exit_code == 0
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    made = [line.split()[1:] for line in lines if "@$(BIN)/trialfleet" in line]
    assert [[word.replace("trialfleet-demo", "tasks") for word in words] for words in called] == made[:3]
    campaign = Path("trialfleet-demo/quickstart/demo.yaml")
    assert (campaign.parent / "../../runs").resolve() == tmp_path / "runs"
    assert "store: ../../runs\n" in campaign.read_text(encoding="utf-8")


def test_every_command_has_its_line_in_one_group() -> None:
    listed = [name for group in GROUPS.values() for name in group]
    assert sorted(listed) == sorted(PROJECT["project"]["entry-points"]["trialfleet.commands"])
    assert all(len(summary) <= 64 for summary in SUMMARIES.values())
    shown = CliRunner().invoke(root, ["--help"], terminal_width=80).output
    assert [line for line in shown.splitlines() if line.rstrip(":") in GROUPS] == [f"{name}:" for name in GROUPS]


@pytest.mark.parametrize(
    ("typed", "near"), [("staus", "status"), ("reprot", "report"), ("side_by_side", "side-by-side")]
)
def test_a_misspelt_command_is_recognised(typed: str, near: str) -> None:
    ran = CliRunner().invoke(root, [typed])
    assert ran.exit_code == 2
    assert f"No such command '{typed}'. Did you mean {near}" in ran.output
    assert "Did you mean" not in CliRunner().invoke(root, ["xyzzy"]).output


def test_images_have_no_requirement_that_an_install_lacks() -> None:
    installed = {_name(one): one for one in PROJECT["project"]["dependencies"]}
    groups = PROJECT["dependency-groups"]
    for group in ("pod", "controller"):
        for one in _strings(groups[group]):
            name = _name(one)
            assert one.replace("[default]", "") == installed[name], group


def _strings(group: list[object]) -> Iterator[str]:
    return (one for one in group if isinstance(one, str))


def _name(requirement: str) -> str:
    return requirement.partition(">")[0].partition("[")[0]
