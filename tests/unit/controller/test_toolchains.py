"""Which programs of a machine an image gets as copies, and which by Debian packages."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from trialfleet_controller.images.toolchains import Toolchains, ToolFolder, toolchains, write_toolchains
from trialfleet_ledger.errors import OperatorError


def program(path: Path, text: str = "#!/bin/sh\necho 1.2.3\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o700)
    return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose `bin` is first on PATH, and a HOME of its own."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def test_programs_of_one_toolchain_are_one_folder(machine: Path) -> None:
    for name in ("go", "gofmt"):
        program(machine / "sdk/bin" / name)
        (machine / "bin" / name).symlink_to(machine / "sdk/bin" / name)
    (found,) = toolchains(["gofmt", "go"]).copied
    assert found == ToolFolder(machine / "sdk", {"go": "bin/go", "gofmt": "bin/gofmt"})


def test_a_compiler_of_c_comes_with_what_calls_one(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(machine / "sdk/bin/cargo")
    (machine / "bin/cargo").symlink_to(machine / "sdk/bin/cargo")
    program(machine / "bin/cc")
    assert toolchains(["cargo"]).packages == ("gcc", "libc6-dev")
    assert toolchains([]) == Toolchains()
    (machine / "bin/cc").unlink()
    monkeypatch.setenv("PATH", str(machine / "bin"))
    assert toolchains(["cargo"]).packages == (), "this machine has none either"


@pytest.mark.needs("ldd")
def test_one_file_that_needs_nothing_is_copied_alone(machine: Path) -> None:
    shutil.copy("/bin/echo", machine / "home/alone")
    (machine / "bin/alone").symlink_to(machine / "home/alone")
    assert toolchains(["alone"]).copied == (ToolFolder(machine / "home/alone", {"alone": "."}),)


@pytest.mark.needs("ldd", "dpkg-query")
def test_debians_own_program_comes_from_its_package(machine: Path) -> None:
    """git is a binary that needs libraries which not every Debian has."""
    git = shutil.which("git")
    assert git is not None
    owner = subprocess.run(
        ["dpkg-query", "-S", os.path.realpath(git)], capture_output=True, text=True, check=False
    )
    if owner.returncode:
        pytest.skip("git is not of a Debian package here")
    assert toolchains(["git"]) == Toolchains((), ("git",))


@pytest.mark.needs("dpkg-query")
def test_what_can_be_neither_copied_nor_installed_names_the_way_out(machine: Path) -> None:
    program(machine / "home/shims/ruby")
    (machine / "bin/ruby").symlink_to(machine / "home/shims/ruby")
    with pytest.raises(OperatorError, match=r"ruby .* can neither be copied") as refused:
        toolchains(["ruby"])
    assert "--base-has-tools" in (refused.value.hint or "")
    with pytest.raises(OperatorError, match="no program absent"):
        toolchains(["absent"])


def test_a_copy_runs_where_the_original_is_not(tmp_path: Path) -> None:
    sdk, outside = tmp_path / "sdk", tmp_path / "etc"
    program(sdk / "bin/tool", '#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/../lib/settings/file"\n')
    (outside / "settings").mkdir(parents=True)
    (outside / "settings/file").write_text("set\n")
    (sdk / "lib").mkdir()
    (sdk / "lib/settings").symlink_to(outside / "settings")
    (sdk / "lib/gone").symlink_to(outside / "gone")
    (sdk / "lib/own").symlink_to("../bin/tool")
    (sdk / "share/doc").mkdir(parents=True)
    (sdk / "share/doc/book").write_text("")
    target = tmp_path / "target"
    write_toolchains([ToolFolder(sdk, {"tool": "bin/tool"})], target, at=1e9)
    shutil.rmtree(sdk)
    shutil.rmtree(outside)
    ran = subprocess.run([target / "bin/tool"], capture_output=True, text=True, check=True)
    assert ran.stdout == "set\n"
    (copy,) = (path for path in target.iterdir() if path.name != "bin")
    assert sorted(path.name for path in (copy / "lib").iterdir()) == ["own", "settings"]
    assert (copy / "lib/own").is_symlink()
    assert not (copy / "share/doc").exists()
    assert (copy / "bin/tool").stat().st_mode & 0o777 == 0o755, "another user runs it"
    assert {path.stat().st_mtime for path in (copy, copy / "lib", target)} == {1e9}
