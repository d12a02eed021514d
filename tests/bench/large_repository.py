"""A repository of any size with files as people write them: names from a small vocabulary, imports of neighbours,
functions that call one another, and a history of small commits. Written as one stream for `git fast-import`."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

_SYLLABLES = ("ac", "bel", "cor", "dan", "eth", "fil", "gor", "hab", "ist", "jun", "kel", "lor", "mar", "nov",
              "ot", "pre", "qua", "rin", "sto", "tal", "um", "ver", "wex", "yl", "zan")  # fmt: skip
_VERBS = ("get", "set", "load", "save", "parse", "render", "build", "check", "find", "merge", "split", "send",
          "close", "open", "read", "write", "apply")  # fmt: skip
START = 1_600_000_000


def make(folder: Path, *, files: int = 10_000, commits: int = 4_000, seed: int = 1) -> None:
    """A bare repository in `folder`: one commit that adds everything, then `commits` of 1–4 files each."""
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(folder)], check=True, env=env)
    argv = ["git", "-C", str(folder), "fast-import", "--quiet"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, env=env) as importer:
        assert importer.stdin is not None
        for part in _stream(files, commits, random.Random(seed)):
            importer.stdin.write(part)
        importer.stdin.close()
    if importer.returncode != 0:
        raise RuntimeError("git fast-import failed")


def one_commit_more(folder: Path, *, seed: int = 2) -> None:
    """Another commit on the same branch that modifies three files."""
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    draw, words = random.Random(seed), _words(random.Random(0))
    listing = (
        subprocess.run(
            ["git", "-C", str(folder), "ls-tree", "-r", "--name-only", "main"],
            check=True,
            env=env,
            capture_output=True,
        )
        .stdout.decode()
        .split()
    )
    chosen = draw.sample(listing, 3)
    stream = b"".join(_commit(START + 10**8, "Fix the last thing", chosen, draw, words, parent=b"from main^0\n"))
    subprocess.run(["git", "-C", str(folder), "fast-import", "--quiet"], input=stream, check=True, env=env)


def _stream(files: int, commits: int, draw: random.Random) -> Iterator[bytes]:
    words = _words(random.Random(0))
    paths = _paths(files, draw, words)
    yield from _commit(START, "Import", paths, draw, words)
    for number in range(commits):
        subject = " ".join(("Fix", *draw.choices(words, k=6)))
        near = draw.randrange(max(1, files - 4))
        changed = (
            sorted({paths[near + draw.randrange(4)] for _ in range(draw.randint(1, 4))}) if files > 4 else paths
        )
        yield from _commit(START + 7200 * (number + 1), subject, changed, draw, words)


def _commit(
    time: int, subject: str, paths: list[str], draw: random.Random, words: list[str], parent: bytes = b""
) -> Iterator[bytes]:
    yield b"commit refs/heads/main\ncommitter a <a@b> %d +0000\n" % time + _data(subject.encode()) + parent
    for path in paths:
        yield b"M 100644 inline %s\n" % path.encode() + _data(source(path, draw, words).encode())
    yield b"\n"


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)


def _words(draw: random.Random) -> list[str]:
    """Most frequent first, as `source` draws them."""
    return list(dict.fromkeys("".join(draw.choices(_SYLLABLES, k=draw.randint(2, 3))) for _ in range(6000)))


def _paths(files: int, draw: random.Random, words: list[str]) -> list[str]:
    """25 files to a folder; a tenth are tests."""
    suffixes, found = (".py", ".ts", ".go", ".java", ".rs"), dict[str, None]()
    while len(found) < files:
        folder, suffix = f"src/{draw.choice(words[:200])}/{draw.choice(words)}", draw.choice(suffixes)
        for _ in range(min(25, files - len(found))):
            name = f"{draw.choice(words)}_{draw.choice(words)}"
            test = (
                {".py": "test_{}", ".ts": "{}.test", ".go": "{}_test"}.get(suffix, "{}")
                if draw.random() < 0.1
                else "{}"
            )
            found[f"{folder}/{test.format(name)}{suffix}"] = None
    return list(found)


def source(path: str, draw: random.Random, words: list[str]) -> str:
    """Some 7 KB: imports, a class with methods, functions that call one another."""
    make_one = {".py": _python, ".ts": _typescript, ".go": _go, ".java": _java, ".rs": _rust}[Path(path).suffix]
    return make_one(path, _Draw(draw, words))


class _Draw:
    def __init__(self, draw: random.Random, words: list[str]) -> None:
        self.draw, self._words = draw, words

    def word(self) -> str:
        """Frequent words far more often than rare ones."""
        return self._words[int(len(self._words) * self.draw.random() ** 3)]

    def name(self) -> str:
        return f"{self.draw.choice(_VERBS)}_{self.word()}"

    def camel(self) -> str:
        return self.draw.choice(_VERBS) + self.word().capitalize()

    def sentence(self) -> str:
        return " ".join(self.word() for _ in range(9))

    def times(self, low: int, high: int) -> range:
        return range(self.draw.randint(low, high))


def _python(path: str, some: _Draw) -> str:
    lines = [f'"""{some.sentence()}."""', "", "from __future__ import annotations", ""]
    lines += [f"from src.{some.word()}.{some.word()} import {some.name()}" for _ in some.times(2, 8)]
    for _ in some.times(1, 3):
        lines += ["", "", f"class {some.word().capitalize()}:", f'    """{some.sentence()}."""']
        for _ in some.times(4, 12):
            lines += [
                "",
                f"    def {some.name()}(self, {some.word()}: int) -> int:",
                f"        # {some.sentence()}",
            ]
            lines += [
                f"        {some.word()} = self.{some.name()}({some.name()}({some.word()}))"
                for _ in some.times(2, 8)
            ]
            lines += [f"        return {some.word()}"]
    return "\n".join(lines) + "\n"


def _typescript(path: str, some: _Draw) -> str:
    lines = [f"import {{ {some.camel()} }} from './{some.word()}_{some.word()}'" for _ in some.times(2, 8)]
    for _ in some.times(1, 3):
        lines += ["", f"/** {some.sentence()}. */", f"export class {some.word().capitalize()} {{"]
        for _ in some.times(4, 12):
            lines += [f"  {some.camel()}({some.word()}: number): number {{", f"    // {some.sentence()}"]
            lines += [
                f"    const {some.word()} = this.{some.camel()}({some.camel()}({some.word()}))"
                for _ in some.times(2, 8)
            ]
            lines += [f"    return {some.word()}", "  }"]
        lines += ["}"]
    return "\n".join(lines) + "\n"


def _go(path: str, some: _Draw) -> str:
    lines = [f"package {Path(path).parent.name}", "", "import (", '\t"fmt"', ")", ""]
    lines += [f"// {some.sentence()}", f"type {some.word().capitalize()} struct {{", f"\t{some.word()} int", "}"]
    for _ in some.times(8, 25):
        lines += ["", f"// {some.sentence()}", f"func {some.camel()}({some.word()} int) int {{"]
        lines += [f"\t{some.word()} := {some.camel()}(fmt.Sprint({some.word()}))" for _ in some.times(2, 8)]
        lines += [f"\treturn {some.word()}", "}"]
    return "\n".join(lines) + "\n"


def _java(path: str, some: _Draw) -> str:
    package = ".".join(Path(path).parent.parts)
    lines = [
        f"package {package};",
        "",
        *(f"import src.{some.word()}.{some.word().capitalize()};" for _ in some.times(2, 8)),
    ]
    lines += ["", f"/** {some.sentence()}. */", f"public class {some.word().capitalize()} {{"]
    for _ in some.times(8, 25):
        lines += ["", f"    // {some.sentence()}", f"    public int {some.camel()}(int {some.word()}) {{"]
        lines += [
            f"        int {some.word()} = this.{some.camel()}({some.camel()}({some.word()}));"
            for _ in some.times(2, 8)
        ]
        lines += [f"        return {some.word()};", "    }"]
    return "\n".join([*lines, "}"]) + "\n"


def _rust(path: str, some: _Draw) -> str:
    lines = [f"use crate::{some.word()}::{some.word()}::{some.name()};" for _ in some.times(2, 8)]
    lines += ["", f"/// {some.sentence()}.", f"pub struct {some.word().capitalize()} {{ {some.word()}: u32 }}"]
    for _ in some.times(8, 25):
        lines += ["", f"/// {some.sentence()}", f"pub fn {some.name()}({some.word()}: u32) -> u32 {{"]
        lines += [
            f"    let {some.word()} = {some.name()}({some.name()}({some.word()}));" for _ in some.times(2, 8)
        ]
        lines += [f"    {some.word()}", "}"]
    return "\n".join(lines) + "\n"
