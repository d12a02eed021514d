"""Runs the foreign code of which a Python environment is made: builds of packages without a wheel, and the set-up
commands of a task file. In the sandbox, with a network, an empty HOME and an empty cache. Of the caller's
variables it gets only those that name the index, proxies and certificates."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trialfleet_ledger.interpreters import uv_program
from trialfleet_repository.environments.package_index import ca_file, find_links, index_url
from trialfleet_repository.languages.registry import without_login
from trialfleet_sandbox.choose import choose
from trialfleet_sandbox.host import give_back
from trialfleet_sandbox.interpreter import base_variables, program_mounts
from trialfleet_sandbox.protocol import Job, Mount, inside, placed

_HOME = "/home/agent"
_TIMEOUT_S = 3600.0
_DISK_BYTES = 32 * 2**30
_REFUSED = ("--no-build", "no usable wheels", "building source distributions is disabled")


@dataclass(frozen=True)
class BuildAnswer:
    """`errors`: the end of what it wrote to stderr; 124 stands for a program that was ended."""

    code: int
    output: bytes
    errors: str


def needs_build(refusal: str) -> bool:
    """Whether uv, told not to build, says that a package has no wheel."""
    return any(words in refusal for words in _REFUSED)


def building_uv(
    arguments: Sequence[str],
    place: Path,
    *,
    python: Path,
    reads: Sequence[Path] = (),
    writes: Sequence[Path] = (),
    stdin: bytes = b"",
) -> BuildAnswer:
    """Run uv with these arguments. `place`: an empty folder of the caller's. `python`: builds. `reads`, `writes`:
    what it sees of the host, at the same paths. A login in the index's URL is left out."""
    uv, tools = Path(uv_program()).resolve(), place / "tools"
    (tools / "bin").mkdir(parents=True)
    (tools / "bin" / "python").symlink_to(python)
    return _run(tools, (str(uv), *arguments), place, {}, reads=(uv, tools, *reads), writes=writes, stdin=stdin)


def run_setup_command(argv: Sequence[str], environment: Path, place: Path) -> BuildAnswer:
    """Run a program in an empty folder, with the environment, which it may write, first on PATH. `place`: an empty
    folder of the caller's."""
    uv, program = Path(uv_program()).resolve(), environment / "bin" / argv[0]
    found = (str(program) if program.exists() else argv[0], *argv[1:])
    return _run(environment, found, place, {"VIRTUAL_ENV": str(environment)}, reads=(uv,), writes=(environment,))


def _run(
    prefix: Path,
    argv: Sequence[str],
    place: Path,
    variables: Mapping[str, str],
    *,
    reads: Sequence[Path],
    writes: Sequence[Path],
    stdin: bytes = b"",
) -> BuildAnswer:
    """`prefix`: its programs are first on PATH."""
    sandbox, home = choose(), place / "home"
    (home / "tmp").mkdir(parents=True)
    shown = (*reads, *_local())
    mounts = (
        placed(sandbox, home, _HOME, writable=True),
        *(Mount(path, str(path)) for path in dict.fromkeys(shown)),
        *(Mount(path, str(path), writable=True) for path in writes),
        *program_mounts(prefix),
    )
    seen = inside(home, mounts)
    ended = sandbox.run(
        Job(
            argv=tuple(argv),
            env={
                **base_variables(str(prefix), seen),
                **_variables(),
                **variables,
                "UV_CACHE_DIR": f"{seen}/cache",
            },
            cwd=seen,
            mounts=mounts,
            stdout=place / "stdout",
            stderr=place / "stderr",
            timeout_s=_TIMEOUT_S,
            disk_bytes=_DISK_BYTES,
            stdin=stdin,
            network=True,
        )
    )
    if sandbox.capabilities.other_uid:
        for path in writes:
            give_back(path)
    errors = (place / "stderr").read_bytes()[-(2**20) :].decode(errors="replace")
    return BuildAnswer(ended.code if ended.cause == "itself" else 124, (place / "stdout").read_bytes(), errors)


def _local() -> Iterator[Path]:
    """Files and folders of this machine that uv is configured to read."""
    for place in (*find_links(), index_url()):
        path = Path(place.removeprefix("file://"))
        if path.is_absolute() and path.exists():
            yield path
    if trusted := ca_file():
        yield Path(trusted)


def _variables() -> dict[str, str]:
    links, trusted = find_links(), ca_file()
    proxies = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    return {
        **proxies,
        "UV_DEFAULT_INDEX": without_login(index_url()),
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        **({"UV_FIND_LINKS": ",".join(links)} if links else {}),
        **({"SSL_CERT_FILE": trusted} if trusted else {}),
    }
