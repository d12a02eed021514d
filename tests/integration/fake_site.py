"""Shards whose runners are fake processes over a directory store: importable where Ray runs its actors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trialfleet_controller.backend import Backend
from trialfleet_controller.hosting.division import Shard
from trialfleet_controller.process_backend import ProcessBackend
from trialfleet_runner.campaign import Plan
from trialfleet_runner.errors import OperatorError
from trialfleet_runner.store.directory import DirectoryStore
from trialfleet_runner.store.protocol import Store

RUNNER = Path(__file__).with_name("fake_runner.py")


@dataclass(frozen=True)
class Processes:
    """`behaviour`: of the fake runner; `refused`: a shard that cannot have a backend."""

    root: Path
    behaviour: str
    slots: int = 4
    refused: int | None = None

    def store(self) -> Store:
        return DirectoryStore(self.root)

    def backend(self, plan: Plan, shard: Shard, tell: Callable[[str], None]) -> Backend:
        if shard.index == self.refused:
            raise OperatorError("no such namespace", where="kubernetes: namespaces", hint="make it")
        argv = (sys.executable, "-S", "-E", str(RUNNER), self.behaviour)
        return ProcessBackend(slots=self.slots, runner=argv, work=self.root.parent / "work")
