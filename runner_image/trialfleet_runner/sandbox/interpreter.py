"""Which host folders a virtual environment needs besides itself."""

from __future__ import annotations

import sys
from pathlib import Path

from trialfleet_runner.sandbox.protocol import Mount

_ALWAYS_VISIBLE = Path("/usr")


def interpreter_mounts(environment: Path) -> tuple[Mount, ...]:
    """Read-only mounts that make `environment`/bin/python run: the prefix of every link on the way to the real
    interpreter. Nothing for what lies below /usr, which every sandbox shows."""
    prefixes: list[Path] = []
    program = environment / "bin" / "python"
    for _ in range(40):  # the kernel's own limit of links
        if not program.is_symlink():
            break
        program = program.parent / program.readlink()
        prefixes.append(program.parent.parent)
    prefixes.append(program.resolve().parent.parent)
    return tuple(
        Mount(prefix, str(prefix))
        for prefix in dict.fromkeys(prefixes)
        if not _shown(prefix) and prefix.resolve() != environment.resolve()
    )


def own_interpreter() -> tuple[str, tuple[Mount, ...]]:
    """The interpreter that runs us, and the mounts it needs: for the forwarder inside."""
    program = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    prefix = program.parent.parent
    return str(program), () if _shown(prefix) else (Mount(prefix, str(prefix)),)


def site_packages(prefix: Path) -> tuple[Path, ...]:
    """Folders of installed packages of a *base* interpreter: a sandbox hides them, for they may hold a released
    (fixed) version of what the task is about. A virtual environment's are never among them."""
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
