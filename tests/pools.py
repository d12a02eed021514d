"""`make test`: files of tests that need no server, one more at once than there are cores, since some of them wait;
beside them those of stores, those of pods, and those of controllers in pods.

Which file belongs where, and what begins first, comes from the recorded costs, which a run of all tests refreshes.
What `python -m tests.pools` is given goes to pytest; paths choose files of tests.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.costs import Cost, merge_costs, read_costs, used_core_seconds, write_costs
from tests.failures import may_repeat, read_failures
from tests.skips import describe_skips, read_skips
from trialfleet_ledger.plurals import plural

ROOT = Path(__file__).parents[1]
PRODUCT = ("runner_image", "tasks", "controller", "analysis")
CI = os.environ.get("TRIALFLEET_CI") == "1"
NO_TESTS = 5  # pytest's exit code: what the options leave of the files is nothing
# What a caller runs meanwhile, on the servers: the pools that need them begin when these files exist.
AFTER = os.environ.get("TRIALFLEET_TEST_AFTER", "").split()
# More workers than these wait for the cores, and pods for room on a node of two: then tests run out of time.
# A controller in a pod starts a Ray, some twenty processes: one at a time.
_CORES = os.cpu_count() or 2
WORKERS = {"local": _CORES + 1, "stores": 1, "pods": 2, "controllers": 1}
CLUSTER = ("pods", "controllers")
SERVED = ("stores", *CLUSTER)
NEEDS_STORE = re.compile(r'needs\("s3"')
NEEDS_CONTROLLER = re.compile(r'"(controller-image|kuberay)"')
# Core seconds of the tests without pods for each 1,000 lines of the product: what a change must not raise.
RATCHET = 17.0


class Pool(NamedTuple):
    """Files of tests in the order in which they begin, and how many at once."""

    name: str
    files: tuple[str, ...]


def divide_files(files: Iterable[str], costs: dict[str, Cost]) -> list[Pool]:
    """Units first, which prove most in a second, should a run have to end early. Then the longest first, and those
    that nobody has measured before them: none is left alone at the end."""
    chosen: dict[str, list[str]] = {name: [] for name in WORKERS}
    for file in files:
        chosen[_room(file)].append(file)
    return [Pool(name, _in_order(there, costs)) for name, there in chosen.items() if there]


def _in_order(files: Iterable[str], costs: dict[str, Cost]) -> tuple[str, ...]:
    def place(file: str) -> tuple[bool, float, str]:
        return not file.startswith("tests/unit/"), -costs[file].seconds if file in costs else float("-inf"), file

    return tuple(sorted(files, key=place))


def _room(file: str) -> str:
    """The pool by what the file's tests need."""
    path = ROOT / file
    text = path.read_text() if path.exists() else ""
    if file.startswith("tests/cluster/"):
        return "controllers" if NEEDS_CONTROLLER.search(text) else "pods"
    stores = file.startswith("tests/integration/store/") or NEEDS_STORE.search(text)
    return "stores" if stores else "local"


def select_files(paths: Sequence[str]) -> list[str]:
    """The files of tests among these paths of the checkout; of none, all."""
    every = (str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))
    wanted = [path.rstrip("/") for path in paths] or ["tests"]
    return [file for file in every if any(file == one or file.startswith(f"{one}/") for one in wanted)]


class Running(NamedTuple):
    """The pytest of one pool."""

    pool: Pool
    process: subprocess.Popen[bytes]
    output: Path | None  # shown when it has ended; None: as it comes
    costs: Path

    def wait(self) -> int:
        """Its exit code, after its output."""
        code = self.process.wait()
        if self.output is not None:
            sys.stdout.write(self.output.read_text(encoding="utf-8", errors="replace"))
            sys.stdout.flush()
        return 0 if code == NO_TESTS else code


def start_pool(pool: Pool, options: Sequence[str], folder: Path, *, quiet: bool) -> Running:
    """One pytest with the pool's workers, each with one file at a time."""
    costs, output = folder / f"{pool.name}.tsv", folder / f"{pool.name}.out"
    workers = min(WORKERS[pool.name], len(pool.files))
    argv = [sys.executable, "-m", "pytest", "-n", str(workers), "--dist", "loadfile"]
    argv += ["--no-loadscope-reorder", "-o", f"cache_dir=.pytest_cache/{pool.name}", "--costs", str(costs)]
    with output.open("wb") as file:
        process = subprocess.Popen([*argv, *options, *pool.files], cwd=ROOT, stdout=file if quiet else None)
    return Running(pool, process, output if quiet else None, costs)


class Result(NamedTuple):
    """Of all pools. `code`: the worst."""

    code: int
    costs: dict[str, Cost]
    skips: Counter[str]


def run_files(files: Sequence[str], recorded: dict[str, Cost], options: Sequence[str]) -> Result:
    """The first pool's output is seen as it comes."""
    pools = divide_files(files, recorded)
    with tempfile.TemporaryDirectory() as folder:
        running: list[Running] = []
        try:
            for pool in (*(p for p in pools if p.name not in SERVED), *(p for p in pools if p.name in SERVED)):
                while pool.name in SERVED and not all(map(os.path.exists, AFTER)):
                    time.sleep(0.5)
                running.append(start_pool(pool, options, Path(folder), quiet=bool(running)))
            codes = [one.wait() for one in running]
        except KeyboardInterrupt:  # each pytest got it, too, and says what has failed so far
            codes = [one.wait() for one in running]
        failed = read_failures(one.costs for one in running)
        if CI and all(map(names_why, running, codes)) and may_repeat(failed):
            codes = [run_alone(failed, Path(folder))]
        costs = {file: cost for one in running for file, cost in read_costs(one.costs).items()}
        skips = read_skips(one.costs for one in running)
    return Result(max(map(abs, codes), default=0), costs, skips)


def names_why(one: Running, code: int) -> bool:
    """Whether a pool passed, or failed by tests that it names: not where it was killed or ended otherwise."""
    return code == 0 or (code == pytest.ExitCode.TESTS_FAILED and bool(read_failures([one.costs])))


def run_alone(names: Sequence[str], folder: Path) -> int:
    """Run these tests once more when no others do, also after the last moment of the run; pytest's exit code."""
    print(plural(len(names), "test") + " failed beside others, and run once more, alone", flush=True)
    env = {name: value for name, value in os.environ.items() if name != "TRIALFLEET_TEST_UNTIL"}
    argv = [sys.executable, "-m", "pytest", "--costs", str(folder / "alone.tsv"), *names]
    return subprocess.run(argv, cwd=ROOT, env=env, check=False).returncode


def describe_cost(core_seconds: float) -> str:
    """Of all tests without a cluster, as a sentence with the ratchet."""
    files = [path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py")]
    lines = sum(path.read_bytes().count(b"\n") for path in files)
    each = core_seconds / lines * 1000
    verdict = "" if each <= RATCHET else f": above {RATCHET}, where it was before"
    return (
        f"{core_seconds:,.0f} core seconds without pods, {each:.1f} for 1,000 of {lines:,} product lines{verdict}"
    )


def main(arguments: Sequence[str]) -> int:
    """Exit code: of the pool that fares worst."""
    paths = [one for one in arguments if one.startswith("tests/") or one == "tests"]
    options = [one for one in arguments if one not in paths]
    recorded = read_costs()
    files = select_files(paths)
    code, measured, skips = run_files(files, recorded, options)
    if not paths:
        used = used_core_seconds() - sum(
            cost.core_seconds for file, cost in measured.items() if _room(file) in CLUSTER
        )
        print(describe_cost(used))
        write_costs({file: cost for file, cost in merge_costs(recorded, measured).items() if file in files})
    for line in describe_skips(skips):
        print(line)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
