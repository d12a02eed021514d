"""The fail-fast hook: the third identical test or build command without an edit in between, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_deliveries.hook_log import denials
from trialfleet_deliveries.hooks.fail_fast import counts, denies, fingerprint, reads_only

SCRIPT = Path(__file__).parents[3] / "runner_image/trialfleet_deliveries/hooks/fail_fast.py"
PYTEST = "python -m pytest tests -x"


@dataclass
class Session:
    """Events as Claude Code sends them, one after the other."""

    root: Path

    def __post_init__(self) -> None:
        self.ws.mkdir()
        (self.ws / "a.py").write_text("x = 1\n")

    @property
    def ws(self) -> Path:
        return self.root / "ws"

    @property
    def log(self) -> Path:
        return self.root / "fail_fast.jsonl"

    def tell(self, name: str, tool: str, **given: object) -> bool:
        event = {"hook_event_name": name, "tool_name": tool, "session_id": "s", "tool_input": given}
        return denies(event, str(self.ws), str(self.log))

    def bash(self, command: str, *, fails: bool = True, writes: str | None = None) -> bool:
        """Whether it was denied; a command that runs may leave a file behind."""
        if self.tell("PreToolUse", "Bash", command=command):
            return True
        if writes is not None:
            with (self.ws / writes).open("a") as file:
                file.write("written\n")
        self.tell("PostToolUseFailure" if fails else "PostToolUse", "Bash", command=command)
        return False

    def edit(self, *, fails: bool = False) -> None:
        if not fails:
            (self.ws / "a.py").write_text((self.ws / "a.py").read_text() + "y = 2\n")
        self.tell("PostToolUseFailure" if fails else "PostToolUse", "Edit", file_path=str(self.ws / "a.py"))


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def test_the_third_is_denied_and_so_is_every_one_after_it(session: Session) -> None:
    assert [session.bash(PYTEST) for _ in range(5)] == [False, False, True, True, True]
    assert denials(session.log) == 3
    lines = [json.loads(line) for line in session.log.read_text().splitlines()]
    assert [(line["command"], line["ran"], line["denied"]) for line in lines[:3]] == [
        (PYTEST, 0, False),
        (PYTEST, 1, False),
        (PYTEST, 2, True),
    ]


def test_what_the_tests_themselves_write_is_no_edit(session: Session) -> None:
    assert [session.bash(PYTEST, writes="report.xml") for _ in range(3)] == [False, False, True]


def test_an_edit_in_between_lets_it_run_again(session: Session) -> None:
    assert [session.bash(PYTEST) for _ in range(2)] == [False, False]
    session.edit()
    assert [session.bash(PYTEST) for _ in range(3)] == [False, False, True]
    session.edit()
    assert session.bash(PYTEST) is False


def test_an_edit_that_failed_is_none(session: Session) -> None:
    assert [session.bash(PYTEST) for _ in range(2)] == [False, False]
    session.edit(fails=True)
    assert session.bash(PYTEST) is True


def test_a_change_that_no_tool_told_of_is_an_edit(session: Session) -> None:
    assert [session.bash(PYTEST) for _ in range(2)] == [False, False]
    (session.ws / "new.cfg").write_text("")
    assert session.bash(PYTEST) is False


@pytest.mark.parametrize(
    "command", ["sed -i s/1/2/ a.py", "python fix.py", "pip install x", "git stash", "cat > b"]
)
def test_a_command_that_may_have_changed_something_is_an_edit(session: Session, command: str) -> None:
    """Also outside of the workspace, where nobody looks."""
    assert [session.bash(PYTEST) for _ in range(2)] == [False, False]
    session.bash(command)
    assert session.bash(PYTEST) is False


def test_reading_and_another_command_in_between_are_no_edits(session: Session) -> None:
    seen = []
    for _ in range(3):
        seen.append(session.bash(PYTEST))
        assert not session.bash("cat a.py | head -20")
        session.tell("PreToolUse", "Read", file_path="a.py")
        if len(seen) < 3:
            session.bash("python -m pytest other -x")
    assert seen == [False, False, True]


def test_another_command_is_never_denied(session: Session) -> None:
    assert not any(session.bash("cat a.py") for _ in range(5))
    assert not any(session.bash("python main.py") for _ in range(5))
    assert not any(session.bash(f"pytest tests/test_{n}.py") for n in range(9))
    assert not any(session.bash(f"echo {n}\npytest") for n in range(3))
    assert not any(session.bash("pytest\nls") for _ in range(4))
    assert denials(session.log) == 0


def test_what_is_no_event_is_no_reason(tmp_path: Path) -> None:
    def ran(stdin: bytes, log: str) -> bytes:
        argv = [sys.executable, "-I", str(SCRIPT), "--workspace", str(tmp_path), "--log", log, "--reason", "Edit."]
        done = subprocess.run(argv, input=stdin, capture_output=True, check=True, timeout=100)
        return done.stdout

    event = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "pytest"}}
    good = json.dumps(event).encode()
    assert [ran(stdin, str(tmp_path / "log")) for stdin in (b"", b"[]", b"{", good, good)] == [b""] * 5
    # what was written just now is a change: the log lies in the workspace
    assert ran(good, str(tmp_path / "no/such/folder/log")) == b""
    elsewhere = tmp_path.with_name(tmp_path.name + "-log")
    elsewhere.mkdir()
    answers = [ran(good, str(elsewhere / "log")) for _ in range(3)]
    assert answers[:2] == [b"", b""]
    said = json.loads(answers[2])["hookSpecificOutput"]
    assert (said["hookEventName"], said["permissionDecision"]) == ("PreToolUse", "deny")
    assert said["permissionDecisionReason"] == "Edit."
    (elsewhere / "log.state").write_bytes(b"\xff[")
    assert ran(good, str(elsewhere / "log")) == b""


@pytest.mark.parametrize(
    "command",
    [
        "pytest",
        "cd src && python3.12 -m pytest -x tests/test_a.py::test_b 2>&1 | tail -20",
        "PYTHONPATH=. timeout 60 python -m unittest discover",
        "uv run pytest -q",
        "tox -e py311",
        "npm test",
        "npm run test:unit -- --watch=false",
        "npx vitest run",
        "yarn build",
        "cargo test --lib",
        "go test ./... 2>/dev/null",
        "./gradlew clean test",
        "mvn -q test",
        "make -j4 test",
        "make",
        "cmake --build build",
        "go test -json -count=1 ./cart | tail -40",
        "cd api && GOFLAGS=-mod=mod go test -run TestTotal/two ./...",
        "go build ./... && go vet ./...",
        "cargo +stable test -p shop --lib -- --nocapture 2>&1 | tail -30",
        "cargo nextest run",
        "node --test test/total.test.js",
        "node --experimental-vm-modules node_modules/.bin/jest a.test.js",
        "node_modules/.bin/mocha --reporter json test/a.js",
        "npm t -- test/a.test.js",
        "pnpm run test:unit",
        "mvn -B -o -Dtest=TotalTest test",
        "mvn -q -pl core,web -am test 2>&1 | tail -50",
        "./mvnw --projects core clean verify",
    ],
)
def test_tests_and_builds_count(command: str) -> None:
    assert counts(command)
    assert not reads_only(command)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "ls",
        "pytest > out.txt",
        "pytest & ",
        "go mod tidy",
        "go run ./cmd/server",
        "go test ./... > out.txt",
        "cargo fmt",
        "cargo +nightly fix",
        "cargo",
        "node src/main.js",
        "npm install",
        "npm run deploy",
        "mvn deploy",
        "mvn -pl test install",
        "mvn dependency:tree",
        "pytest; rm -rf x",
        "sed -i s/a/b/ x.py && pytest",
        "pytest $(cat list)",
        "pytest `cat list`",
        "pytest <<EOF",
        "pytest --collect-only",
        "make -n test",
        "make clean",
        "make format",
        "npm install test",
        "cargo run",
        "go run .",
        "./gradlew clean",
        "echo 'unbalanced",
        "python script.py",
        "git diff | patch -p1",
        "pytest | tee log",
    ],
)
def test_everything_else_does_not(command: str) -> None:
    assert not counts(command)


@pytest.mark.parametrize(
    ("command", "reads"),
    [
        ("ls -la", True),
        ("git log -3 | cat", True),
        ("sed -n 1,5p a.py", True),
        ("find . -name '*.py'", True),
        ("cat a b 2>/dev/null", True),
        ("sed -i s/a/b/ x", False),
        ("find . -delete", False),
        ("sort -o x x", False),
        ("git checkout .", False),
        ("git diff --output=x", False),
        ("cat a > b", False),
        ("echo $(rm x)", False),
        ("python -c 1", False),
        ("cd a; touch b", False),
    ],
)
def test_what_is_known_to_read_only(command: str, reads: bool) -> None:
    assert reads_only(command) is reads


WORDS = st.sampled_from(
    ["pytest", "ls", "|", "&&", ";", ">", "'", '"', "$(", "`", "a.py", "-x", "sed -i", "\\", "\n"]
)


@given(st.lists(WORDS, max_size=12).map(" ".join) | st.text(max_size=200))
def test_no_command_is_too_odd(command: str) -> None:
    assert not (counts(command) and reads_only(command))


def test_a_fingerprint_sees_names_sizes_and_times(tmp_path: Path) -> None:
    seen = [fingerprint(str(tmp_path))]
    (tmp_path / "a").write_text("x")
    seen.append(fingerprint(str(tmp_path)))
    (tmp_path / "a").write_text("xy")
    seen.append(fingerprint(str(tmp_path)))
    (tmp_path / "a").rename(tmp_path / "b")
    seen.append(fingerprint(str(tmp_path)))
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "index").write_text("x")
    assert len(set(seen)) == 4
    assert fingerprint(str(tmp_path)) == seen[-1]
