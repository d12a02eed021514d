"""Python environments: a virtual environment of locked packages, with the project's metadata, never its code."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.environment import PythonEnvironmentRef
from trialfleet_runner.interpreters import uv_program

if TYPE_CHECKING:  # runners of attempts need not pay for the task file's models
    from trialfleet_runner.task import PythonEnvironment

SETUP_LOG = "trialfleet-setup.log"
_PROGRAM_S = 3600.0  # for a program that builds it


def install(folder: Path, ref: PythonEnvironmentRef, python: Path, lock: bytes) -> None:
    """Into an existing, empty folder. Raises `OperatorError`."""
    _install(folder, python, lock)
    _write_metadata(folder, ref)
    _set_up(folder, ref.setup)


def project_metadata(environment: PythonEnvironment) -> tuple[dict[str, str], str | None]:
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
    from trialfleet_runner.package_index import ca_file

    trusted = ca_file()
    return kept | ({"SSL_CERT_FILE": trusted} if trusted else {})


def _uv_variables() -> dict[str, str]:
    from trialfleet_runner.package_index import find_links, index_url

    variables = _network_variables() | {
        "UV_DEFAULT_INDEX": index_url(),
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
    }
    links = find_links()
    return variables | {"UV_FIND_LINKS": ",".join(links)} if links else variables


def _install(folder: Path, python: Path, lock: bytes) -> None:
    uv, env = uv_program(), _uv_variables()
    requirements = folder.parent / "requirements.txt"
    requirements.write_bytes(lock)
    _must(
        (uv, "venv", "--quiet", "--relocatable", "--allow-existing", "--python", str(python), str(folder)),
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


def _write_metadata(folder: Path, ref: PythonEnvironmentRef) -> None:
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


def python_of(environment: Path) -> Path:
    return environment / "bin" / "python"
