"""Writes the JSON Schemas of every stored or hand-written file: `python -m trialfleet_tasks.schema FOLDER`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import BaseModel

from trialfleet_ledger import campaign, looks, records
from trialfleet_runner import task
from trialfleet_tasks.validate.record import Validation

FILES: dict[str, type[BaseModel]] = {
    "campaign-file": campaign.CampaignSpec,
    "task-file": task.TaskFile,
    "plan": campaign.Plan,
    "grants": records.Grants,
    "intent": records.Intent,
    "start": records.Start,
    "patch": records.Patch,
    "manifest": records.Manifest,
    "end": records.End,
    "last-words": records.LastWords,
    "outcome": records.Outcome,
    "epoch": campaign.Epoch,
    "amendment": campaign.Amendment,
    "halt": campaign.Halt,
    "cancel": campaign.Cancel,
    "quarantine": campaign.Quarantine,
    "validation": Validation,
    "look": campaign.Look,
    "decision": looks.Decision,
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
