"""Reads and checks a campaign file and resolves its names. Every error names file, line or field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trialfleet_deliveries.secret_files import find_secrets
from trialfleet_ledger.campaign_spec import CampaignSpec
from trialfleet_ledger.conditions import PRESETS, Condition
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.secret_values import suspects
from trialfleet_ledger.store.server_address import is_remote
from trialfleet_ledger.treatments import agent_of
from trialfleet_ledger.trial_order import check_size
from trialfleet_repository.trees import TreeEntry
from trialfleet_tasks import yamlfile
from trialfleet_tasks.taskfile import task_files

OUR_LABELS = "trialfleet.dev"


@dataclass(frozen=True)
class CampaignFile:
    """`conditions`: in the file's order, presets resolved; `agents`: the agent of each. `task_files`: globs
    expanded, each file once."""

    loaded: yamlfile.Loaded[CampaignSpec]
    conditions: dict[str, Condition]
    agents: dict[str, AgentSpec]
    task_files: tuple[Path, ...]

    @property
    def spec(self) -> CampaignSpec:
        return self.loaded.value

    @property
    def folder(self) -> Path:
        """Base of relative paths: task files, and a store that is a directory."""
        return self.loaded.path.parent

    def where(self, *place: str | int) -> str:
        return self.loaded.where(*place)

    def where_agent(self, agent: AgentSpec, field: str | None = None) -> str:
        """Where the file asks for this agent. `field`: such as "agent.model", of an adapter's error."""
        names = (field or "").split(".")
        place = names if names[0] == "agent" else ["agent"]
        if agent == self.spec.agent:
            return self.where(*place)
        name = next(name for name, own in self.agents.items() if own == agent)
        return f"{self.where('conditions', name)}: {'.'.join(place)}"


def load_campaign(path: Path) -> CampaignFile:
    """Raises `OperatorError` for anything in the file that is not valid."""
    loaded = yamlfile.read(path, CampaignSpec)
    conditions = _conditions(loaded)
    _check_agent(loaded)
    _check_primary(loaded, conditions)
    _check_money(loaded)
    _check_place(loaded)
    agents = {name: agent_of(loaded.value.agent, condition) for name, condition in conditions.items()}
    _check_secrets(loaded, conditions, agents)
    files = task_files(loaded)
    check_size(len(files), len(conditions), loaded.value.reps, where=loaded.where("reps"))  # a file has a task
    return CampaignFile(loaded, conditions, agents, files)


def _conditions(loaded: yamlfile.Loaded[CampaignSpec]) -> dict[str, Condition]:
    listed = isinstance(loaded.value.conditions, tuple)
    each = enumerate(loaded.value.single_conditions)
    return {name: own or _preset(loaded, name, place if listed else name) for place, (name, own) in each}


def _preset(loaded: yamlfile.Loaded[CampaignSpec], name: str, place: str | int) -> Condition:
    if name not in PRESETS:
        raise OperatorError(
            f"no condition is called {name!r}",
            where=loaded.where("conditions", place),
            hint=f"use one of {', '.join(PRESETS)}; or compose your own: conditions: {{{name}: {{files: tree}}}}",
        )
    return PRESETS[name]


def _check_agent(loaded: yamlfile.Loaded[CampaignSpec]) -> None:
    if loaded.value.agent.dry_run_of is not None:
        raise OperatorError(
            "a campaign file is no dry run: dry runs have a store of their own",
            where=loaded.where("agent", "dry_run_of"),
            hint=f"remove it; `trialfleet run {loaded.path} --agent search` is the dry run of this file",
        )


def _check_primary(loaded: yamlfile.Loaded[CampaignSpec], conditions: dict[str, Condition]) -> None:
    declared = loaded.value.primary
    for side, name in declared.sides.items() if declared else ():
        if conditions[name].ceiling:
            raise OperatorError(
                f"{name!r} names the files that the fix changes: it is a ceiling, not a side of a contrast",
                where=loaded.where("primary", *side),
                hint="keep it among the conditions, where it is reported separately, and contrast two others",
            )


def _check_money(loaded: yamlfile.Loaded[CampaignSpec]) -> None:
    cost = loaded.value.limits.cost_usd
    if cost.campaign is None:
        return
    if cost.trial is None:
        raise OperatorError(
            "a cost cap needs a cost limit per trial, because each running trial reserves its limit",
            where=loaded.where("limits", "cost_usd", "campaign"),
            hint="set cost_usd.trial too",
        )
    if cost.trial > cost.campaign:
        raise OperatorError(
            f"one trial may cost ${cost.trial:g}, the campaign only ${cost.campaign:g}: no trial could start",
            where=loaded.where("limits", "cost_usd", "campaign"),
            hint="raise cost_usd.campaign or lower cost_usd.trial",
        )


def _check_secrets(
    loaded: yamlfile.Loaded[CampaignSpec], conditions: Mapping[str, Condition], agents: Mapping[str, AgentSpec]
) -> None:
    """Refuse secrets: agents and servers become part of the plan, which every reader of the store can see."""
    for place, reason in suspects(loaded.value.agent.options):
        raise _secret(loaded.where("agent", "options", *place), reason)
    for name, condition in conditions.items():
        own = {"options": agents[name].options, "mcp": {key: one.env for key, one in condition.mcp.items()}}
        for place, reason in suspects(own):
            raise _secret(f"{loaded.where('conditions', name)}: {yamlfile.dotted(place)}", reason)
        text = (condition.inline and condition.inline.text) or ""
        for found in find_secrets({"text": TreeEntry(text.encode())}):
            raise _secret(f"{loaded.where('conditions', name)}: inline.text, line {found.line}", found.reason)


def _secret(where: str, reason: str) -> OperatorError:
    return OperatorError(
        f"this looks like a secret ({reason}), and the plan would hold it in plain text",
        where=where,
        hint="remove it. For the model's key set needs_model: true and export the key where the runner "
        "starts; the gateway holds it, and the agent gets a token that is valid nowhere else "
        "(docs/how-to/bring-your-own-agent.md#secrets). If it is not a secret, give it another name",
    )


def _check_place(loaded: yamlfile.Loaded[CampaignSpec]) -> None:
    """Refuse what pods cannot use. The cluster checks the rest of `kubernetes:` before anything is frozen."""
    spec = loaded.value
    if spec.kubernetes is None:
        return
    if not is_remote(spec.store_spec.url):
        raise OperatorError(
            "pods cannot write into a directory of this machine",
            where=loaded.where("store"),
            hint="name a bucket on a server that pods reach: store: {url: s3://bucket/prefix, endpoint: …}",
        )
    for label in spec.kubernetes.labels:
        if label.partition("/")[0] == OUR_LABELS:
            raise OperatorError(
                f"labels of {OUR_LABELS} are reserved: they identify attempts",
                where=loaded.where("kubernetes", "labels", label),
                hint="use another prefix",
            )
