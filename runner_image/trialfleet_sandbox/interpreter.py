"""What an environment needs from the host, and the gateway's forwarder, which starts the program."""

from __future__ import annotations

import sys
from pathlib import Path

from trialfleet_sandbox.protocol import Job, Mount, inside

_ALWAYS_VISIBLE = Path("/usr")
FURNISHINGS = "environment.json"
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


# Git reads no settings of machine or user, signs as "agent", and accepts a workspace of any owner.
_GIT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
    **{f"GIT_{who}_NAME": "agent" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "agent@localhost" for who in ("AUTHOR", "COMMITTER")},
}


def base_variables(environment: str, home: str) -> dict[str, str]:
    """The variables of every program in a sandbox, none of them the caller's; paths as the program sees them."""
    return {
        "HOME": home,
        "TMPDIR": f"{home}/tmp",  # noqa: S108 - the program's own
        "USER": "agent",
        "LOGNAME": "agent",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        "PATH": f"{environment}/bin:{SYSTEM_PATH}",
        "PYTHONDONTWRITEBYTECODE": "1",
        **_GIT,
    }


def program_mounts(environment: Path) -> tuple[Mount, ...]:
    """Read-only mounts that make the programs in `environment`/bin run: the prefix of every link on the way to
    each real program. Nothing for what lies below /usr, which every sandbox shows."""
    prefixes: list[Path] = []
    for program in sorted((environment / "bin").iterdir()):
        prefixes += _prefixes(program)
    return tuple(
        Mount(prefix, str(prefix))
        for prefix in dict.fromkeys(prefixes)
        if not _shown(prefix) and prefix.resolve() != environment.resolve()
    )


def _prefixes(program: Path) -> list[Path]:
    """Of the links on the way; a program that is no link needs nothing."""
    if not program.is_symlink():
        return []
    found: list[Path] = []
    for _ in range(40):  # the kernel's own limit of links
        if not program.is_symlink():
            break
        program = program.parent / program.readlink()
        found.append(program.parent.parent)
    return [*found, program.resolve().parent.parent]


def own_interpreter() -> tuple[str, tuple[Mount, ...]]:
    """The interpreter that runs us, and the mounts it needs: for the forwarder inside."""
    program = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    prefix = program.parent.parent
    return str(program), () if _shown(prefix) else (Mount(prefix, str(prefix)),)


def is_python(environment: Path) -> bool:
    """Whether it is a virtual environment: those of other languages say in a file how they are used."""
    return not (environment / FURNISHINGS).exists()


def hook_python(environment: Path, mounts: tuple[Mount, ...]) -> str:
    """The Python that runs hooks, as the agent sees it: the environment's, or ours where that has none."""
    if is_python(environment):
        return f"{inside(environment, mounts)}/bin/python"
    return own_interpreter()[0]


def hook_mounts(environment: Path) -> tuple[Mount, ...]:
    """What `hook_python` needs besides the environment."""
    return () if is_python(environment) else own_interpreter()[1]


def site_packages(prefix: Path) -> tuple[Path, ...]:
    """Folders of installed packages of a *base* interpreter: a sandbox hides them, because they may hold a
    released (fixed) version of the task's project. A virtual environment's are never among them."""
    if (prefix / "pyvenv.cfg").exists():
        return ()
    found = [
        folder
        for pattern in ("lib/python3*/site-packages", "lib/python3*/dist-packages")
        for folder in sorted(prefix.glob(pattern))
        if folder.is_dir() and not folder.is_symlink()
    ]
    return tuple(found)


def _shown(path: Path) -> bool:
    return path == _ALWAYS_VISIBLE or _ALWAYS_VISIBLE in path.parents


FORWARDER = Path(__file__).resolve().with_name("forwarder.py")


def forwarded(job: Job, *, python: str, script: str, socket: str, report: int) -> tuple[str, ...]:
    """The job's argv behind the forwarder; all paths are as the program sees them. `report`: the descriptor by
    which the forwarder says whether it could execute the program (`start.py`)."""
    told = ("--socket", socket, "--port", str(job.gateway_port), "--report", str(report), "--")
    return (python, "-I", "-S", script, *told, *job.argv)


def last_line(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no message"
