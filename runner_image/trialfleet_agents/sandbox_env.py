"""What every agent finds around it: where host paths appear, and an allow-listed environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from trialfleet_agents.agent_kind import AgentKind
from trialfleet_agents.chosen_settings import refuse_reserved
from trialfleet_agents.protocol import Setup
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.base import Frozen
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_ledger.untrusted import mapping
from trialfleet_repository.environments.python_environment import PROJECT, python_path
from trialfleet_repository.environments.tool_environment import filled, variables_of
from trialfleet_sandbox.interpreter import base_variables, is_python
from trialfleet_sandbox.protocol import Exit, Job, Mount, inside


def with_mount(mounts: tuple[Mount, ...], path: Path, *, writable: bool = False) -> tuple[Mount, ...]:
    """`mounts`, and `path` at its own host path unless one of them already shows it.

    The host path as target is right with and without a mount namespace.
    """
    if any(path.is_relative_to(mount.source) for mount in mounts):
        return mounts
    return (*mounts, Mount(path, str(path), writable))


def environment(setup: Setup, mounts: tuple[Mount, ...]) -> dict[str, str]:
    """The allow-listed environment: nothing of the runner's own environment gets in.

    The task's programs come first on PATH.
    """
    home, workspace = inside(setup.home, mounts), inside(setup.workspace, mounts)
    prefix = inside(setup.environment, mounts)
    found = base_variables(prefix, home) | {"SHELL": "/bin/bash", "GIT_TERMINAL_PROMPT": "0"}
    if is_python(setup.environment):
        found["VIRTUAL_ENV"] = prefix
    described = (setup.home / PROJECT).is_dir()
    if setup.pythonpath or described:
        found["PYTHONPATH"] = python_path(workspace, setup.pythonpath, home if described else None)
    found |= variables_of(setup.environment, seen=prefix, home=home, workspace=workspace)
    places = {"environment": prefix, "home": home, "workspace": workspace}
    return found | {name: filled(value, places) for name, value in setup.env.items()}


def stop_of(ended: Exit | None) -> Stop | None:
    """What the sandbox alone says about why the agent stopped; None: nothing ran, or the runner was stopped."""
    if ended is None or ended.cause == "stopped":
        return None
    if ended.cause == "itself":
        return Stop.FINISHED if ended.code == 0 else Stop.ERROR
    return {"timeout": Stop.TIMEOUT, "memory": Stop.MEMORY, "disk": Stop.DISK}[ended.cause]


def job_of(
    setup: Setup,
    mounts: tuple[Mount, ...],
    argv: tuple[str, ...],
    *,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
) -> Job:
    """The agent's program in its workspace, its output in the record; `env` is added to the `environment`."""
    return Job(
        argv=argv,
        env=environment(setup, mounts) | dict(env or {}),
        cwd=inside(setup.workspace, mounts),
        mounts=mounts,
        stdout=setup.record / "stdout",
        stderr=setup.record / "stderr",
        timeout_s=setup.spec.timeout_s,
        stdin=stdin,
    )


OptionsModel = TypeVar("OptionsModel", bound=Frozen)


def checked_options(
    model: type[OptionsModel], spec: AgentSpec, kind: AgentKind | None = None, *, hint: str | None = None
) -> OptionsModel:
    """`agent.options` as this kind of agent has them. Raises `OperatorError` naming the field, or
    the setting that no campaign may choose. `kind`: of an agent that has settings.

    `hint`: of that error; by default it lists all options."""
    if kind is not None:
        refuse_reserved(kind, mapping(spec.options.get("settings")))
    try:
        return model.model_validate(spec.options)
    except ValidationError as error:
        first = error.errors()[0]
        plainer = {"missing": "is required and not given", "extra_forbidden": f"{spec.kind} has no such option"}
        said = plainer.get(first["type"], str(first["msg"]))
        where = ".".join(str(part) for part in ("agent", "options", *first["loc"]))
        names = f"options of {spec.kind}: {', '.join(model.model_fields)}"
        raise OperatorError(said, where=where, hint=hint or names) from error
