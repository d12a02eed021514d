"""Removes a test runner's own output from a request: its words appear in every failing run and would match files
that are named like the runner (`pytest.py`, `jest.ts`, `runner.go`)."""

from __future__ import annotations

import re
from collections.abc import Iterator

_RULE = r"[-=_~⎯─━]{3,}+"
_COUNTS = r"\d+\ (?:failed|passed|skipped|errors?|warnings?|xfailed|xpassed|deselected|todo|total|snapshots?)\b"
_FOREIGN = (
    r"/(?:site|dist)-packages/|\b_pytest/|/lib/python3|\bnode_modules/|\bnode:internal/|\bnode:|/rustc/|/go/src/"
    r"|\b(?:org\.junit|org\.testng|org\.apache\.maven|org\.gradle|java\.base/|java\.lang\.reflect|jdk\.internal"
    r"|sun\.reflect|junit\.framework)\b|\bsrc/(?:testing/testing|runtime/panic)\.go\b"
)

_NOTHING = re.compile(
    rf"""\s*(?:
      {_RULE}(?:\s+(?:test\ session\ starts|FAILURES|ERRORS|short\ test\ summary\ info|warnings\ summary
        |Captured\ \w+(?:\ \w+)?|Failed\ (?:Tests|Suites)\ \d+|coverage:?.*|{_COUNTS}.*
        |no\ tests\ ran.*))?[\s\d/\[\]]*(?:{_RULE})?
    | {_COUNTS}(?:,\ {_COUNTS})*(?:\ in\ [\d.]+\ ?m?s.*)?
    # pytest and unittest
    | platform\ \S+\ --\ Python\ .*
    | (?:rootdir|configfile|cachedir|plugins|testpaths|asyncio)\s?:.*
    | (?:collected|collecting)\ .*\bitems?\b.*
    | --\ Docs:\ .*
    | Traceback\ \(most\ recent\ call\ last\):
    | Ran\ \d+\ tests?\ in\ .*
    | FAILED\ \((?:failures|errors).*
    # jest and vitest
    | (?:Test\ Suites|Test\ Files|Tests|Snapshots|Time|Start\ at|Duration)(?::\s|\ \ )\s*\d.*
    | Ran\ all\ test\ suites.*
    | RUN\ +v\d.*
    | [✓✔√]\ .*
    | PASS\b.*
    | expect\((?:received|jest\.fn\(\))\).*\b(?:expected|called)\b.*
    # go
    | ===\ (?:RUN|PAUSE|CONT|NAME)\b.*
    | ---\ (?:PASS|SKIP):.*
    | (?:FAIL|ok|OK|\?)(?:\s+\S+\s+(?:\(cached\)|[\d.]+s|\[.*\]).*)?
    | exit\ status\ \d+
    | goroutine\ \d+\ \[.*\]:
    # cargo
    | running\ \d+\ tests?
    | test\ .*\ \.\.\.\ (?:ok|ignored.*)
    | test\ result:\ .*
    | failures:
    | error:\ test\ failed,\ to\ rerun\ pass\b.*
    | note:\ (?:run\ with\ `RUST_BACKTRACE|Some\ details\ are\ omitted).*
    | (?:Compiling|Finished|Running\ unittests|Running\ tests/\S+\ \(|Doc-tests)\ .*
    # surefire, gradle
    | \[INFO\].*
    | (?:\[\w+\]\ )?Tests\ run:.*
    | (?:\[\w+\]\ )?(?:BUILD\ FAILURE|BUILD\ FAILED\b.*)
    | >\ Task\ :.*
    # frames of the runner and of libraries
    | (?:File\ "|at\ |❯\ |\d+:\ ).*?(?:{_FOREIGN}).*
    | \S*(?:{_FOREIGN})\S*:\d+(?::.*)?
    )\s*""",
    re.X,
)
_AROUND = (
    re.compile(r"^(?:FAILED|ERROR|FAIL:|FAIL|XFAIL)\s+(?=\S*(?:::|[/.]\S)|test)"),
    re.compile(r"^--- FAIL:\s+|\s{1,9}\([\d.]+m?s\)$"),
    re.compile(r"^_{3,}\s+|\s{1,9}_{3,}$|^-{4}\s+(?=\S+ stdout -)|\s{1,9}stdout -{4}$"),
    re.compile(r"^[E>]\s{2,}"),
    re.compile(r"^(?:[✕✗×❯●]\s+)"),
    re.compile(r"^test\s+(?=\S.* \.\.\. FAILED$)|\s{1,9}\.\.\. FAILED$"),
    re.compile(r"^\[ERROR\]\s+|\s{0,9}<<< (?:FAILURE|ERROR)!$"),
    re.compile(r"^(?:org\.opentest4j\.AssertionFailedError|java\.lang\.AssertionError):\s*"),
    re.compile(r"^(?:Error Trace|Error|Test|Messages):\t+"),
    re.compile(r"^(?:\$\s+)?python3? -m (?:py\.test|pytest)\b|^\$\s+(?:py\.test|pytest)\b"),
    re.compile(r"^\$\s+(?:npx |pnpm |yarn |npm (?:run )?)?(?:jest|vitest|go test|cargo test|mvn test)\b"),
    re.compile(r"(?<=\S)\s{1,9}[.FEsxX]{1,200}\s{1,80}\[\s*\d+%\]$"),
)
LONGEST_LINE = 2000  # characters; longer ones are data


def without_runner(text: str) -> str:
    """The text without lines, frames and marks of test runners; names of tests, messages and locations remain. A
    text of a single line is not runner output and is returned unchanged, as is one that would become empty.

    >>> without_runner("Fix the cookie\\n=== FAILURES ===\\nFAILED tests/test_a.py::test_b - KeyError")
    'Fix the cookie\\ntests/test_a.py::test_b - KeyError'
    """
    if "\n" not in text.strip():
        return text
    left = "\n".join(_lines(text))
    return left if left.strip() else text


def _lines(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        if not line.strip() or len(line) > LONGEST_LINE:
            yield line
        elif not _NOTHING.fullmatch(line):
            yield _bare(line)


def _bare(line: str) -> str:
    """A line without the prefix and suffix that a runner adds; unchanged when it has none."""
    bare = line.strip()
    for around in _AROUND:
        bare = around.sub("", bare)
    return line if bare == line.strip() else bare
