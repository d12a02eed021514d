"""What every agent finds around it: where host paths appear, and an allow-listed environment."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from trialfleet_runner.agents.protocol import Setup
from trialfleet_runner.contract import Stop
from trialfleet_runner.sandbox.protocol import Exit, Mount

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


def inside(path: Path, mounts: tuple[Mount, ...]) -> str:
    """Where a host path appears to the program: through the deepest mount that holds it.

    Mounts carry the targets that the program will see (the host path itself where nothing is remapped).
    A path that no mount holds raises `ValueError`: the program could not see it.

    >>> inside(Path("/s/ws/a.py"), (Mount(Path("/s/ws"), "/workspace", writable=True),))
    '/workspace/a.py'
    """
    holding = [mount for mount in mounts if path.is_relative_to(mount.source)]
    if not holding:
        raise ValueError(f"{path} is in no mount")
    deepest = max(holding, key=lambda mount: len(mount.source.parts))
    return str(PurePosixPath(deepest.target) / path.relative_to(deepest.source))


def with_mount(mounts: tuple[Mount, ...], path: Path, *, writable: bool = False) -> tuple[Mount, ...]:
    """`mounts`, and `path` at its own host path unless one of them already shows it.

    The host path as target is right with and without a mount namespace.
    """
    if any(path.is_relative_to(mount.source) for mount in mounts):
        return mounts
    return (*mounts, Mount(path, str(path), writable))


def environment(setup: Setup, mounts: tuple[Mount, ...]) -> dict[str, str]:
    """The allow-listed environment: nothing of the runner's own environment gets in.

    The task's interpreter comes first on PATH. Git reads neither the machine's nor a user's settings, signs
    as "agent", and accepts the workspace whoever owns it.
    """
    home, workspace = inside(setup.home, mounts), inside(setup.workspace, mounts)
    prefix = inside(setup.environment, mounts)
    found = {
        "HOME": home,
        "TMPDIR": str(PurePosixPath(home, "tmp")),
        "USER": "agent",
        "LOGNAME": "agent",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        "PATH": f"{prefix}/bin:{SYSTEM_PATH}",
        "VIRTUAL_ENV": prefix,
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
        "GIT_TERMINAL_PROMPT": "0",
        **{f"GIT_{who}_NAME": "agent" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "agent@localhost" for who in ("AUTHOR", "COMMITTER")},
    }
    if setup.pythonpath:
        found["PYTHONPATH"] = ":".join(str(PurePosixPath(workspace) / entry) for entry in setup.pythonpath)
    return found


def stop_of(ended: Exit | None) -> Stop | None:
    """What the sandbox alone says about why the agent stopped; None: nothing ran, or the runner was stopped."""
    if ended is None or ended.cause == "stopped":
        return None
    if ended.cause == "itself":
        return Stop.FINISHED if ended.code == 0 else Stop.CRASHED
    return {"timeout": Stop.TIMEOUT, "memory": Stop.MEMORY, "disk": Stop.DISK}[ended.cause]
