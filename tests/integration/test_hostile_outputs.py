"""Text of strangers through every command that prints a campaign, to the last output; a check per kind of output.

A new command or file belongs into `COMMANDS` or is found by `check_files`, which knows every kind that is written.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

from tests.support.ledgers import NOW, Fate, plan, put, trials, write
from trialfleet_ledger.campaign_spec import Primary
from trialfleet_ledger.display_text import ACTING
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.directives import Halt
from trialfleet_ledger.records.verdicts import Loss, LossClass, Verdict
from trialfleet_runner import cli
from trialfleet_runner.standard_streams import PlainOutput, prepare_streams

# What acts on a terminal, in the direction of writing, unseen, in HTML, Markdown and a spreadsheet.
EVIL = (  # one line, since names and messages are
    "=1+1 \x1b[2J\x1b[8m\x1b]0;t\x07\x9b2J \u061c\u200b\u200d\u202e\u2066\ufeff\xad\U000e0041\U000e0100\u3164 "
    "\r\x08\x7f <script>alert(1)</script><img src=x onerror=alert(1)> ](http://evil.example) @all | `x` \u2028"
)
ODD_JSON = '{"a": 1e400, "b": NaN, "c": ' + "9" * 4000 + ', "d": ' + "[" * 2000 + "]" * 2000 + "}"
STYLES = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[hl]|[0-9]*[ABCDGHJK])|\r")
PLAN = plan(
    ("alpha", "beta"),
    reps=4,
    primary=Primary(treatment="intent_layer", control="none"),
    banner=EVIL,
    agent=AgentSpec(kind="search", version=EVIL, model=EVIL, max_turns=60, timeout_s=60),
)
TRIAL = trials(PLAN)[0].id
FILES = {
    "patch.diff": f"+{EVIL}\n".encode(),
    "prompt.txt": EVIL.encode(),
    "system.txt": EVIL.encode(),
    "trajectory.jsonl": f"{json.dumps(dict.fromkeys(('kind', 'tool', 'path'), EVIL))}\n{ODD_JSON}".encode(),
    "tests/results.json": json.dumps([{"id": EVIL, "outcome": EVIL, "message": EVIL}]).encode(),
    "tests/output.log": f"{EVIL}\n".encode(),
    "agent/stdout.log": f"{EVIL}\n{ODD_JSON}\n".encode(),
    "agent/stderr.log": EVIL.encode(),
    "hook.jsonl": json.dumps({"at": 1, "tool": EVIL, "path": EVIL, "node": EVIL}).encode(),
    "odd\u202e\x1b[2J.txt": EVIL.encode(),
}  # fmt: skip


def fate_of(number: int) -> Fate:
    lost = Loss(loss=LossClass.EVICTED, message=EVIL, agent_started=True)
    return Fate(
        verdict=Verdict.PASSED if number % 3 else Verdict.FAILED,
        losses=(lost,) if number % 5 == 0 else (),
        warnings=(EVIL,),
        files=FILES,
        needed=(EVIL,) if number % 3 else (),
        cautions=(EVIL,) if number % 3 else (),
    )


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a campaign of which everything that may be any text is `EVIL`."""
    numbers = {trial.id: number for number, trial in enumerate(trials(PLAN))}
    store = write(tmp_path_factory.mktemp("hostile") / "store", PLAN, lambda trial: fate_of(numbers[trial.id]))
    put(store, "demo/halts/1.json", Halt(number=1, at=NOW, reason=EVIL))
    return store.root / "demo"


class Terminal:
    """Standard output and error of a command: files, or one pseudo-terminal."""

    def __init__(self, *, terminal: bool) -> None:
        self._read, self.written = os.openpty() if terminal else os.pipe()
        self.bytes = b""
        self._reader = threading.Thread(target=self._drain)
        self._reader.start()

    def _drain(self) -> None:
        with suppress(OSError):
            while data := os.read(self._read, 65536):
                self.bytes += data

    def text(self) -> str:
        os.close(self.written)
        self._reader.join()
        os.close(self._read)
        return self.bytes.decode("utf-8").replace("\r\n", "\n")


def output_of(argv: list[str], monkeypatch: pytest.MonkeyPatch, *, terminal: bool = False) -> str:
    """All that the command prints, through the streams that the program uses."""
    prepare_streams()
    screen = Terminal(terminal=terminal)
    like = io.TextIOWrapper(io.BytesIO(), "utf-8")
    with monkeypatch.context() as patched:
        patched.setenv("TERM", "xterm-256color")
        for name in ("stdout", "stderr"):
            patched.setattr(sys, name, PlainOutput(screen.written, like))
        patched.setattr(sys, "argv", ["trialfleet", *argv])
        with suppress(SystemExit):
            cli.main()
        sys.stdout.flush()
        sys.stderr.flush()
    return screen.text()


def check_text(text: str, where: str) -> None:
    acting = ACTING.search(text)
    if acting is not None:
        around = text[max(acting.start() - 60, 0) : acting.end() + 20]
        raise AssertionError(f"{where}: U+{ord(acting[0]):04X} in {around!r}")


def check_json(text: str, where: str) -> None:
    def refused(constant: str) -> float:
        raise AssertionError(f"{where}: {constant} is no JSON")

    check_text(text, where)
    json.loads(text, parse_constant=refused)


class Elements(HTMLParser):
    """The elements of a page, and whether an attribute of theirs acts."""

    def __init__(self) -> None:
        super().__init__()
        self.acting: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            leads_away = name in ("href", "src", "action") and re.search(r"evil|javascript:", value or "", re.I)
            if name.startswith("on") or leads_away:
                self.acting.append(f"{tag} {name}={value}")
        if tag in ("img", "iframe", "object", "embed", "base"):
            self.acting.append(tag)


def check_html(text: str, where: str) -> None:
    check_text(text, where)
    elements = Elements()
    elements.feed(text)
    assert elements.acting == [], where
    assert "<script>alert" not in text, where


def check_markdown(text: str, where: str) -> None:
    check_text(re.sub("(?<=[@#:])\u200b", "", text), where)  # what keeps GitHub from linking
    assert not re.search(r"<(script|img)", text), where
    assert not re.search(r"(?<!\\)\]\(http://evil", text), where


def check_csv(text: str, where: str) -> None:
    check_text(text, where)
    for row in csv.reader(io.StringIO(text)):
        for cell in row:
            if cell.lstrip()[:1] in tuple("=+-@＝＋－＠"):
                float(cell)


def check_nothing(text: str, where: str) -> None:
    """Of files that only programs read, with their types."""


CHECKS: dict[str, Callable[[str, str], None]] = {
    ".html": check_html, ".md": check_markdown, ".json": check_json, ".csv": check_csv, ".svg": check_html,
    ".txt": check_text, ".js": check_text, ".css": check_text, ".bib": check_text, ".parquet": check_nothing,
    ".zst": check_nothing, ".beat": check_nothing,
}  # fmt: skip


def check_files(folder: Path) -> Iterator[str]:
    """Every file and every name below `folder`; yields the kinds."""
    for path in sorted(folder.rglob("*")):
        check_text(str(path.relative_to(folder)), "a file's name")
        if path.is_file() and "pulled" not in path.parts:  # records of a store are read by programs, as they are
            CHECKS[path.suffix](path.read_text("utf-8", errors="replace"), str(path))
            yield path.suffix


COMMANDS: dict[str, list[str]] = {
    "status": ["status", "{campaign}"],
    "show": ["show", "{campaign}", TRIAL],
    "show, tests": ["show", "{campaign}", TRIAL, "--part", "tests"],
    "show, file": ["show", "{campaign}", TRIAL, "--file", "odd\u202e\x1b[2J.txt"],
    "show, no such file": ["show", "{campaign}", TRIAL, "--file", EVIL],
    "show, no such trial": ["show", "{campaign}", EVIL],
    "logs": ["logs", "{campaign}", TRIAL],
    "report": ["report", "{campaign}", "--out", "{out}/report"],
    "tables": ["tables", "{campaign}", "--out", "{out}/tables", "--format", "csv"],
    "side-by-side": ["side-by-side", "{campaign}", "{campaign}"],
    "pull": ["pull", "{campaign}", "{out}/pulled"],
    "view": ["view", "{campaign}", "--bundle", "{out}/view"],
    "no such campaign": ["status", "{out}/\u202eno\x1b[2J"],
    "plan of an evil file": ["plan", "{evil}"],
    "validate of an evil file": ["validate", "{evil}"],
}
JSON = ("status", "show", "report", "tables", "side-by-side")


@pytest.fixture
def words(campaign: Path, tmp_path: Path) -> Callable[[str], list[str]]:
    evil = tmp_path / "evil.yaml"
    evil.write_text(yaml.safe_dump({"campaign": EVIL, EVIL: EVIL, "tasks": [EVIL], "agent": {EVIL: 1}}), "utf-8")
    places = {"{campaign}": str(campaign), "{out}": str(tmp_path / "out"), "{evil}": str(evil)}

    def filled(word: str) -> str:
        for name, value in places.items():
            word = word.replace(name, value)
        return word

    return lambda name: [filled(word) for word in COMMANDS[name]]


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_that_a_command_prints_or_writes_acts(
    name: str, words: Callable[[str], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = output_of(words(name), monkeypatch)
    assert printed
    assert "Traceback" not in printed
    check_text(printed, name)
    kinds = set(check_files(tmp_path / "out"))
    expected = {"report": {".html", ".md", ".json"}, "tables": {".csv"}, "view": {".html", ".csv"}}
    assert kinds >= expected.get(name, set())


@pytest.mark.parametrize("name", ["status", "show", "logs", "report", "side-by-side"])
def test_nothing_acts_on_a_terminal(
    name: str, words: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = output_of(words(name), monkeypatch, terminal=True)
    check_text(STYLES.sub("", printed), name)
    assert "\x1b[8m" not in printed
    assert "\x1b[2J" not in printed


@pytest.mark.parametrize("name", JSON)
def test_json_stays_json_and_keeps_its_text(
    name: str, words: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = output_of([*words(name), "--json"], monkeypatch)
    check_json(printed[printed.index("{") : printed.rindex("}") + 1], name)
    assert printed.isascii()


def test_the_comment_on_a_pull_request_acts_on_nobody(
    words: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = output_of([*words("report"), "--format", "github"], monkeypatch)
    check_markdown(printed, "comment")
    assert "@all" not in printed


@pytest.mark.parametrize("check", [check_text, check_html, check_markdown, check_csv, check_json])
def test_every_check_can_fail(check: Callable[[str, str], None]) -> None:
    with pytest.raises((AssertionError, ValueError)):
        check(EVIL, "control")
