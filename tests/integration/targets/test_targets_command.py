"""`trialfleet targets` as a person, a pipe and a program meet it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.git_repositories import Made, shop
from trialfleet_targets.commands.targets import targets

PROMPT = "The cookie of the session is renewed too late, renew it before"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    monkeypatch.setenv("TRIALFLEET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    made = shop(tmp_path / "made")
    for number in range(30):  # a few neighbours, so that words can be rare
        made.write(f"shop/part{number}.py", f"def part{number}(value):\n    return value + {number}\n")
    made.commit("Add parts")
    return made


def run(*words: str, stdin: str | bytes | None = None, **env: str) -> Result:
    return CliRunner().invoke(targets, words, input=stdin, env=env)


def predicted(*words: str, stdin: str | bytes | None = None) -> dict[str, object]:
    ended = run("predict", *words, "--json", stdin=stdin)
    assert ended.exit_code == 0, ended.output
    found: dict[str, object] = json.loads(ended.stdout)
    return found


def refused(ended: Result) -> str:
    assert ended.exit_code == 2
    assert "Traceback" not in ended.output
    assert ended.stdout == ""
    return ended.stderr


def test_index_says_what_was_read(made: Made) -> None:
    said = run("index", str(made.folder)).stdout
    assert f"commit {made.git('rev-parse', '--short=12', 'HEAD')}" in said
    assert "files: go 2, python 35; 1 of them are tests" in said
    assert "history: 4 commits" in said
    found = json.loads(run("index", str(made.folder), "--json", "--at", "HEAD~1").stdout)
    assert found["files"] == {"go": 2, "python": 5}
    assert found["methods"] == ["clarte", "default"]
    assert sum(found["edges"].values()) >= 3
    assert (
        json.loads(run("index", str(made.folder), "--at", "HEAD~2", "--method", "default", "--json").stdout)[
            "edges"
        ]
        is None
    )


def test_predict_in_a_pipe_is_lines_of_cells(made: Made) -> None:
    ended = run("predict", str(made.folder), PROMPT)
    assert ended.exit_code == 0
    assert "\x1b" not in ended.stdout
    rows = [line.split("\t") for line in ended.stdout.splitlines()]
    assert 1 <= len(rows) <= 5
    assert all(len(row) == 3 for row in rows)
    assert rows[0][1] == "shop/session.py"
    assert "Session:1" in rows[0][2].split()
    assert all(
        len(line.split("\t")) == 4
        for line in run("predict", str(made.folder), PROMPT, "--explain").stdout.splitlines()
    )


def test_predict_on_a_terminal(made: Made) -> None:
    said = run("predict", str(made.folder), PROMPT, "--explain", FORCE_COLOR="1", TERM="xterm").stdout
    assert "likely symbols" in said
    assert "shop/session.py" in said
    assert "words" in said


@pytest.mark.parametrize("method", ["default", "clarte"])
def test_predict_for_programs(made: Made, method: str) -> None:
    found = predicted(str(made.folder), PROMPT, "--method", method)
    assert found["method"] == method
    assert found["commit"] == made.git("rev-parse", "HEAD")
    named = found["targets"]
    assert isinstance(named, list)
    assert named[0]["path"] == "shop/session.py"
    assert named[0]["parts"]
    assert "tests/test_session.py" not in {one["path"] for one in named}


def test_at_an_earlier_commit(made: Made) -> None:
    first = made.git("rev-parse", "HEAD~3")
    assert predicted(str(made.folder), PROMPT, "--at", first[:9])["commit"] == first


@pytest.mark.parametrize(
    ("prompt", "why"),
    [
        ("x", "too_short"),
        ("", "too_short"),
        ("run the tests", "trivial"),
        ("Repair shop/session.py please", "names_a_target"),
    ],
)
def test_it_says_why_it_abstains(made: Made, prompt: str, why: str) -> None:
    ended = run("predict", str(made.folder), prompt)
    assert ended.exit_code == 0
    assert ended.stdout.startswith(f"abstains ({why})")
    assert predicted(str(made.folder), prompt)["abstained"] == why


def test_a_prompt_from_standard_input(made: Made) -> None:
    assert predicted(str(made.folder), "-", stdin=PROMPT) == predicted(str(made.folder), PROMPT)
    assert predicted(str(made.folder), "-", stdin=b"\xff\xfe " + PROMPT.encode())["targets"]


def test_a_prompt_of_a_megabyte(made: Made) -> None:
    long = f"{PROMPT}\n" + "lorem ipsum dolor \x00\x1b[31m" * 50_000
    assert len(long) > 10**6
    ended = run("predict", str(made.folder), "-", stdin=long)
    assert ended.exit_code == 0, ended.output
    assert "\x1b" not in ended.stdout


def test_what_the_operator_can_mend(made: Made, tmp_path: Path) -> None:
    said = refused(run("predict", str(tmp_path / "none"), PROMPT))
    assert str(tmp_path / "none") in said
    assert "fix:" in said
    said = refused(run("predict", str(made.folder), PROMPT, "--at", "--upload-pack=x"))
    assert "--at" in said
    assert "names no commit" in said
    empty = Made(tmp_path / "empty")
    assert "has no commit yet" in refused(run("index", str(empty.folder)))
    assert "has no commit yet" in refused(run("evaluate", str(empty.folder)))
    empty.commit("one", a="x = 1\n")
    assert "no usable commit in these repositories" in refused(run("evaluate", str(empty.folder)))
    assert "Usage" in refused(run("predict", str(made.folder)))


def test_nothing_that_is_printed_steers_the_terminal(made: Made, tmp_path: Path) -> None:
    assert "\x1b" not in refused(run("predict", f"{tmp_path}/\x1b[31mred", PROMPT))
    assert "\x1b" not in refused(run("predict", str(made.folder), PROMPT, "--at", "\x1b]0;title\x07"))
    made.write("a\x1b[31m.py", "x = 1\n")
    made.write("b\u202e.py", "x = 1\n")
    made.write("[bold]c.py", "def quiver_of_arrows():\n    '''how many arrows the quiver holds'''\n")
    made.commit("Names \x1b[31m")
    said = run("index", str(made.folder)).output
    assert "left out: a\\x1b[31m.py" in said
    assert "left out: b\\u202e.py" in said
    arrows = "the quiver holds fewer arrows than it says"
    shown = run("predict", str(made.folder), arrows, FORCE_COLOR="1", TERM="xterm").output
    assert "[bold]c.py" in shown


def test_evaluate_on_its_own_commits(made: Made) -> None:
    found = json.loads(run("evaluate", str(made.folder), "--commits", "2", "--json").stdout)
    rows = {row["method"]: row for row in found["methods"]}
    assert {"default", "clarte", "random"} <= set(rows)
    assert [one["commit"] for one in found["commits"]] == [
        made.git("rev-parse", "HEAD~2"),
        made.git("rev-parse", "HEAD~1"),
    ]
    assert rows["default"]["cases"] == 2
    assert rows["default"]["hit_at_1"] == sum(one["first"]["default"] == 1 for one in found["commits"]) / 2
    lines = run("evaluate", str(made.folder), "--commits", "2").stdout.splitlines()
    assert lines[0].split("\t")[:2] == ["method", "commits"]


def test_without_its_packages() -> None:
    code = (
        "import sys; sys.modules['tree_sitter'] = None\n"
        "from trialfleet_targets.commands.targets import targets\n"
        "targets(['predict', '.', 'anything at all'])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "install trialfleet again" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_help_imports_nothing_slow() -> None:
    code = (
        "import sys; from trialfleet_targets.commands.targets import targets\n"
        "try: targets(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'scipy', 'networkx', 'tree_sitter', 'rich'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1] == "[]"
    assert "predict" in said
