"""What reaches the command line: operators' errors with a way out, bugs as they are; output in any encoding."""

from __future__ import annotations

import errno
import os
import pathlib
import subprocess
import sys
from pathlib import Path

import pytest

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import ObjectError
from trialfleet_ledger.operator_errors import missing_package, operator_error
from trialfleet_ledger.store.files import speaking
from trialfleet_ledger.store.protocol import StoreError
from trialfleet_repository.git import GitError
from trialfleet_runner.standard_streams import ascii_of


def hint_of(error: Exception) -> str:
    known = operator_error(error)
    assert known is not None
    assert known.hint is not None
    return known.hint


def test_a_store_that_does_not_answer_is_the_operators() -> None:
    known = operator_error(StoreError("s3://b/p: k: no answer within 120 s"))
    assert str(known).startswith("s3://b/p: k: no answer within 120 s\n  fix: start the store")


def test_a_store_that_is_full_needs_room() -> None:
    assert hint_of(StoreError("s3://b/p: k: the store is full", hint="raise its quota")) == "raise its quota"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "free disk space"),
        (errno.EROFS, "a place that can be written"),
        (errno.ENOTDIR, "a file is where a folder is needed"),
        (errno.EISDIR, "a folder is where a file is needed"),
        (errno.EACCES, "permissions"),
    ],
)
def test_a_file_system_that_refuses_is_the_operators(number: int, words: str) -> None:
    known = operator_error(OSError(number, "refused", "/srv/runs"))
    assert known is not None
    assert known.where == "/srv/runs"
    assert words in (known.hint or "")


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENAMETOOLONG, "use a shorter path"), (errno.EMFILE, "ulimit -n"), (errno.EIO, "check the disk")],
)
def test_a_folder_of_a_store_that_refuses_is_no_store_that_is_down(number: int, words: str) -> None:
    with pytest.raises(StoreError) as raised, speaking("runs/demo"):
        raise OSError(number, os.strerror(number))
    assert words in hint_of(raised.value)


def test_a_program_that_fails_is_the_operators() -> None:
    assert "check that the program works here" in hint_of(GitError("git fast-import: exit 1"))
    assert "free disk space" in hint_of(GitError("git add: write error: No space left on device"))


def test_a_damaged_object_is_the_operators() -> None:
    assert "restore it in the store" in hint_of(ObjectError("object ab: its 327698 bytes expand to more than 9"))


def test_short_memory_is_the_operators() -> None:
    assert "raise the limit" in hint_of(MemoryError())
    error = ImportError("libarrow.so.26: failed to map segment from shared object", path="/site/lib.cpython.so")
    assert "where memory is short" in hint_of(error)


def test_an_error_that_cannot_be_printed_keeps_its_exit_code() -> None:
    with pathlib.Path("/dev/full").open("w", encoding="utf-8") as full:
        for words in (["status", "no-such-file.yaml"], ["status", "--no-such-option"]):
            ended = subprocess.run([sys.executable, "-m", "trialfleet_runner.console", *words], stderr=full)
            assert ended.returncode == 2, words


@pytest.mark.parametrize(
    "bug",
    [
        KeyError("x"),
        OSError("no number"),
        FileNotFoundError(2, "gone", "/x"),
        ImportError("cannot import name 'x'", path="/trialfleet_ledger/fold.py"),
    ],
)
def test_a_bug_stays_a_bug(bug: Exception) -> None:
    assert operator_error(bug) is None


@pytest.mark.parametrize("module", ["scipy.stats", "statsmodels", "tree_sitter_rust"])
def test_a_missing_package_is_said(module: str) -> None:
    assert hint_of(ModuleNotFoundError(name=module)).startswith("install trialfleet again")


def test_a_module_that_no_requirement_brings_is_a_bug() -> None:
    assert missing_package(ModuleNotFoundError(name="trialfleet_lost")) is None


def test_an_operators_error_is_itself() -> None:
    error = OperatorError("reps must be at least 1")
    assert operator_error(error) is error


PRINTS = """
import sys
from trialfleet_runner.standard_streams import prepare_streams
prepare_streams()
import click
click.echo(sys.argv[1].encode("utf-8", "surrogatepass").decode("utf-8", "surrogatepass") + "\\udce9")
print(sys.argv[1], file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("ascii", b"95% - >= 3 ... e ok ?<U+202E>"),
        ("latin-1", b"95% - >= 3 ... \xe9 ok ?<U+202E>"),
        ("cp1252", b"95% \x96 >= 3 \x85 \xe9 ok ?<U+202E>"),
        ("utf-8", "95% – ≥ 3 … é ✓ 漢⟨U+202E⟩".encode()),
    ],
)
def test_output_is_replaced_where_the_encoding_lacks_it(encoding: str, shown: bytes) -> None:
    text = "95% – ≥ 3 … é ✓ 漢\u202e"
    ended = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", PRINTS, text],
        env={"PYTHONIOENCODING": encoding, "PATH": ""},
        capture_output=True,
        check=True,
    )
    unpaired = "⟨U+DCE9⟩".encode() if encoding == "utf-8" else b"<U+DCE9>"
    assert ended.stdout == shown + unpaired + b"\n"
    assert ended.stderr == shown + b"\n"


def test_paths_are_utf8_in_every_locale(tmp_path: Path) -> None:
    (tmp_path / "größe-漢.yaml").write_text("campaign: demo\n", encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "trialfleet_runner.console", "status", "größe-漢.yaml"],
        env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 2
    said = [line for line in ended.stderr.splitlines() if b" is at work; " not in line]  # as a slow machine says
    assert said[0].startswith(b"trialfleet: gro?e-?.yaml:1:")


def test_every_replacement_is_ascii() -> None:
    assert all(ascii_of(chr(code)).isascii() for code in range(0x80, 0x3000))


def test_a_reader_that_has_gone_ends_the_command_with_141() -> None:
    script = PRINTS.replace("click.echo", "[click.echo(n) for n in range(100000)]; click.echo")
    with subprocess.Popen(
        [sys.executable, "-c", script, "x"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr is not None
        assert running.stderr.read() == b""
    assert running.returncode == 141
