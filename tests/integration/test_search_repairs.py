"""The search agent end to end on small broken packages: real pytest, real processes, no model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.repair_trials import RepairTrial, package, search
from trialfleet_agents.search import _PROGRAM

FAKE_HOOK = """
import argparse, json, sys
parser = argparse.ArgumentParser()
for name in ("--workspace", "--context", "--log"):
    parser.add_argument(name)
options = parser.parse_args()
event = json.load(sys.stdin)
assert event["tool_name"] == "Read" and event["cwd"] == options.workspace
path = event["tool_input"]["file_path"]
assert path.startswith(options.workspace + "/")
with open(options.log, "a") as log:
    log.write(json.dumps(path) + chr(10))
if path.endswith("pkg/core.py"):
    text = open(options.context + "/AGENTS.md").read()
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": text}}))
"""


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


BUGS = {
    "wrong comparison": (
        "def clamp(value, low, high):\n"
        "    if value < low:\n"
        "        return low\n"
        "    if value < high:\n"
        "        return high\n"
        "    return value\n",
        "from pkg.core import clamp\n\n\n"
        "def test_low():\n    assert clamp(1, 2, 3) == 2\n\n\n"
        "def test_high():\n    assert clamp(5, 2, 3) == 3\n",
    ),
    "falsy value dropped": (
        "def render(name, value=None):\n"
        "    parts = [name]\n"
        "    if value:\n"
        "        parts.append(str(value))\n"
        "    return '='.join(parts)\n",
        "from pkg.core import render\n\n\ndef test_zero():\n    assert render('a', 0) == 'a=0'\n\n\n"
        "def test_none():\n    assert render('a') == 'a'\n",
    ),
    "none receiver": (
        "def host(config):\n    return config.get('url').split('/')[0]\n\n\n"
        "def describe(config):\n    return {'host': host(config), 'name': config['name']}\n",
        "from pkg.core import describe\n\n\n"
        "def test_no_url():\n    assert describe({'name': 'n'})['name'] == 'n'\n\n\n"
        "def test_url():\n    assert describe({'name': 'n', 'url': 'a/b'})['host'] == 'a'\n",
    ),
    "argument not passed on": (
        "def load(text, strict=False):\n"
        "    rows = [row for row in text.split(',')]\n"
        "    if strict and '' in rows:\n"
        "        raise ValueError('empty row')\n"
        "    return rows\n\n\n"
        "def load_all(texts, strict=False):\n"
        "    return [load(text) for text in texts]\n",
        "import pytest\nfrom pkg.core import load_all\n\n\n"
        "def test_strict():\n    with pytest.raises(ValueError):\n        load_all(['a,,b'], strict=True)\n\n\n"
        "def test_lax():\n    assert load_all(['a,,b']) == [['a', '', 'b']]\n",
    ),
    "text": (
        "def greeting(name):\n    return 'Helo, ' + name\n",
        "from pkg.core import greeting\n\n\ndef test_greeting():\n    assert greeting('you') == 'Hello, you'\n",
    ),
    "regular expression": (
        "import re\n\nVERSION = re.compile(r'^v?(\\d)\\.(\\d+)$')\n\n\n"
        "def version(text):\n    found = VERSION.match(text)\n    return found and (found[1], found[2])\n",
        "from pkg.core import version\n\n\n"
        "def test_two_digits():\n    assert version('v12.3') == ('12', '3')\n\n\n"
        "def test_one():\n    assert version('v1.3') == ('1', '3')\n",
    ),
    "handler too narrow": (
        "def number(text, default=0):\n    try:\n        return int(text)\n    except ValueError:\n"
        "        return default\n",
        "from pkg.core import number\n\n\ndef test_none():\n    assert number(None) == 0\n\n\n"
        "def test_text():\n    assert number('x', 3) == 3\n",
    ),
    "early return": (
        "class Glossary:\n"
        "    def __init__(self):\n        self.words = {}\n\n"
        "    def forget(self, word):\n        self.words.pop(word)\n        return len(self.words)\n",
        "from pkg.core import Glossary\n\n\ndef test_unknown():\n    assert Glossary().forget('x') == 0\n",
    ),
    "two places": (
        "def bounds(low, high):\n    first = low - 1\n    last = high - 1\n    return first, last\n",
        "from pkg.core import bounds\n\n\ndef test_first():\n    assert bounds(1, 5)[0] == 2\n\n\n"
        "def test_last():\n    assert bounds(1, 5)[1] == 6\n",
    ),
}


FAILING = {
    "wrong comparison": ("test_high",),
    "falsy value dropped": ("test_zero",),
    "none receiver": ("test_no_url",),
    "argument not passed on": ("test_strict",),
    "text": ("test_greeting",),
    "regular expression": ("test_two_digits",),
    "handler too narrow": ("test_none",),
    "early return": ("test_unknown",),
    "two places": ("test_first", "test_last"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_small_bug_is_repaired(bug: str, tmp_path: Path) -> None:
    workspace = package(tmp_path, *BUGS[bug])
    before = content(workspace)
    trial = search(workspace, *(f"tests/test_core.py::{name}" for name in FAILING[bug]))
    assert trial.solved, trial.events[-1]
    after = content(workspace)
    assert {name for name in after if after[name] != before.get(name)} == {"pkg/core.py"}
    assert set(after) == set(before)


def test_nothing_is_left_behind_when_it_fails(tmp_path: Path) -> None:
    code = "def answer(question):\n    return len(question)\n"
    workspace = package(
        tmp_path,
        code,
        "from pkg.core import answer\n\n\ndef test_it():\n    assert answer('why') == 'because 77'\n",
    )
    core = workspace / "pkg" / "core.py"
    core.chmod(0o755)
    before, stat = content(workspace), core.stat()
    trial = search(workspace, max_turns=6)
    assert not trial.solved
    assert (trial.events[-1]["stop"], trial.turns) == ("max_turns", 6)
    assert content(workspace) == before
    assert (core.stat().st_mode, core.stat().st_mtime_ns) == (stat.st_mode, stat.st_mtime_ns)


def test_turns_are_reads_and_runs_and_never_exceed_the_budget(tmp_path: Path) -> None:
    code, tests = BUGS["text"]
    for most in (1, 2, 5):
        root = tmp_path / str(most)
        trial = search(package(root, code, tests.replace("Hello", "Good day")), max_turns=most)
        assert len(trial.of("read")) + len(trial.of("run")) == trial.turns <= most


def test_the_same_seed_gives_the_same_transcript(tmp_path: Path) -> None:
    one, two, other = (
        search(_maze(tmp_path / str(n), None), seed=seed, max_turns=6) for n, seed in enumerate((5, 5, 6))
    )
    assert one.timeless() == two.timeless()
    assert [e["detail"] for e in one.of("edit")] != [e["detail"] for e in other.of("edit")]


MAZE = "".join(
    f"def step_{n}(value, limit):\n    if value < limit:\n        return value + {n}\n    return limit\n\n\n"
    for n in range(1, 9)
)
MAZE += (
    "def walk(value, limit):\n    total = 0\n"
    + "".join(f"    total += step_{n}(value, limit)\n" for n in range(1, 9))
    + "    return total\n"
)
MAZE_TESTS = "from pkg.core import walk\n\n\ndef test_walk():\n    assert walk(1, 1) == {}\n"
# `<` must become `<=` in step_6 alone: walk(1, 1) is then 7 * 1 + (1 + 6)
MAZE_TESTS = MAZE_TESTS.format(14)
RIGHT = "# Pitfalls\n- `step_6` in `pkg/core.py` must also step when it stands at its limit (boundary).\n"
WRONG = (
    "# Pitfalls\n- `step_2` in `pkg/core.py` loses the whitespace at the ends of what it is given.\n"
    "- See `pkg/other.py` and `pkg/third.py` first.\n"
)


def _maze(root: Path, notes: str | None) -> Path:
    workspace = package(root, MAZE, MAZE_TESTS)
    for name in ("other", "third"):
        (workspace / "pkg" / f"{name}.py").write_text("def unused(a):\n    return a\n")
    if notes is not None:
        (workspace / "CLAUDE.md").write_text(notes)
    return workspace


def _median(turns: list[int]) -> int:
    return sorted(turns)[len(turns) // 2]


def _edited_lines(trial: RepairTrial) -> list[int]:
    return [int(event["detail"].split("line ")[1].split(":")[0]) for event in trial.of("edit")]


def _lines_of(function: str) -> range:
    first = MAZE.splitlines().index(f"def {function}(value, limit):") + 1
    return range(first, first + 5)


SEEDS = (1, 2, 3)
MOST_TURNS = 90


def _turns_to_solve(root: Path, notes: str | None, seed: int) -> int:
    trial = search(_maze(root, notes), seed=seed, max_turns=MOST_TURNS)
    return trial.turns if trial.solved else MOST_TURNS + 1


@pytest.fixture(scope="module")
def unguided(tmp_path_factory: pytest.TempPathFactory) -> dict[int, int]:
    """Turns without notes, by the seed."""
    return {seed: _turns_to_solve(tmp_path_factory.mktemp("none"), None, seed) for seed in SEEDS}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_helpful_tree_saves_turns(tmp_path: Path, unguided: dict[int, int]) -> None:
    right = [_turns_to_solve(tmp_path / str(seed), RIGHT, seed) for seed in SEEDS]
    assert _median(right) < _median(list(unguided.values())), (right, unguided)


def test_a_misleading_tree_is_followed(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        trial = search(_maze(tmp_path / str(seed), WRONG), seed=seed, max_turns=7)
        edited = _edited_lines(trial)
        assert len(edited) >= 2
        assert all(line in _lines_of("step_2") for line in edited[:2]), edited


def test_a_misleading_path_costs_the_turn_of_reading_it(tmp_path: Path) -> None:
    trial = search(_maze(tmp_path, WRONG), max_turns=6)
    assert {"pkg/other.py", "pkg/third.py"} <= {e["path"] for e in trial.of("read")}


def test_what_the_hook_says_guides_like_a_file(tmp_path: Path) -> None:
    """Asked on every read; its text is in the transcript and names what is tried first."""
    nodes = tmp_path / "nodes"
    nodes.mkdir()
    (nodes / "AGENTS.md").write_text(RIGHT)
    script, log = tmp_path / "hook.py", tmp_path / "hook.jsonl"
    script.write_text(FAKE_HOOK)
    workspace = _maze(tmp_path, None)
    hook = (
        *(sys.executable, "-I", str(script), "--workspace", str(workspace)),
        *("--context", str(nodes), "--log", str(log)),
    )
    trial = search(workspace, hook=hook, max_turns=60)
    assert [(e["path"], e["detail"]) for e in trial.of("hook")] == [("pkg/core.py", RIGHT)]
    assert [json.loads(row) for row in log.read_text().splitlines()] == [
        str(workspace / e["path"]) for e in trial.of("read")
    ]
    assert trial.solved
    edited = _edited_lines(trial)[:5]
    assert all(line in _lines_of("step_6") for line in edited), edited


def test_a_hook_that_breaks_or_hangs_up_changes_nothing(tmp_path: Path) -> None:
    script = tmp_path / "hook.py"
    script.write_text("print('{\"hookSpecificOutput\": 3}')")
    code, tests = BUGS["text"]
    for n, hook in enumerate([(sys.executable, str(script)), (str(tmp_path / "missing"),), ("/bin/false",)]):
        trial = search(package(tmp_path / str(n), code, tests), hook=hook)
        assert trial.solved
        assert trial.of("hook") == []


def test_a_nested_node_is_read_for_a_turn_when_its_folder_is(tmp_path: Path) -> None:
    workspace = _maze(tmp_path, None)
    (workspace / "pkg" / "AGENTS.md").write_text(RIGHT)
    trial = search(workspace, max_turns=60)
    assert "pkg/AGENTS.md" in [e["path"] for e in trial.of("read")]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_symbols_of_the_prompt_come_first(tmp_path: Path, unguided: dict[int, int]) -> None:
    trial = search(
        _maze(tmp_path, None),
        prompt=f"A test fails. Review these known pitfalls:\n{RIGHT}",
        seed=1,
        max_turns=MOST_TURNS,
    )
    assert trial.solved
    assert trial.turns < unguided[1]


def test_a_repair_that_breaks_a_neighbour_is_refused(tmp_path: Path) -> None:
    """The quickest way to make `test_new` pass is one that `test_old` forbids."""
    workspace = package(
        tmp_path,
        "def limit(value, most=10):\n    if value > most:\n        return most\n    return value\n",
        "from pkg.core import limit\n\n\ndef test_new():\n    assert limit(10.5) == 10.5\n\n\n"
        "def test_old():\n    assert limit(11) == 10\n    assert limit(11.0) == 10\n    assert limit(3) == 3\n"
        "    assert limit(99, 50) == 50\n",
    )
    trial = search(workspace, "tests/test_core.py::test_new", max_turns=8)
    refused = [e for e in trial.of("message") if e["detail"].startswith("breaks 1 tests that passed")]
    assert refused
    assert "test_old" in refused[0]["detail"]


def test_hidden_tests_end_the_search_honestly(tmp_path: Path) -> None:
    code, tests = BUGS["text"]
    workspace = package(tmp_path, code, tests)
    before = content(workspace)
    trial = search(workspace, argv=(), prompt="`greeting` is misspelt in pkg/core.py")
    assert trial.events[-1]["stop"] == "finished"
    assert "hidden" in trial.events[-1]["detail"]
    assert trial.of("edit") == trial.of("run") == []
    assert [e["path"] for e in trial.of("read")] == ["pkg/core.py"]
    assert content(workspace) == before


def test_other_programs_than_pytest_can_run_the_tests(tmp_path: Path) -> None:
    """Without a probe, the prompt's traceback says where to look and the exit code what passes."""
    code = "def larger(a, b):\n    return a if a < b else b\n"
    workspace = package(tmp_path, code, "")
    core = workspace / "pkg" / "core.py"
    check = (
        *(sys.executable, "-c"),
        "from pkg.core import larger; assert [larger(2, 1), larger(1, 2), larger(3, 3)] == [2, 2, 3]",
    )
    prompt = f'Traceback:\n  File "{core}", line 2, in larger\nAssertionError'
    trial = search(workspace, argv=check, prompt=prompt, max_turns=30)
    assert trial.solved, trial.events
    assert core.read_text() != code
    subprocess.run(check, cwd=workspace, check=True)


def test_an_endless_candidate_is_cut_short(tmp_path: Path) -> None:
    """Dropping the step makes the loop endless; the search outlives it."""
    workspace = package(
        tmp_path,
        "def count(n):\n    seen = 0\n    while n > 0:\n        n -= 1\n        seen += 2\n    return seen\n",
        "from pkg.core import count\n\n\ndef test_count():\n    assert count(3) == 3\n",
    )
    trial = search(workspace, max_turns=60, time_limit_s=60)
    assert trial.solved or trial.events[-1]["stop"] in ("max_turns", "finished")
    assert "AssertionError" not in (workspace / "pkg" / "core.py").read_text()


def test_hostile_files_are_left_alone(tmp_path: Path) -> None:
    """Huge, undecodable, linked and broken files beside the bug; a link out of the workspace is not followed."""
    code, tests = BUGS["text"]
    workspace = package(tmp_path, code, tests)
    outside = tmp_path / "outside.py"
    outside.write_text("SECRET = 1\n")
    pkg = workspace / "pkg"
    (pkg / "link.py").symlink_to(outside)
    (pkg / "loop.py").symlink_to(pkg / "loop.py")
    (pkg / "huge.py").write_text("x = 1\n" * 300_000)
    (pkg / "latin.py").write_bytes(b"# -*- coding: latin-1 -*-\nname = '\xe9'\n")
    (pkg / "broken.py").write_text("def (:\n")
    (pkg / "nul.py").write_bytes(b"x = 1\0\n")
    (workspace / "CLAUDE.md").symlink_to(outside)
    (pkg / "AGENTS.md").write_bytes(b"\xff\xfe `greeting` \x1b[31m" + b"`x`" * 200_000)
    for named in (("link", "loop", "huge"), ("latin", "broken", "nul")):
        (pkg / "core.py").write_text(code)
        paths = [f"pkg/{name}.py" for name in named]
        prompt = f"Look at {', '.join(f'`{p}`' for p in paths)} first, they matter a great deal to everyone."
        trial = search(workspace, prompt=prompt)
        assert trial.solved, trial.events[-1]
        said = {e["path"]: e["detail"] for e in trial.of("message") if e["path"] in paths}
        assert set(said) == set(paths)
        assert not any("candidates" in text for text in said.values()), said
        assert not any("SECRET" in json.dumps(e) for e in trial.events)
    assert outside.read_text() == "SECRET = 1\n"


def test_a_killed_search_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """SIGTERM in the middle of a candidate's run: the original is put back."""
    code = "import time\n\n\ndef slow(n):\n    time.sleep(0.2)\n    return n + 1\n"
    workspace = package(
        tmp_path, code, "from pkg.core import slow\n\n\ndef test_it():\n    assert slow(1) == 'never'\n"
    )
    temporary = tmp_path / "home" / "tmp"
    temporary.mkdir(parents=True)
    config = {
        **{"workspace": str(workspace), "prompt": "", "system": None, "seed": 1, "max_turns": 500},
        **{"time_limit_s": 100, "hook": None, "temporary": str(temporary)},
        "tests": [sys.executable, "-m", "pytest", "-q", "tests/test_core.py"],
    }
    (tmp_path / "search.json").write_text(json.dumps(config))
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    with subprocess.Popen(
        [sys.executable, "-I", str(_PROGRAM), str(tmp_path / "search.json")],
        cwd=workspace,
        env=environment,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line)["kind"] == "edit":
                break
        process.terminate()
        process.stdout.read()
    assert (workspace / "pkg" / "core.py").read_text() == code
    assert not [p for p in workspace.rglob("*") if ".search-" in p.name]
