"""The real Claude Code inside the real sandboxes: the gateway is its only way out, and everything arrives."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.claude_code import DONE, KEY, Rig
from tests.support.scripted_messages import Hang, Say, ScriptedMessages
from trialfleet_deliveries.received_texts import DeclaredText
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_runner.gateway import Canaries
from trialfleet_sandbox.choose import choose

pytestmark = pytest.mark.needs("claude")

SANDBOXES = [
    pytest.param("bubblewrap", marks=pytest.mark.needs("bwrap")),
    pytest.param("uid", marks=pytest.mark.needs("root")),
    pytest.param("subreaper"),
]


@dataclass
class SandboxedRig(Rig):
    kind: str = field(default="subreaper", kw_only=True)

    def __post_init__(self) -> None:
        self.sandbox = choose(self.kind)
        super().__post_init__()


@pytest.mark.parametrize("kind", SANDBOXES)
def test_everything_that_a_condition_delivers_arrives(
    open_folder: Path, provider: ScriptedMessages, kind: str
) -> None:
    rig = SandboxedRig(open_folder, provider, kind=kind)
    root = rig.write("CLAUDE.md", "NEEDLE-ROOT\n")
    rig.system = "NEEDLE-SYSTEM\n"
    rig.hook = {"src/AGENTS.md": "NEEDLE-HOOK\n"}
    texts = (
        DeclaredText("files", "NEEDLE-ROOT"),
        DeclaredText("inline", "NEEDLE-SYSTEM"),
        DeclaredText("hook", "NEEDLE-HOOK"),
    )
    rig.canaries = Canaries(declared=texts, files=frozenset({root}))
    ran = rig.run(Say("", (rig.read(),)), Say("", (rig.edit(), rig.bash("git status --short"))), DONE)
    assert ran.report.reached == {"files": True, "inline": True, "hook": True}
    assert ran.report.undeclared == ()
    assert (rig.ws / "src/a.py").read_text() == "x = 2\n"
    assert [step.path for step in ran.parsed.steps if step.kind in ("read", "edit")] == ["src/a.py"] * 2
    assert (ran.parsed.stop, ran.parsed.turns, ran.report.turns) == (Stop.FINISHED, 3, 3)


@pytest.mark.needs("bwrap")
def test_inside_bubblewrap_there_is_no_other_way_out(open_folder: Path, provider: ScriptedMessages) -> None:
    rig = SandboxedRig(open_folder, provider, kind="bubblewrap")
    (open_folder / "CLAUDE.md").write_text("NEEDLE-PARENT\n")
    rig.canaries = Canaries(forbidden={"parent": ("NEEDLE-PARENT",)})
    address = provider.url.removeprefix("http://").replace(":", "/")
    out = f"(exec 3<>/dev/tcp/{address}) 2>&1 && echo REACHED; (exec 3<>/dev/tcp/127.0.0.1/8080) && echo GATEWAY"
    ran = rig.run(Say("", (rig.bash(out),)), DONE)
    assert ran.report.undeclared == ()  # no parent folder inside
    assert "GATEWAY" in rig.provider.main[1].strings
    assert "REACHED" not in rig.provider.main[1].strings.replace("echo REACHED", "")
    assert rig.files_with(KEY) == []


@pytest.mark.needs("bwrap")
def test_a_time_out_inside_bubblewrap_keeps_what_was_counted(
    open_folder: Path, provider: ScriptedMessages
) -> None:
    rig = SandboxedRig(open_folder, provider, kind="bubblewrap")
    for rig.timeout_s in (4, 20, 100):  # a busy machine may not have come to the answer that hangs
        ran = rig.run(Say("", (rig.read(),)), Hang())
        if len(provider.main) == 2:
            break
    assert (ran.ended.cause, ran.parsed.stop) == ("timeout", Stop.TIMEOUT)
    assert (ran.report.turns, ran.parsed.turns) == (1, 1)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Another user must be able to walk to it; pytest's own folders are closed, deeper ones under xdist."""
    with tempfile.TemporaryDirectory(prefix="trialfleet-test-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)
