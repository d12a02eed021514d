"""A task's environment: what its tests need besides the repository's code, which is never part of it.

Built once per digest, complete or not at all, and sealed read-only.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trialfleet_ledger.canonical import digest, sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.interpreters import (
    Interpreter,
    executable_by_others,
    find_interpreter,
    interpreters,
)
from trialfleet_ledger.records.base import Sha256
from trialfleet_ledger.records.environment import EnvironmentRef, PythonEnvironmentRef, ToolEnvironmentRef
from trialfleet_ledger.removal import remove
from trialfleet_repository.cache import Cache, built_in_place, built_once, lock_of
from trialfleet_repository.environments import tool_environment
from trialfleet_repository.environments.shared_files import (
    POOL,
    is_shareable,
    read_digest,
    remove_unshared,
    sealed_mode,
    share_files,
)
from trialfleet_repository.environments.uses import SEAL, uses_of
from trialfleet_repository.languages import language_of_kind
from trialfleet_repository.trees import pack

if TYPE_CHECKING:  # runners of attempts need not pay for the task file's models
    from trialfleet_ledger.task import PythonEnvironment

FORMAT = 1  # of an environment's content: raise it if older environments must not be used
RECIPE_CHARS = 32
_NO_TREE = pack({})
RETIRED_S = 24 * 3600.0  # no attempt takes that long


def environment_ref(environment: PythonEnvironment, lock: bytes, python: Interpreter) -> PythonEnvironmentRef:
    """The environment as the plan freezes it. The digest covers the interpreter's full version and machine. Raises
    `OperatorError` when the lock holds the project itself."""
    from trialfleet_repository.environments import python_environment

    ref = PythonEnvironmentRef(
        digest="0" * 64,
        python=python.minor,
        lock=sha256(lock),
        setup=environment.setup,
        metadata=python_environment.project_metadata(environment, lock),
    )
    return ref.model_copy(update={"digest": _digest(ref, python.version)})


def tool_environment_ref(ref: ToolEnvironmentRef) -> ToolEnvironmentRef:
    """The environment as the plan freezes it: with its digest."""
    return ref.model_copy(update={"digest": _digest(ref)})


def build(ref: EnvironmentRef, source: bytes, *, cache: Cache, for_other_uid: bool = False) -> Path:
    """The environment's folder (its programs are in `bin`), built now unless it is there. `source`: the content of
    the object `ref.source`.

    Raises `OperatorError` when this machine lacks the plan's interpreter or tools, what the lock names cannot be
    had, or a command fails.
    """
    name, place = ref.digest[:32], _place(ref)
    uses = uses_of(cache.environments)
    uses.begin(name)
    for found in sorted(cache.environments.glob(f"{name}-????????")):
        usable = not _mark(found).exists() and _usable(found, for_other_uid)
        if usable and tool_environment.furnishings(found).place == place:
            with suppress(OSError):  # when it was last used, for what removes the oldest
                lock_of(found).touch()
            return found
    programs = _programs(ref, for_other_uid)
    final = _free_place(
        cache.environments, name, " ".join((*map(str, programs.values()), *filter(None, (place,))))
    )
    _make(
        final,
        ref,
        programs,
        source,
        alone=lambda: _alone(ref, cache, for_other_uid),
        reserve=lambda seed: uses.begin(seed.name.partition("-")[0]),
    )
    return final


def _alone(ref: EnvironmentRef, cache: Cache, for_other_uid: bool) -> Path | None:
    """The environment of what the tools of `ref` cache without any repository, which is safe to share: no foreign
    code runs there. None where that is nothing, or `ref` itself."""
    if isinstance(ref, PythonEnvironmentRef) or not ref.alone:
        return None
    nothing = {"inputs": sha256(_NO_TREE), "tree": sha256(_NO_TREE), "repository": None, "directory": "."}
    none = {"fetch": (), "warm": (), "keep": (), "drop": ()}
    bare = tool_environment_ref(ref.model_copy(update=nothing | none))
    if bare.digest == ref.digest:
        return None
    found = build(bare, _NO_TREE, cache=cache, for_other_uid=for_other_uid)
    return found if unchanged(found) else None


def _place(ref: EnvironmentRef) -> str | None:
    """Where programs see it, if not at its own path. It depends on the sandbox in which it is built and used."""
    if isinstance(ref, PythonEnvironmentRef) or ref.place is None:
        return None
    from trialfleet_sandbox.choose import choose

    return ref.place if choose().capabilities.maps_paths else None


def _make(
    final: Path,
    ref: EnvironmentRef,
    programs: dict[str, Path],
    source: bytes,
    checkouts: Sequence[Path] = (),
    alone: Callable[[], Path | None] = lambda: None,
    reserve: Callable[[Path], None] = lambda _: None,
) -> None:
    """`alone`: what to begin with where there is no environment of its repository. `reserve`: called with one
    before it is read, so that nobody removes it meanwhile."""
    # Imported here: a pod's runner never builds an environment, and every attempt imports this module
    from trialfleet_repository.environments import tool_build, tool_caches

    if isinstance(ref, PythonEnvironmentRef):
        _make_python(final, ref, programs["python"], source)
        return
    with built_in_place(final, SEAL) as fresh:
        if fresh is not None:
            with tool_caches.taking_turns(fresh, ref) as seed:
                if seed is not None:
                    reserve(seed)
                seed = seed if seed and unchanged(seed) else alone()
                tool_build.install(fresh, ref, programs, source, seed=seed, checkouts=checkouts)
                _finish(fresh, final.parent)


def _make_python(final: Path, ref: PythonEnvironmentRef, python: Path, lock: bytes) -> None:
    from trialfleet_repository.environments import python_environment

    with built_once(final) as fresh:
        if fresh is not None:
            python_environment.install(fresh, ref, python, lock)
            _finish(fresh, final.parent)


def _finish(fresh: Path, environments: Path) -> None:
    """`environments`: where it is kept. Programs that could write into it would write into those that share its
    files; an image's layers share none."""
    from trialfleet_sandbox.choose import choose

    protected = environments != baked_folder() and choose().capabilities.protects_environment
    contents = share_files(fresh, environments / POOL) if protected else {}
    _seal(fresh)
    # A rename changes neither the inodes nor the times of the content.
    (fresh / SEAL).write_text(f"{content_digest(fresh)} {content_digest(fresh, contents)}")


def _programs(ref: EnvironmentRef, for_other_uid: bool) -> dict[str, Path]:
    """The programs that it is planned for, by name. Raises `OperatorError` where this machine has others."""
    if isinstance(ref, PythonEnvironmentRef):
        return {"python": _interpreter(ref, for_other_uid).path}
    return tool_environment.programs(ref.tools, for_other_uid=for_other_uid)


def recipe(ref: EnvironmentRef) -> Sha256:
    """Digest of an environment's ingredients, independent of patch release and machine: an image that holds the
    environment is pinned as a whole."""
    return digest(_facts(ref))


def bake(ref: EnvironmentRef, source: bytes, folder: Path, *, checkouts: Sequence[Path] = ()) -> Path:
    """Build the environment into `folder`, under its recipe, unless it exists. For images: the users that run it
    must not be able to write there. `checkouts`: where attempts will have the repository. Raises like `build`."""
    final = folder / recipe(ref)[:RECIPE_CHARS]
    if isinstance(ref, PythonEnvironmentRef):
        programs = {"python": find_interpreter((ref.python,), for_other_uid=True).path}
    else:
        programs = tool_environment.programs(ref.tools, for_other_uid=True)
    _make(final, ref, programs, source, checkouts)
    return final


def baked(ref: EnvironmentRef) -> Path:
    """The image's environment for `ref`. Raises `OperatorError` unless the image holds it as it was baked, and the
    programs that it was baked with."""
    folder = baked_folder()
    found = folder and folder / recipe(ref)[:RECIPE_CHARS]
    if found is None or not unchanged(found):
        raise OperatorError(
            f"the image does not hold environment {recipe(ref)[:RECIPE_CHARS]} ({ref.versions})",
            where="kubernetes: image",
            hint="run `trialfleet image build --for` the campaign file, and name the new image",
        )
    if lacking := missing_programs(found):
        raise OperatorError(
            f"the image has environment {found.name} ({ref.versions}), but not its {', '.join(lacking)}",
            where="kubernetes: image",
            hint="run `trialfleet image build --for` the campaign file, and name the new image",
        )
    return found


def missing_programs(environment: Path) -> tuple[str, ...]:
    """Names of the programs in its `bin` that are links to nothing."""
    return tuple(sorted(path.name for path in (environment / "bin").iterdir() if not path.exists()))


def baked_folder() -> Path | None:
    """`$TRIALFLEET_BAKED`."""
    chosen = os.environ.get("TRIALFLEET_BAKED")
    return Path(chosen) if chosen else None


def retire(environment: Path) -> None:
    """Make the next `build` create a new environment. The old one stays for a day, because other attempts may run
    in it; they detect the change themselves."""
    _mark(environment).touch()
    for mark in environment.parent.glob(".*.retired"):
        with suppress(FileNotFoundError):  # another attempt has removed it
            if time.time() - mark.stat().st_mtime > RETIRED_S:
                remove(mark.with_name(mark.name.removeprefix(".").removesuffix(".retired")))
                mark.unlink(missing_ok=True)
                remove_unshared(environment.parent / POOL)


def _mark(environment: Path) -> Path:
    return environment.with_name(f".{environment.name}.retired")


def _free_place(folder: Path, name: str, programs: str) -> Path:
    """The folder of the first generation that is not retired."""
    generations = (programs, *(f"{programs} {n}" for n in range(1, 1000)))
    places = (folder / f"{name}-{sha256(generation.encode())[:8]}" for generation in generations)
    found = next((place for place in places if not _mark(place).exists()), None)
    if found is None:
        raise OperatorError(
            f"environment {name} was modified {len(generations)} times within a day", hint=f"empty {folder}"
        )
    return found


def content_digest(environment: Path, contents: Mapping[int, str] | None = None) -> str:
    """Digest over names, sizes, times and inodes of every file: any write or replacement shows, no file is read.
    A program can set a file's mtime back, but not its ctime.

    `contents`: read the files that environments share, but those whose digest it has by inode. The ctime of such a
    file changes when another environment begins or ceases to share it: the digest has its content instead.

    Valid on the machine that built it only.
    """
    seen, root = hashlib.sha256(), os.fspath(environment)
    todo = [root]
    while todo:
        folder = todo.pop()
        rows, folders = _rows(folder, contents)
        if folder == root:
            rows = [row for row in rows if not row.startswith(f"{SEAL}\0")]
        seen.update("\0".join([folder.removeprefix(root), *sorted(rows), ""]).encode("utf-8", "surrogateescape"))
        todo += sorted(folders)
    return seen.hexdigest()


def _rows(folder: str, contents: Mapping[int, str] | None) -> tuple[list[str], list[str]]:
    """(What its files and folders are, paths of the folders). Raises `OSError` where it is a link."""
    rows: list[str] = []
    folders: list[str] = []
    # Names that begin at their folder: a long path costs a third more.
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        with os.scandir(opened) as children:
            for child in children:
                facts = child.stat(follow_symlinks=False)
                changed = f"{facts.st_mtime_ns} {facts.st_ctime_ns}"
                if contents is not None and is_shareable(facts):
                    content = contents.get(facts.st_ino) or read_digest(child.name, opened)
                    changed = f"{facts.st_mtime_ns} {content}"
                rows.append(f"{child.name}\0{facts.st_mode} {facts.st_size} {changed} {facts.st_ino}")
                if stat.S_ISDIR(facts.st_mode):
                    folders.append(f"{folder}/{child.name}")
    finally:
        os.close(opened)
    return rows, folders


def unchanged(environment: Path) -> bool:
    """Whether the environment is what was built. False: `retire` it and build it again."""
    if _out_of_reach(environment):
        return True
    try:
        sealed, found = (environment / SEAL).read_text(), content_digest(environment)
        if sealed == (whole := f"{found} {sealed[len(found) + 1 :]}"):
            return True
        if sealed != f"{sealed[: len(found)]} {content_digest(environment, {})}":
            return False
    except OSError:  # absent, or closed to us
        return False
    with suppress(OSError), (environment / SEAL).open("r+") as file:  # of the same length, at once
        file.write(whole)
    return True


def _out_of_reach(environment: Path) -> bool:
    """Whether it is one of the image's, and nothing that runs as we do could have written it: a layer of an image
    keeps neither the inodes nor the times that a seal is made of."""
    folder = baked_folder()
    if folder is None or environment.parent != folder or not environment.is_dir():
        return False
    read_only = bool(os.statvfs(environment).f_flag & os.ST_RDONLY)
    foreign = os.geteuid() not in (0, environment.stat().st_uid) and not os.access(environment, os.W_OK)
    return read_only or foreign


def _facts(ref: EnvironmentRef) -> dict[str, Any]:
    facts = ref.model_dump(mode="json", exclude={"digest", "tree", "repository", "metadata"})
    return facts | {"format": FORMAT} | ({} if isinstance(ref, PythonEnvironmentRef) else _own_files(ref.kind))


@functools.cache
def _own_files(kind: str) -> dict[str, Any]:
    """What it gets of ours, by name: an older environment has another content."""
    language = language_of_kind(kind)
    files = () if language is None else language.own_files
    return {"own": {file.name: sha256(file.read_bytes()) for file in files}} if files else {}


def _digest(ref: EnvironmentRef, python: str | None = None) -> str:
    """`python`: the whole version; those of tools are in the reference."""
    return digest(_facts(ref) | {"python": python, "machine": platform.machine()})


def _usable(environment: Path, for_other_uid: bool) -> bool:
    """Whether it is complete, its programs still exist, and the user of the job may execute them."""
    if not (environment / SEAL).exists():
        return False
    programs = list((environment / "bin").iterdir())
    links = [program for program in programs if program.is_symlink()]
    return all(each.exists() and (not for_other_uid or executable_by_others(each)) for each in links)


def _interpreter(ref: PythonEnvironmentRef, for_other_uid: bool) -> Interpreter:
    wanted = (ref.python,)
    fitting = (
        p for p in interpreters(wanted, for_other_uid=for_other_uid) if _digest(ref, p.version) == ref.digest
    )
    found = next(fitting, None)
    if found is None:
        here = find_interpreter(wanted, for_other_uid=for_other_uid)
        raise OperatorError(
            f"the environment was planned for another patch release or machine than Python {here.version} on "
            f"{platform.machine()}",
            hint="plan the campaign on the machine that runs it, or use the same image",
        )
    return found


def _seal(folder: Path) -> None:
    """Other environments may share its files: a file whose mode is right keeps its ctime."""
    for path, folders, files in os.walk(folder, topdown=False):
        for child in (Path(path, name) for name in (*files, *folders)):
            mode = child.lstat().st_mode
            if not stat.S_ISLNK(mode) and mode != sealed_mode(mode):
                child.chmod(sealed_mode(mode))
