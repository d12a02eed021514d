"""What only a directory can get wrong: links, permissions, leftovers, order, a full disk."""

from __future__ import annotations

import errno
import os
import pickle
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.store import grants
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.store.key_syntax import TEMPORARY
from trialfleet_ledger.store.probe import examine
from trialfleet_ledger.store.protocol import StoreError


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "root")


KEYS = st.lists(st.sampled_from(["a", "b", "a-", "a.b", "A", "é"]), min_size=1, max_size=3).map("/".join)
VALUES = st.sampled_from([b"", b"1", b"2", b"x" * 70_000])


class AgainstADict(RuleBasedStateMachine):
    """A directory behaves as a dict whose keys are never each other's folders."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.store = DirectoryStore(Path(self._folder.name) / "root")
        self.model: dict[str, bytes] = {}

    def teardown(self) -> None:
        self._folder.cleanup()

    def _in_the_way(self, key: str) -> bool:
        return any(key.startswith(f"{other}/") or other.startswith(f"{key}/") for other in self.model)

    @rule(key=KEYS, value=VALUES, granted=st.booleans())
    def create(self, key: str, value: bytes, granted: bool) -> None:
        def create() -> bool:
            if granted:
                return grants.create(self.store.grant_put(key, expires_s=60), value)
            return self.store.create(key, value)

        if self._in_the_way(key):
            with pytest.raises(StoreError):
                create()
            return
        assert create() == (self.model.get(key, value) == value)
        self.model.setdefault(key, value)

    @rule(key=KEYS, value=VALUES, granted=st.booleans())
    def put(self, key: str, value: bytes, granted: bool) -> None:
        def put() -> None:
            if granted:
                grants.overwrite(self.store.grant_put(key, conditional=False, expires_s=60), value)
            else:
                self.store.put(key, value)

        if self._in_the_way(key):
            with pytest.raises(StoreError):
                put()
            return
        put()
        self.model[key] = value

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        if not any(other.startswith(f"{key}/") for other in self.model):
            self.store.delete(key)
            self.model.pop(key, None)

    @rule(key=KEYS)
    def get(self, key: str) -> None:
        assert self.store.get(key) == self.model.get(key)

    @rule(prefix=st.text("aAb-./é", max_size=4))
    def list_prefix(self, prefix: str) -> None:
        if any(part in ("", ".", "..") for part in prefix.split("/")[:-1]):
            return
        expected = sorted((key, len(value)) for key, value in self.model.items() if key.startswith(prefix))
        assert [(entry.key, entry.size) for entry in self.store.list(prefix)] == expected

    @invariant()
    def nothing_else_is_there(self) -> None:
        root = self.store.root
        files = (
            {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()} if root.exists() else set()
        )
        assert files == set(self.model)


TestAgainstADict = AgainstADict.TestCase
TestAgainstADict.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)


# --- links and other hostile files ------------------------------------------------------------------


def test_a_symbolic_link_is_never_followed(store: DirectoryStore, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    store.create("c/real", b"1")
    (store.root / "c" / "file").symlink_to(outside / "secret")
    (store.root / "folder").symlink_to(outside)
    for key in ("c/file", "folder/secret"):
        with pytest.raises(StoreError, match="symbolic link"):
            store.get(key)
        with pytest.raises(StoreError, match=r"symbolic link|in the way"):
            store.create(key, b"2")
    with pytest.raises(StoreError, match="symbolic link"):
        store.put("folder/new", b"2")
    with pytest.raises(StoreError, match="symbolic link"):
        list(store.list(""))
    with pytest.raises(StoreError, match="symbolic link"):
        dict(store.get_many(["c/real", "c/file"]))
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]
    assert (outside / "secret").read_bytes() == b"secret"


def test_put_replaces_a_planted_link_and_not_its_target(store: DirectoryStore, tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"untouched")
    store.create("c/real", b"1")
    (store.root / "c" / "live").symlink_to(tmp_path / "target")
    store.put("c/live", b"new")
    assert store.get("c/live") == b"new"
    assert (tmp_path / "target").read_bytes() == b"untouched"


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "disk")
    assert DirectoryStore(tmp_path / "root").create("a", b"1")
    assert (tmp_path / "disk" / "a").read_bytes() == b"1"


def test_a_pipe_does_not_block_a_reader(store: DirectoryStore) -> None:
    store.create("c/a", b"1")
    os.mkfifo(store.root / "c" / "pipe")
    with pytest.raises(StoreError, match="not a regular file"):
        store.get("c/pipe")
    assert [entry.key for entry in store.list("c/")] == ["c/a"]


def test_names_that_are_no_keys_are_not_listed(store: DirectoryStore) -> None:
    store.create("c/a", b"1")
    (store.root / "c" / f"{TEMPORARY}1-ab").write_bytes(b"half")
    (store.root / "c" / "line\nbreak").write_bytes(b"")
    Path(os.fsdecode(os.fsencode(store.root) + b"/c/\xff")).write_bytes(b"")
    assert [entry.key for entry in store.list("")] == ["c/a"]


# --- leftovers --------------------------------------------------------------------------------------


def test_sweeping_removes_what_dead_writers_left(store: DirectoryStore) -> None:
    store.create("c/a", b"1")
    old, new = (store.root / "c" / f"{TEMPORARY}{name}" for name in (f"1-{0:016x}", f"2-{1:016x}"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, time.time() - 7200))
    assert store.sweep() == 1
    assert not old.exists()
    assert new.exists()
    assert store.sweep(older_than_s=-1) == 1
    assert store.get("c/a") == b"1"
    assert DirectoryStore(store.root / "never").sweep() == 0


def test_deleting_leaves_no_empty_folders(store: DirectoryStore) -> None:
    store.create("c/a/b/1", b"")
    store.create("c/z", b"")
    store.delete("c/a/b/1")
    assert sorted(path.name for path in store.root.rglob("*")) == ["c", "z"]


# --- permissions and space --------------------------------------------------------------------------


@pytest.mark.parametrize("below", ["", "store"])
def test_a_file_is_no_store(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("")
    store = DirectoryStore(tmp_path / "file" / below)
    for call in (lambda: store.create("a", b""), lambda: store.put("a", b""), lambda: store.get("a")):
        with pytest.raises(OperatorError, match=f"{tmp_path}/file is a file, not a folder") as refused:
            call()
        assert "name a folder" in (refused.value.hint or "")


def test_where_no_folder_can_be_made_is_no_store() -> None:
    with pytest.raises(OperatorError, match="no folder can be made in /proc") as refused:
        DirectoryStore(Path("/proc/x")).create("a", b"")
    assert "name a folder" in (refused.value.hint or "")


def test_a_new_root_is_closed_to_other_users(store: DirectoryStore) -> None:
    store.create("c/a", b"1")
    assert stat.S_IMODE(store.root.stat().st_mode) == 0o700
    closed = {check.name: check.holds for check in examine(store).checks}
    assert closed["closed to other users"] is True
    store.root.chmod(0o755)
    opened = {check.name: (check.holds, check.detail) for check in examine(store).checks}
    assert opened["closed to other users"] == (
        None,
        f"agents that run as another user could read it: chmod o-rx {store.root}",
    )


@pytest.fixture
def other_user() -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


def test_a_folder_that_may_not_be_written_is_the_operators(
    store: DirectoryStore, request: pytest.FixtureRequest
) -> None:
    store.create("c/a", b"1")
    store.root.chmod(0o555)
    (store.root / "c").chmod(0o555)
    request.getfixturevalue("other_user")
    with pytest.raises(OperatorError, match="Permission denied"):
        store.create("c/b", b"")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 256 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.needs("root")
def test_a_full_disk_is_said_and_leaves_nothing_torn(small_disk: Path) -> None:
    store = DirectoryStore(small_disk / "root")
    assert store.create("c/a", b"1" * 100_000)
    for write in (store.create, store.put):
        with pytest.raises(StoreError, match="the disk is full") as error:
            write("c/b", b"2" * 300_000)
        assert error.value.hint == "free disk space there, or raise the quota"
    with pytest.raises(StoreError, match="the disk is full"):
        grants.create(store.grant_put("c/d", expires_s=60), b"3" * 300_000)
    assert [(entry.key, entry.size) for entry in store.list("")] == [("c/a", 100_000)]
    assert [path.name for path in (store.root / "c").iterdir()] == ["a"], "no temporary keeps the disk full"
    assert store.create("c/b", b"2" * 1000)


def test_a_file_system_without_hard_links_is_refused(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAT answers EPERM; none can be mounted here."""

    def link(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(OperatorError, match="no hard links"):
        examine(store)
    assert list(store.root.rglob(f"{TEMPORARY}*")) == []


def test_every_write_is_on_disk_before_it_is_acknowledged(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of calls, recorded: bytes, then the name, then the folder."""
    calls: list[str] = []

    def record(name: str) -> None:
        real = getattr(os, name)

        def call(*args: object, **options: object) -> object:
            kind = ""
            if name == "fsync":
                kind = "-folder" if stat.S_ISDIR(os.fstat(args[0]).st_mode) else "-file"  # type: ignore[arg-type]
            calls.append(name + kind)
            return real(*args, **options)

        monkeypatch.setattr(os, name, call)

    store.create("c/0", b"")
    for name in ("fsync", "link", "rename"):
        record(name)
    store.create("c/a", b"1")
    assert calls == ["fsync-file", "link", "fsync-folder"]
    calls.clear()
    store.put("c/a", b"2")
    assert calls == ["fsync-file", "rename", "fsync-folder"]
    calls.clear()
    assert not store.create("c/a", b"3")
    assert calls == ["fsync-folder"], "who obeys a rival's value must find it again after a power cut"
    calls.clear()
    store.create("d/e/f", b"1")
    assert calls == ["fsync-folder", "fsync-folder", "fsync-file", "link", "fsync-folder"]


def test_it_may_be_sent_to_another_process(store: DirectoryStore) -> None:
    assert pickle.loads(pickle.dumps(store)) == store
