"""The settings of git that may name a program, taken from git's own manual, and what git does with each.

`python -m tests.support.git_programs` writes the list again, from the manual and the git of this machine; settings
that only another version's manual has stay in it. A setting is in the list if its description speaks of a program:
more than those that start one, so that none is overlooked.
"""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.git_repositories import ENV, Made

LIST = Path(__file__).with_suffix(".tsv")
_PAGES = ("git-config", "gitattributes", "git-interpret-trailers")
_ALSO = (  # named outside of the entries of these pages, or by later versions alone
    "filter.<driver>.process",
    "core.attributesFile",
    "trailer.<token>.command",
    "trailer.<token>.cmd",
    "hook.<name>.command",
)
_NAME = re.compile(r"[\w<>*-]+(?:\.[\w<>*-]+)+")
_ENTRY = re.compile(
    r"^\.PP\n((?:[a-z][\w\\&.<>*-]*\\&\.[^\n ]+(?:, )?\n?)+)\.RS 4\n(.*?)(?=^\.PP\n|\Z)", re.M | re.S
)
_PROGRAM = re.compile(
    r"\b(?:command|program|executable|shell|hook|hooks|script|helper|daemon|pager|editor|browser|tool|driver|ssh)\b",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(r"<[^>]+>|\*")
_SIGNATURE = "gpgsig -----BEGIN {0} SIGNATURE-----\n \n iQ==\n -----END {0} SIGNATURE-----\n"
_HOOKS = ("pre-commit", "post-index-change", "reference-transaction", "post-checkout")
# Plain git, called like this in an armed repository, starts the program of every setting that can start one.
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "status": ("status",),
    "log": ("log", "-p", "--show-signature"),
    "log ssh": ("log", "--show-signature", "side"),
    "diff": ("diff", "HEAD"),
    "add": ("add", "-A"),
    "add -p": ("add", "-p"),
    "commit": ("commit", "-am", "x"),
    "edit": ("commit", "--amend"),
    "sign": ("commit", "--amend", "-S", "-m", "x"),
    "merge": ("merge", "-m", "x", "other"),
    "rebase": ("rebase", "--autostash", "-i", "HEAD~1"),
    "fetch": ("fetch", "evil"),
    "push": ("push", "evil", "HEAD:refs/heads/x"),
    "ssh": ("fetch", "ssh://127.0.0.1:1/x"),
    "git": ("fetch", "git://127.0.0.1:1/x"),
    "login": ("credential", "fill"),
    "trailers": ("interpret-trailers", "--trailer", "evil: x"),
    "difftool": ("difftool", "-y", "--tool=evil", "HEAD"),
    "alias": ("evil",),
}
_READ = (("log", "-p", "-1"), ("status",), ("branch",), ("ls-files", "--others"), ("diff", "HEAD"))


@dataclass(frozen=True)
class ProgramSetting:
    """`effect`: "refused", git reads nothing of a configuration in which it names a program; else "accepted", or
    the name of the command (`COMMANDS`) that starts the program."""

    name: str
    effect: str

    @property
    def is_started(self) -> bool:
        return self.effect in COMMANDS


def read_list() -> list[ProgramSetting]:
    rows = (row.split("\t") for row in LIST.read_text().splitlines())
    return [ProgramSetting(name, effect) for name, effect in rows]


class ArmedRepository:
    """A repository whose configuration names programs that leave a mark. Every path has attributes that name
    drivers; the last commits of `main` and `side` have signatures; `other` conflicts with `main`."""

    def __init__(self, folder: Path) -> None:
        self.marks, self.programs = folder / "marks", folder / "programs"
        for each in (self.marks, self.programs):
            each.mkdir(parents=True)
        Made(folder / "evil")
        self.made = made = Made(folder / "shop")
        made.write("CLAUDE.md", "Main.\n")
        made.write(".gitattributes", "* diff=evil filter=evil merge=evil\n")
        made.write("other.txt", "0\n")
        self.before = made.commit("Start", shop__cart="def total():\n    return 0\n")
        made.git("checkout", "-qb", "other")
        made.write("other.txt", "1\n")
        made.commit("Other")
        made.git("checkout", "-q", "main")
        made.write("other.txt", "2\n")
        made.write("shop/cart.py", "def total():\n    return 1\n")
        made.write("tests/test_cart.py", "from shop.cart import total\n\ndef test():\n    assert total() == 1\n")
        made.git("add", "-A")
        tree = made.git("write-tree")
        self.fix = self._sign(tree, "PGP", "main")
        self._sign(tree, "SSH", "side")
        made.git("remote", "add", "evil", str(folder / "evil"))
        shutil.rmtree(self.git_dir / "hooks")  # samples
        made.write("CLAUDE.md", "Edited.\n")

    def _sign(self, tree: str, kind: str, branch: str) -> str:
        who = "a <a@b> 1700010000 +0000"
        head = f"tree {tree}\nparent {self.before}\nauthor {who}\ncommitter {who}\n"
        path = self.programs.parent / "raw"
        path.write_text(f"{head}{_SIGNATURE.format(kind)}\nFix the total of a cart\n")
        commit = self.made.git("hash-object", "-t", "commit", "-w", str(path))
        self.made.git("update-ref", f"refs/heads/{branch}", commit)
        return commit

    @property
    def git_dir(self) -> Path:
        return self.made.folder / ".git"

    @property
    def started(self) -> set[str]:
        """Names of the settings and hooks whose program was started."""
        return {path.name for path in self.marks.iterdir()}

    def arm(self, settings: Iterable[ProgramSetting]) -> None:
        """Add the settings to its configuration, each with another program."""
        with (self.git_dir / "config").open("a") as file:
            file.writelines(map(self._line, settings))

    def arm_hooks(self) -> None:
        """The ones in its `hooks` folder, and its own attributes file."""
        self._hooks(self.git_dir / "hooks", "hook")
        (self.git_dir / "info/attributes").write_text("* diff=evil filter=evil\n")

    def break_includes(self) -> None:
        """Include a file that no git can read."""
        (self.git_dir / "broken").write_text("[broken\n")
        with (self.git_dir / "config").open("a") as file:
            file.write("[include]\n\tpath = broken\n")

    def _line(self, setting: ProgramSetting) -> str:
        section, _, variable = _PLACEHOLDER.sub("evil", setting.name.replace("<format>", "ssh")).rpartition(".")
        head, _, sub = section.partition(".")
        title = f'[{head} "{sub}"]' if sub else f"[{head}]"
        value = f"{'!' if head == 'alias' else ''}{self._program(setting.name)}"
        if setting.name == "core.hooksPath":
            value = str(self._hooks(self.programs / "hooks", setting.name))
        return f"{title}\n\t{variable} = {value}\n"

    def _hooks(self, folder: Path, name: str) -> Path:
        folder.mkdir(exist_ok=True)
        for hook in _HOOKS:
            (folder / hook).symlink_to(self._program(name))
        return folder

    def _program(self, name: str) -> Path:
        path = self.programs / re.sub(r"[^\w.-]", "_", name)  # git passes it to a shell
        if not path.exists():
            path.write_text(f'#!/bin/sh\ntouch "{self.marks}/{name}"\n')
            path.chmod(0o755)
        return path

    def run_plain_git(self, *words: str) -> int:
        """The exit code, in its work tree."""
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
        ended = subprocess.run(
            ("git", *who, *words), cwd=self.made.folder, input=b"protocol=https\nhost=nowhere.invalid\n\n",
            env=ENV | {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "file:ssh:git"},
            capture_output=True, check=False, timeout=60,
        )  # fmt: skip
        return ended.returncode


def copy_armed(template: ArmedRepository, folder: Path, setting: ProgramSetting) -> ArmedRepository:
    """A copy whose configuration has this setting alone."""
    shutil.copytree(template.programs.parent, folder, symlinks=True)
    copy = ArmedRepository.__new__(ArmedRepository)
    copy.__dict__.update(template.__dict__)
    copy.marks, copy.programs = folder / "marks", folder / "programs"
    copy.made = Made.__new__(Made)
    copy.made.folder, copy.made._clock = folder / "shop", template.made._clock
    copy.arm([setting])
    return copy


def _effect_of(name: str, template: ArmedRepository) -> str:
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_armed(template, Path(folder) / "copy", ProgramSetting(name, ""))
        is_read = not any(copy.run_plain_git(*words) for words in _READ)
        for path in copy.marks.iterdir():
            path.unlink()
        for command, words in COMMANDS.items():
            copy.run_plain_git(*words)
            if copy.started:
                return command
    return "accepted" if is_read else "refused"


def _read_manual(text: str) -> Iterator[str]:
    """Settings whose description speaks of a program, `<name>` for a part that a user chooses."""
    for names, description in _ENTRY.findall(text):
        if _PROGRAM.search(description.replace("\\-", "-").replace("\\&", "")):
            yield from names.replace("\\&", "").replace("\\-", "-").replace("\\fB", "").replace("\\fR", "").split()


def main() -> None:
    places = subprocess.run(("man", "-w", *_PAGES), capture_output=True, text=True, check=True).stdout.split()
    texts = (gzip.decompress(Path(place).read_bytes()).decode() for place in places)
    names = {word.strip(",") for text in texts for word in _read_manual(text)}
    known = [setting.name for setting in read_list()] if LIST.exists() else []
    with tempfile.TemporaryDirectory() as folder:
        template = ArmedRepository(Path(folder) / "template")
        settings = sorted({*filter(_NAME.fullmatch, names), *_ALSO, *known})
        LIST.write_text("".join(f"{name}\t{_effect_of(name, template)}\n" for name in settings))


if __name__ == "__main__":
    main()
