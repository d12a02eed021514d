"""Builds an environment of another language than Python: runs its commands in a checkout, keeps what they make."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from trialfleet_ledger.atomic_file import write_whole
from trialfleet_ledger.canonical import canonical_json
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.environment import ToolEnvironmentRef
from trialfleet_ledger.removal import remove
from trialfleet_repository.cache import scratch
from trialfleet_repository.environments.package_index import ca_file
from trialfleet_repository.environments.tool_caches import caches_of, drop_unused, take_over
from trialfleet_repository.environments.tool_environment import KEPT, Furnishings, filled
from trialfleet_repository.languages import LANGUAGES, language_of_kind
from trialfleet_repository.languages.protocol import Language
from trialfleet_repository.trees import Tree, unpack, write_changes
from trialfleet_sandbox.choose import choose
from trialfleet_sandbox.host import give_back
from trialfleet_sandbox.interpreter import FURNISHINGS, base_variables, program_mounts
from trialfleet_sandbox.protocol import Job, Mount, Sandbox, inside, placed

WORKSPACE = "/workspace"
HOME = "/home/agent"
_COMMAND_S = 1800.0
_DISK_BYTES = 32 * 2**30
_SHOWN = 2000  # characters of a command's output in a message
_ERROR = re.compile(r"^\W*(?:npm )?(?:error|fatal|err_\w+)\b", re.IGNORECASE | re.MULTILINE)


def install(
    folder: Path,
    ref: ToolEnvironmentRef,
    tools: Mapping[str, Path],
    tree: bytes,
    *,
    seed: Path | None = None,
    checkouts: Sequence[Path] = (),
) -> None:
    """Into an existing, empty folder, which keeps its place. `tree`: tar of the checkout that the commands run in.
    `seed`: an environment whose caches are copied first. `checkouts`: where attempts will have the repository, for
    sandboxes that do not map paths: some compilers' caches are of one folder. They must not exist.

    Foreign code may run here: in the sandbox, with a network for `fetch` alone, an empty HOME, and none of the
    caller's variables but those that name proxies and certificates. Raises `OperatorError` when a fetch fails.
    """
    (folder / "bin").mkdir()
    for name, path in tools.items():
        (folder / "bin" / name).symlink_to(path)
    sandbox = choose()
    mapped = sandbox.capabilities.maps_paths
    if seed is not None:
        take_over(seed, folder, ref.kind, one_place=mapped and ref.place is not None)
    with scratch(folder.parent, ".fetch-") as place:
        kept = _Build(folder, place, ref, sandbox).all(unpack(tree), () if mapped else checkouts)
    drop_unused(folder, ref.kind)
    for pattern in ref.drop:
        for found in list(folder.glob(pattern)):
            remove(found)
    for cache in ref.links:
        (folder / cache).mkdir(parents=True, exist_ok=True)
    facts = Furnishings(
        variables=ref.variables,
        links=ref.links,
        kept=kept,
        caches=caches_of(ref),
        place=ref.place if mapped else None,
        tools=ref.tools,
    )
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
    """The commands of one environment. They see the folder where attempts will see it, since caches hold paths."""

    def __init__(self, folder: Path, place: Path, ref: ToolEnvironmentRef, sandbox: Sandbox) -> None:
        self.folder, self.place, self.ref, self.sandbox = folder, place, ref, sandbox
        self.seen = ref.place if ref.place and sandbox.capabilities.maps_paths else str(folder)
        self.checkout, self.count = place / "workspace", 0

    def all(self, tree: Tree, checkouts: Sequence[Path]) -> tuple[str, ...]:
        """Fetch once, warm in each of the checkouts, and return what is kept of the last one."""
        (self.place / "home" / "tmp").mkdir(parents=True)
        self.checkout.mkdir()
        write_changes(tree, self.checkout)
        language = language_of_kind(self.ref.kind)
        for file in language.own_files if language is not None else ():
            shutil.copyfile(file, self.folder / file.name)
        for argv in self.ref.alone:
            self.run(argv, network=False)
        self._write_registries()
        for argv in self.ref.fetch:
            self.fetch(argv)
        for checkout in (checkouts if self.ref.warm else ()) or (self.checkout,):
            self._move(checkout)
            for argv in self.ref.warm:
                self.run(argv, network=False)
        kept = self._keep(tree)
        self._move(self.place / "workspace")
        if self.sandbox.capabilities.other_uid:
            give_back(self.folder)
        return kept

    def _move(self, checkout: Path) -> None:
        if checkout != self.checkout:
            checkout.parent.mkdir(parents=True, exist_ok=True)
            self.checkout = Path(shutil.move(self.checkout, checkout))

    def _keep(self, tree: Tree) -> tuple[str, ...]:
        kept = tuple(_kept(self.checkout, self.ref.keep, set(tree)))
        for made in kept:
            target = self.folder / KEPT / made
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(self.checkout / made, target)
        return kept

    def fetch(self, argv: tuple[str, ...]) -> None:
        code, output = self.run(argv, network=True)
        if code != 0:
            raise OperatorError(
                f"{_error_first(output.strip()[-_SHOWN:])}\nexit {code} of {' '.join(argv)}",
                where="environment.fetch",
                hint="run the command by hand in a checkout of the commit",
            )

    def run(self, argv: tuple[str, ...], *, network: bool) -> tuple[int, str]:
        self.count += 1
        mounts = (
            placed(self.sandbox, self.checkout, WORKSPACE, writable=True),
            placed(self.sandbox, self.place / "home", HOME, writable=True),
            Mount(self.folder, self.seen, writable=True),
            Mount(self.folder, str(self.folder), writable=True),
            *program_mounts(self.folder),
        )
        home, workspace = (inside(path, mounts) for path in (self.place / "home", self.checkout))
        places = {"environment": self.seen, "home": home, "workspace": workspace}
        own = {name: filled(self._in_place(value), places) for name, value in self.ref.variables.items()}
        variables = base_variables(self.seen, home) | own
        if network:
            offline = {name for language in LANGUAGES.values() for name in language.offline}
            online = {name: value for name, value in variables.items() if name not in offline}
            variables = online | _network() | self._registries()
        output = self.place / f"output-{self.count}"
        ended = self.sandbox.run(
            Job(
                argv=tuple(filled(word, places) for word in self._found(argv)),
                env=variables,
                cwd=os.path.normpath(f"{workspace}/{self.ref.directory}"),
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

    def _registries(self) -> dict[str, str]:
        """That the user has configured for the programs of the environment."""
        return {name: value for language in self._used() for name, value in language.registry().items()}

    def _write_registries(self) -> None:
        """The same, of programs that read files alone."""
        places = {"environment": str(self.folder), "home": str(self.place / "home")}
        for language in self._used():
            for name, content in language.registry_files().items():
                file = Path(filled(name, places))
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)

    def _used(self) -> list[Language]:
        return [each for each in LANGUAGES.values() if not self.ref.tools.keys().isdisjoint(each.programs)]

    def _in_place(self, value: str) -> str:
        """The caches are filled in the environment itself."""
        for cache, place in self.ref.links.items():
            value = value.replace(place, f"{self.seen}/{cache}")
        return value

    def _found(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        program = self.folder / "bin" / argv[0]
        return (str(program) if program.is_symlink() else argv[0], *argv[1:])


def _error_first(output: str) -> str:
    """From the first line that reports an error, and then what is before it.

    >>> _error_first("warning: no edition\\n    Updating\\nerror: no such crate\\nCaused by: it")
    'error: no such crate\\nCaused by: it\\nwarning: no edition\\n    Updating'
    """
    found = _ERROR.search(output)
    start = found.start() if found else 0
    return "\n".join(part.strip("\n") for part in (output[start:], output[:start]) if part)


def _network() -> dict[str, str]:
    """Of the caller's variables, what a program needs to reach a registry."""
    kept = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    trusted = ca_file()
    return kept | ({"SSL_CERT_FILE": trusted, "NODE_EXTRA_CA_CERTS": trusted} if trusted else {})
