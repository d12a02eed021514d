"""JSON Schemas of every file that is stored or hand-written: `python -m trialfleet_runner.schema docs/schema`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import BaseModel

from trialfleet_runner import campaign, contract, task
from trialfleet_runner.validate.record import Validation

FILES: dict[str, type[BaseModel]] = {
    "campaign-file": campaign.CampaignSpec,
    "task-file": task.TaskFile,
    "plan": campaign.Plan,
    "grants": contract.Grants,
    "intent": contract.Intent,
    "start": contract.Start,
    "patch": contract.Patch,
    "manifest": contract.Manifest,
    "end": contract.End,
    "last-words": contract.LastWords,
    "outcome": contract.Outcome,
    "epoch": campaign.Epoch,
    "amendment": campaign.Amendment,
    "halt": campaign.Halt,
    "cancel": campaign.Cancel,
    "quarantine": campaign.Quarantine,
    "validation": Validation,
    "look": campaign.Look,
}


def rendered(model: type[BaseModel]) -> str:
    """The JSON Schema of `model` as a file's text."""
    return json.dumps(model.model_json_schema(), indent=2, sort_keys=True) + "\n"


def write(folder: Path) -> None:
    """Write one `<name>.json` per kind of file into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in FILES.items():
        (folder / f"{name}.json").write_text(rendered(model))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
