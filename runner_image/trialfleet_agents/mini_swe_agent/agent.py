"""mini-swe-agent as an agent. Configuration and output: measured with version 2.4.6.

It loads no context file and has no hooks: the root's text goes into its prompt, and its only tool is a shell.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from trialfleet_agents import model_calls
from trialfleet_agents.mini_swe_agent import MINI_SWE_AGENT
from trialfleet_agents.model_agents import ModelAgentOptions, model_identity, require_model
from trialfleet_agents.pinned import pinned
from trialfleet_agents.program import checked_version, find_program, version_of
from trialfleet_agents.protocol import Identity, Setup
from trialfleet_agents.sandbox_env import checked_options, job_of, stop_of, with_mount
from trialfleet_agents.settings_file import with_settings
from trialfleet_deliveries.reach import Reach
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.verdicts import Stop
from trialfleet_ledger.token_usage import TokenUsage, openai_usage
from trialfleet_ledger.trajectory import Parsed
from trialfleet_ledger.untrusted import ANSWER_CHARS, json_object, mapping, objects, plain
from trialfleet_sandbox.interpreter import program_mounts
from trialfleet_sandbox.protocol import Exit, Job, Mount, inside

REVISION = 2  # of the configuration below: part of the agent's digest
_MODULE = "minisweagent.run.mini"
_DEFAULTS = "lib/python3*/site-packages/minisweagent/config/mini.yaml"  # ours is merged over it
_DIST_INFO = "lib/python3*/site-packages/mini_swe_agent-*.dist-info"
_OLDEST_PYTHON = (3, 10)
_LARGEST = 64 * 2**20  # of a trajectory that is read
# Its talk goes to stderr; its trajectory, which it writes to a file, is all of stdout.
_WRAPPER = '"$@" >&2; code=$?; if [ -f "$0" ]; then cat "$0"; fi; exit $code'
_QUIET = {
    "MSWEA_CONFIGURED": "true",  # asks nothing
    "MSWEA_SILENT_STARTUP": "1",
    "MSWEA_COST_TRACKING": "ignore_errors",  # the gateway knows the cost
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # fetches no prices
    "LITELLM_TELEMETRY": "False",
}


class MiniSweAgentOptions(ModelAgentOptions):
    """`agent.options` of kind mini-swe-agent.

    `provider`: whose API it speaks; the runner holds the key. `max_retries`: of a failed request.
    `command_timeout_s`: of one shell command. `settings`: of its configuration file. `effort`: the
    `reasoning_effort` of the model.
    """

    provider: Literal["openai", "anthropic"] = "openai"
    max_retries: int = Field(default=9, ge=0, le=100)
    command_timeout_s: int = Field(default=120, ge=1, le=10_000_000)
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None


def options_of(spec: AgentSpec) -> MiniSweAgentOptions:
    """The checked options. Raises `OperatorError` naming the field."""
    return checked_options(MiniSweAgentOptions, spec, MINI_SWE_AGENT)


class MiniSweAgent:
    kind = "mini-swe-agent"
    reach = Reach(root_in_prompt=True)

    def identify(self, spec: AgentSpec) -> Identity:
        """Raises `OperatorError`: not in a virtual environment here, another version, or no model."""
        options = options_of(spec)
        require_model(spec, example="gpt-5.5")
        home = _home(options)
        version = checked_version(spec, _version(home))
        _require_python(home)
        return model_identity(spec, version, options, self.reach, revision=REVISION)

    def job(self, setup: Setup, mounts: tuple[Mount, ...]) -> Job | None:
        if setup.gateway_url is None or setup.gateway_token is None:
            raise ValueError("mini-swe-agent runs behind the gateway only")
        options, folder = options_of(setup.spec), setup.home / "trialfleet"
        home = _home(options)
        mounts = with_mount(mounts, home)
        for needed in program_mounts(home):
            mounts = with_mount(mounts, needed.source)
        folder.mkdir(parents=True, exist_ok=True)
        trajectory = inside(folder / "trajectory.json", mounts)
        config = folder / "config.yaml"
        config.write_text(
            json.dumps(with_settings(options.settings, _config(setup, options, trajectory)))
        )  # JSON is YAML
        # -I: the task's PYTHONPATH must not replace modules of the agent.
        program = (f"{inside(home, mounts)}/bin/python", "-I", "-m", _MODULE)
        defaults = inside(_of_package(home, _DEFAULTS), mounts)  # a name alone could be a file of the workspace
        argv = (*program, "-c", defaults, "-c", inside(config, mounts), "--exit-immediately", "--yolo")
        env = {
            **_QUIET,
            "MSWEA_GLOBAL_CONFIG_DIR": inside(folder, mounts),
            "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": str(options.max_retries + 1),
            f"{options.provider.upper()}_API_KEY": setup.gateway_token,
        }
        return job_of(setup, mounts, ("/bin/sh", "-c", _WRAPPER, trajectory, *argv, "-o", trajectory), env=env)

    def parse(self, record: Path, exit: Exit | None, workspace: Path) -> Parsed:
        """Steps from the gateway's record; counts and the stop from the program's own trajectory."""
        steps = model_calls.steps(record, (str(workspace), "/workspace"))
        return _counted(record / "stdout", exit).model_copy(update={"steps": steps})


def _home(options: MiniSweAgentOptions) -> Path:
    """The virtual environment in which it is installed."""
    return find_program("mini-swe-agent", options.binary).parents[1]


def _version(home: Path) -> str:
    return _of_package(home, _DIST_INFO).name.removesuffix(".dist-info").rpartition("-")[2]


def _of_package(home: Path, pattern: str) -> Path:
    """Raises `OperatorError` if nothing there matches the pattern."""
    found = sorted(home.glob(pattern))
    if not found:
        raise OperatorError(
            f"{home} is not a virtual environment with mini-swe-agent",
            where="agent: mini-swe-agent",
            hint=f"{pinned()['mini-swe-agent'].install()}, or python3 -m venv and pip install",
        )
    return found[0]


def _require_python(home: Path) -> None:
    """Raises `OperatorError` when the environment's Python is gone, or older than the program's packages need."""
    python = home / "bin/python"
    found = version_of("mini-swe-agent", python, r"^Python (\d+\.\d+)") if python.exists() else None
    if found is None or tuple(map(int, found.split("."))) < _OLDEST_PYTHON:
        oldest = ".".join(map(str, _OLDEST_PYTHON))
        raise OperatorError(
            f"mini-swe-agent needs Python {oldest} or newer, and {python} is {found or 'gone'}",
            where="agent: mini-swe-agent",
            hint=f"remove {home} and install it with another, for example "
            f"PIPX_DEFAULT_PYTHON=python3.12 {pinned()['mini-swe-agent'].install()}",
        )


def _config(setup: Setup, options: MiniSweAgentOptions, trajectory: str) -> dict[str, Any]:
    """What differs from its own `mini.yaml`."""
    base = setup.gateway_url if options.provider == "anthropic" else f"{setup.gateway_url}/v1"
    effort = {"reasoning_effort": options.effort} if options.effort else {}
    return {
        "run": {"task": setup.prompt},
        "agent": {"step_limit": setup.spec.max_turns, "cost_limit": 0, "output_path": trajectory},
        "environment": {"timeout": options.command_timeout_s},
        "model": {
            "model_name": f"{options.provider}/{setup.spec.model}",
            "model_kwargs": {"api_base": base, "max_retries": 0, **effort},
        },
    }


_STOPS = {"Submitted": Stop.FINISHED, "LimitsExceeded": Stop.MAX_TURNS}


def _counted(stdout: Path, ended: Exit | None) -> Parsed:
    small = stdout.is_file() and stdout.stat().st_size <= _LARGEST
    found = json_object(stdout.read_bytes()) if small else {}
    info, usage, calls = mapping(found.get("info")), TokenUsage(), 0
    answers = 0
    for message in objects(found.get("messages")):
        extra = mapping(message.get("extra"))
        if "response" in extra:
            answers += 1
            usage += openai_usage(mapping(mapping(extra.get("response")).get("usage")))
            calls += len(objects(extra.get("actions")))
    counts: dict[str, Any] = {"turns": answers, "tool_calls": calls, **usage.by_kind()} if found else {}
    said, submission = _STOPS.get(str(info.get("exit_status"))), info.get("submission")
    by_sandbox = stop_of(ended)
    return Parsed(
        **counts,
        stop=said or (Stop.ERROR if by_sandbox is Stop.FINISHED else by_sandbox),
        answer=plain(submission, ANSWER_CHARS) if isinstance(submission, str) else None,
    )
