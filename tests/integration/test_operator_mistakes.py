"""Mistakes in files, through the command line on a real task: each ends with exit 2 and names what to change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.attempts import Lab
from tests.support.real_campaign import campaign_file, ran


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("lab"))


def trialfleet(*args: str, lab: Lab, expect: int) -> str:
    """What the command prints, on both streams."""
    ended = ran(*args, cwd=lab.root, expect=expect, env={"TRIALFLEET_SCRATCH": str(lab.scratch)})
    return ended.stdout + ended.stderr


@pytest.fixture
def latin(lab: Lab) -> Iterator[Path]:
    """The task's flat context, saved in another encoding."""
    campaign_file(lab, name="latin", agent={"kind": "nop"}, store="out", conditions=["flat_llm"])
    path = lab.root / "task/contexts/flat/CLAUDE.md"
    before = path.read_bytes()
    path.write_bytes(before + "Preise in Währung\n".encode("latin-1"))
    yield path
    path.write_bytes(before)


def test_a_context_that_is_not_utf8_is_refused_with_its_file(lab: Lab, latin: Path) -> None:
    output = trialfleet("plan", "latin.yaml", lab=lab, expect=2)
    assert "task.yaml: shop-discount: contexts.flat: 'CLAUDE.md' is not UTF-8 text" in output
    assert "fix: save the file as UTF-8" in output


def broken(lab: Lab, name: str, *, reps: int) -> Path:
    """A campaign whose agent is a script that is not there."""
    agent = {"kind": "command", "options": {"argv": ["python", str(lab.root / "agent.py"), "--fix"]}}
    return campaign_file(lab, name=name, agent=agent, store="out", reps=reps)


def test_a_script_that_is_not_there_is_warned_of_and_halts_the_run_by_name(lab: Lab) -> None:
    file = broken(lab, "broken", reps=12)
    assert f"warning: agent.options.argv[1]: {lab.root}/agent.py does not exist" in trialfleet(
        "plan", file.name, lab=lab, expect=0
    )
    output = trialfleet("run", file.name, "--no-ray", lab=lab, expect=2)
    why = "agent: in each of the first 3 measured trials of condition none it crashed"
    assert why in output
    campaign = lab.root / "out" / "broken"
    assert 3 <= len(list((campaign / "outcomes").iterdir())) <= 7, "two at a time, of 12"
    shown = trialfleet("status", file.name, lab=lab, expect=0)
    assert f"halted: condition none: {why}" in shown
    trial = next((campaign / "outcomes").iterdir()).stem
    assert "agent.py': [Errno 2] No such file or directory" in trialfleet(
        "logs", file.name, trial, lab=lab, expect=0
    )


def test_a_broken_agent_is_said_first_where_too_few_trials_halt(lab: Lab) -> None:
    file = broken(lab, "few", reps=2)
    output = trialfleet("run", file.name, "--no-ray", lab=lab, expect=0)
    said = "in 2 of 2 measured trials of none the agent crashed before it began to work"
    assert said in " ".join(output.split())
    shown = trialfleet("status", file.name, lab=lab, expect=0)
    assert "none: in 2 of 2 measured trials the agent crashed" in shown
    report = json.loads((lab.root / "out" / "few-report" / "report.json").read_text())
    assert said in " ".join(report["answer"])


def test_a_script_in_no_workspace_is_warned_of(lab: Lab) -> None:
    agent = {"kind": "command", "options": {"argv": ["python", "agent.py"]}}
    file = campaign_file(lab, name="relative", agent=agent, store="out")
    output = trialfleet("plan", file.name, lab=lab, expect=0)
    assert "argv[1]: agent.py is looked up in the workspace, and is not in that of shop-discount" in output
    agent["options"] = {"argv": ["python", "shop/pricing/rules.py"]}
    file = campaign_file(lab, name="relative", agent=agent, store="out")
    assert "warning" not in trialfleet("plan", file.name, lab=lab, expect=0)


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ({"memory": 1000}, ("limits.memory: 1000 bytes are too few for any agent: the least is 16Mi", "1000Mi")),
        ({"disk": "4k"}, ("limits.disk: 4000 bytes are too few for any agent: the least is 1Mi", "4000Mi")),
    ],
)
def test_a_limit_without_its_unit_is_refused(lab: Lab, limit: dict[str, object], words: tuple[str, ...]) -> None:
    file = campaign_file(lab, name="small", agent={"kind": "nop"}, store="out")
    spec = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump(spec | {"limits": limit}))
    output = trialfleet("plan", file.name, lab=lab, expect=2)
    for word in words:
        assert word in output
