"""Text of strangers through every command that prints a campaign, to the last output; a check per kind of output.

A new command is missing in `COMMANDS` until it is added; a file of a new kind fails `check_files`.
"""

from __future__ import annotations

import csv
import io
import json
import os
import random
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

from tests.support.git_repositories import Made
from tests.support.ledgers import NOW, Fate, plan, put, trials, write, write_journal, write_running
from trialfleet_analysis.viewer.addresses import ServedAddresses
from trialfleet_analysis.viewer.answer_process import computed
from trialfleet_analysis.viewer.campaign_state import WatchedCampaign
from trialfleet_analysis.viewer.site import CampaignSite
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.display_text import ACTING
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.directives import Cancel, Halt
from trialfleet_ledger.records.measurements import Delivery, Metrics
from trialfleet_ledger.records.verdicts import Loss, LossClass, Verdict
from trialfleet_runner import cli
from trialfleet_runner.standard_streams import PlainOutput, prepare_streams

# What acts on a terminal, in the direction of writing, unseen, in HTML, in Markdown and in a spreadsheet.
PIECES = (
    "\x1b[2J", "\x1b[8m", "\x1b]0;t\x07", "\x1b]8;;http://evil.example\x1b\\", "\x9b2J", "\r", "\x08", "\x7f",
    "\u061c", "\u200b", "\u200d", "\u202e", "\u2028", "\u2066", "\ufeff", "\xad", "\u3164", "\ufe0f", "\ufff9",
    "\U000e0041", "\U000e0100", "\U000f0000", "\u034f", "\x00", "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"onmouseover="alert(1)', "</title><svg/onload=alert(1)>", "](http://evil.example)", "![x](http://evil.example)",
    "@all", "#1", "|", "`x`", "[bold]", "=1+1", "@SUM(1)", "+1", "-1", "javascript:alert(1)", "%s", "{x}", "\\",
)  # fmt: skip
FORMULAS = ("=", "+", "-", "@", " =", "\t=", "\r=", "＝")


class Stranger:
    """Writes another text each time, of all that may act."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)

    def text(self) -> str:
        """One line. It holds U+202E, by which an output shows that it has the text."""
        pieces = self._draw.sample(PIECES, 24)
        return self._draw.choice(FORMULAS) + "cmd()" + "\u202e" + " a".join(pieces)

    def lines(self) -> str:
        return "\n".join(self.text() for _ in range(3))


EVIL = Stranger(0).text().replace("\0", "")  # also as an argument
ODD_JSON = '{"a": 1e400, "b": NaN, "c": ' + "9" * 4000 + ', "d": ' + "[" * 2000 + "]" * 2000 + "}"
STYLES = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[hl]|[0-9]*[ABCDGHJK])|\r")
LEADS_AWAY = re.compile(r"\s*(?:javascript:|data:|(?:https?:)?[/\\]{2}[^/?#]*evil)", re.I)
ODD_NAME = "odd\u202e\x1b[2J.txt"


def plan_of(name: str, stranger: Stranger) -> Plan:
    made = plan(
        ("alpha", "beta"),
        name=name,
        reps=4,
        primary=Primary(treatment="intent_layer", control="none"),
        banner=stranger.text(),
        agent=AgentSpec(kind="search", version=EVIL, model=EVIL, max_turns=60, timeout_s=60),
    )
    return made.model_copy(update={"uid": name})


def files_of(stranger: Stranger) -> dict[str, bytes]:
    text, lines = stranger.text, stranger.lines
    step = {name: text() for name in ("tool", "path", "detail")}
    steps = [json.dumps({"turn": 1, "kind": kind, **step}) for kind in ("read", "run", text())]
    return {
        "patch.diff": f"--- a/{text()}\n+++ b/{text()}\n@@ -1 +1 @@ {text()}\n-{text()}\n+{text()}\n".encode(),
        "prompt.txt": lines().encode(),
        "system.txt": lines().encode(),
        "trajectory.jsonl": "\n".join((*steps, ODD_JSON)).encode(),
        "tests/results.json": json.dumps([{"id": text(), "outcome": text()}]).encode(),
        "tests/output.log": lines().encode(),
        "agent/stdout.log": f"{lines()}\n{ODD_JSON}\n".encode(),
        "agent/stderr.log": lines().encode(),
        "hook.jsonl": json.dumps({"at": 1, "tool": text(), "path": text(), "node": text()}).encode(),
        ODD_NAME: text().encode(),
    }


def fate_of(number: int, stranger: Stranger) -> Fate:
    text = stranger.text
    lost = Loss(loss=LossClass.EVICTED, message=text(), agent_started=True)
    return Fate(
        verdict=Verdict.PASSED if number % 3 else Verdict.FAILED,
        losses=(lost,) if number % 5 == 0 else (),
        metrics=Metrics(turns=(3, 10**30, -1)[number % 3], cost_usd=(0.5, 1e308, -1e9)[number % 3], wall_s=1.5),
        delivery=Delivery(
            files=(text(),), node=text(), targets=(text(),), undelivered=(text(),), abstained=text()
        ),
        warnings=(text(),),
        files=files_of(stranger),
        needed=(text(),) if number % 3 else (),
        cautions=(text(),) if number % 3 else (),
    )


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a campaign, next to `other`; of both, everything that may be any text is a stranger's."""
    root = tmp_path_factory.mktemp("hostile") / "store"
    for seed, name in enumerate(("demo", "other")):
        stranger = Stranger(seed)
        written = plan_of(name, stranger)
        numbers = {trial.id: number for number, trial in enumerate(trials(written))}
        store = write(root, written, lambda trial, of=numbers, by=stranger: fate_of(of[trial.id], by))
        put(store, f"{name}/halts/1.json", Halt(number=1, at=NOW, reason=stranger.text()))
        put(store, f"{name}/cancel.json", Cancel(at=NOW, now=False, by=stranger.text()))
        write_journal(store, written)
    named = {stranger.text(): "0" * 64 for _ in range(9)} | {"../../../etc/passwd": "0" * 64}
    (root / "other/journal/2.json").write_bytes(canonical_json({"number": 2, "at": NOW, "records": named}))
    for edited in (root / f"demo/attempts/{TRIAL}").glob("*/end.json"):
        edited.write_bytes(edited.read_bytes() + b"\n")
    return root / "demo"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose names, messages and texts are a stranger's."""
    stranger, made = Stranger(7), Made(tmp_path_factory.mktemp("hostile") / "checkout")
    made.write("AGENTS.md", stranger.lines())
    made.write("pyproject.toml", '[project]\nname = "shop"\n[tool.pytest.ini_options]\n')
    made.write(".github/workflows/a.yml", json.dumps({"jobs": {"t": {"steps": [{"run": f"pytest {EVIL}"}]}}}))
    for name in ("=cmd()\u202e.py", "\x1b[2J.py", "<img src=x onerror=alert(1)>.py", "\u200b/AGENTS.md"):
        made.write(name, f"def opened():\n    {stranger.text()!r}\n")
    made.commit(EVIL)
    made.write("AGENTS.md", stranger.lines())
    made.commit(EVIL)
    return made.folder


TRIAL = trials(plan_of("demo", Stranger(0)))[0].id


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
            leads_away = name in ("href", "src", "action") and LEADS_AWAY.match(value or "")
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
    "": check_text, ".html": check_html, ".md": check_markdown, ".json": check_json, ".csv": check_csv,
    ".svg": check_html,
    ".txt": check_text, ".js": check_text, ".css": check_text, ".bib": check_text,
    ".tex": check_text, ".pdf": check_nothing, ".parquet": check_nothing,
    ".zst": check_nothing, ".beat": check_nothing,
}  # fmt: skip


def check_files(folder: Path) -> Iterator[str]:
    """Every file and every name below `folder`; yields the kinds."""
    for path in sorted(folder.rglob("*")):
        check_text(str(path.relative_to(folder)), "a file's name")
        if path.is_file() and "pulled" not in path.parts:  # records of a store are read by programs, as they are
            CHECKS[path.suffix](path.read_text("utf-8", errors="replace"), str(path))
            yield path.suffix


SHOWS: dict[str, list[str]] = {  # with a text of a stranger
    "status": ["status", "{campaign}"],
    "show": ["show", "{campaign}", TRIAL],
    "show, tests": ["show", "{campaign}", TRIAL, "--part", "tests"],
    "show, file": ["show", "{campaign}", TRIAL, "--file", ODD_NAME],
    "show, no such file": ["show", "{campaign}", TRIAL, "--file", EVIL],
    "show, no such trial": ["show", "{campaign}", EVIL],
    "logs": ["logs", "{campaign}", TRIAL],
    "report": ["report", "{campaign}", "--out", "{out}/report"],
    "no such campaign": ["status", "{out}/\u202eno\x1b[2J"],
    **{name: [*name.split(), "{evil}"] for name in ("plan", "validate", "power", "submit --controller-image x")},
    "compare": ["compare", EVIL, "--like", "{evil}"],
    "context": ["context", "build", "{evil}", "--kind", "flat", "--agent", "outline", "--out", "{out}"],
    "image": ["image", "build", "{evil}", "--tag", "x"],
}
QUIET: dict[str, list[str]] = {
    "init": ["init", "{repository}"],
    "mine": ["tasks", "mine", "{repository}", "--out", "{out}/mined", "--no-sandbox", "--want", "1"],
    "targets": ["targets", "predict", "{repository}", "cmd opened"],
    "tables": ["tables", "{campaign}", "--out", "{out}/tables", "--format", "csv"],
    "figures": ["figures", "{campaign}", "--out", "{out}/figures", "--tables", "latex"],
    "figures, pdf": ["figures", "{campaign}", "--out", "{out}/figures", "--format", "pdf", "--tables", "markdown"],
    "side-by-side": ["side-by-side", "{campaign}", "{other}"],
    "combine": ["combine", "{campaign}", "{other}", "--out", "{out}/combined"],
    "pull": ["pull", "{campaign}", "{out}/pulled"],
    "view": ["view", "{campaign}", "--bundle", "{out}/view"],
    "gc": ["gc", "{campaign}"],
    "cancel": ["cancel", "{campaign}"],
    "resume": ["resume", "{campaign}"],
    "prepull": ["prepull", "{campaign}"],
}
COMMANDS = SHOWS | QUIET
APART = {
    "agents": "shows no text of a campaign or repository",
    "completion": "shows no text of a campaign or repository",
    "demo": "is `validate` and `run` of campaigns that come with the program",
    "examples": "copies what comes with the program",
    "k8s": "copies what comes with the program",
    "kind": "runs a script that comes with the program",
    "doctor": "shows a campaign's names alone, which cannot act",
    "run": "reads a file as `plan` does, and ends as `report`",
}
NAMES_TAMPERED = {"report", "side-by-side", "combine"}
_REPORT = {".html", ".md", ".json"}
FILES = {"report": _REPORT, "combine": _REPORT, "tables": {".csv"}, "view": {".html", ".csv"},
         "figures": {".svg", ".csv", ".tex"}, "figures, pdf": {".pdf", ".csv", ".md"}}  # fmt: skip
JSON = ("status", "show", "report", "tables", "side-by-side", "combine", "init")


def test_every_command_is_here() -> None:
    assert {words[0] for words in COMMANDS.values()} | APART.keys() == cli.SUMMARIES.keys()


@pytest.fixture
def words(campaign: Path, repository: Path, tmp_path: Path) -> Callable[[str], list[str]]:
    evil = tmp_path / "evil\u202e.yaml"
    evil.write_text(yaml.safe_dump({"campaign": EVIL, EVIL: EVIL, "tasks": [EVIL], "agent": {EVIL: 1}}), "utf-8")
    places = {"campaign": campaign, "other": campaign.parent / "other", "out": tmp_path / "out", "evil": evil,
              "repository": repository}  # fmt: skip

    def filled(word: str) -> str:
        for name, value in places.items():
            word = word.replace(f"{{{name}}}", str(value))
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
    assert ("ampered: " in printed) == (name in NAMES_TAMPERED)
    assert name not in SHOWS or "⟨U+202E⟩" in printed or "\\u202e" in printed
    kinds = set(check_files(tmp_path / "out"))
    assert kinds >= FILES.get(name, set())


@pytest.mark.parametrize("name", ["status", "show", "logs", "report", "side-by-side", "combine", "targets"])
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


def test_no_section_that_is_served_acts(tmp_path: Path) -> None:
    planned = plan_of("demo", Stranger(0))
    running, *ended = trials(planned)
    store = write(tmp_path, planned, lambda trial: fate_of(1, Stranger(1)) if trial in ended else None)
    write_running(store, "demo", running, 1, Stranger(9).lines().encode())
    site = CampaignSite(WatchedCampaign(store, "demo", computed), ServedAddresses())
    sections = {
        "now": site.now(),
        "output": site.output(running.id, 1),
        "found": site.found({"text": "cmd()", "sort": EVIL, "columns": EVIL}),
        "search": site.trials({"text": EVIL, "task": EVIL, "condition": EVIL}),
        "home": site.home({"a": EVIL, "b": EVIL}),
    }
    for name, page in sections.items():
        check_html(page, name)
    assert "⟨U+202E⟩" in sections["output"]


@pytest.mark.parametrize("check", [check_text, check_html, check_markdown, check_csv, check_json])
def test_every_check_can_fail(check: Callable[[str, str], None]) -> None:
    with pytest.raises((AssertionError, ValueError)):
        check(EVIL, "control")
