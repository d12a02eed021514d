"""No script pipes into a command that leaves before it has read everything: with `pipefail` the writer's SIGPIPE
fails the pipe, on some machines and at some times. It reads a file or a here-string (`<<<`) instead."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FENCED = re.compile(r"^[ ]*```[^\n]*\n(.*?)^[ ]*```", re.MULTILINE | re.DOTALL)
EARLY = re.compile(
    r"(?<!\|)\|&?[ \t]*(?:"
    r"[efz]?grep\b[^|;&\n]*?\s(?:-\w*[qml]|--quiet|--silent|--max-count)"
    r"|head\b"
    r"|[gmn]?awk\b[^|\n]*\bexit\b"
    r"|sed\b[^|\n]*?[\d$/;{' ]q(?=['\";}\s]|$)"
    r"|(?:read|true|false|cmp)\b|:(?=\s|$)"
    r")",
    re.MULTILINE,
)
CONTINUED = re.compile(r"(?:\\|(?<=\|)(?<!: \|))\n\s*")


def early_readers(script: str) -> list[str]:
    """Each pipe into such a command, as it is written. A comment is not carried out."""
    lines = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("#"))
    return [match[0] for match in EARLY.finditer(CONTINUED.sub(" ", lines))]


def scripts() -> Iterator[tuple[str, str]]:
    """Path and text of all that a shell carries out: scripts, the Makefile, workflows, code blocks of pages."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if not path.is_file():
            continue
        head = path.read_bytes()[:64].split(b"\n")[0]
        if path.suffix == ".md":
            yield name, "\n".join(FENCED.findall(path.read_text(encoding="utf-8")))
        elif (
            re.match(rb"#!.*\b(ba|da|z)?sh\b", head)
            or path.suffix in (".sh", ".yml", ".yaml")
            or path.name in ("Makefile", "Dockerfile")
        ):
            yield name, path.read_text(encoding="utf-8")


def test_no_pipe_ends_in_a_command_that_leaves_early() -> None:
    looked = dict(scripts())
    assert {"Makefile", "Dockerfile", ".ci/run", "k8s/kind/up", "k8s/kind/down", "README.md"} <= set(looked)
    assert {name: pipes for name, text in looked.items() if (pipes := early_readers(text))} == {}


@pytest.mark.parametrize(
    "line",
    [
        'kind get clusters | grep -qxF "$cluster"',
        "a | grep -E -q b",
        "a | grep --quiet b",
        "a | grep -m1 b",
        "a |& head -n 1",
        "a | \\\n  head -1",
        "a |\n  head -1",
        "grep -A30 x y | awk 'NR>1 && !/^ /{exit} {print}'",
        "a | sed -n '/x/q'",
        "a | sed 1q",
        "a | sed '5q;d'",
        "a | read -r line",
        "a | cat | grep -q b",
    ],
)
def test_such_a_pipe_is_seen(line: str) -> None:
    assert len(early_readers(line)) == 1


@pytest.mark.parametrize(
    "line",
    [
        "a || true",
        'grep -qxF "$cluster" <<<"$clusters"',
        "a | grep -v b",
        "a | tail -n 3",
        "a | sed 's/quick/q/'",
        "a | awk '{print $1}'",
        "if grep -q x file; then a | sort; fi",
        "a | sort || head file",
        "# a | head",
        "run: |\n  head file",
        "a | grep -c b && grep -q c d",
    ],
)
def test_others_are_not(line: str) -> None:
    assert early_readers(line) == []
