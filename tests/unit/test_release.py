"""What a release is made of: its workflow, its version in each place, the fields of the package."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github/workflows/release.yml"


@pytest.fixture(scope="module")
def jobs() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]
    return found


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


@pytest.mark.needs("actionlint")
def test_actionlint_finds_nothing() -> None:
    ran = subprocess.run(("actionlint", "-no-color", str(WORKFLOW)), capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")


def test_every_place_names_one_version(project: dict[str, Any]) -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == project["version"]
    assert (citation["title"], citation["license"]) == (project["name"], project["license"])
    assert citation["abstract"] == project["description"]


def test_the_workflow_finds_the_version_in_each_place(tmp_path: Path, jobs: dict[str, Any]) -> None:
    """Its own script, on the files as they are with a changelog that has the release, and on another tag."""
    [step] = [one for one in jobs["build"]["steps"] if one.get("id") == "version"]
    for name in ("pyproject.toml", "CITATION.cff"):
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text("## 0.1.0 (2026)\n- first\n## 0.0.1\n- older\n", encoding="utf-8")
    version = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]["version"]
    for tag, code in ((f"v{version}", 0), ("v9.9.9", 1)):
        env = {"GITHUB_REF_NAME": tag, "GITHUB_OUTPUT": str(tmp_path / "output"), "PATH": "/usr/bin:/bin"}
        ran = subprocess.run(("bash", "-e", "-c", step["run"]), cwd=tmp_path, env=env, check=False)
        assert ran.returncode == code, tag
    assert (tmp_path / "notes.md").read_text() == "- first\n"
    assert (tmp_path / "output").read_text() == f"version={version}\n"


def test_each_job_may_write_only_what_it_publishes(jobs: dict[str, Any]) -> None:
    whole = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    assert whole["permissions"] == {"contents": "read"}
    writes = {
        name: {right for right, level in job.get("permissions", {}).items() if level == "write"}
        for name, job in jobs.items()
    }
    assert writes == {
        "build": set(),
        "publish": {"id-token", "attestations"},
        "image": {"packages", "id-token", "attestations"},
        "announce": {"contents"},
    }
    assert "secrets." not in WORKFLOW.read_text(encoding="utf-8")


def test_classifiers_are_the_pythons_that_are_supported(project: dict[str, Any]) -> None:
    named = [one.rpartition(" ")[2] for one in project["classifiers"] if re.search(r":: 3\.\d+$", one)]
    assert named == ["3.11", "3.12", "3.13"]
    assert project["requires-python"] == ">=3.11,<3.14"
