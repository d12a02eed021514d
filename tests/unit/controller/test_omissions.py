"""What the images leave out of their packages: the lists, and what omit.py does with them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trialfleet_controller.images import controller_check

REQUIREMENTS = Path(__file__).parents[3] / "requirements"
IMAGES = ("controller", "runner")


def run_omit(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, REQUIREMENTS / "omit.py", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def omitted_by(folder: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    """Of the packages in `folder`."""
    listed = folder.with_suffix(".tsv")
    listed.write_text("#kind\twhat\treason\n" + "".join(f"{line}\tbecause\n" for line in lines))
    return run_omit(listed, folder)


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    for path in ("a/data/s3/x", "a/data/ec2/x", "a/data/list.json", "a/tests/t.py", "a/b/tests/t.py", "a/b/c.py"):
        (tmp_path / "site" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / path).write_text("")
    return tmp_path / "site"


def list_files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_removes_what_is_listed_and_nothing_else(packages: Path) -> None:
    ran = omitted_by(packages, "remove\ta/**/tests", "only\ta/data: s3", "package\twhatever")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert list_files(packages) == {"a/data/s3/x", "a/data/list.json", "a/b/c.py"}


@pytest.mark.parametrize("line", ["remove\ta/absent", "only\ta/absent: s3", "strip\ta/*.so"])
def test_a_line_that_matches_nothing_fails_the_build(packages: Path, line: str) -> None:
    ran = omitted_by(packages, line)
    assert ran.returncode == 1
    assert "correct this line of the list, or delete it" in ran.stderr


@pytest.mark.needs("strip")
def test_symbols_are_removed_from_this_file_alone(packages: Path) -> None:
    """Package managers link files from their cache, which others use too."""
    cached = packages.with_name("cached")
    shutil.copy(Path(sys.executable).resolve(), cached)
    before = cached.read_bytes()
    os.link(cached, packages / "a/program")
    assert omitted_by(packages, "strip\ta/program").returncode == 0
    assert cached.read_bytes() == before
    assert subprocess.run((packages / "a/program", "-c", "pass"), check=False).returncode == 0
    assert not (packages / "a/program").samefile(cached)


@pytest.mark.parametrize("image", IMAGES)
def test_each_line_gives_its_reason(image: str) -> None:
    lines = (REQUIREMENTS / f"{image}.omitted.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    assert [row for row in rows if len(row) != 3 or not all(row)] == []
    assert {kind for kind, *_ in rows} <= {"package", "remove", "only", "strip"}


@pytest.mark.parametrize("image", IMAGES)
def test_the_lock_is_without_the_packages(image: str) -> None:
    omitted = set(run_omit(REQUIREMENTS / f"{image}.omitted.tsv").stdout.split())
    locked = set(re.findall(r"^([\w.-]+)==", (REQUIREMENTS / f"{image}.txt").read_text(), re.MULTILINE))
    assert omitted
    assert not omitted & locked


def test_the_check_asks_every_service_that_stays() -> None:
    (line,) = re.findall(
        r"^only\tbotocore/data: (.+)\t", (REQUIREMENTS / "controller.omitted.tsv").read_text(), re.M
    )
    assert set(line.split()) == set(controller_check.SERVICES)


def test_what_the_check_imports_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts that take no second; the image's build runs all of them."""
    monkeypatch.setenv("KUBECONFIG", "")
    controller_check.make_store_clients()
    controller_check.configure_clusters()
