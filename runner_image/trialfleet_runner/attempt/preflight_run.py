"""The pre-flight: the same agent, read-only and briefly, before its turn; what it takes is the trial's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trialfleet_agents.protocol import Agent, Setup
from trialfleet_deliveries.preflight import MAX_CALLS, Preflight, asked, parse
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.measurements import TOKEN_KINDS, PreflightResult
from trialfleet_ledger.trajectory import Parsed, Step
from trialfleet_repository.mounts import MountedScratch
from trialfleet_runner.attempt.parsed_output import parse_output
from trialfleet_sandbox.protocol import Exit, Job, Mount

if TYPE_CHECKING:  # agents without a model need not pay for importing the gateway
    from trialfleet_runner.gateway import Gateway, GatewayReport

FOLDER = "preflight"  # of the record
TIME_SHARE, LONGEST_S = 1 / 3, 300.0  # of the agent's time, at most
_NOTHING = Parsed()
NOTHING_TO_LOOK_AT = Preflight(PreflightResult.NO_TARGETS, (), "nothing was predicted")


@dataclass(frozen=True)
class PreflightRun:
    """Result and cost of a pre-flight. `report`: of the gateway at the end of the pre-flight; None: there was no
    model. `prompt` is empty if there were no targets and nothing ran."""

    preflight: Preflight
    prompt: str = ""
    parsed: Parsed = _NOTHING
    exit: Exit | None = None
    report: GatewayReport | None = None

    @property
    def turns(self) -> int:
        return (self.report.turns if self.report else self.parsed.turns) or 0

    @property
    def seconds(self) -> float:
        """Of the agent's time: without what the provider kept it waiting."""
        throttled = self.report.throttled_s if self.report else 0.0
        return max((self.exit.wall_s if self.exit else 0.0) - throttled, 0.0)


def wanted(grants: Grants) -> bool:
    """Whether the condition has one."""
    inline = grants.condition.inline
    return inline is not None and inline.source == "preflight"


def look(
    agent: Agent,
    setup: Setup,
    place: MountedScratch,
    grants: Grants,
    *,
    task: str,
    paths: frozenset[str],
    gateway: Gateway | None,
    run: Callable[[Job], Exit],
) -> PreflightRun:
    """Run the pre-flight on the condition's targets. `setup`: of the attempt; `paths`: files of the workspace;
    `run` runs a job under the attempt's limits. A mounted workspace is read-only; HOME is created again
    afterwards."""
    if not grants.condition.targets:
        return PreflightRun(NOTHING_TO_LOOK_AT)
    prompt = asked(task, grants.condition.targets)
    record = place.scratch.record / FOLDER
    record.mkdir()
    job = agent.job(reading(setup, prompt, record), read_only(place))
    if job is None:
        return PreflightRun(Preflight(PreflightResult.UNCERTAIN, (), "this agent runs nothing"), prompt)
    ended = run(replace(job, followed=True))
    answers = place.scratch.record / "answers.jsonl"
    if answers.exists():
        (record / answers.name).write_bytes(answers.read_bytes())
    parsed, _ = parse_output(agent, record, ended, place.scratch.workspace)
    place.scratch.free(keep=("workspace",))
    (place.scratch.home / "tmp").mkdir(parents=True)
    return PreflightRun(_said(parsed, ended, paths), prompt, parsed, ended, gateway.report() if gateway else None)


def reading(setup: Setup, prompt: str, record: Path) -> Setup:
    """`setup` for a pre-flight, which gets `prompt` and nothing else of the condition."""
    spec = setup.spec.model_copy(
        update={
            "max_turns": min(MAX_CALLS + 1, setup.spec.max_turns),
            "timeout_s": min(TIME_SHARE * setup.spec.timeout_s, LONGEST_S),
        }
    )
    return replace(
        setup,
        spec=spec,
        prompt=prompt,
        system=None,
        tests=(),
        hook_context=None,
        fail_fast_log=None,
        record=record,
        preflight=True,
    )


def read_only(place: MountedScratch) -> tuple[Mount, ...]:
    """Its mounts, with a workspace that cannot be written to."""
    return tuple(
        replace(mount, writable=False) if mount.source == place.scratch.workspace else mount
        for mount in place.mounts
    )


def _said(parsed: Parsed, ended: Exit, paths: frozenset[str]) -> Preflight:
    if parsed.answer is not None:
        return parse(parsed.answer, paths)
    why = "it was ended: " + ended.cause if ended.cause != "itself" else "it left no answer"
    return Preflight(PreflightResult.UNCERTAIN, (), why)


def rest(spec: AgentSpec, before: PreflightRun | None) -> AgentSpec:
    """What is left of turns and time; at least one of each, for the gateway ends what is beyond the budget."""
    if before is None:
        return spec
    left = {
        "max_turns": max(spec.max_turns - before.turns, 1),
        "timeout_s": max(spec.timeout_s - before.seconds, 1.0),
    }
    return spec.model_copy(update=left)


def joined(before: PreflightRun, after: Parsed) -> Parsed:
    """Both as one trajectory. A gateway has numbered turns and seconds through; without one they are shifted."""
    first = before.parsed
    shift = (0, 0.0) if before.report else (before.turns, before.exit.wall_s if before.exit else 0.0)
    return after.model_copy(
        update={
            "steps": (*first.steps, *(_shifted(step, *shift) for step in after.steps)),
            "malformed_lines": first.malformed_lines + after.malformed_lines,
            **{
                name: _sum(getattr(first, name), getattr(after, name))
                for name in ("turns", "tool_calls", *TOKEN_KINDS, "cost_usd")
            },
        }
    )


def _shifted(step: Step, turns: int, seconds: float) -> Step:
    at_s = None if step.at_s is None else round(step.at_s + seconds, 3)
    return step.model_copy(update={"turn": step.turn + turns, "at_s": at_s})


def _sum(first: float | None, second: float | None) -> float | None:
    return second if first is None else first if second is None else first + second


def both(before: PreflightRun, ended: Exit | None) -> Exit | None:
    """How the agent ended, with the time of both."""
    if before.exit is None or ended is None:
        return ended
    return replace(
        ended,
        wall_s=before.exit.wall_s + ended.wall_s,
        core_s=None if ended.core_s is None or before.exit.core_s is None else before.exit.core_s + ended.core_s,
    )
