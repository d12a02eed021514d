"""A task's interpreter environment: locked dependencies and the project's metadata, never its code.

Built once per digest by uv, moved into place in one rename, and sealed read-only.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trialfleet_ledger.canonical import digest, sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records import EnvironmentRef, Sha256
from trialfleet_runner.cache import Cache, built_once
from trialfleet_runner.interpreters import (
    Interpreter,
    executable_by_others,
    find_interpreter,
    interpreters,
    uv_program,
)
from trialfleet_runner.package_index import ca_file, find_links, index_url
from trialfleet_runner.removal import remove

if TYPE_CHECKING:  # runners of attempts need not pay for the task file's models
    from trialfleet_runner.task import Environment

FORMAT = 1  # of an environment's content: raise it if older environments must not be used
SEAL = ".trialfleet-seal"
SETUP_LOG = "trialfleet-setup.log"
RECIPE_CHARS = 32
_PROGRAM_S = 3600.0  # for a program that builds it
RETIRED_S = 24 * 3600.0  # no attempt takes that long


def environment_ref(environment: Environment, lock: bytes, python: Interpreter) -> EnvironmentRef:
    """The environment as the plan freezes it. The digest covers the interpreter's full version and machine."""
    metadata, dist_info = project_metadata(environment)
    ref = EnvironmentRef(
        digest="0" * 64,
        python=python.minor,
        lock=sha256(lock),
        setup=environment.setup,
        metadata=metadata,
        dist_info=dist_info,
    )
    return ref.model_copy(update={"digest": _digest(ref, python)})


def project_metadata(environment: Environment) -> tuple[dict[str, str], str | None]:
    """(dist-info file -> text, name of the folder): the project's metadata for `importlib.metadata`."""
    if environment.distribution is None:
        return {}, None
    version = environment.version or "0"
    name = re.sub(r"[-_.]+", "_", environment.distribution)
    folder = f"{name}-{version.replace('-', '_')}.dist-info"
    files = {
        "METADATA": f"Metadata-Version: 2.1\nName: {environment.distribution}\nVersion: {version}\n",
        "INSTALLER": "trialfleet\n",
    }
    if environment.entry_points:
        files["entry_points.txt"] = environment.entry_points.strip() + "\n"
    record = [*sorted(files), "RECORD"]
    return files | {"RECORD": "".join(f"{folder}/{file},,\n" for file in record)}, folder


def build(ref: EnvironmentRef, lock: bytes, *, cache: Cache, for_other_uid: bool = False) -> Path:
    """The environment's folder (`bin/python` below it), built now unless it is there.

    Raises `OperatorError` when this machine lacks the plan's interpreter, the index does not have what the lock
    names, or a set-up command fails.
    """
    name = ref.digest[:32]
    for found in sorted(cache.environments.glob(f"{name}-????????")):
        if not _mark(found).exists() and _usable(found, for_other_uid):
            return found
    python = _interpreter(ref, for_other_uid)
    final = _free_place(cache.environments, name, python)
    _make(final, ref, python, lock)
    return final


def _make(final: Path, ref: EnvironmentRef, python: Interpreter, lock: bytes) -> None:
    with built_once(final) as fresh:
        if fresh is not None:
            _install(fresh, python, lock)
            _write_metadata(fresh, ref)
            _set_up(fresh, ref.setup)
            _seal(fresh)
            # A rename changes neither the inodes nor the times of the content.
            (fresh / SEAL).write_text(content_digest(fresh))


def recipe(ref: EnvironmentRef) -> Sha256:
    """Digest of an environment's ingredients, independent of patch release and machine: an image that holds the
    environment is pinned as a whole."""
    return digest(_facts(ref))


def bake(ref: EnvironmentRef, lock: bytes, folder: Path) -> Path:
    """Build the environment into `folder`, under its recipe, unless it exists. For images: the users that run it
    must not be able to write there. Raises like `build`."""
    final = folder / recipe(ref)[:RECIPE_CHARS]
    _make(final, ref, find_interpreter((ref.python,), for_other_uid=True), lock)
    return final


def baked(ref: EnvironmentRef) -> Path:
    """The image's environment for `ref`. Raises `OperatorError` unless the image holds it as it was baked."""
    folder = baked_folder()
    found = folder and folder / recipe(ref)[:RECIPE_CHARS]
    if found is None or not unchanged(found):
        raise OperatorError(
            f"the image does not hold environment {recipe(ref)[:RECIPE_CHARS]}",
            where="kubernetes: image",
            hint="run `trialfleet image build --for` the campaign file, and name the new image",
        )
    return found


def baked_folder() -> Path | None:
    """`$TRIALFLEET_BAKED`."""
    chosen = os.environ.get("TRIALFLEET_BAKED")
    return Path(chosen) if chosen else None


def retire(environment: Path) -> None:
    """Make the next `build` create a new environment. The old one stays for a day, because other attempts may run
    in it; they detect the change themselves."""
    _mark(environment).touch()
    for mark in environment.parent.glob(".*.retired"):
        if time.time() - mark.stat().st_mtime > RETIRED_S:
            remove(mark.with_name(mark.name.removeprefix(".").removesuffix(".retired")))
            mark.unlink(missing_ok=True)


def _mark(environment: Path) -> Path:
    return environment.with_name(f".{environment.name}.retired")


def _free_place(folder: Path, name: str, python: Interpreter) -> Path:
    """The folder of the first generation that is not retired."""
    generations = (str(python.path), *(f"{python.path} {n}" for n in range(1, 1000)))
    places = (folder / f"{name}-{sha256(generation.encode())[:8]}" for generation in generations)
    found = next((place for place in places if not _mark(place).exists()), None)
    if found is None:
        raise OperatorError(
            f"environment {name} was modified {len(generations)} times within a day", hint=f"empty {folder}"
        )
    return found


def content_digest(environment: Path) -> str:
    """Digest over names, sizes, times and inodes of every file: any write or replacement shows, no file is read.
    A program can set a file's mtime back, but not its ctime.

    Valid on the machine that built it only.
    """
    rows: list[tuple[str, int, int, int, int, int]] = []
    base = len(os.fspath(environment)) + 1
    todo = [os.fspath(environment)]
    while todo:
        with os.scandir(todo.pop()) as children:
            for child in children:
                facts = child.stat(follow_symlinks=False)
                if child.is_dir(follow_symlinks=False):
                    todo.append(child.path)
                if child.name != SEAL:
                    times = (facts.st_mtime_ns, facts.st_ctime_ns)
                    rows.append((child.path[base:], facts.st_mode, facts.st_size, *times, facts.st_ino))
    return sha256("\n".join(map(repr, sorted(rows))).encode())


def unchanged(environment: Path) -> bool:
    """Whether the environment is what was built. False: `retire` it and build it again."""
    if _out_of_reach(environment):
        return True
    try:
        return (environment / SEAL).read_text() == content_digest(environment)
    except FileNotFoundError:
        return False


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
    return ref.model_dump(mode="json", exclude={"digest"}) | {"format": FORMAT}


def _digest(ref: EnvironmentRef, python: Interpreter) -> str:
    return digest(_facts(ref) | {"python": python.version, "machine": platform.machine()})


def _usable(environment: Path, for_other_uid: bool) -> bool:
    """Whether the environment's base interpreter still exists and the user of the job may execute it."""
    program = python_of(environment)
    return program.exists() and (not for_other_uid or executable_by_others(program))


def _interpreter(ref: EnvironmentRef, for_other_uid: bool) -> Interpreter:
    wanted = (ref.python,)
    fitting = (p for p in interpreters(wanted, for_other_uid=for_other_uid) if _digest(ref, p) == ref.digest)
    found = next(fitting, None)
    if found is None:
        here = find_interpreter(wanted, for_other_uid=for_other_uid)
        raise OperatorError(
            f"the environment was planned for another patch release or machine than Python {here.version} on "
            f"{platform.machine()}",
            hint="plan the campaign on the machine that runs it, or use the same image",
        )
    return found


def _run(argv: tuple[str, ...], env: Mapping[str, str], *, cwd: Path) -> tuple[int, str]:
    null, pipe, both = subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT
    try:
        ended = subprocess.run(
            argv, env=dict(env), cwd=cwd, stdin=null, stdout=pipe, stderr=both, timeout=_PROGRAM_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, str(error)
    return ended.returncode, ended.stdout.decode(errors="replace")


def _network_variables() -> dict[str, str]:
    names = (
        "PATH",
        "HOME",
        "TMPDIR",
        "NETRC",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "UV_CACHE_DIR",
        "UV_KEYRING_PROVIDER",
    )
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in names or name.lower().endswith("_proxy") or name.startswith("UV_INDEX_")
    }
    trusted = ca_file()
    return kept | ({"SSL_CERT_FILE": trusted} if trusted else {})


def _install(folder: Path, python: Interpreter, lock: bytes) -> None:
    uv = uv_program()
    env = _network_variables() | {
        "UV_DEFAULT_INDEX": index_url(),
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
    }
    links = find_links()
    if links:
        env["UV_FIND_LINKS"] = ",".join(links)
    requirements = folder.parent / "requirements.txt"
    requirements.write_bytes(lock)
    _must(
        (uv, "venv", "--quiet", "--relocatable", "--allow-existing", "--python", str(python.path), str(folder)),
        env,
        folder.parent,
        "cannot make an environment",
    )
    if lock.strip():
        sync = (uv, "pip", "install", "--quiet", "--require-hashes", "--no-deps", "--strict", "--link-mode=copy")
        _must(
            (*sync, "--compile-bytecode", "--python", str(folder / "bin/python"), "-r", str(requirements)),
            env,
            folder.parent,
            "cannot install what the lock names",
        )


def _must(argv: tuple[str, ...], env: Mapping[str, str], cwd: Path, message: str) -> None:
    code, output = _run(argv, env, cwd=cwd)
    if code != 0:
        raise OperatorError(
            f"{message}: {output.strip()[-2000:]}",
            where="environment.lock",
            hint="compile the lock again for this Python with `uv pip compile --generate-hashes`",
        )


def site_packages(environment: Path) -> Path:
    """The one folder of installed packages."""
    return next((environment / "lib").glob("python3*/site-packages"))


def _write_metadata(folder: Path, ref: EnvironmentRef) -> None:
    if ref.dist_info is None:
        return
    target = site_packages(folder) / ref.dist_info
    if target.exists() or "/" in ref.dist_info:
        raise OperatorError(
            f"the lock installs the project itself ({ref.dist_info})",
            where="environment.lock",
            hint="remove the project from the lock: its code comes from the workspace",
        )
    target.mkdir()
    for name, text in ref.metadata.items():
        (target / Path(name).name).write_text(text)


def _set_up(folder: Path, commands: tuple[tuple[str, ...], ...]) -> None:
    """Run set-up commands, argv only, with the environment first on PATH; their output is kept next to it."""
    log = folder / SETUP_LOG
    env = _network_variables()
    path = f"{folder / 'bin'}:{env.get('PATH', '/usr/bin:/bin')}"
    for argv in commands:
        started = time.monotonic()
        program = folder / "bin" / argv[0]
        code, output = _run(
            (str(program) if program.exists() else argv[0], *argv[1:]),
            env | {"PATH": path, "VIRTUAL_ENV": str(folder)},
            cwd=folder.parent,
        )
        with log.open("a") as file:
            file.write(f"$ {argv!r}\n{output}\nexit {code} after {time.monotonic() - started:.1f} s\n")
        if code != 0:
            raise OperatorError(
                f"{' '.join(argv)}: exit {code}: {output.strip()[-1000:]}",
                where="environment.setup",
                hint="run the command by hand in a fresh environment",
            )


def _seal(folder: Path) -> None:
    """Remove write permission and permit everybody to read: an agent of another uid runs these files."""
    for path, folders, files in os.walk(folder, topdown=False):
        for name in (*files, *folders):
            child = Path(path, name)
            if not child.is_symlink():
                mode = child.stat().st_mode
                child.chmod((mode | 0o444 | (0o111 if mode & 0o100 else 0)) & ~0o222)


def python_of(environment: Path) -> Path:
    return environment / "bin" / "python"
