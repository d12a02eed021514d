"""What mining leaves beside its task file."""

from __future__ import annotations

from pathlib import Path

from trialfleet_repository.cache import Cache
from trialfleet_sandbox.choose import choose
from trialfleet_tasks.taskfile import load_task_file
from trialfleet_tasks.validate.inputs import prepare_inputs


def not_validated(file: Path) -> list[str]:
    """Ids of the tasks whose tests a campaign would run again before it begins."""
    cache, sandbox = Cache.default(), choose()
    tasks = load_task_file(file).tasks
    digests = {task.id: prepare_inputs(task, cache=cache, mirrors={}, sandbox=sandbox).digest for task in tasks}
    return [name for name, digest in digests.items() if not (cache.validations / f"{digest}.json").exists()]
