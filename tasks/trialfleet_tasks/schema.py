"""Writes the JSON Schemas of every stored or hand-written file: `python -m trialfleet_tasks.schema FOLDER`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import BaseModel

from trialfleet_ledger.campaign_spec import CampaignSpec
from trialfleet_ledger.designs.looks import Decision
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.pulled_copy import PulledCopy
from trialfleet_ledger.records.attempt import End, Intent, LastWords, Patch, Quarantine, Start
from trialfleet_ledger.records.directives import Amendment, Cancel, Epoch, Halt, Look
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.journal import JournalEntry
from trialfleet_ledger.records.manifest import Manifest
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.receipts import Receipts
from trialfleet_ledger.records.task_order import MustFailTest, PatchClasses
from trialfleet_ledger.task import TaskFile
from trialfleet_repository.languages import LANGUAGES, all_formats
from trialfleet_tasks.validate.record import Validation

FILES: dict[str, type[BaseModel]] = {
    "campaign-file": CampaignSpec,
    "task-file": TaskFile,
    "plan": Plan,
    "grants": Grants,
    "intent": Intent,
    "start": Start,
    "patch": Patch,
    "manifest": Manifest,
    "end": End,
    "last-words": LastWords,
    "outcome": Outcome,
    "epoch": Epoch,
    "amendment": Amendment,
    "halt": Halt,
    "cancel": Cancel,
    "quarantine": Quarantine,
    "validation": Validation,
    "look": Look,
    "decision": Decision,
    "journal-entry": JournalEntry,
    "patch-classes": PatchClasses,
    "must-fail-test": MustFailTest,
    "pulled": PulledCopy,
    "receipts": Receipts,
}


def rendered(model: type[BaseModel]) -> str:
    """The JSON Schema of `model` as a file's text. A task file may name what the shipped languages have."""
    schema = model.model_json_schema()
    if model is TaskFile:
        properties = schema["$defs"]["ToolEnvironment"]["properties"]
        kinds = (each.kind for each in LANGUAGES.values() if each.preset is not None)
        properties["kind"] = {"enum": [*kinds, "commands"], "title": "Kind", "type": "string"}
        properties["results"]["anyOf"][0] = {"enum": [*all_formats()], "type": "string"}
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


def write(folder: Path) -> None:
    """Write one `<name>.json` per kind of file into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in FILES.items():
        (folder / f"{name}.json").write_text(rendered(model))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
