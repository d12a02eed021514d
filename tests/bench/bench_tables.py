"""From bundles to tables, and from kept tables: a directory, and a bucket on loopback beside a bare client.

`$TRIALFLEET_BENCH_BUNDLES` and `$TRIALFLEET_BENCH_TRIALS` choose smaller sizes, to try it out.
"""

from __future__ import annotations

import os
import random
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.bench.figure import Figure
from tests.support import ledgers as made
from trialfleet_ledger.bundle import described, pack
from trialfleet_ledger.canonical import canonical_json, sha256
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.records.attempt import End, Start
from trialfleet_ledger.records.manifest import Manifest
from trialfleet_ledger.records.measurements import Delivery, Metrics
from trialfleet_ledger.records.outcome import Outcome
from trialfleet_ledger.records.trial import Trial
from trialfleet_ledger.records.verdicts import Loss, Scored, Stop, Verdict
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_ledger.store.open import open_store
from trialfleet_ledger.store.protocol import Store
from trialfleet_ledger.store.s3 import S3Store

BUNDLES = int(os.environ.get("TRIALFLEET_BENCH_BUNDLES", "10000"))
TRIALS = int(os.environ.get("TRIALFLEET_BENCH_TRIALS", "100000"))


class Timed(NamedTuple):
    """`peak_mb`: of the whole process, imports included."""

    seconds: float
    peak_mb: float


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="trialfleet-bench-") as folder:
        small = Path(folder) / "small"
        plan = planned(tasks=20, conditions=5, trials=BUNDLES)
        fill(small, plan)
        return [*_directory(small, plan), *_bucket(small, plan), *_kept(Path(folder) / "large")]


def _directory(root: Path, plan: Plan) -> list[Figure]:
    cold, warm = _opened(root, "records"), _opened(root, "tables")
    size = sum(path.stat().st_size for path in root.rglob("*.zst")) / BUNDLES / 1024
    note = f"{size:.0f} KiB a bundle, {cold.peak_mb:.0f} MB"
    return [
        Figure(f"directory: {BUNDLES:,} bundles to tables", cold.seconds, "s", goal=15, note=note),
        Figure(f"directory: kept tables of {BUNDLES:,} trials", warm.seconds, "s", goal=1, note="opened, checked"),
    ]


def _kept(root: Path) -> list[Figure]:
    """Outcomes and tables alone: nothing else is read of a campaign whose tables are kept."""
    keep_only(root, large())
    found = _opened(root, "tables")
    return [
        Figure(f"directory: kept tables of {TRIALS:,} trials", found.seconds, "s", goal=2, note="opened, checked"),
        Figure("  the process that read them", found.peak_mb, "MB", note="peak, imports included"),
    ]


def _bucket(root: Path, plan: Plan) -> list[Figure]:
    name = f"bucket: {BUNDLES:,} bundles to tables"
    endpoint = os.environ.get("S3_ENDPOINT")
    if endpoint is None:
        return [Figure(name, None, "", note="needs an S3 server in $S3_ENDPOINT")]
    with copied(root, endpoint) as store:
        keys = [entry.key for entry in store.list("")]
        bare = _seconds(lambda: bare_client(store, keys))
        ours = _opened(store.url, "records", endpoint)
        kept = _opened(store.url, "tables", endpoint)
    rates = len(keys) / ours.seconds, len(keys) / bare
    note = f"{rates[0]:.0f} of {rates[1]:.0f} objects a second"
    return [
        Figure(name, rates[0] / rates[1], "× a bare client's rate", floor=0.5, note=note),
        Figure(f"bucket: kept tables of {BUNDLES:,} trials", kept.seconds, "s", goal=1, note="opened, checked"),
    ]


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def bare_client(store: S3Store, keys: Sequence[str]) -> None:
    """The same objects and nothing done to them: by obstore where it is installed, else by boto3, 16 at once."""
    from trialfleet_ledger.store.bulk import quick_reader

    quick = quick_reader(store.client, store.here)
    above = f"{store.prefix}/"

    def one(key: str) -> None:
        if quick is None or quick(above + key) is None:
            store.client.get_object(Bucket=store.bucket, Key=above + key)["Body"].read()

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(one, keys))


_OPEN = """
import pathlib, re, sys, time
from trialfleet_analysis.tables.read import open_campaign
from trialfleet_ledger.store.open import open_store
store = open_store(sys.argv[1], endpoint=sys.argv[2] or None)
store.get("demo/campaign.json")  # the client's start is not measured
began = time.perf_counter()
campaign = open_campaign(store, "demo")
seconds = time.perf_counter() - began
assert campaign.source == sys.argv[3], campaign.source
assert not campaign.interim
peak = re.search(r"VmHWM:\\s+([0-9]+) kB", pathlib.Path("/proc/self/status").read_text())
print(seconds, int(peak[1]) / 1024)  # ru_maxrss would begin with the peak of who started this process
"""


def _opened(url: Path | str, source: str, endpoint: str = "") -> Timed:
    """In a process of its own, as a command is."""
    argv = [sys.executable, "-c", _OPEN, str(url), endpoint, source]
    said = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()
    return Timed(float(said[0]), float(said[1]))


def large() -> Plan:
    """40 tasks under 10 conditions, the reps that `TRIALS` gives."""
    return planned(tasks=40, conditions=10, trials=TRIALS)


def planned(*, tasks: int, conditions: int, trials: int, name: str = "demo") -> Plan:
    """A campaign of so many trials; its first two conditions are the declared contrast."""
    names = [f"condition-{number}" for number in range(conditions)]
    composed = dict.fromkeys(names, made.PRESETS["intent_layer"])
    return made.plan(
        [f"task-{number:02d}" for number in range(tasks)],
        composed,
        name=name,
        reps=trials // (tasks * conditions),
        primary=Primary(treatment=names[1], control=names[0]),
    )


def fill(root: Path, plan: Plan, files: dict[str, bytes] | None = None) -> None:
    """Outcome, end, start and bundle of every trial, written plainly: their making is not measured."""
    made.write_plan(root, plan)
    files = files or members()
    outcomes = root / "demo" / "outcomes"
    outcomes.mkdir()
    for trial in made.trials(plan):
        folder = root / "demo" / "attempts" / trial.id / "1"
        folder.mkdir(parents=True)
        bundle = _bundle(plan, trial, files)
        digest = sha256(bundle)
        scored = _scored(trial)
        end = End(
            trial=trial.id, attempt=1, nonce="n", at=made.NOW + 60, by="runner", scored=scored, bundle=digest,
            bundle_bytes=len(bundle),
        )  # fmt: skip
        (folder / "bundle.tar.zst").write_bytes(bundle)
        (folder / "end.json").write_bytes(canonical_json(end))
        (folder / "start.json").write_bytes(canonical_json(_start(trial)))
        (outcomes / f"{trial.id}.json").write_bytes(canonical_json(_outcome(trial, scored, digest)))


def keep_only(root: Path, plan: Plan, *, lossy: float = 0.0) -> None:
    """Outcomes, and the tables that a reading of all bundles would have kept.

    `lossy`: share of the trials that lost an attempt; a sixth of those were given up.
    """
    store = made.write_plan(root, plan)
    outcomes = root / plan.campaign / "outcomes"
    outcomes.mkdir()
    for trial in made.trials(plan):
        losses = _losses(trial, lossy)
        for number, loss in enumerate(losses, start=1):
            made.write_loss(store, plan.campaign, trial, number, loss)
        outcome = _outcome(trial, _scored(trial), sha256(trial.id.encode()), losses)
        (outcomes / f"{trial.id}.json").write_bytes(canonical_json(outcome))
    keep_tables(store, plan.campaign)


def keep_tables(store: Store, campaign: str) -> None:
    """Those of outcomes without bundles."""
    from trialfleet_analysis.evidence import Evidence
    from trialfleet_analysis.ledger import read_ledger, run_of
    from trialfleet_analysis.tables.kept_tables import ReadDigests, keep
    from trialfleet_analysis.tables.made_of_rows import attempts_table, trials_table
    from trialfleet_analysis.tables.rows import attempt_rows, task_rows, trial_rows

    witness = ReadDigests(store, campaign)
    ledger = read_ledger(witness, campaign)  # type: ignore[arg-type]
    evidence = {
        outcome.trial.id: Evidence(
            outcome.trial.id,
            outcome.bundle or "",
            outcome.bundle_sha256,
            verified=True,
            isolation="bubblewrap",
            versions=(("trialfleet", "0.1.0"),),
            run=run_of(_start(outcome.trial), None),
        )
        for outcome in ledger.outcomes
        if outcome.scored is not None
    }
    rows = trial_rows(ledger, evidence, ledger.reps)
    trials = trials_table(rows, task_rows(ledger))
    keep(store, ledger, witness.sources(), trials, attempts_table(attempt_rows(ledger, evidence)))


def members() -> dict[str, bytes]:
    """What a short session of an agent leaves: some 60 KiB, of which half is said only once."""
    draw = random.Random(1)
    words = [secrets.token_hex(draw.randint(2, 6)) for _ in range(900)]

    def text(size: int) -> bytes:
        return " ".join(draw.choice(words) for _ in range(size // 10)).encode()

    names = ("patch.diff", "prompt.txt", "tests.xml", "tests.log", "canary.json", "usage.json", "environment.txt")
    return {
        "trajectory.jsonl": text(30_000),
        "gateway.jsonl": text(20_000),
        **{name: text(1_500) for name in names},
    }


def _bundle(plan: Plan, trial: Trial, members: dict[str, bytes]) -> bytes:
    files = {**members, "usage.json": trial.id.encode() * 40}
    manifest = Manifest(
        campaign=plan.campaign,
        trial=trial,
        attempt=1,
        task=made.ZERO,
        condition=made.ZERO,
        agent=plan.agent_specs[0],
        limits=plan.limits,
        isolation="bubblewrap",
        versions={"trialfleet": "0.1.0", "python": "3.11.2", "kernel": "6.1", "machine": "x86_64"},
        texts=made.ZERO,
        files=described(files),
    )
    return pack(manifest, files)


def _scored(trial: Trial) -> Scored:
    draw = random.Random(trial.id)
    passed = draw.random() < 0.5
    turns = draw.randint(4, 40)
    return Scored(
        verdict=Verdict.PASSED if passed else Verdict.FAILED,
        stop=Stop.FINISHED,
        tests_passed=passed,
        metrics=Metrics(
            turns=turns, tool_calls=turns + 3, input_tokens=turns * 2_000, output_tokens=turns * 90,
            cache_read_tokens=turns * 9_000, cost_usd=turns * 0.02, wall_s=turns * 3.5, agent_s=turns * 3.0,
            throttled_s=0.0, tests_s=1.5, overhead_core_s=draw.random(), agent_core_s=draw.random(),
            tests_core_s=draw.random(), edits=1, first_edit_turn=2, first_edit_s=6.5, exploration_turns=1,
            edit_turns=1, tail_turns=turns - 2,
            files_read_before_edit=3, target_hit=passed, lines_added=4, lines_removed=1,
            files_changed=1,
        ),
        delivery=Delivery(files=("AGENTS.md",), reached_model={"files": True, "hook": True}),
    )  # fmt: skip


def _losses(trial: Trial, lossy: float) -> tuple[Loss, ...]:
    draw = random.Random(f"lost {trial.id}")
    if draw.random() >= lossy:
        return ()
    return (made.MID_RUN,) * (3 if draw.random() < 1 / 6 else 1)  # three spend the budget


def _outcome(trial: Trial, scored: Scored, digest: str, losses: tuple[Loss, ...] = ()) -> Outcome:
    classes = tuple(loss.loss for loss in losses)
    if len(losses) > 1:
        return Outcome(trial=trial, attempts=len(losses), abandoned=classes[-1], losses=classes)
    key = f"attempts/{trial.id}/{len(losses) + 1}/bundle.tar.zst"
    return Outcome(
        trial=trial, attempts=len(losses) + 1, scored=scored, bundle=key, bundle_sha256=digest, losses=classes
    )


def _start(trial: Trial) -> Start:
    return Start(
        trial=trial.id, attempt=1, nonce="n", at=made.NOW, host="h", boot_id="b", pid=1, scratch="/s",
        isolation="bubblewrap",
    )  # fmt: skip


@contextmanager
def copied(root: Path, endpoint: str) -> Iterator[S3Store]:
    """The campaign in a bucket of its own, which goes again. What a directory kept is left behind."""
    from tests.support.stores import admin

    bucket = f"bench-{secrets.token_hex(6)}"
    client = admin(endpoint)
    client.create_bucket(Bucket=bucket)  # type: ignore[attr-defined]
    store = open_store(f"s3://{bucket}/campaigns", endpoint=endpoint)
    assert isinstance(store, S3Store)
    shutil.rmtree(root / "demo" / "tables", ignore_errors=True)
    source = DirectoryStore(root)
    try:
        with ThreadPoolExecutor(16) as pool:
            for _ in pool.map(lambda pair: store.put(pair[0], pair[1] or b""), _everything(source)):
                pass
        yield store
    finally:
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(store.delete, [entry.key for entry in store.list("")]))
        client.delete_bucket(Bucket=bucket)  # type: ignore[attr-defined]


def _everything(source: DirectoryStore) -> Iterator[tuple[str, bytes | None]]:
    return source.get_many([entry.key for entry in source.list("")])
