"""A package index of files, made from what is installed here: environments are built without a network."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import zipfile
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

PYTEST = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")
# Of some 250: all that pytest imports. To compile them all is half of an environment's cost.
LEXERS = ("__init__.py", "_mapping.py", "diff.py", "python.py")


@dataclass(frozen=True)
class Index:
    """A folder of wheels that `PIP_FIND_LINKS` and uv read."""

    folder: Path

    def add(self, name: str, data: bytes) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_bytes(data)

    def lock(self, *names: str) -> str:
        """Requirements with hashes for distributions of this index."""
        lines: list[str] = []
        for file in sorted(self.folder.iterdir()):
            project, version = file.name.removesuffix(".tar.gz").split("-")[:2]
            if project in names:
                digest = hashlib.sha256(file.read_bytes()).hexdigest()
                lines.append(f"{project}=={version} --hash=sha256:{digest}\n")
        return "".join(lines)


_BACKEND = """
import contextlib, json, os, pathlib, zipfile

def build_wheel(directory, config_settings=None, metadata_directory=None):
    seen = {"home": sorted(os.listdir(os.environ["HOME"])), "variables": sorted(os.environ)}
    seen["reads"] = [path for path in OUTSIDE if os.path.exists(path)]
    with contextlib.suppress(OSError):
        pathlib.Path(OUTSIDE[0] + ".new").write_text("x")
    info = "NAME-1.0.dist-info/"
    files = {
        "NAME.py": f"SEEN = {seen!r}\\n",
        info + "METADATA": "Metadata-Version: 2.1\\nName: NAME\\nVersion: 1.0\\n",
        info + "WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    files[info + "RECORD"] = "".join(f"{path},,\\n" for path in [*files, info + "RECORD"])
    with zipfile.ZipFile(os.path.join(directory, "NAME-1.0-py3-none-any.whl"), "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return "NAME-1.0-py3-none-any.whl"
"""


def spying_sdist(name: str, outside: Path) -> tuple[str, bytes]:
    """A source archive whose build looks around: the module says in `SEEN` what it saw. `outside`: a file that it
    tries to see, and to write beside."""
    backend = _BACKEND.replace("NAME", name).replace("OUTSIDE", repr([str(outside)]))
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    files = {
        "pyproject.toml": f'{project}[project]\nname = "{name}"\nversion = "1.0"\n',
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        "backend.py": backend,
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(f"{name}-1.0/{path}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return f"{name}-1.0.tar.gz", buffer.getvalue()


def with_pytest(folder: Path) -> Index:
    """An index that has pytest and all that it needs."""
    index = Index(folder)
    for name in PYTEST:
        index.add(*installed_wheel(name))
    return index


def installed_wheel(name: str) -> tuple[str, bytes]:
    """File name and bytes of a wheel with the installed files of a pure distribution; of Pygments, those that
    pytest needs."""
    found = distribution(name)
    files: dict[str, bytes] = {}
    for file in found.files or ():
        path = str(file)
        if (
            not path.startswith("..")
            and "__pycache__" not in path
            and not path.endswith(("RECORD", "INSTALLER", "direct_url.json"))
            and ("pygments/lexers/" not in path or path.endswith(LEXERS))
        ):
            files[path] = Path(str(file.locate())).read_bytes()
    info = next(path.partition("/")[0] for path in files if ".dist-info/" in path)
    return f"{info.removesuffix('.dist-info')}-py3-none-any.whl", wheel_bytes(info, files)


def wheel(name: str, version: str, files: dict[str, str]) -> tuple[str, bytes]:
    """A small pure wheel."""
    info = f"{name}-{version}.dist-info"
    whole = {path: text.encode() for path, text in files.items()} | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    return f"{name}-{version}-py3-none-any.whl", wheel_bytes(info, whole)


def wheel_bytes(info: str, files: dict[str, bytes]) -> bytes:
    record = "".join(f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in files.items())
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, data in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n".encode()}.items():
            archive.writestr(zipfile.ZipInfo(path), data)
    return buffer.getvalue()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
