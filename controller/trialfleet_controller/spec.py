"""The campaign file: read, checked, and its names resolved. Every refusal names file, line or field."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trialfleet_runner import yamlfile
from trialfleet_runner.campaign import CampaignSpec
from trialfleet_runner.conditions import PRESETS, Condition
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.taskfile import task_files

OUR_LABELS = "trialfleet.dev"


@dataclass(frozen=True)
class CampaignFile:
    """`conditions`: in the file's order, presets filled in. `task_files`: globs expanded, each file once."""

    loaded: yamlfile.Loaded[CampaignSpec]
    conditions: dict[str, Condition]
    task_files: tuple[Path, ...]

    @property
    def spec(self) -> CampaignSpec:
        return self.loaded.value

    @property
    def folder(self) -> Path:
        """What relative paths start from: tasks, and a store that is a directory."""
        return self.loaded.path.parent

    def where(self, *place: str | int) -> str:
        return self.loaded.where(*place)


def load_campaign(path: Path) -> CampaignFile:
    """Raises `OperatorError` for anything in the file that cannot be meant."""
    loaded = yamlfile.read(path, CampaignSpec)
    conditions = _conditions(loaded)
    _check_primary(loaded, conditions)
    _check_money(loaded)
    _check_place(loaded)
    return CampaignFile(loaded, conditions, task_files(loaded))


def _conditions(loaded: yamlfile.Loaded[CampaignSpec]) -> dict[str, Condition]:
    given = loaded.value.conditions
    if isinstance(given, dict):
        return {name: own or _preset(loaded, name, name) for name, own in given.items()}
    return {name: _preset(loaded, name, place) for place, name in enumerate(given)}


def _preset(loaded: yamlfile.Loaded[CampaignSpec], name: str, place: str | int) -> Condition:
    if name not in PRESETS:
        raise OperatorError(
            f"no condition is called {name!r}",
            where=loaded.where("conditions", place),
            hint=f"one of {', '.join(PRESETS)}; or compose your own: conditions: {{{name}: {{files: tree}}}}",
        )
    return PRESETS[name]


def _check_primary(loaded: yamlfile.Loaded[CampaignSpec], conditions: dict[str, Condition]) -> None:
    primary = loaded.value.primary
    for side in () if primary is None else ("treatment", "control"):
        name = getattr(primary, side)
        if conditions[name].ceiling:
            raise OperatorError(
                f"{name!r} tells the agent which files the fix changes: a ceiling, which nothing could reach",
                where=loaded.where("primary", side),
                hint="keep it among the conditions, where it is reported apart, and contrast two others",
            )


def _check_money(loaded: yamlfile.Loaded[CampaignSpec]) -> None:
    cost = loaded.value.limits.cost_usd
    if cost.campaign is None:
        return
    if cost.trial is None:
        raise OperatorError(
            "a campaign's cap is kept by reserving the most that each running trial may cost",
            where=loaded.where("limits", "cost_usd", "campaign"),
            hint="set cost_usd.trial too",
        )
    if cost.trial > cost.campaign:
        raise OperatorError(
            f"one trial may cost {cost.trial:g} USD, the whole campaign only {cost.campaign:g}: none could start",
            where=loaded.where("limits", "cost_usd", "campaign"),
            hint="raise cost_usd.campaign or lower cost_usd.trial",
        )


def _check_place(loaded: yamlfile.Loaded[CampaignSpec]) -> None:
    """What pods cannot have. The rest of `kubernetes:` is the cluster's to judge, before anything is frozen."""
    spec = loaded.value
    if spec.kubernetes is None:
        return
    if not spec.store_spec.url.startswith("s3://"):
        raise OperatorError(
            "pods cannot write into a directory of this machine",
            where=loaded.where("store"),
            hint="name a bucket on a server that pods reach: store: {url: s3://bucket/prefix, endpoint: …}",
        )
    for label in spec.kubernetes.labels:
        if label.partition("/")[0] == OUR_LABELS:
            raise OperatorError(
                f"labels of {OUR_LABELS} are how attempts are told apart",
                where=loaded.where("kubernetes", "labels", label),
                hint="use a prefix of your own",
            )
