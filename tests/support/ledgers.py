"""A synthetic campaign in a directory store: what a controller and runners would have left, without running."""

from __future__ import annotations

import hashlib
import os
import pickle
import random
from base64 import b32encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal
from unittest import mock

from backports import zstd

from tests.support import records
from tests.support.plans import make_plan, planned_task
from trialfleet_analysis.analysis_plan import analyse as analysing
from trialfleet_analysis.analysis_plan.analyse import Analysis
from trialfleet_analysis.report import assemble as assembling
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_analysis.tables.read import open_campaign
from trialfleet_analysis.tables.table import Table
from trialfleet_designs.metric import effort
from trialfleet_ledger import keys
from trialfleet_ledger.bundle import described, pack
from trialfleet_ledger.campaign_spec import RetrySpec
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.conditions import PRESETS, Condition
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_ledger.records.attempt import Quarantine
from trialfleet_ledger.records.base import Record
from trialfleet_ledger.records.manifest import Manifest
from trialfleet_ledger.records.measurements import Coverage, Delivery, Metrics
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Loss, LossClass, Scored, Stop, Verdict
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.store.protocol import Store

NOW = 1_790_000_000.0
ZERO = "0" * 64


@dataclass(frozen=True)
class Fate:
    """What happens to one trial: losses first, then a verdict, or None for abandoned (by the last of them).
    `files`: of its bundle, instead of two small ones; `left_out`: bytes that they lack; `stored`: what is in the
    store in the bundle's place; the records name that when `sealed`.
    `needed`, `unsteady`, `cautions`: as in `Scored`."""

    verdict: Verdict | None = Verdict.PASSED
    stop: Stop = Stop.FINISHED
    losses: tuple[Loss, ...] = ()
    metrics: Metrics = field(default_factory=Metrics)
    delivery: Delivery = field(default_factory=Delivery)
    warnings: tuple[str, ...] = ()
    files: Mapping[str, bytes] | None = None
    stored: Callable[[bytes], bytes] | None = None
    sealed: bool = False
    left_out: Mapping[str, int] | None = None
    needed: tuple[str, ...] = ()
    unsteady: bool = False
    cautions: tuple[str, ...] = ()


MID_RUN = Loss(loss=LossClass.EVICTED, message="node was drained", agent_started=True)
BEFORE_AGENT = Loss(loss=LossClass.IMAGE_PULL, message="ErrImagePull", agent_started=False)


def plan(
    tasks: Sequence[str] = ("alpha", "beta"),
    conditions: Mapping[str, Condition] | Sequence[str] = ("none", "intent_layer"),
    *,
    name: str = "demo",
    reps: int = 5,
    primary: Primary | None = None,
    no_oracle: Sequence[str] = (),
    uncovered: Sequence[str] = (),
    banner: str | None = None,
    agent: AgentSpec | None = None,
) -> Plan:
    """A frozen plan with made-up digests."""
    ordered = tuple(
        planned_task(task, primary=task not in no_oracle, covered=task not in uncovered) for task in tasks
    )
    return make_plan(
        ordered,
        conditions,
        campaign=name,
        created=NOW,
        seed=20261121,
        reps=reps,
        agent=agent or AgentSpec(kind="search", version="1", max_turns=60, timeout_s=60),
        parallel=2,
        retries=RetrySpec(disruptions=2),  # `MID_RUN` three times is abandoned
        primary=primary,
        inputs={"campaign.yaml": sha256(b"campaign"), **{f"tasks/{t}.yaml": sha256(t.encode()) for t in tasks}},
        texts={"fail_fast": sha256(b"fail_fast")},
        versions={"trialfleet": "0.1.0", "python": "3.11.2"},
        banner=banner,
    )


def trials(frozen: Plan, *, reps: int | None = None) -> list[Trial]:
    """Every planned trial, shuffled inside its block."""
    found: list[Trial] = []
    for block in range(reps or frozen.reps):
        cells = [(cell.task, cell.condition.name) for cell in frozen.cells]
        random.Random(f"{frozen.seed}/{block}").shuffle(cells)
        for position, (task, condition) in enumerate(cells):
            found.append(
                Trial(
                    id=trial_id(frozen.campaign, task, condition, block),
                    task=task,
                    condition=condition,
                    rep=block,
                    seed=position,
                    block=block,
                    position=position,
                )
            )
    return found


def trial_id(campaign: str, task: str, condition: str, rep: int) -> str:
    raw = hashlib.sha256(f"{campaign}/{task}/{condition}/{rep}".encode()).digest()
    return b32encode(raw).decode().lower()[:26]


def write_plan(root: Path, frozen: Plan) -> DirectoryStore:
    store = DirectoryStore(root.absolute())
    put(store, f"{frozen.campaign}/campaign.json", frozen)
    return store


def write(
    root: Path, frozen: Plan, fate: Callable[[Trial], Fate | None], *, reps: int | None = None
) -> DirectoryStore:
    """The whole campaign below `root`. `fate` None: the trial has not ended."""
    store = write_plan(root, frozen)
    for trial in trials(frozen, reps=reps):
        end = fate(trial)
        if end is not None:
            write_trial(store, frozen, trial, end)
    return store


def write_journal(store: DirectoryStore, frozen: Plan) -> None:
    """The journal's entry about what controllers write or read."""
    ledger = Ledger(store, frozen.campaign)
    for entry in store.list(f"{frozen.campaign}/"):
        if entry.key.endswith(("campaign.json", "intent.json", "end.json")) or "/outcomes/" in entry.key:
            ledger.journal.note(entry.key, (store.root / entry.key).read_bytes())
    ledger.journal.flush()


def write_trial(
    store: DirectoryStore, frozen: Plan, trial: Trial, fate: Fate, *, named_plan: str | None = None
) -> None:
    """Start, patch, bundle, end of every attempt, and the outcome. `named_plan`: the plan that this names."""
    for number, loss in enumerate(fate.losses, start=1):
        write_loss(store, frozen.campaign, trial, number, loss)
    losses = tuple(loss.loss for loss in fate.losses)
    if fate.verdict is None:
        abandoned = Outcome(
            plan=named_plan, trial=trial, attempts=len(losses), abandoned=losses[-1], losses=losses
        )
        _outcome(store, frozen, abandoned)
        return
    attempt = len(losses) + 1
    cause = {"needed": fate.needed, "unsteady": fate.unsteady, "cautions": fate.cautions}
    scored = records.scored(fate.verdict, stop=fate.stop, metrics=fate.metrics, delivery=fate.delivery, **cause)
    data = bundle_bytes(
        frozen,
        trial,
        attempt,
        warnings=fate.warnings,
        files=fate.files,
        left_out=fate.left_out,
        scored=scored,
        named_plan=named_plan,
    )
    folder = f"attempts/{trial.id}/{attempt}"
    stored = data if fate.stored is None else fate.stored(data)
    put_bytes(store, f"{frozen.campaign}/{folder}/bundle.tar.zst", stored)
    named = sha256(stored if fate.sealed else data)
    _intent(store, frozen.campaign, trial, attempt)
    start = _start(store, frozen.campaign, trial, attempt)
    size = len(stored if fate.sealed else data)
    end = records.end(
        scored, trial=trial.id, attempt=attempt, at=NOW + 60, start=start, bundle=named, bundle_bytes=size
    )
    put(store, f"{frozen.campaign}/{folder}/end.json", end)
    measured = Outcome(
        plan=named_plan,
        trial=trial,
        attempts=attempt,
        scored=scored,
        bundle=f"{folder}/bundle.tar.zst",
        bundle_sha256=named,
        losses=losses,
    )
    _outcome(store, frozen, measured)


def write_running(store: DirectoryStore, campaign: str, trial: Trial, attempt: int, output: bytes) -> None:
    """An attempt that has started, and what has arrived of its output."""
    _intent(store, campaign, trial, attempt)
    _start(store, campaign, trial, attempt)
    log = f"{campaign}/attempts/{trial.id}/{attempt}/live.log.zst"
    store.put(log, zstd.compress(output))


def _outcome(store: DirectoryStore, frozen: Plan, outcome: Outcome) -> None:
    put(store, f"{frozen.campaign}/outcomes/{outcome.trial.id}.json", outcome)


def write_loss(
    store: DirectoryStore,
    campaign: str,
    trial: Trial,
    attempt: int,
    loss: Loss,
    *,
    patched: bool = False,
    by: Literal["runner", "controller"] = "controller",
    score_only: bool = False,
) -> None:
    """One lost attempt; `patched`: it left a patch.json."""
    folder = f"{campaign}/attempts/{trial.id}/{attempt}"
    start = _start(store, campaign, trial, attempt) if loss.agent_started else None
    patch = records.patch(trial=trial.id, attempt=attempt, at=NOW + 20) if patched else None
    if patch is not None:
        put(store, f"{folder}/patch.json", patch)
    _intent(store, campaign, trial, attempt, score_only=score_only)
    end = records.end(loss, trial=trial.id, attempt=attempt, at=NOW + 30, by=by, start=start)
    put(store, f"{folder}/end.json", end)


def _intent(store: DirectoryStore, campaign: str, trial: Trial, attempt: int, *, score_only: bool = False) -> None:
    previous = None if attempt == 1 else ZERO
    intent = records.intent(
        trial=trial.id, attempt=attempt, at=NOW - 1, previous_end=previous, score_only=score_only
    )
    put(store, f"{campaign}/attempts/{trial.id}/{attempt}/intent.json", intent)


def _start(store: DirectoryStore, campaign: str, trial: Trial, attempt: int) -> str:
    start = records.start(trial=trial.id, attempt=attempt, at=NOW, isolation="bubblewrap")
    put(store, f"{campaign}/attempts/{trial.id}/{attempt}/start.json", start)
    return sha256(canonical_json(start))


def quarantine(store: DirectoryStore, plan: Plan, outcome: Outcome, *, named_plan: str | None = None) -> None:
    """The bundle of its last attempt does not match."""
    record = Quarantine(
        plan=named_plan,
        trial=outcome.trial.id,
        attempt=outcome.attempts,
        at=NOW,
        expected=ZERO,
        found=None,
        reason="it does not match",
    )
    put(store, keys.quarantine(plan.campaign, outcome.trial.id, outcome.attempts), record)


def put(store: DirectoryStore, key: str, record: Record) -> None:
    put_bytes(store, key, canonical_json(record))


def put_bytes(store: DirectoryStore, key: str, data: bytes) -> None:
    """As the store lays it out, without its syncing: thousands of files in a test, so the cheapest calls."""
    path = f"{store.root}/{key}"
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        file = os.open(path, new, 0o644)
    except FileNotFoundError:  # the first of its folder
        Path(path.rpartition("/")[0]).mkdir(exist_ok=True, parents=True)
        file = os.open(path, new, 0o644)
    try:
        assert os.write(file, data) == len(data)
    finally:
        os.close(file)


def bundle_bytes(
    frozen: Plan,
    trial: Trial,
    attempt: int,
    *,
    warnings: tuple[str, ...] = (),
    files: Mapping[str, bytes] | None = None,
    left_out: Mapping[str, int] | None = None,
    scored: Scored | None = None,
    named_plan: str | None = None,
) -> bytes:
    files = files or {"patch.diff": b"", "prompt.txt": trial.task.encode()}
    if scored is not None:
        files = {**files, "scored.json": canonical_json(scored)}
    manifest = Manifest(
        plan=named_plan,
        campaign=frozen.campaign,
        trial=trial,
        attempt=attempt,
        task=ZERO,
        condition=ZERO,
        agent=frozen.agents[trial.condition].spec,
        limits=frozen.limits,
        isolation="bubblewrap",
        warnings=warnings,
        versions={"trialfleet": "0.1.0"},
        texts=ZERO,
        files=described(files, left_out),
    )
    return pack(manifest, files)


def read(store: Store, campaign: str = "demo", *, verify: bool = True) -> Report:
    """The report of what is in the store: its records and bundles, whatever tables were kept. Of the same trials
    the analysis, most of the work, is made once: many tests change what an analysis does not see."""
    tables = open_campaign(store, campaign, verify=verify, tables=False)
    with mock.patch.object(assembling, "analyse", _analyse_once):
        return assembling.assemble(tables, versions={"trialfleet": "0.1.0"})


_analyses: dict[tuple[object, ...], Analysis] = {}


def _analyse_once(*asked: Any, **options: Any) -> Analysis:
    """Again where a test has patched `analyse` or `effort`: not for what these call."""
    used = (one for module in (analysing, effort) for one in vars(module).values())
    key = (sha256(pickle.dumps((asked, options))), *(one for one in used if callable(one) or isinstance(one, int)))
    if key not in _analyses:
        _analyses[key] = analysing.analyse(*asked, **options)
    return _analyses[key]


def rows_of(trials: Table) -> list[SimpleNamespace]:
    """The table's rows, in its order: each with the columns' names as attributes, and its `cell`."""
    return [SimpleNamespace(**row, cell=(row["task"], row["condition"])) for row in trials.to_pylist()]


def trials_of(store: Store, campaign: str = "demo", *, verify: bool = True) -> dict[str, SimpleNamespace]:
    """What was made of every trial, by its id."""
    return {row.trial: row for row in rows_of(open_campaign(store, campaign, verify=verify, tables=False).trials)}


def counts(report: Report) -> tuple[int, int, int]:
    """Passed, valid and lost trials of all cells."""
    cells = report.cells
    return sum(cell.passes for cell in cells), sum(cell.valid for cell in cells), sum(cell.lost for cell in cells)


def replaced(path: Path, old: str, new: str) -> None:
    """Edit a record's file."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


# --- a campaign that looks like a real one ------------------------------------------------------------

CONDITIONS = ("none", "placebo", "flat_llm", "intent_layer", "intent_layer_preamble")
TASKS = {
    "ansible-split-args-quoting": 0.35,
    "ansible-unsafe-text-template": 0.15,
    "pdm-expand-env-vars-empty": 0.8,
    "pdm-lock-groups-order": 0.55,
    "graphiti-edge-dates-none": 0.6,
    "graphiti-fulltext-escape": 0.05,
}
LIFT = {"none": 0.0, "placebo": 0.0, "flat_llm": 0.05, "intent_layer": 0.1, "intent_layer_preamble": 0.25}


def lifelike(seed: int = 1) -> Callable[[Trial], Fate]:
    """Fates drawn per trial: rates by task and condition, some losses, metrics of plausible size."""

    def fate(trial: Trial) -> Fate:
        draw = random.Random(f"{seed}/{trial.id}")
        covered = trial.task != "graphiti-fulltext-escape"
        rate = min(TASKS.get(trial.task, 0.4) + LIFT.get(trial.condition, 0), 0.97)
        passed = draw.random() < rate
        losses = _losses(draw)
        stop = Stop.FINISHED if passed or draw.random() < 0.5 else draw.choice([Stop.MAX_TURNS, Stop.TIMEOUT])
        verdict = Verdict.PASSED if passed else Verdict.TIMED_OUT if stop is Stop.TIMEOUT else Verdict.FAILED
        return Fate(
            verdict=None if len(losses) == 3 else verdict,
            stop=stop,
            losses=losses,
            metrics=_metrics(draw, trial),
            delivery=_delivery(trial, covered=covered),
            warnings=("bubblewrap is not installed: the agent runs as another uid",) if seed == 2 else (),
        )

    return fate


def _losses(draw: random.Random) -> tuple[Loss, ...]:
    number = draw.choices([0, 1, 2, 3], [90, 7, 2, 1])[0]
    drawn = tuple(draw.choice([MID_RUN, BEFORE_AGENT, MID_RUN]) for _ in range(number))
    return drawn if number < 3 else (MID_RUN,) * 3  # which is what spends the budget


def _metrics(draw: random.Random, trial: Trial) -> Metrics:
    turns = draw.randint(4, 40)
    edit = draw.randint(2, turns)
    hooks = {"intent_layer": 2, "intent_layer_preamble": 1}.get(trial.condition)
    return Metrics(
        turns=turns,
        tool_calls=turns + draw.randint(0, 9),
        input_tokens=draw.randint(10_000, 90_000),
        output_tokens=draw.randint(900, 9_000),
        cache_read_tokens=draw.randint(50_000, 900_000),
        cache_write_tokens=draw.randint(5_000, 40_000),
        cost_usd=draw.uniform(0.05, 1.2),
        wall_s=turns * 3.1,
        agent_s=turns * 2.7,
        throttled_s=0.0,
        tests_s=draw.uniform(0.6, 2.4),
        overhead_core_s=draw.uniform(0.3, 0.8),
        agent_core_s=draw.uniform(0.5, 4),
        tests_core_s=draw.uniform(0.4, 1.4),
        edits=2,
        first_edit_turn=edit,
        first_edit_s=edit * 2.5,
        exploration_turns=edit - 1,
        edit_turns=(turns - edit) // 2 + 1,
        tail_turns=turns - edit - (turns - edit) // 2,
        files_read_before_edit=draw.randint(1, 9),
        context_files_read=draw.randint(0, 2) if trial.condition != "none" else None,
        hook_firings=hooks,
        target_hit=draw.random() < 0.8,
        lines_added=draw.randint(1, 12),
        lines_removed=draw.randint(0, 6),
        files_changed=draw.randint(1, 2),
    )


def _delivery(trial: Trial, *, covered: bool) -> Delivery:
    condition = PRESETS[trial.condition]
    reached: dict[str, bool | None] = {}
    if condition.files:
        reached["files"] = True
    if condition.hook:
        reached["hook"] = trial.rep != 0
    if condition.inline:
        reached["inline"] = covered or None
    return Delivery(
        files=("AGENTS.md",) if condition.files else (),
        inline_tokens=412 if condition.inline and covered else None,
        inline_truncated=trial.task.startswith("ansible") and condition.inline is not None,
        coverage=(Coverage.COVERED if covered else Coverage.NONE) if condition.inline else Coverage.NOT_ASKED,
        tokenizer="o200k" if condition.inline else None,
        reached_model=reached,
    )


def lifelike_plan(*, reps: int = 10, name: str = "preamble-vs-pull") -> Plan:
    return plan(
        tuple(TASKS),
        CONDITIONS,
        name=name,
        reps=reps,
        primary=Primary(treatment="intent_layer_preamble", control="intent_layer"),
        no_oracle=("pdm-lock-groups-order",),
        uncovered=("graphiti-fulltext-escape",),
        banner="search is a stand-in for trying the pipeline: it repairs without a model, and the effect of "
        "context is built in. Its numbers say nothing about any model.",
    )
