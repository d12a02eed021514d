"""Environments of other languages than Python: what commands fetch in a checkout, and the caches of a first build.

The folder of one holds `bin` (links to the machine's programs), what the commands left below it, `kept` (files and
folders that they made in the checkout) and `environment.json`, which says how an attempt uses all of it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from trialfleet_ledger.atomic_file import write_whole
from trialfleet_ledger.canonical import canonical_json, digest
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records import Frozen, Sha256, ToolEnvironmentRef
from trialfleet_runner.cache import scratch
from trialfleet_runner.interpreters import executable_by_others
from trialfleet_runner.package_index import ca_file
from trialfleet_runner.removal import remove
from trialfleet_runner.sandbox.choose import choose
from trialfleet_runner.sandbox.interpreter import FURNISHINGS, base_variables, program_mounts
from trialfleet_runner.sandbox.protocol import Job, Mount, Sandbox, inside, placed
from trialfleet_runner.trees import unpack, write_changes

KEPT = "kept"
WORKSPACE = "/workspace"
HOME = "/home/agent"
_COMMAND_S = 1800.0
_DISK_BYTES = 32 * 2**30
_SHOWN = 2000  # characters of a command's output in a message
_ASKS = {"go": "version", "java": "-version", "javac": "-version"}  # the others: --version
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_OWN_FILES = {"node": "node_reporter.mjs", "java": "gradle_tests.gradle"}  # by kind, beside the results' readers
_OWN_LOCKS = {".cargo-lock", ".package-cache"}  # a program locks them: each attempt makes its own
_WRITTEN = (".bin", ".lock", ".lck")  # indexes and locks that a program opens for writing: each attempt has copies


class Furnishings(Frozen):
    """What an attempt gets of an environment. `kept`: paths of the workspace. `links`: folder of the environment
    -> place in which each of its files is a link. In places and variables, {environment}, {home} and
    {workspace}."""

    variables: dict[str, str]
    links: dict[str, str]
    kept: tuple[str, ...]
    caches: Sha256 | None = None  # of what may begin with a copy of these caches


NOTHING = Furnishings(variables={}, links={}, kept=())


def furnishings(environment: Path) -> Furnishings:
    """Of a built environment; a Python environment has none."""
    file = environment / FURNISHINGS
    return Furnishings.model_validate_json(file.read_bytes()) if file.exists() else NOTHING


def filled(text: str, places: Mapping[str, str]) -> str:
    """
    >>> filled("{home}/.cache:{other}", {"home": "/home/agent"})
    '/home/agent/.cache:{other}'
    """
    return re.sub(r"\{(environment|home|workspace)\}", lambda match: places.get(match[1], match[0]), text)


def variables_of(environment: Path, *, seen: str, home: str, workspace: str) -> dict[str, str]:
    """The environment's own variables; paths as the program sees them."""
    places = {"environment": seen, "home": home, "workspace": workspace}
    return {name: filled(value, places) for name, value in furnishings(environment).variables.items()}


def furnish(environment: Path, workspace: Path, home: Path) -> None:
    """Lay what the environment keeps into a workspace, and its caches into HOME, as links to sealed files. Nothing
    runs there yet; a link that a patch has put into a path's way is not followed."""
    given = furnishings(environment)
    for path in given.kept:
        target = workspace / path
        if target.parent.is_dir() and target.parent.resolve() == workspace.resolve() / PurePosixPath(path).parent:
            _lay(environment / KEPT / path, target)
    for cache, place in given.links.items():
        _linked(environment / cache, Path(filled(place, {"home": str(home)})))


def _lay(source: Path, target: Path) -> None:
    if not source.is_dir():
        if not os.path.lexists(target):
            shutil.copyfile(source, target)
        return
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        return
    target.mkdir(exist_ok=True)
    for child in source.iterdir():
        if child.name.startswith("@") and child.is_dir() and not child.is_symlink():  # a scope of npm's
            _lay(child, target / child.name)
        elif not os.path.lexists(target / child.name):
            inner = child.is_symlink() and not child.readlink().is_absolute()
            (target / child.name).symlink_to(child.readlink() if inner else child)


def _linked(source: Path, target: Path) -> None:
    """Folders that can be written, whose files are links, apart from those that programs write."""
    todo = [(os.fspath(source), os.fspath(target))]
    while todo:
        folder, place = todo.pop()
        os.makedirs(place, exist_ok=True)  # noqa: PTH103 - thousands of them
        with os.scandir(folder) as children:
            for child in children:
                path = f"{place}/{child.name}"
                if child.is_dir(follow_symlinks=False):
                    todo.append((child.path, path))
                elif child.name.endswith(_WRITTEN) and child.is_file(follow_symlinks=False):
                    shutil.copyfile(child.path, path)
                elif child.name not in _OWN_LOCKS:
                    os.symlink(child.path, path)  # noqa: PTH211


def programs(tools: Mapping[str, str], *, for_other_uid: bool = False) -> dict[str, Path]:
    """The machine's programs of these names and versions. Raises `OperatorError` where one is missing or
    another."""
    found: dict[str, Path] = {}
    for name, version in tools.items():
        path, here = find_tool(name)
        if here != version:
            raise OperatorError(
                f"the environment was planned for {name} {version}; this machine has {here}",
                where="environment.tools",
                hint="plan the campaign on the machine that runs it, or use the same image",
            )
        if for_other_uid and not executable_by_others(path):
            raise OperatorError(
                f"{path} cannot be executed by the agent's user",
                where="environment.tools",
                hint=f"install {name} for the whole system, or bubblewrap (it needs no other user)",
            )
        found[name] = path
    return found


def find_tool(name: str) -> tuple[Path, str]:
    """(Program, version) of this machine, the real program where rustup stands before it. Raises
    `OperatorError`."""
    path = shutil.which(name)
    if path is not None and Path(path).resolve().name == "rustup":
        ended = _asked((str(Path(path).with_name("rustup")), "which", name))
        path = ended.strip() or None
    if path is None:
        raise OperatorError(
            f"there is no program {name} on this machine",
            where="environment.tools",
            hint=f"install {name} and put it on PATH",
        )
    version = _VERSION.search(_asked((path, _ASKS.get(name, "--version"))))
    return Path(path), version[0] if version else "unknown"


def _asked(argv: Sequence[str]) -> str:
    try:
        ended = subprocess.run(
            argv, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ended.stdout.decode(errors="replace")


def _caches(ref: ToolEnvironmentRef) -> Sha256 | None:
    """Equal for environments of one repository whose tools and variables are equal: their tools look up what they
    cached by its content or by its whole name and version."""
    same = (ref.kind, ref.repository, ref.tools, ref.variables, ref.links)
    return digest(list(same)) if ref.repository else None


def seed_of(folder: Path, ref: ToolEnvironmentRef) -> Path | None:
    """The newest environment beside `folder` whose caches a new one may begin with."""
    wanted = _caches(ref)
    files = sorted(folder.parent.glob(f"*/{FURNISHINGS}"), key=lambda file: -file.stat().st_mtime)
    found = (file.parent for file in files if file.parent != folder)
    return next((each for each in found if wanted and _caches_in(each) == wanted), None)


def _caches_in(environment: Path) -> Sha256 | None:
    """None where another release wrote what this one cannot read."""
    try:
        return furnishings(environment).caches
    except ValueError:
        return None


def _copied(seed: Path, folder: Path) -> None:
    for child in seed.iterdir():
        if child.is_dir() and child.name not in ("bin", KEPT):
            shutil.copytree(child, folder / child.name, symlinks=True)  # with the times of files
            for path, _, _ in os.walk(folder / child.name):
                Path(path).chmod(0o755)


def install(
    folder: Path,
    ref: ToolEnvironmentRef,
    tools: Mapping[str, Path],
    tree: bytes,
    *,
    seed: Path | None = None,
) -> None:
    """Into an existing, empty folder, which keeps its place. `tree`: tar of the checkout that the commands run in.
    `seed`: an environment whose caches are copied first.

    Foreign code may run here: in the sandbox, with a network for `fetch` alone, an empty HOME, and none of the
    caller's variables but those that name proxies and certificates. Raises `OperatorError` when a fetch fails.
    """
    (folder / "bin").mkdir()
    for name, path in tools.items():
        (folder / "bin" / name).symlink_to(path)
    if seed is not None:
        _copied(seed, folder)
    with scratch(folder.parent, ".fetch-") as place:
        build = _Build(folder, place, ref, choose())
        given = unpack(tree)
        (place / "workspace").mkdir()
        write_changes(given, place / "workspace")
        (place / "home" / "tmp").mkdir(parents=True)
        if ref.kind in _OWN_FILES:
            name = _OWN_FILES[ref.kind]
            shutil.copyfile(Path(__file__).parent / "results" / name, folder / name)
        for argv in ref.fetch:
            build.fetch(argv)
        for argv in ref.warm:
            build.run(argv, network=False)
        kept = tuple(_kept(place / "workspace", ref.keep, set(given)))
        for made in kept:
            target = folder / KEPT / made
            target.parent.mkdir(parents=True, exist_ok=True)
            (place / "workspace" / made).rename(target)
    for pattern in ref.drop:
        for found in list(folder.glob(pattern)):
            remove(found)
    for cache in ref.links:
        (folder / cache).mkdir(parents=True, exist_ok=True)
    facts = Furnishings(variables=ref.variables, links=ref.links, kept=kept, caches=_caches(ref))
    write_whole(folder / FURNISHINGS, canonical_json(facts), mode=0o644)


def _kept(workspace: Path, names: Sequence[str], given: set[str]) -> Iterator[str]:
    """Paths with one of the names that the commands made, outermost first."""
    for path, folders, files in os.walk(workspace):
        for name in (*folders, *files):
            relative = Path(path, name).relative_to(workspace).as_posix()
            if name in names and relative not in given:
                yield relative
        folders[:] = [name for name in folders if name not in names]


class _Build:
    """The commands of one environment. They see the folder at its own place, since caches hold paths."""

    def __init__(self, folder: Path, place: Path, ref: ToolEnvironmentRef, sandbox: Sandbox) -> None:
        self.folder, self.place, self.ref, self.sandbox = folder, place, ref, sandbox
        self.count = 0

    def fetch(self, argv: tuple[str, ...]) -> None:
        code, output = self.run(argv, network=True)
        if code != 0:
            raise OperatorError(
                f"{' '.join(argv)}: exit {code}: {output.strip()[-_SHOWN:]}",
                where="environment.fetch",
                hint="run the command by hand in a checkout of the commit",
            )

    def run(self, argv: tuple[str, ...], *, network: bool) -> tuple[int, str]:
        self.count += 1
        mounts = (
            placed(self.sandbox, self.place / "workspace", WORKSPACE, writable=True),
            placed(self.sandbox, self.place / "home", HOME, writable=True),
            Mount(self.folder, str(self.folder), writable=True),
            *program_mounts(self.folder),
        )
        home, workspace = (inside(self.place / name, mounts) for name in ("home", "workspace"))
        places = {"environment": str(self.folder), "home": home, "workspace": workspace}
        own = {name: filled(self._in_place(value), places) for name, value in self.ref.variables.items()}
        variables = base_variables(str(self.folder), home) | own | (_network() if network else {})
        if network:
            variables = {name: value for name, value in variables.items() if name not in OFFLINE}
        output = self.place / f"output-{self.count}"
        ended = self.sandbox.run(
            Job(
                argv=tuple(filled(word, places) for word in self._found(argv)),
                env=variables,
                cwd=f"{workspace}/{self.ref.directory}",
                mounts=mounts,
                stdout=output,
                stderr=output,
                timeout_s=_COMMAND_S,
                disk_bytes=_DISK_BYTES,
                network=network,
            )
        )
        said = output.read_bytes()[-(2**20) :].decode(errors="replace") if output.exists() else ""
        code = ended.code if ended.cause == "itself" else 124
        return code, said

    def _in_place(self, value: str) -> str:
        """The caches are filled in the environment itself."""
        for cache, place in self.ref.links.items():
            value = value.replace(place, f"{self.folder}/{cache}")
        return value

    def _found(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        program = self.folder / "bin" / argv[0]
        return (str(program) if program.is_symlink() else argv[0], *argv[1:])


# Variables that keep a tool from its registry: they are for attempts and for warming.
OFFLINE = frozenset({"GOPROXY", "CARGO_NET_OFFLINE", "npm_config_offline"})


def _network() -> dict[str, str]:
    """Of the caller's variables, what a program needs to reach a registry."""
    kept = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    trusted = ca_file()
    return kept | ({"SSL_CERT_FILE": trusted, "NODE_EXTRA_CA_CERTS": trusted} if trusted else {})
