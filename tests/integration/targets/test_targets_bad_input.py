"""What a repository may be, and what is said of it: made by git here, read as it is."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.git_repositories import ENV, Made, shop
from trialfleet_targets.errors import TargetsError
from trialfleet_targets.evaluation.run import evaluate
from trialfleet_targets.index import index_at
from trialfleet_targets.repository import Repository
from trialfleet_targets.snapshot_reader import snapshot_at


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "made")


def clone(source: Made, target: Path, *options: str) -> Path:
    argv = ["git", "clone", "-q", *options, f"file://{source.folder}", str(target)]
    subprocess.run(argv, env=ENV, check=True, capture_output=True)
    return target


def refusal(folder: Path | str, at: str | None = None) -> tuple[str, str]:
    with pytest.raises(TargetsError) as caught:
        snapshot_at(folder, at)
    assert caught.value.hint
    return str(caught.value), caught.value.hint


def skipped(folder: Path) -> dict[str, str]:
    return {one.path: one.why for one in snapshot_at(folder).skipped}


def test_what_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "file").write_text("x")
    assert "is not a git repository" in refusal(tmp_path / "plain")[0]
    assert "is not a folder" in refusal(tmp_path / "file")[0]
    assert "does not exist" in refusal(tmp_path / "none")[0]
    assert str(tmp_path / "none") in refusal(tmp_path / "none")[0]


def test_without_git(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made.commit("one", a="x = 1\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refusal(made.folder) == ("git is not installed", "install git 2.30 or newer")


def test_empty_history(made: Made) -> None:
    assert "has no commit yet" in refusal(made.folder)[0]
    assert "has no commit yet" in refusal(made.folder, "main")[0]


def test_one_file(made: Made) -> None:
    made.commit("Add the only file", only="def f():\n    return 1\n")
    found = snapshot_at(made.folder)
    assert list(found.files) == ["only.py"]
    assert [one.name for one in found.files["only.py"].facts.definitions] == ["f"]
    assert [(one.subject, one.added) for one in found.history] == [("Add the only file", ("only.py",))]


def test_no_language_with_a_grammar(made: Made) -> None:
    made.write("a.rb", "puts 1\n")
    made.write("README", "x")
    made.commit("one")
    found = snapshot_at(made.folder)
    assert not found.files
    assert "no file in a language with a grammar" in found.notes


def test_a_tree_without_files(made: Made) -> None:
    made.commit("nothing")
    assert not snapshot_at(made.folder).files


def test_files_that_do_not_parse(made: Made) -> None:
    made.write("broken.py", "def f(:\n  class\n")
    made.write("binary.go", bytes(range(256)) * 40)
    made.write("latin.py", "def caf\u00e9(): pass\n".encode("latin-1"))
    made.write("deep.ts", "(" * 50_000)
    made.write("empty.rs", "")
    made.commit("one")
    began = time.monotonic()
    found = snapshot_at(made.folder)
    assert set(found.files) == {"broken.py", "binary.go", "latin.py", "deep.ts", "empty.rs"}
    assert "caf" in found.files["latin.py"].text
    assert all(file.facts.language for file in found.files.values())
    assert time.monotonic() - began < 60


def test_generated_files_of_ten_megabytes(made: Made) -> None:
    made.write("big.js", b"var a = [1];\n" * 800_000)
    made.commit("one", small="x = 1\n")
    assert skipped(made.folder) == {"big.js": "too large"}
    assert list(snapshot_at(made.folder).files) == ["small.py"]


def test_links_are_not_followed(made: Made) -> None:
    made.commit("one", a="x = 1\n")
    (made.folder / "loop").symlink_to("loop")
    (made.folder / "up").symlink_to("..")
    (made.folder / "link.py").symlink_to("/etc/passwd")
    made.commit("links")
    found = snapshot_at(made.folder)
    assert list(found.files) == ["a.py"]
    assert skipped(made.folder) == {"link.py": "symbolic link"}


def test_names_that_nobody_should_print(made: Made) -> None:
    made.write("good.py", "x = 1\n")
    os.close(os.open(os.fsencode(made.folder) + b"/caf\xe9.py", os.O_CREAT | os.O_WRONLY))
    made.write("red\x1b[31m.py", "x = 1\n")
    made.write("two\nlines.py", "x = 1\n")
    made.write("s\u00fc\u00df.py", "x = 1\n")
    made.commit("names")
    index = index_at(made.folder)
    assert list(index.paths) == ["good.py", "s\u00fc\u00df.py"]
    assert dict(index.skipped) == {
        "caf\udce9.py": "its name is not UTF-8",
        "red\x1b[31m.py": "its name cannot be printed",
        "two\nlines.py": "its name cannot be printed",
    }


def test_shallow_clone(tmp_path: Path) -> None:
    made = shop(tmp_path / "made")
    found = snapshot_at(clone(made, tmp_path / "shallow", "--depth=2"))
    assert found.shallow
    assert "a shallow clone: its history ends after 2 commits" in found.notes
    newest, end = found.history
    assert newest.changed == ("shop/prices.py",)
    assert end.changed == ()  # not "everything was added"
    assert list(found.files) == list(snapshot_at(made.folder).files)


def test_a_shallow_clone_and_a_full_one_do_not_share_what_differs(tmp_path: Path) -> None:
    made = shop(tmp_path / "made")
    shallow = clone(made, tmp_path / "shallow", "--depth=1")
    cache = tmp_path / "cache"
    assert [one.changed for one in snapshot_at(shallow, cache=cache).history] == [()]
    assert snapshot_at(made.folder, cache=cache).history[0].changed == ("shop/prices.py",)


def test_partial_clone_downloads_nothing(tmp_path: Path) -> None:
    made = shop(tmp_path / "made")
    made.git("config", "uploadpack.allowFilter", "true")
    bare = clone(made, tmp_path / "partial", "--bare", "--filter=blob:none")
    before = sorted(bare.rglob("objects/**/*"))
    found = snapshot_at(bare)
    assert not found.files
    assert {one.why for one in found.skipped} == {"not in this partial clone"}
    assert len(found.history) == 3
    assert sorted(bare.rglob("objects/**/*")) == before


def test_missing_objects(made: Made) -> None:
    made.commit("one", a="x = 1\n")
    blob = made.git("rev-parse", "HEAD:a.py")
    (made.folder / ".git/objects" / blob[:2] / blob[2:]).unlink()
    said, hint = refusal(made.folder)
    assert blob in said
    assert "fsck" in hint


def test_a_missing_tree_of_the_history_is_the_operators(made: Made) -> None:
    made.commit("one", a="x = 1\n")
    made.commit("Fix the sum of all the prices", a="x = 2\n")
    tree = made.git("rev-parse", "HEAD~1^{tree}")
    (made.folder / ".git/objects" / tree[:2] / tree[2:]).unlink()
    with pytest.raises(TargetsError, match=tree) as caught:
        list(evaluate(Repository.open(made.folder), "made", most=5))
    assert "fsck" in caught.value.hint
    assert "hint:" not in str(caught.value)


def test_bare_repository_linked_work_tree_and_folder(tmp_path: Path) -> None:
    made = shop(tmp_path / "made")
    bare = clone(made, tmp_path / "bare", "--bare")
    made.git("worktree", "add", "-q", str(tmp_path / "linked"))
    wanted = snapshot_at(made.folder)
    for folder in (bare, tmp_path / "linked", made.folder / "shop", made.folder / ".git"):
        found = snapshot_at(folder)
        assert (found.commit, list(found.files)) == (wanted.commit, list(wanted.files))


def test_submodules_are_named_and_not_read(made: Made, tmp_path: Path) -> None:
    other = shop(tmp_path / "other")
    made.commit("one", a="x = 1\n")
    made.git("submodule", "--quiet", "add", str(other.folder), "vendored")
    made.commit("with a submodule")
    found = snapshot_at(made.folder)
    assert list(found.files) == ["a.py"]
    assert skipped(made.folder) == {"vendored": "submodule"}
    assert "1 submodule not read" in found.notes


def test_merge_commits_have_no_changes_of_their_own(tmp_path: Path) -> None:
    made = shop(tmp_path / "made")
    made.git("checkout", "-qb", "side", "HEAD~1")
    made.commit("On the side", side="x = 1\n")
    made.git("checkout", "-q", "main")
    made.git("merge", "-q", "--no-ff", "-m", "Merge the side", "side")
    merge, *rest = snapshot_at(made.folder).history
    assert (merge.subject, merge.merge, merge.changed) == ("Merge the side", True, ())
    assert {one.subject for one in rest} >= {"On the side", "Start the shop"}
    assert not any(one.merge for one in rest)


@pytest.mark.parametrize(
    "at",
    [
        "nope",
        "-x",
        "--output=/tmp/x",
        "--",
        "",
        "HEAD..HEAD~1",
        "^HEAD",
        "HEAD:shop",
        "a\0b",
        "\x1b[31m",
        "x" * 9999,
    ],
)
def test_at_that_names_no_commit(tmp_path: Path, at: str) -> None:
    made = shop(tmp_path / "made")
    said, hint = refusal(made.folder, at)
    assert "--at" in said
    assert "names no commit" in said
    assert "branch" in hint
    assert said.isprintable()
    assert len(said) < 1000


def test_at_a_branch_a_tag_and_an_abbreviation(tmp_path: Path) -> None:
    made = shop(tmp_path / "made")
    first = made.git("rev-parse", "HEAD~2")
    made.git("branch", "older", first)
    made.git("tag", "-am", "annotated", "v1", first)
    made.git("branch", "-f", "v-x", first)
    for at in ("older", "v1", "refs/tags/v1", first[:10], "HEAD~2", "v-x"):
        assert snapshot_at(made.folder, at).commit == first


def test_a_hostile_repository_runs_nothing(tmp_path: Path) -> None:
    made = shop(tmp_path / "made")
    witness = tmp_path / "executed"
    run = tmp_path / "run.sh"
    run.write_text(f"#!/bin/sh\ntouch {witness}\ncat\n")
    run.chmod(0o755)
    made.write(".gitattributes", "*.py diff=evil filter=evil\n")
    made.commit("attributes")
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "fsmonitor-watchman"):
        made.write(f".git/hooks/{hook}", run.read_text()).chmod(0o755)
    for key in (
        "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.gitProxy", "core.askPass",
        "core.alternateRefsCommand", "diff.external", "diff.evil.textconv", "diff.evil.command",
        "filter.evil.smudge", "filter.evil.clean", "filter.evil.process", "gpg.program", "pager.log",
        "uploadpack.packObjectsHook", "credential.helper", "alias.log", "alias.rev-parse",
    ):  # fmt: skip
        made.git("config", key, f"!{run}" if key.startswith("alias.") else str(run))
    for key, value in (("log.showSignature", "true"), ("log.follow", "true"), ("diff.renames", "copies"),
                       ("log.diffMerges", "separate"), ("diff.orderFile", str(tmp_path / "none")),
                       ("color.ui", "always"), ("core.quotePath", "true"), ("i18n.logOutputEncoding", "latin1"),
                       ("core.worktree", "/"), ("diff.relative", "true"), ("format.pretty", "short")):  # fmt: skip
        made.git("config", key, value)
    signed = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--stdin"], cwd=made.folder, env=ENV, check=True,
        capture_output=True,
        input=subprocess.run(["git", "cat-file", "commit", "HEAD"], cwd=made.folder, env=ENV, check=True,
                             capture_output=True).stdout.replace(
            b"\n\n", b"\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n", 1
        ),
    )  # fmt: skip
    commit = signed.stdout.decode().strip()
    witness.unlink(missing_ok=True)
    found = snapshot_at(made.folder, commit)
    assert not witness.exists()
    assert found.history[0].changed == (".gitattributes",)
    assert len(found.history) == 4


def test_alternates(tmp_path: Path) -> None:
    made = shop(tmp_path / "made")
    shared = tmp_path / "shared"
    subprocess.run(["git", "clone", "-q", "--shared", str(made.folder), str(shared)], env=ENV, check=True)
    assert list(snapshot_at(shared).files) == list(snapshot_at(made.folder).files)
    (shared / ".git/objects/info/alternates").write_text("/nowhere\n")
    refusal(shared)


def test_replaced_commits_and_grafts_do_not_count(tmp_path: Path) -> None:
    made = shop(tmp_path / "made")
    wanted = [one.sha for one in snapshot_at(made.folder).history]
    made.git("replace", wanted[0], wanted[2])
    made.write(".git/info/grafts", f"{wanted[0]}\n")
    assert [one.sha for one in snapshot_at(made.folder).history] == wanted


def test_messages_that_look_like_the_output_of_git(made: Made) -> None:
    made.write("a.py", "x = 1\n")
    made.git("add", "-A")
    message = "Subject \x1f with a separator\n\n\x1e" + "0" * 40 + "\x1f\n:100644 100644 0 0 M\nb.py"
    made.git("commit", "-qm", message)
    made.write("\x1efake.txt", "x")
    made.commit("names")
    newest, oldest = snapshot_at(made.folder).history
    assert newest.changed == ("\x1efake.txt",)
    assert oldest.changed == ("a.py",)
    assert oldest.subject.startswith("Subject")


def test_environment_of_the_caller_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, other = shop(tmp_path / "made"), Made(tmp_path / "other")
    wanted = Repository.open(made.folder).resolve()
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.bare=true'")
    assert snapshot_at(made.folder).commit == wanted
