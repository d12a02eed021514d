"""Python environments: a virtual environment of locked packages, never the project's code. What
`importlib.metadata` knows of the project lies in the HOME of each run."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.interpreters import uv_program
from trialfleet_ledger.records.environment import PythonEnvironmentRef
from trialfleet_repository.cache import scratch, uv_folders
from trialfleet_repository.environments.lock_requirements import read_requirements
from trialfleet_repository.trees import TreeEntry, write_folder

if TYPE_CHECKING:  # runners of attempts need not pay for the task file's models
    from trialfleet_ledger.task import PythonEnvironment

SETUP_LOG = "trialfleet-setup.log"
PROJECT = ".project"  # folder of HOME with the project's dist-info
_FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+!-]{0,199}")
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
INSTALLED_AT = 1_577_836_800  # of every installed file, as seconds since 1970
_PROGRAM_S = 3600.0  # for a program that builds it


def install(folder: Path, ref: PythonEnvironmentRef, python: Path, lock: bytes) -> None:
    """Into an existing, empty folder. Raises `OperatorError`."""
    _install(folder, python, lock)
    _set_up(folder, ref.setup)


def project_metadata(environment: PythonEnvironment, lock: bytes) -> dict[str, str]:
    """Path -> text of the project's dist-info, by which `importlib.metadata` knows it. Raises `OperatorError` when
    the lock holds the project as well."""
    if environment.distribution is None:
        return {}
    version = environment.version or "0"
    if (_normal(environment.distribution), version) in _locked(lock):
        raise OperatorError(
            f"the lock installs the project itself ({environment.distribution}=={version})",
            where="environment.lock",
            hint="remove the project from the lock: its code comes from the workspace",
        )
    name = re.sub(r"[-_.]+", "_", environment.distribution)
    folder = f"{name}-{version.replace('-', '_')}.dist-info"
    if not _FOLDER.fullmatch(folder):
        raise OperatorError(
            f"a project cannot be called {environment.distribution!r}, version {version!r}",
            where="environment.distribution",
            hint="names have letters, digits, '.', '-' and '_'; versions also '+' and '!'",
        )
    files = {
        "METADATA": f"Metadata-Version: 2.1\nName: {environment.distribution}\nVersion: {version}\n",
        "INSTALLER": "trialfleet\n",
    }
    if environment.entry_points:
        files["entry_points.txt"] = environment.entry_points.strip() + "\n"
    record = [*sorted(files), "RECORD"]
    files["RECORD"] = "".join(f"{folder}/{file},,\n" for file in record)
    return {f"{folder}/{name}": text for name, text in files.items()}


def lay_metadata(metadata: Mapping[str, str], home: Path) -> None:
    """Into a new HOME, where `PROJECT` is put on PYTHONPATH."""
    if metadata:
        write_folder({path: TreeEntry(text.encode()) for path, text in metadata.items()}, home / PROJECT)


def python_path(workspace: str, entries: Sequence[str], home: str | None) -> str:
    """`PYTHONPATH`. `home`: with the project's metadata.

    >>> python_path("/workspace", (".", "src"), "/home/agent")
    '/workspace:/workspace/src:/home/agent/.project'
    """
    found = [str(PurePosixPath(workspace) / entry) for entry in entries]
    return ":".join([*found, f"{home}/{PROJECT}"] if home is not None else found)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _locked(lock: bytes) -> set[tuple[str, str]]:
    """(Normal name, version) of what it pins."""
    return {(_normal(name), version) for name, version in _PIN.findall(lock.decode(errors="replace"))}


def _run(argv: tuple[str, ...], env: Mapping[str, str], *, cwd: Path) -> tuple[int, str]:
    null, pipe, both = subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT
    try:
        ended = subprocess.run(
            argv, env=dict(env), cwd=cwd, stdin=null, stdout=pipe, stderr=both, timeout=_PROGRAM_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, str(error)
    return ended.returncode, ended.stdout.decode(errors="replace")


def uv_variables() -> dict[str, str]:
    """Of a uv that runs no package's code: it gets what logs in to the index."""
    from trialfleet_repository.environments.package_index import ca_file, find_links, index_url

    names = (
        "PATH",
        "HOME",
        "TMPDIR",
        "NETRC",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "UV_CACHE_DIR",
        "UV_PYTHON_INSTALL_DIR",
        "UV_KEYRING_PROVIDER",
    )
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in names or name.lower().endswith("_proxy") or name.startswith("UV_INDEX_")
    }
    fixed = {"UV_DEFAULT_INDEX": index_url(), "UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never"}
    links, trusted = find_links(), ca_file()
    return {
        **kept,
        **uv_folders(),
        **fixed,
        **({"SSL_CERT_FILE": trusted} if trusted else {}),
        **({"UV_FIND_LINKS": ",".join(links)} if links else {}),
    }


def _install(folder: Path, python: Path, lock: bytes) -> None:
    """Wheels run no code when they are installed. What has none is built."""
    from trialfleet_repository.environments import python_builds

    uv, env = uv_program(), uv_variables()
    requirements = folder.parent / "requirements.txt"
    requirements.write_bytes(read_requirements(lock))
    venv = ("venv", "--quiet", "--relocatable", "--allow-existing", "--python", str(python), str(folder))
    _must(*_run((uv, *venv), env, cwd=folder.parent), "cannot make an environment")
    if lock.strip():
        how = ("--quiet", "--require-hashes", "--no-deps", "--strict", "--link-mode=copy")
        install = ("pip", "install", *how, "--python", str(folder / "bin/python"), "-r", str(requirements))
        code, said = _run((uv, *install, "--no-build"), env, cwd=folder.parent)
        if code and python_builds.needs_build(said):
            with scratch(folder.parent, ".build-") as place:
                built = python_builds.building_uv(
                    install, place, python=python, reads=(requirements,), writes=(folder,)
                )
            code, said = built.code, built.errors
        _must(code, said, "cannot install what the lock names")
        _compile(folder, python)


def _compile(folder: Path, python: Path) -> None:
    """Bytecode of all packages, by the base interpreter: that of `folder` would run the packages' `.pth` files,
    here, out of any sandbox. Files that are no Python of this version are left out.

    Bytecode holds its module's time, and its path, which an import puts right. With one time and no folder in it,
    environments of the same packages have the same files."""
    packages = site_packages(folder)
    _set_times(packages)
    how = ("-I", "-S", "-m", "compileall", "-qq", "-j", "0", "--invalidation-mode", "timestamp", "-d", "")
    env = {name: value for name, value in os.environ.items() if name in ("PATH", "TMPDIR")}
    _run((str(python), *how, str(packages)), env, cwd=folder)
    _set_times(packages)


def _set_times(folder: Path) -> None:
    for path, _, names in os.walk(folder):
        for name in names:
            os.utime(f"{path}/{name}", (INSTALLED_AT, INSTALLED_AT), follow_symlinks=False)


def _must(code: int, output: str, message: str) -> None:
    if code != 0:
        raise OperatorError(
            f"{message}: {output.strip()[-2000:]}",
            where="environment.lock",
            hint="compile the lock again for this Python with `uv pip compile --generate-hashes`",
        )


def site_packages(environment: Path) -> Path:
    """The one folder of installed packages."""
    return next((environment / "lib").glob("python3*/site-packages"))


def _set_up(folder: Path, commands: tuple[tuple[str, ...], ...]) -> None:
    """Run set-up commands in the sandbox, argv only, with the environment first on PATH; their output is kept next
    to it."""
    from trialfleet_repository.environments import python_builds

    log = folder / SETUP_LOG
    for argv in commands:
        started = time.monotonic()
        with scratch(folder.parent, ".setup-") as place:
            answer = python_builds.run_setup_command(argv, folder, place)
        code, output = answer.code, answer.output.decode(errors="replace") + answer.errors
        with log.open("a") as file:
            file.write(f"$ {argv!r}\n{output}\nexit {code} after {time.monotonic() - started:.1f} s\n")
        if code != 0:
            raise OperatorError(
                f"{' '.join(argv)}: exit {code}: {output.strip()[-1000:]}",
                where="environment.setup",
                hint="run the command by hand in a fresh environment",
            )


def python_of(environment: Path) -> Path:
    return environment / "bin" / "python"
