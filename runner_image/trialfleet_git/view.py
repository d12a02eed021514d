"""A git folder of ours that reads the objects and references of another repository.

git executes what the configuration, the hooks and the attributes of its git folder name. Those of a view are ours.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from trialfleet_git.discovery import (
    RepositoryPlace,
    UnreadableRepository,
    find_repository,
    read_head,
    read_small,
    refuse_special_files,
)
from trialfleet_git.environment import environment

_EMPTY_TREES = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
_TRACKING = re.compile(r"(branch|remote)\.(.+)\.(remote|merge|fetch)", re.DOTALL)  # what `@{upstream}` needs
_PARTIAL = re.compile(r"remote\..*\.promisor|extensions\.partialclone", re.DOTALL)
_REMOTE_URL = re.compile(r"remote\..*\.url", re.DOTALL)
_PSEUDO_REFERENCES = ("ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD")
_YES = {"", "true", "yes", "on", "1"}

Configuration = list[tuple[str, str]]


@dataclass(frozen=True)
class GitRepository:
    """A repository of somebody else. `git_dir`: a view of it, which is there until this process ends; git is given
    no other folder of that repository. `place`: where it really lies. `work_tree`: the root of the checked-out
    files, None if bare. `is_partial`: objects may be missing on purpose (`git clone --filter`). `remote_urls`: of
    its remotes."""

    git_dir: Path
    place: RepositoryPlace
    work_tree: Path | None
    is_partial: bool
    remote_urls: tuple[str, ...] = ()

    @property
    def root(self) -> Path:
        """The work tree; of a bare repository, its git folder."""
        return self.work_tree or self.place.git_dir

    @property
    def shallow(self) -> bool:
        return (self.place.common_dir / "shallow").exists()


@dataclass
class _Views:
    """All views of this process, by what they are made of; of one repository there is one while it stays the
    same."""

    root: tempfile.TemporaryDirectory[str] | None = None
    by_content: dict[tuple[object, ...], GitRepository] = field(
        default_factory=dict[tuple[object, ...], GitRepository]
    )
    by_folder: dict[Path, GitRepository] = field(default_factory=dict[Path, GitRepository])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def new_folder(self) -> Path:
        if self.root is None:
            self.root = tempfile.TemporaryDirectory(prefix="trialfleet-git-")
        return Path(tempfile.mkdtemp(suffix=".git", dir=Path(self.root.name).resolve()))


_views = _Views()


def open_repository_view(folder: Path) -> GitRepository | None:
    """The repository that `folder` is or lies in: a checkout, a linked work tree, a submodule, a bare one, or a
    view. None when it lies in none. Raises `UnreadableRepository`."""
    known = _views.by_folder.get(folder)
    if known is not None:
        return known
    place = find_repository(folder)
    if place is None:
        return None
    head, config = read_head(place.git_dir) or b"", read_small(place.common_dir / "config") or b""
    shared_indexes = tuple(sorted(path.name for path in place.git_dir.glob("sharedindex.*")))
    with _views.lock:
        key = (place, head, config, shared_indexes)
        if key not in _views.by_content:
            view = _make_view(_views.new_folder(), place, head, _parse(config))
            _views.by_content[key] = _views.by_folder[view.git_dir] = view
        return _views.by_content[key]


def source_folder(git_dir: Path) -> Path:
    """The folder that a message names in place of a view: the repository's own. Any other folder is itself."""
    view = _views.by_folder.get(git_dir)
    return git_dir if view is None else view.root


def _make_view(folder: Path, place: RepositoryPlace, head: bytes, config: Configuration) -> GitRepository:
    values = dict(config)
    for name in ("objects/info", "objects/pack", "info", "logs"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_bytes(head)
    (folder / "config").write_bytes(_view_configuration(config).encode("utf-8", "surrogateescape"))
    (folder / "objects/info/alternates").write_bytes(_quoted(place.common_dir / "objects") + b"\n")
    refuse_special_files(place.common_dir / "objects")
    for name, target in _links(place, values):
        refuse_special_files(target)
        (folder / name).symlink_to(target)
    is_bare = place.git_dir == place.common_dir and values.get("core.bare", "false").lower() in _YES
    is_partial = any(_PARTIAL.fullmatch(name) for name in values)
    urls = tuple(value for name, value in config if _REMOTE_URL.fullmatch(name))
    return GitRepository(folder, place, None if is_bare else place.work_tree, is_partial, urls)


def _links(place: RepositoryPlace, values: dict[str, str]) -> Iterator[tuple[str, Path]]:
    """What git reads where the repository keeps it: references, the end of a shallow clone, the index, and which
    untracked files are ignored."""
    for name in ("refs", "packed-refs", "shallow", "info/exclude", "logs/refs"):
        yield name, place.common_dir / name
    for name in ("index", "logs/HEAD", *_PSEUDO_REFERENCES):
        yield name, place.git_dir / name
    for path in place.git_dir.glob("sharedindex.*"):
        yield path.name, path
    if "extensions.refstorage" in values:
        if place.git_dir != place.common_dir:
            raise UnreadableRepository(
                f"{place.git_dir} is a linked work tree of a repository with reftables: read its main work tree"
            )
        yield "reftable", place.common_dir / "reftable"


def _view_configuration(config: Configuration) -> str:
    """Ours, with what says how the repository stores objects and references, and which branches track which."""
    values = dict(config)
    form = values.get("extensions.objectformat", "sha1")
    if form not in _EMPTY_TREES or values.get("extensions.refstorage", "files") not in ("files", "reftable"):
        raise UnreadableRepository("the repository stores objects or references in a form that is not known")
    lines = ["[core]", "repositoryformatversion = 1", "bare = true", "useReplaceRefs = false"]
    lines += ["commitGraph = false"]  # here too: the server of a fetch gets none of our variables
    lines += [
        "[uploadpack]",
        "allowAnySHA1InWant = true",
        "[attr]",
        f"tree = {_EMPTY_TREES[form]}",
        "[extensions]",
    ]
    lines += [f"objectFormat = {form}"] if form != "sha1" else []
    lines += [f"refStorage = {values['extensions.refstorage']}"] if "extensions.refstorage" in values else []
    for name, value in config:
        tracking = _TRACKING.fullmatch(name)
        if tracking is not None:
            section, subsection, variable = tracking.groups()
            lines += [f'[{section} "{_escaped(subsection)}"]', f'{variable} = "{_escaped(value)}"']
    return "\n".join((*lines, ""))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _quoted(path: Path) -> bytes:
    """As a line of `alternates`, which would end at a line's end and skip one that begins with `#`."""
    return b'"' + os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'


def _parse(config: bytes) -> Configuration:
    """(Name, value) of a configuration that is read as data: no file that it includes is read."""
    command = ("git", "config", "--file", "-", "--no-includes", "--null", "--list")
    ended = subprocess.run(command, input=config, env=environment(), cwd="/", capture_output=True, check=False)
    if ended.returncode != 0:
        words = ended.stderr.decode(errors="replace").strip()
        raise UnreadableRepository(f"the repository's configuration cannot be read: {words[:300]}")
    rows = ended.stdout.decode("utf-8", "surrogateescape").split("\0")
    return [(name, value) for name, _, value in (row.partition("\n") for row in rows) if name]
