"""Each Python that a task's environment may have runs the search agent, and every hook script starts on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.repair_trials import package, search
from trialfleet_agents.search import _HOOK, _PROGRAM
from trialfleet_ledger.interpreters import interpreters, uv_program

VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
PYTEST = "pytest==8.3.5"  # the last that runs on all of them
NOTE = "# Pitfalls\n- `render` in `core.py` drops a value that is false but not None.\n"
CODE = (
    "def render(name, value=None):\n"
    "    parts = [name]\n"
    "    if value:\n"
    "        parts.append(str(value))\n"
    "    return '='.join(parts)\n"
)
TESTS = (
    "from pkg.core import render\n\n\n"
    "def test_zero():\n    assert render('a', 0) == 'a=0'\n\n\n"
    "def test_none():\n    assert render('a') == 'a'\n"
)
# Loads what a task's interpreter runs, then asks every operator about the agent's own code.
CHECK = """
import ast, importlib, importlib.util, pathlib, pkgutil, random, sys, warnings
program, hooks = map(pathlib.Path, sys.argv[1:])
sys.path.insert(0, str(program.parent))
import trialfleet_search as package
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
for file in hooks.glob("*.py"):
    spec = importlib.util.spec_from_file_location("hook_" + file.stem, str(file))
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
from trialfleet_search.edit import apply
from trialfleet_search.facts import Facts
from trialfleet_search.generate import candidates
from trialfleet_search.guidance import Guidance
from trialfleet_search.source import ParsedSource
# of patterns that the regex operator tries
warnings.filterwarnings("ignore", "invalid escape|Flags not at the start")
warnings.simplefilter("ignore", SyntaxWarning)
warnings.simplefilter("ignore", FutureWarning)
facts = Facts(exceptions=("KeyError",), pairs=(("a-b", "a_b"),), strings=("foo", "|"), numbers=(3,), names=("x",))
sample, failed = [], 0
for file in (program / "operators").rglob("*.py"):
    source = ParsedSource(file.name, file.read_bytes())
    lines = dict.fromkeys(range(1, len(source.starts) + 1), 1.0)
    proposed, broken = candidates(source, lines, facts, Guidance([]), random.Random(1))
    assert not broken, (file, broken)
    sample += [(source, one) for one in random.Random(2).sample(proposed, min(20, len(proposed)))]
for source, one in sample:
    try:
        ast.parse(apply(source.data, one.edits))
    except SyntaxError:
        failed += 1
print(len(sample), failed)
"""


@pytest.fixture(scope="module", params=VERSIONS)
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of an environment that holds pytest and nothing else."""
    base = next(interpreters((request.param,)), None)
    if base is None:
        lacking = f"needs Python {request.param} on PATH, below /usr or in pyenv"
        (pytest.fail if os.environ.get("TRIALFLEET_CI") == "1" else pytest.skip)(lacking)
    environment = tmp_path_factory.mktemp("environment") / "env"
    program = environment / "bin" / "python"
    for command in (
        ("venv", "--quiet", "--python", str(base.path), str(environment)),
        ("pip", "install", "--quiet", "--python", str(program), PYTEST),
    ):
        subprocess.run((uv_program(), *command), check=True)
    return str(program)


def test_every_module_and_hook_loads_and_every_operator_proposes(python: str) -> None:
    """A deprecated call is an error: what this Python warns about, a later one dropped."""
    argv = (python, "-I", "-B", "-W", "error", "-c", CHECK, str(_PROGRAM), str(_HOOK.parent))
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    sampled, failed = map(int, done.stdout.split())
    assert sampled > 200
    assert failed <= sampled // 20


def test_a_bug_is_repaired_with_the_context_of_the_hook(python: str, tmp_path: Path) -> None:
    """The traced run, the warm process, the real hook, an edit and its confirmation, all in that interpreter."""
    workspace = package(tmp_path, CODE, TESTS)
    node = tmp_path / "nodes" / "pkg" / "AGENTS.md"
    node.parent.mkdir(parents=True)
    node.write_text(NOTE)
    places = {"workspace": workspace, "context": tmp_path / "nodes", "log": tmp_path / "hook.jsonl"}
    options = [word for name, path in places.items() for word in (f"--{name}", str(path))]
    hook = (python, "-I", str(_HOOK), *options)
    trial = search(workspace, "tests/test_core.py::test_zero", hook=hook, python=python, max_turns=40)
    assert trial.solved, trial.events[-1]
    assert [(event["path"], event["detail"]) for event in trial.of("hook")] == [("pkg/core.py", NOTE)]
    assert not any("not traced" in event["detail"] for event in trial.of("message"))
    assert (workspace / "pkg" / "core.py").read_text() != CODE


def test_the_preflight_answers(python: str, tmp_path: Path) -> None:
    workspace = package(tmp_path, CODE, TESTS)
    prompt = "Read these files.\n- `pkg/core.py`\n\nThe task:\nRender a value of zero.\n"
    trial = search(workspace, prompt=prompt, python=python, preflight=True)
    assert "FUNCTION: render" in trial.events[-1]["answer"]


def test_a_later_construct_is_refused(tmp_path: Path) -> None:
    """Ruff knows in which Python the program runs: also where no old interpreter is installed."""
    late = "match 1:\n    case 1:\n        pass\n"
    for folder in (_PROGRAM, _HOOK.parent):
        name = str(folder / "late.py")
        argv = (sys.executable, "-m", "ruff", "check", "--output-format", "json", "--stdin-filename", name, "-")
        done = subprocess.run(argv, input=late, capture_output=True, text=True, check=False)
        assert "on Python 3.8" in json.dumps(json.loads(done.stdout))
