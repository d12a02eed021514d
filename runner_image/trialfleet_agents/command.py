"""`command`: any program as an agent. How it gets its task: `docs/how-to/bring-your-own-agent.md`."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from pydantic import Field, field_validator

from trialfleet_agents.protocol import Identity, Setup
from trialfleet_agents.sandbox_env import checked_options, job_of, stop_of, with_mount
from trialfleet_agents.scripts import missing_scripts, workspace_scripts
from trialfleet_agents.trajectory import read_trajectory
from trialfleet_deliveries.reach import Reach
from trialfleet_ledger.canonical import digest
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.prices import Price
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.base import Frozen
from trialfleet_ledger.trajectory import Parsed
from trialfleet_sandbox.interpreter import SYSTEM_PATH
from trialfleet_sandbox.protocol import Exit, Job, Mount, inside

_OF_THE_TASK = {"python", "python3", "pytest"}  # found in the task's environment, not on this machine
_SYSTEM_FOLDERS = tuple(
    Path(name) for name in ("/usr", "/bin", "/sbin", "/lib", "/lib64")
)  # every sandbox shows them


class CommandOptions(Frozen):
    """`agent.options` of kind command."""

    argv: tuple[str, ...] = Field(min_length=1)
    mounts: tuple[Path, ...] = ()  # folders or files shown to the program at their own path, read-only
    files: dict[str, str] = Field(default_factory=dict)  # path below HOME -> text, written before the start
    env: dict[str, str] = Field(default_factory=dict)  # fixed values, no secrets: they are part of the plan
    needs_model: bool = False
    provider: str = "anthropic"  # read by the runner, which holds the key
    model_ids: dict[str, str] = Field(default_factory=dict)  # names as asked for -> the provider's
    prices: dict[str, Price] = Field(default_factory=dict)  # of models that the built-in list lacks
    fields: tuple[str, ...] = ()  # of requests, that the gateway passes on although its lists lack them
    side_models: tuple[str, ...] = ()  # patterns of models that it passes on in addition to the planned one

    @field_validator("mounts")
    @classmethod
    def _absolute(cls, mounts: tuple[Path, ...]) -> tuple[Path, ...]:
        for mount in mounts:
            if not mount.is_absolute():
                raise ValueError(f"{mount} is not an absolute path")
        return mounts

    @field_validator("files")
    @classmethod
    def _below_home(cls, files: dict[str, str]) -> dict[str, str]:
        for name in files:
            if Path(name).is_absolute() or ".." in Path(name).parts or not Path(name).name:
                raise ValueError(f"{name!r} is not a path below HOME")
        return files


def options_of(spec: AgentSpec) -> CommandOptions:
    """The checked options. Raises `OperatorError` naming the field."""
    hint = "write options: {argv: [program, argument]}; see docs/how-to/bring-your-own-agent.md"
    return checked_options(CommandOptions, spec, hint=hint)


class Command:
    kind = "command"
    reach = Reach(system=True)

    def identify(self, spec: AgentSpec) -> Identity:
        """Digest of the options and of every file that they show to the program."""
        options = options_of(spec)
        for mount in options.mounts:
            if not mount.exists():
                raise OperatorError(f"{mount} does not exist", where="agent.options.mounts")
        content = {str(mount): _content(mount) for mount in options.mounts}
        chosen = options.model_dump(
            mode="json", exclude={name for name in ("fields", "side_models") if not getattr(options, name)}
        )
        parts = {"options": chosen, "mounts": content, "program": _program(options)}
        return Identity(
            kind=self.kind,
            version=spec.version or "unversioned",
            model=spec.model,
            digest=digest(parts),
            needs_model=options.needs_model,
            warnings=tuple(missing_scripts(options.argv, (*_SYSTEM_FOLDERS, *options.mounts))),
            reach=self.reach,
        )

    def job(self, setup: Setup, mounts: tuple[Mount, ...]) -> Job | None:
        options = options_of(setup.spec)
        for mount in options.mounts:
            mounts = with_mount(mounts, mount)
        folder = setup.home / "trialfleet"
        texts = {setup.home / name: text for name, text in options.files.items()}
        texts |= {folder / "prompt.md": setup.prompt, folder / "system.md": setup.system or ""}
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        env = _told(setup, mounts) | options.env
        return job_of(setup, mounts, options.argv, env=env, stdin=setup.prompt.encode())

    def parse(self, record: Path, exit: Exit | None, workspace: Path) -> Parsed:
        """The trajectory that the program printed, if it printed one; why it stopped from its exit."""
        parsed = read_trajectory(record / "stdout", workspace)
        return parsed.model_copy(update={"stop": stop_of(exit)})


def _told(setup: Setup, mounts: tuple[Mount, ...]) -> dict[str, str]:
    """The variables that tell the program its task, its budget and its model."""
    told = {
        "TRIALFLEET_PROMPT": inside(setup.home / "trialfleet" / "prompt.md", mounts),
        "TRIALFLEET_WORKSPACE": inside(setup.workspace, mounts),
        "TRIALFLEET_MAX_TURNS": str(setup.spec.max_turns),
        "TRIALFLEET_TIMEOUT_S": f"{setup.spec.timeout_s:g}",
        "TRIALFLEET_SEED": str(setup.seed),
    }
    if setup.system:
        told["TRIALFLEET_SYSTEM"] = inside(setup.home / "trialfleet" / "system.md", mounts)
    if setup.spec.model:
        told["TRIALFLEET_MODEL"] = setup.spec.model
    return told | _model_access(setup)


def _model_access(setup: Setup) -> dict[str, str]:
    """The variables by which SDKs of three providers find the gateway."""
    if setup.gateway_url is None or setup.gateway_token is None:
        return {}
    return {
        "ANTHROPIC_BASE_URL": setup.gateway_url,
        "ANTHROPIC_API_KEY": setup.gateway_token,
        "OPENAI_BASE_URL": f"{setup.gateway_url}/v1",
        "OPENAI_API_KEY": setup.gateway_token,
        "GOOGLE_GEMINI_BASE_URL": setup.gateway_url,
        "GEMINI_API_KEY": setup.gateway_token,
    }


def _program(options: CommandOptions) -> str | None:
    """SHA-256 of argv[0]; None where the task's environment decides what it is.

    Raises `OperatorError` when it is missing, or lies where the program's sandbox does not show it.
    """
    name = options.argv[0]
    if name in _OF_THE_TASK:
        return None
    path = _found(name)
    if not any(path.is_relative_to(shown) for shown in (*_SYSTEM_FOLDERS, *options.mounts)):
        raise OperatorError(
            f"the program {name!r} is in no folder that the agent can see",
            where="agent.options.argv",
            hint=f"add {path.parent} to options.mounts",
        )
    return _sha256_file(path.resolve())


def _found(name: str) -> Path:
    found = shutil.which(name, path=SYSTEM_PATH)
    if found is None:
        raise OperatorError(
            f"the program {name!r} is not on this machine (searched: {SYSTEM_PATH})",
            where="agent.options.argv",
            hint="give its absolute path, and name its folder in options.mounts",
        )
    return Path(found)


def _content(mount: Path) -> str:
    """Digest over names, link targets and content of a file or folder, in sorted order."""
    if mount.is_file():
        return _sha256_file(mount)
    rows: list[tuple[str, str]] = []
    for folder, folders, files in os.walk(mount):
        folders.sort()
        for name in sorted(files):
            path = Path(folder, name)
            kept = f"-> {path.readlink()}" if path.is_symlink() else _sha256_file(path)
            rows.append((str(path.relative_to(mount)), kept))
    return digest(rows)


def _sha256_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def list_workspace_scripts(spec: AgentSpec) -> dict[str, int]:
    """Scripts of the agent that are looked up in the workspace -> their place in its `argv`; only a program of
    this kind has any. Raises `OperatorError` naming an option that is not valid."""
    return workspace_scripts(options_of(spec).argv) if spec.kind == Command.kind else {}
