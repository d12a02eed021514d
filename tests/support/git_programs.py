"""The settings of git that may name a program, taken from git's own manual.

`python -m tests.support.git_programs` writes the list again, from git-config(1) of this machine; settings that
only the manual of another version has stay in it. A setting is in the list if its description speaks of a program:
more than those that start one, so that none is overlooked. The second column says whether git accepts a program's
path there.
"""

from __future__ import annotations

import gzip
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.support.git_repositories import Made

LIST = Path(__file__).with_suffix(".tsv")
ALSO = (
    "filter.<driver>.process",
    "core.attributesFile",
)  # gitattributes(5) describes the first, git-config(1) not
_NAME = re.compile(r"[\w<>*-]+(?:\.[\w<>*-]+)+")
_ENTRY = re.compile(
    r"^\.PP\n((?:[a-z][\w\\&.<>*-]*\\&\.[^\n ]+(?:, )?\n?)+)\.RS 4\n(.*?)(?=^\.PP\n|\Z)", re.M | re.S
)
_PROGRAM = re.compile(
    r"\b(?:command|program|executable|shell|hook|hooks|script|helper|daemon|pager|editor|browser|tool|driver|ssh)\b",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(r"<[^>]+>|\*")


def read_manual(text: str) -> Iterator[str]:
    """Settings whose description speaks of a program, `<name>` for a part that a user chooses."""
    for names, description in _ENTRY.findall(text):
        plain = description.replace("\\-", "-").replace("\\&", "")
        if _PROGRAM.search(plain):
            yield from names.replace("\\&", "").replace("\\-", "-").replace("\\fB", "").replace("\\fR", "").split()


def list_settings() -> dict[str, bool]:
    """Name -> whether git accepts the path of a program as its value; where not, it reads nothing of that file."""
    rows = (row.split("\t") for row in LIST.read_text().splitlines())
    return {name: accepted == "path" for name, accepted in rows}


def concrete(name: str) -> str:
    """
    >>> concrete("filter.<driver>.smudge"), concrete("gpg.<format>.program")
    ('filter.evil.smudge', 'gpg.ssh.program')
    """
    return _PLACEHOLDER.sub("evil", name.replace("<format>", "ssh"))


def accepts_a_path(name: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        made = Made(Path(folder) / "made")
        made.commit("Start", a="1\n")
        made.git("config", concrete(name), "/nowhere/program")
        try:
            for command in (("status",), ("log", "-p"), ("diff", "HEAD"), ("branch",), ("ls-files",)):
                made.git(*command)
        except RuntimeError as error:
            return "/nowhere/program" in str(error) and "bad" not in str(error)
    return name != "core.worktree"


def main() -> None:
    page = subprocess.run(("man", "-w", "git-config"), capture_output=True, text=True, check=True).stdout.strip()
    with gzip.open(page, "rt") as manual:
        names = {word.strip(",") for word in read_manual(manual.read())}
    settings = sorted({*filter(_NAME.fullmatch, names), *ALSO, *(list_settings() if LIST.exists() else ())})
    LIST.write_text("".join(f"{name}\t{'path' if accepts_a_path(name) else 'other'}\n" for name in settings))


if __name__ == "__main__":
    main()
