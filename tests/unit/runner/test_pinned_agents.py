"""The table of pinned agents, the programs that it names, and the script that installs them."""

from __future__ import annotations

import re
import subprocess
from itertools import chain
from pathlib import Path

import pytest

from tests.programs import table
from trialfleet_agents.pinned import TABLE, pinned
from trialfleet_agents.program import checked_version, find_program, version_of
from trialfleet_agents.registry import KINDS
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec

INSTALL = TABLE.with_name("install.sh")
CHECKOUT = Path(__file__).parents[3]
PAGES = ("README.md", "CONTRIBUTING.md", *("docs", "examples", "k8s", "tasks/quickstart"))
_KIND_VERSION = r"(?:@|==| |`\s+|[, ]+version:\s*)(\d+\.\d+\.\d+\S*?)(?=[\s,;:`}\])]|\.\s|$)"


def spelled(text: str, name: str) -> list[str]:
    """Versions that follow a kind or a package.

    >>> spelled("{kind: codex, version: 0.1.0} `npm i codex@0.2.0`. codex 0.3.0, 0.4.0", "codex")
    ['0.1.0', '0.2.0', '0.3.0']
    """
    return re.findall(rf"(?<![\w-]){re.escape(name)}{_KIND_VERSION}", text)


def pages() -> list[Path]:
    places = (CHECKOUT / name for name in PAGES)
    files = chain.from_iterable(place.rglob("*") if place.is_dir() else [place] for place in places)
    return sorted(file for file in files if file.suffix in (".md", ".yaml", ".yml"))


def test_every_page_and_example_names_the_pinned_versions() -> None:
    wrong, found = list[str](), set[str]()
    for page in pages():
        text = page.read_text()
        for kind, pin in pinned().items():
            versions = {version for name in {kind, pin.package} for version in spelled(text, name)}
            found |= {kind} if versions else set()
            wrong += [f"{page.relative_to(CHECKOUT)}: {kind} {said}" for said in versions - {pin.version}]
    assert wrong == [], "the pins are those of pinned.tsv"
    assert {"claude-code", "copilot", "gemini", "opencode"} <= found


def test_every_program_of_the_table_is_one_that_tests_may_need() -> None:
    assert {pin.program for pin in pinned().values()} <= set(table())


def test_an_agent_that_is_not_here_is_named_with_its_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    for kind, pin in pinned().items():
        monkeypatch.delenv(pin.variable, raising=False)
        with pytest.raises(OperatorError, match=f"the agent {kind} is not on this machine") as caught:
            find_program(kind, None)
        assert pin.install() in (caught.value.hint or "")
        assert pin.version in (caught.value.hint or "")


def test_another_version_than_planned_is_refused_with_both_ways_out() -> None:
    spec = AgentSpec(kind="codex", version="0.1.0")
    with pytest.raises(OperatorError, match=r"codex here is 0\.2\.0, the campaign names 0\.1\.0") as caught:
        checked_version(spec, "0.2.0")
    assert caught.value.hint == "npm install -g @openai/codex@0.1.0, or write version: 0.2.0"
    assert checked_version(AgentSpec(kind="codex"), "0.2.0") == "0.2.0"


def test_a_program_that_says_no_version_is_unusable(tmp_path: Path) -> None:
    program = tmp_path / "codex"
    program.write_text("#!/bin/sh\necho 'no licence' >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(OperatorError, match="--version does not work: no licence"):
        version_of("codex", program, r"^codex-cli (\S+)")


def test_the_version_is_asked_in_a_home_of_its_own(tmp_path: Path) -> None:
    program = tmp_path / "codex"
    program.write_text('#!/bin/sh\n[ "$HOME" = "$CODEX_HOME" ] && [ -d "$HOME" ] && echo "codex-cli 1.2.3"\n')
    program.chmod(0o755)
    assert version_of("codex", program, r"^codex-cli (\S+)", {"CODEX_HOME": "{home}"}) == "1.2.3"


@pytest.mark.needs("sh")
def test_an_agent_that_is_not_in_the_table_is_not_installed(tmp_path: Path) -> None:
    ran = subprocess.run(["sh", INSTALL, tmp_path, "cursor"], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "unknown agent: cursor (known: claude-code, codex" in ran.stderr


@pytest.mark.needs("sh")
def test_what_is_installed_in_that_version_is_left_alone(tmp_path: Path) -> None:
    pin = pinned()["codex"]
    (tmp_path / "codex").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "codex/.installed").write_text(f"{pin.package} {pin.version}\n")
    subprocess.run(["sh", INSTALL, tmp_path, "codex"], check=True)
    assert (tmp_path / "bin/codex").readlink() == Path("../codex/node_modules/.bin/codex")


@pytest.mark.needs("sh")
def test_a_folder_that_the_script_did_not_make_is_left_and_named(tmp_path: Path) -> None:
    (tmp_path / "codex").mkdir()
    (tmp_path / "codex/thesis.txt").write_text("mine")
    ran = subprocess.run(["sh", INSTALL, tmp_path, "codex"], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert f"{tmp_path}/codex: not a folder that this script made; fix: move it away" in ran.stderr
    assert (tmp_path / "codex/thesis.txt").read_text() == "mine"


def test_every_adapter_of_a_program_is_in_the_table() -> None:
    assert set(KINDS) - set(pinned()) == {"nop", "oracle", "search", "command"}
