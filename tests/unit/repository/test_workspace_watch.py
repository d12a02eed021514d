"""What counts as an edit of a workspace: real commands, each between two looks, with inotify and without."""

from __future__ import annotations

import errno
import itertools
import os
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from trialfleet_agents.context_files import is_context_file
from trialfleet_repository import workspace_watch
from trialfleet_repository.excluded_paths import Exclusions
from trialfleet_repository.folder_events import EventsUnavailable, FolderEvent, FolderEvents
from trialfleet_repository.ignore_rules import IgnoreRules
from trialfleet_repository.trees import EntryKind, TreeEntry
from trialfleet_repository.workspace import Template, build_template, clone
from trialfleet_repository.workspace_watch import MOST_COMPARED, WatchLost, WorkspaceWatch

A = "x = 1\ny = 2\n"
TREE = {
    "src/a.py": TreeEntry(A.encode()),
    "src/b.py": TreeEntry(b"from src.a import x\n"),
    "src/run.sh": TreeEntry(b"echo run\n"),
    "tests/test_a.py": TreeEntry(b"def test_a():\n    assert True\n"),
    "docs/link.md": TreeEntry(b"../README.md", EntryKind.LINK),
    "README.md": TreeEntry(b"# a > b\n"),
    "AGENTS.md": TreeEntry(b"Be brief.\n"),
    ".gitignore": TreeEntry(b"secret.txt\ndata/*\n!data/kept.txt\ngen/\n"),
}
PATCH = """cat > ../a.diff <<'EOF'
--- a/src/a.py
+++ b/src/a.py
@@ -1,2 +1,2 @@
-x = 1
+x = 5
 y = 2
EOF
"""
WRONG = PATCH.replace("-x = 1", "-x = 9")
ON_A = {"src/a.py": "changed"}

EDITS: dict[str, dict[str, str]] = {
    "sed -i 's/1/5/' src/a.py": ON_A,
    "sed -i.bak 's/1/5/' src/a.py": ON_A,
    "perl -pi -e 's/1/5/' src/a.py": ON_A,
    "python3 - <<'EOF'\nopen('src/a.py', 'w').write('x = 5\\n')\nEOF": ON_A,
    "python3 -c \"open('src/a.py', 'a').write('z = 3')\"": ON_A,
    "cat > ../w.py <<'EOF'\nimport pathlib\npathlib.Path('src/a.py').write_text('')\nEOF\npython3 ../w.py": ON_A,
    f"{PATCH}git apply ../a.diff": ON_A,
    f"{PATCH}patch -p1 < ../a.diff": ON_A,
    f"{PATCH}patch -p1 -b < ../a.diff": ON_A,
    f"{PATCH}git apply - < ../a.diff && git add -A && git commit -qm x": ON_A,
    "awk '{print $1}' src/a.py > ../x && mv ../x src/a.py": ON_A,
    "cat >> src/a.py <<'EOF'\nz = 3\nEOF": ON_A,
    "echo 'x = 5' > src/a.py": ON_A,
    "printf 'z' >> src/a.py": ON_A,
    "echo z | tee src/a.py": ON_A,
    "echo z | tee -a src/a.py > /dev/null": ON_A,
    "cd src && echo z > a.py": ON_A,
    "(cd src; exec 3> a.py; echo z >&3)": ON_A,
    "find . -name 'a.py' -exec sed -i 's/1/5/' {} +": ON_A,
    "grep -rl 'x = 1' src | xargs sed -i 's/1/5/'": ON_A,
    "bash -c \"bash -c 'echo z > src/a.py'\"": ON_A,
    "(sleep 0.02; echo z > src/a.py) & wait": ON_A,
    "truncate -s 3 src/a.py": ON_A,
    "echo z | dd of=src/a.py status=none": ON_A,
    "install -m 644 README.md src/a.py": ON_A,
    "sed -i 's/y = 2/y = 3/' src/a.py && touch -d 2000-01-01 src/a.py": ON_A,
    "ln -sf b.py src/a.py": ON_A,
    "chmod +x src/run.sh": {"src/run.sh": "changed"},
    "ln -sfn ../src docs/link.md": {"docs/link.md": "changed"},
    "touch src/new.py": {"src/new.py": "added"},
    "cat > src/new.py <<'EOF'\nx = 1\nEOF": {"src/new.py": "added"},
    "cp src/a.py src/new.py": {"src/new.py": "added"},
    "ln -s a.py src/new.py": {"src/new.py": "added"},
    "mkdir -p p/q/r && echo z > p/q/r/m.py": {"p/q/r/m.py": "added"},
    "sed -n 'w src/copy.py' src/a.py": {"src/copy.py": "added"},
    "tar -cf - src/a.py | tar -xf - --transform 's/src/lib/'": {"lib/a.py": "added"},
    "echo z > tests/test_b.py": {"tests/test_b.py": "added"},
    "mkdir data && echo z > data/kept.txt && echo z > data/other.txt": {"data/kept.txt": "added"},
    "echo z > 'a > b.txt'": {"a > b.txt": "added"},
    "echo z > ':(glob)x.py'": {":(glob)x.py": "added"},
    "rm src/a.py": {"src/a.py": "removed"},
    "git rm -q src/a.py": {"src/a.py": "removed"},
    "mv src/a.py src/z.py": {"src/a.py": "removed", "src/z.py": "added"},
    "git mv src/a.py src/z.py": {"src/a.py": "removed", "src/z.py": "added"},
    "mv tests checks": {"tests/test_a.py": "removed", "checks/test_a.py": "added"},
    "rm src/a.py && mkdir src/a.py && echo z > src/a.py/z": {"src/a.py": "removed", "src/a.py/z": "added"},
    "rm -r tests && echo z > tests": {"tests/test_a.py": "removed", "tests": "added"},
    "rm src/a.py && mkfifo src/a.py": {"src/a.py": "removed"},
}
NO_EDITS = (
    "cat src/a.py; head -1 src/a.py; wc -l src/*; ls -R; git log --oneline; git status --short; git diff",
    "grep -n '>' README.md; grep -rn x . | head; find . -name '*.py'; sed -n '1,5p' src/a.py",
    "sed 's/1/5/' src/a.py",
    "echo \"a > src/a.py\"; echo 'tee src/a.py'",
    "cat src/a.py > ../x",
    "cat > ../w.py <<'EOF'\nprint('> src/a.py')\nEOF\npython3 ../w.py",
    "echo pytest > log",
    "echo pytest 2>&1 | tee test.log",
    "echo pytest > test.out",
    "python3 -m compileall -q src",
    "mkdir -p .pytest_cache node_modules/x && echo z > .pytest_cache/a && echo z > node_modules/x/i.js",
    "echo z > secret.txt",
    "mkdir -p gen/deep/er && echo z > gen/deep/er/a.py",
    "mkdir data && echo z > data/other.txt",
    "for f in coverage.xml .coverage.host.1 .DS_Store core.7 .aider.chat.history.md; do echo z > $f; done",
    "for d in htmlcov .nox .aider.tags; do mkdir $d && echo z > $d/a.html; done",
    "ln -s x src/.#a.py; echo z > 'src/#a.py#'; echo z > src/.a.py.swp; echo z > src/4913; rm src/4913",
    "echo '!gen/' >> .git/info/exclude; echo z > .git/description",
    f"{PATCH}git apply --check ../a.diff; git apply --stat ../a.diff; patch -p1 --dry-run < ../a.diff",
    f"{WRONG}git apply ../a.diff",
    f"{WRONG}patch -p1 < ../a.diff",
    f"{WRONG}git apply --reject ../a.diff",
    "sed -i 's/nothing/x/' src/a.py",
    f"printf '{A}' > src/a.py",
    "touch src/a.py; chmod 600 src/a.py",
    "cp src/a.py ../x && echo z > src/a.py && cp ../x src/a.py",
    "echo z > src/a.py && git checkout -q src/a.py",
    "echo z > src/a.py && git stash -q",
    "echo z > src/new.py && rm src/new.py",
    "mv src lib && mv lib src",
    "mkdir -p empty/folder",
    "mkfifo src/pipe",
    "git checkout -q -b other && git commit -q --allow-empty -m x",
    "echo z > AGENTS.md; mkdir -p .claude && echo '{}' > .claude/settings.json",
    'python3 -c \'import tempfile; tempfile.NamedTemporaryFile(dir=".").write(b"x")\'',
)


class Watched(NamedTuple):
    workspace: Path
    watches: tuple[WorkspaceWatch, WorkspaceWatch]  # with inotify, without

    def run(self, command: str) -> None:
        env = {**os.environ, "HOME": str(self.workspace.parent), "PYTHONDONTWRITEBYTECODE": ""}
        names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
        env |= dict.fromkeys(names, "a@localhost")
        subprocess.run(["bash", "-c", command], cwd=self.workspace, env=env, check=False, capture_output=True)

    def look(self) -> dict[str, str]:
        found = [{one.path: one.how for one in watch.look()} for watch in self.watches]
        ignored = self.watches[0].find_ignored(found[0])
        seen = [{path: how for path, how in each.items() if path not in ignored} for each in found]
        assert seen[0] == seen[1]
        return seen[0]


def make_watch(template: Template, workspace: Path, *, use_events: bool = True) -> WorkspaceWatch:
    exclusions = Exclusions(template.manifest, ("tests/test_a.py",), is_context=is_context_file)
    rules = IgnoreRules(template, workspace.parent / f"rules-{use_events}")
    return WorkspaceWatch(
        workspace,
        template.manifest,
        is_edited=exclusions.counts_as_edit,
        rules=rules,
        use_events=use_events,
    )


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return build_template(tmp_path_factory.mktemp("template") / "t", TREE)


@pytest.fixture
def workspace(template: Template, tmp_path: Path) -> Path:
    clone(template, tmp_path / "workspace")
    return tmp_path / "workspace"


@pytest.fixture(scope="module")
def shared(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    workspace = tmp_path_factory.mktemp("shared") / "workspace"
    clone(template, workspace)
    watches = make_watch(template, workspace), make_watch(template, workspace, use_events=False)
    yield Watched(workspace, watches)
    for watch in watches:
        watch.close()


@pytest.fixture
def watched(shared: Watched) -> Watched:
    """As it was at the start, which the watches know."""
    shared.run("git checkout -q -f main; git reset -q --hard $(git rev-list --max-parents=0 HEAD)")
    shared.run("git clean -ffdxq; git stash clear; git branch -q -D other; chmod 644 src/*")
    shared.look()
    return shared


@pytest.mark.parametrize("command", EDITS)
def test_a_command_that_changes_a_file_is_an_edit_of_it(watched: Watched, command: str) -> None:
    watched.run(command)
    assert watched.look() == EDITS[command]
    assert watched.look() == {}


@pytest.mark.parametrize("command", NO_EDITS)
def test_a_command_that_changes_no_file_is_no_edit(watched: Watched, command: str) -> None:
    watched.run(command)
    assert watched.look() == {}


def test_an_edit_that_is_undone_later_was_one(watched: Watched) -> None:
    watched.run("echo z > src/a.py")
    assert watched.look() == ON_A
    watched.run("git checkout -q src/a.py")
    assert watched.look() == ON_A
    watched.run("mv src lib")
    watched.look()
    watched.run("echo z > lib/a.py")
    assert watched.look() == {"lib/a.py": "changed"}


def test_lost_events_are_made_up_for(template: Template, workspace: Path) -> None:
    """More events than the kernel keeps."""
    watch = make_watch(template, workspace)
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text(encoding="utf-8"))
    for turn in range(most // 2 + 10):
        for name in ("src/a.py", "src/b.py"):
            os.chmod(workspace / name, 0o600 + 0o40 * (turn % 2))  # noqa: PTH101 - faster
    (workspace / "src/b.py").write_text("z")
    (workspace / "src/late.py").write_text("x")
    assert {one.path for one in watch.look()} == {"src/b.py", "src/late.py"}
    watch.close()


def test_nothing_is_followed_out_of_the_workspace(template: Template, workspace: Path) -> None:
    outside = workspace.parent / "outside"
    outside.mkdir()
    (outside / "a.py").write_text("theirs")
    watch = make_watch(template, workspace)
    (workspace / "src").rename(workspace / "lib")
    (workspace / "src").symlink_to(outside)
    (workspace / "loop").symlink_to(".")
    found = {one.path: one.how for one in watch.look()}
    assert (found["src/a.py"], found["src"], found["loop"], found["lib/a.py"]) == ("removed", *["added"] * 3)
    (outside / "a.py").write_text("theirs again")
    (outside / "new.py").write_text("theirs")
    assert watch.look() == []
    watch.close()


@pytest.mark.parametrize("use_events", [True, False])
def test_what_cannot_be_read_is_not_known(
    template: Template, workspace: Path, monkeypatch: pytest.MonkeyPatch, use_events: bool
) -> None:
    def refuse(*args: Any, dir_fd: int | None = None) -> int:
        if args[0] == "src":
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(*args, dir_fd=dir_fd)

    watch, real = make_watch(template, workspace, use_events=use_events), os.open
    (workspace / "src/a.py").write_text("z")
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(WatchLost, match="cannot be read"):
        watch.look()
    watch.close()


@pytest.mark.parametrize("use_events", [True, False])
def test_what_is_too_much_is_not_known(
    template: Template, workspace: Path, monkeypatch: pytest.MonkeyPatch, use_events: bool
) -> None:
    monkeypatch.setattr(workspace_watch, "MAX_CHANGES", 500)
    watch = make_watch(template, workspace, use_events=use_events)
    deep = workspace
    for _ in range(300):
        deep = deep / "d"
        deep.mkdir()
    (deep / "a.py").write_text("x")
    assert watch.look() == []
    assert watch.find_unseen(["src/a.py", "gen/a.py", "src/a.rej"]) == ["src/a.py"]
    for number in range(510):
        (workspace / f"{number}.py").touch()
    with pytest.raises(WatchLost, match="more than"):
        watch.look()
    watch.close()


def test_a_large_tree_without_inotify_is_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: FolderEvents) -> None:
        raise EventsUnavailable("no space left")

    template = build_template(tmp_path / "t", {f"{n}.py": TreeEntry(b"") for n in range(MOST_COMPARED + 1)})
    clone(template, tmp_path / "workspace")
    monkeypatch.setattr(FolderEvents, "__init__", refuse)
    with pytest.raises(WatchLost, match="max_user_instances"):
        make_watch(template, tmp_path / "workspace")


def test_a_folder_s_own_status_is_no_event(template: Template, workspace: Path) -> None:
    watch = make_watch(template, workspace)
    assert watch.events is not None
    for folder in (workspace, workspace / "src"):
        folder.chmod(0o700)
        os.utime(folder)
    assert watch.events.read() == []
    (workspace / "src" / "a.py").touch()
    assert watch.events.read() != []
    watch.close()


@pytest.mark.parametrize("mask", [0x2, 0x40000004, 0x8000])  # a file's change, a folder's status, a watch's end
def test_events_that_come_faster_than_they_are_read_end(monkeypatch: pytest.MonkeyPatch, mask: int) -> None:
    data = struct.pack("iIII", 1, mask, 0, 0) * 4096
    events = FolderEvents()
    readings = itertools.count()

    def read_some(_: FolderEvents) -> bytes:
        assert next(readings) < 100, "it goes on for ever"
        return data

    monkeypatch.setattr(FolderEvents, "_read_some", read_some)
    assert events.read() == [FolderEvent(None)]
    events.close()


@pytest.mark.parametrize("use_events", [True, False])
@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_a_file_that_is_exchanged_while_it_is_opened_is_none(
    template: Template, workspace: Path, monkeypatch: pytest.MonkeyPatch, *, kind: str, use_events: bool
) -> None:
    """A pipe that somebody holds open has nothing to read, and is not at its end."""
    held = list[int]()

    def exchange(*args: Any, dir_fd: int | None = None) -> int:
        if args[0] == "a.py":
            (workspace / "src/a.py").unlink()
            if kind == "pipe":
                os.mkfifo(workspace / "src/a.py")
                held.append(real(workspace / "src/a.py", os.O_RDWR))
            else:
                (workspace / "src/a.py").mkdir()
        return real(*args, dir_fd=dir_fd)

    watch, real = make_watch(template, workspace, use_events=use_events), os.open
    (workspace / "src/a.py").write_text("z")
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", exchange)
        assert {one.path: one.how for one in watch.look()} == {"src/a.py": "removed"}
    assert watch.look() == []
    watch.close()
    for descriptor in held:
        os.close(descriptor)


def count_inotify() -> int:
    links = [path for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return sum("inotify" in str(path.readlink()) for path in links)


def test_a_watch_that_cannot_start_holds_nothing(
    template: Template, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = count_inotify()
    monkeypatch.setattr(workspace_watch, "MAX_FOLDERS", 1)
    with pytest.raises(WatchLost, match="more than 1 folders"):
        make_watch(template, workspace)
    assert count_inotify() == before


@pytest.mark.parametrize("use_events", [True, False])
def test_a_look_ends_when_its_time_is_over(
    template: Template, workspace: Path, monkeypatch: pytest.MonkeyPatch, *, use_events: bool
) -> None:
    watch = make_watch(template, workspace, use_events=use_events)
    for number in range(200):
        (workspace / f"{number}.py").write_text("z")
    seconds, read = itertools.count(), list[str]()

    def count_read(name: str, *args: Any) -> Any:
        read.append(name)
        return real(name, *args)

    real = workspace_watch._read_state  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(workspace_watch, "_read_state", count_read)
    monkeypatch.setattr(time, "thread_time", lambda: float(next(seconds)))
    with pytest.raises(WatchLost, match="took more than 30 s"):
        watch.look()
    assert 0 < len(read) < 40
    watch.close()


def test_a_machine_without_room_for_the_rules_knows_nothing_until_there_is(
    template: Template, workspace: Path
) -> None:
    watch = make_watch(template, workspace)
    rules = workspace.parent / "rules-True"
    rules.write_text("a file")
    with pytest.raises(WatchLost, match="git cannot be asked"):
        watch.find_ignored(["secret.txt"])
    rules.unlink()
    (rules / "rules").mkdir(parents=True)
    assert watch.find_ignored(["secret.txt", "src/new.py"]) == {"secret.txt"}
    watch.close()
