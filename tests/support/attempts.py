"""A small real project with a real bug, validated and run by the real runner, for tests of whole attempts."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path

import yaml

from tests.support.attempt_runners import EXECUTED, run_attempt
from trialfleet_controller.planning.canaries import watched
from trialfleet_controller.planning.extensions import extensions, with_extensions
from trialfleet_controller.planning.frozen_text import store_text, with_inline_text
from trialfleet_deliveries import texts, tokens
from trialfleet_ledger.bundle import Bundle, unpack
from trialfleet_ledger.canonical import canonical_json, digest
from trialfleet_ledger.conditions import PRESETS, Condition
from trialfleet_ledger.objects import Objects, object_key
from trialfleet_ledger.owned_folder import MARKER, owned_path
from trialfleet_ledger.plan import PlannedTask
from trialfleet_ledger.records.agent import AgentSpec, Limits
from trialfleet_ledger.records.attempt import End, Patch, Start
from trialfleet_ledger.records.condition_order import ConditionOrder
from trialfleet_ledger.records.grants import Grants
from trialfleet_ledger.records.task_order import Prediction
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_repository.cache import Cache
from trialfleet_sandbox.choose import choose
from trialfleet_tasks.contexts import context_object
from trialfleet_tasks.prepare import prepare_task
from trialfleet_tasks.taskfile import LoadedTask, load_task_file
from trialfleet_tasks.validate.task import validate_task

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "tasks" / "quickstart" / "locks" / "sqlparse.txt"  # pytest and what it needs, nothing else
TRIAL = "a" * 26
SCRATCHES = "trialfleet-lab-"  # in /var/tmp, followed by the pid of their test process

SOURCE = '''"""Prices."""

from __future__ import annotations


def total(prices: list[float], discount: float | None = None) -> float:
    """Sum, less a discount in percent."""
    amount = sum(prices)
    if discount:
        amount -= amount * discount / {hundred}
    return round(amount, 2)


def cheapest(prices: list[float]) -> float:
    return min(prices)
'''
TESTS = """from shop.pricing.rules import cheapest, total


def test_total():
    assert total([1.0, 2.0]) == 3.0


def test_discount():
    assert total([100.0], discount=10) == 90.0


def test_cheapest():
    assert cheapest([2.0, 1.0]) == 1.0
"""
ROOT_NODE = "# Shop\n\nPrices are floats in euros, kept in the folder shop/pricing of this repository.\n"
CHILD_NODE = """# Pricing

## Pitfalls

- `total` takes its discount in percent: a fraction such as 0.1 is a tenth of a percent, not ten percent.

## Contracts

- `cheapest` needs at least one price and raises ValueError without any.
"""


# Every signal that a program may send to its parent, and that the parent can do something about.
SIGNALS = """
import os, signal
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    try:
        os.kill(os.getppid(), number)
    except PermissionError:
        pass
"""


LIMITS = Limits(memory_bytes=2**30, disk_bytes=2**28, stop_grace_s=0.2)


def shell(script: str, timeout_s: float = 60) -> AgentSpec:
    """An agent that is a shell script."""
    return AgentSpec(kind="command", timeout_s=timeout_s, options={"argv": ["/bin/sh", "-c", script]})


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Files below `folder`."""
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return folder


@dataclass(frozen=True)
class Told:
    """What planning freezes of a condition that names files."""

    text: str | None = None
    targets: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
    abstained: str | None = None
    prediction: Prediction | None = None


@dataclass
class Lab:
    """One task in a folder, with its own scratch and store. `files`: further files of both trees; `task`: fields
    of the task that differ; `hidden`: the test file comes with the fix; `contexts`: further context trees.
    `numbers`: of attempts, for several users of one lab."""

    root: Path
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    task: Mapping[str, object] = field(default_factory=dict[str, object])
    hidden: bool = False
    contexts: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def store(self) -> DirectoryStore:
        folder = self.root / "store"
        folder.mkdir(exist_ok=True)
        return DirectoryStore(folder)

    @cached_property
    def cache(self) -> Cache:
        # Environments are read-only and cost seconds: the user's cache serves every test.
        return Cache.default()

    @cached_property
    def scratch(self) -> Path:
        """Not below pytest's folders: another user's agent must be able to walk there. `conftest` removes it."""
        folder = Path(tempfile.mkdtemp(prefix=f"{SCRATCHES}{os.getpid()}-", dir="/var/tmp"))
        folder.chmod(0o711)
        return folder / "scratch"

    @property
    def attempts(self) -> Path:
        """The folder of all attempts, below `scratch`."""
        return owned_path(self.scratch, "scratch")

    def left_attempts(self) -> list[Path]:
        """Folders of attempts that are still there."""
        return [path for path in self.attempts.iterdir() if path.name != MARKER]

    @cached_property
    def task_file(self) -> Path:
        common = {
            "shop/__init__.py": "",
            "shop/pricing/__init__.py": "",
            **self.files,
        }
        tests = {"tests/test_rules.py": TESTS}
        buggy, fixed = SOURCE.replace("{hundred}", "0"), SOURCE.replace("{hundred}", "100")
        write(self.root / "task/pre", {**common, **({} if self.hidden else tests), "shop/pricing/rules.py": buggy})
        write(self.root / "task/fixed", {**common, **tests, "shop/pricing/rules.py": fixed})
        write(self.root / "task/contexts/tree", {"CLAUDE.md": ROOT_NODE, "shop/pricing/AGENTS.md": CHILD_NODE})
        write(self.root / "task/contexts/flat", {"CLAUDE.md": ROOT_NODE + CHILD_NODE})
        write(self.root / "task/contexts/placebo", {"CLAUDE.md": "Language: Python\nTest framework: pytest\n"})
        for name, nodes in self.contexts.items():
            write(self.root / "task/contexts" / name, nodes)
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        task = {
            "id": "shop-discount",
            "source": {"kind": "path", "pre_fix": "pre", "fixed": "fixed"},
            "prompt_source": "failing_test",
            "test_file": "tests/test_rules.py",
            "fail_to_pass": ["tests/test_rules.py::test_discount"],
            "pass_to_pass": ["tests/test_rules.py::test_total", "tests/test_rules.py::test_cheapest"],
            **self.task,
        }
        repo = {
            "contexts": {name: f"contexts/{name}" for name in ("tree", "flat", "placebo", *self.contexts)},
            "environment": {
                "python": [version],
                "lock": str(LOCK),
                "import_name": "shop",
                "distribution": "shop",
                "version": "1.7",
            },
        }
        path = self.root / "task" / "task.yaml"
        path.write_text(yaml.safe_dump({"repo": repo, "tasks": [task]}))
        return path

    @cached_property
    def loaded(self) -> LoadedTask:
        """The task itself; a lab of another real task says which."""
        (task,) = load_task_file(self.task_file).tasks
        return task

    @cached_property
    def planned(self) -> PlannedTask:
        task, objects = self.loaded, Objects(self.cache.objects, self.store)
        sandbox = choose()
        validation = validate_task(task, repeats=1, sandbox=sandbox, cache=self.cache, objects=objects, mirrors={})
        return prepare_task(task, validation, cache=self.cache, objects=objects, mirrors={}, sandbox=sandbox)

    def condition(self, name: str, condition: Condition | None = None, told: Told | None = None) -> ConditionOrder:
        """A preset, or a composition, resolved for the task; `told`: what planning would have frozen of it."""
        chosen = condition or PRESETS[name]
        task, objects = self.loaded, Objects(self.cache.objects, self.store)

        def tar(context: str | None) -> str | None:
            return None if context is None else context_object(task, context, objects=objects)

        resolved = ConditionOrder(
            name=name,
            digest=digest(chosen),
            files=tar(chosen.files),
            context=tar(chosen.source),
            prompt=chosen.prompt,
            pull=chosen.pull,
            hook=chosen.hook,
            fail_fast=chosen.fail_fast,
            inline=chosen.inline,
        )
        resolved = with_extensions(resolved, extensions(chosen, self.root, "lab", objects))
        order = self.planned.order
        if told is None:
            resolved = with_inline_text(resolved, chosen, order, None, (), seed=7, objects=objects)
        else:
            frozen = {} if told.text is None else store_text(told.text, objects)
            frozen |= {"targets": told.targets, "globs": told.globs, "abstained": told.abstained}
            resolved = resolved.model_copy(update=frozen | {"tokenizer": tokens.name()})
        (cell,) = watched(task, order, [resolved], objects)
        return cell.condition

    def grants(
        self,
        agent: AgentSpec,
        condition: str = "none",
        *,
        attempt: int = 1,
        limits: Limits | None = None,
        score_patch_of: int | None = None,
        composed: Condition | None = None,
        forbidden: Mapping[str, tuple[str, ...]] | None = None,
        told: Told | None = None,
    ) -> Grants:
        """`forbidden`: what the gateway watches for, instead of the condition's own."""
        order, resolved, store = self.planned.order, self.condition(condition, composed, told), self.store
        if forbidden is not None:
            resolved = resolved.model_copy(update={"forbidden": dict(forbidden)})
        named = [
            order.environment.source,
            order.workspace,
            order.pristine,
            order.prompt,
            order.classes,
            order.must_fail,
            *resolved.objects,
        ]
        named += [order.fix] if agent.kind == "oracle" else []
        folder = f"lab/attempts/{TRIAL}/{attempt}"

        def put(name: str, *, conditional: bool = True) -> object:
            return store.grant_put(f"{folder}/{name}", conditional=conditional, expires_s=600)

        prior = f"lab/attempts/{TRIAL}/{score_patch_of}/patch.json"
        return Grants.model_validate(
            {
                "campaign": "lab",
                "trial": Trial(
                    id=TRIAL, task=order.id, condition=condition, rep=0, seed=7, block=0, position=0
                ).model_dump(),
                "attempt": attempt,
                "intent_nonce": "n",
                "texts": texts.digest(),
                "agent": agent.model_dump(),
                "task": order.model_dump(),
                "condition": resolved.model_dump(),
                "prediction": told.prediction.model_dump() if told and told.prediction else None,
                "limits": (limits or Limits(memory_bytes=2**30, disk_bytes=2**28)).model_dump(),
                "objects": {d: store.grant_get(object_key(d), expires_s=600).model_dump() for d in named if d},
                "start": put("start.json"),
                "live": put("live.log.zst", conditional=False),
                "patch": put("patch.json"),
                "bundle": put("bundle.tar.zst"),
                "end": put("end.json"),
                "prior_patch": store.grant_get(prior, expires_s=600) if score_patch_of else None,
            },
            from_attributes=True,
        )

    @property
    def runner(self) -> tuple[str, ...]:
        """The command that takes the path of the grants."""
        return EXECUTED

    def start(self, grants: Grants, *, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """The real runner as a process of its own."""
        return subprocess.Popen(
            [*self.runner, str(self._write(grants))],
            env={**os.environ, "TRIALFLEET_SCRATCH": str(self.scratch), **(env or {})},
            stderr=subprocess.PIPE,
        )

    def run(self, grants: Grants, *, env: Mapping[str, str] | None = None) -> Left:
        """Run an attempt to its end."""
        given = {"TRIALFLEET_SCRATCH": str(self.scratch), **(env or {})}
        return Left(self, grants.attempt, *run_attempt(self.runner, self._write(grants), given))

    def _write(self, grants: Grants) -> Path:
        path = self.root / f"grants-{grants.attempt}.json"
        path.write_bytes(canonical_json(grants))
        return path


@dataclass(frozen=True)
class Left:
    """What an attempt left in the store."""

    lab: Lab
    attempt: int
    code: int
    errors: str

    def _get(self, name: str) -> bytes | None:
        return self.lab.store.get(f"lab/attempts/{TRIAL}/{self.attempt}/{name}")

    @cached_property
    def end(self) -> End:
        data = self._get("end.json")
        assert data is not None, f"no end; exit {self.code}: {self.errors}"
        return End.model_validate_json(data)

    @property
    def start(self) -> Start | None:
        data = self._get("start.json")
        return None if data is None else Start.model_validate_json(data)

    @property
    def patch(self) -> Patch | None:
        data = self._get("patch.json")
        return None if data is None else Patch.model_validate_json(data)

    @cached_property
    def bundle(self) -> Bundle:
        data = self._get("bundle.tar.zst")
        assert data is not None
        return unpack(data, self.end.bundle)

    def said(self) -> str:
        """Everything in the bundle and the records as text, to search for what must not be there."""
        parts = [data.decode(errors="replace") for data in self.bundle.files.values()]
        return "\n".join([*parts, *(str(self._get(n)) for n in ("start.json", "patch.json", "end.json"))])
