"""The method `clarte` on 10,000 files, 70,000 dependencies and 4,000 commits: a snapshot drawn at random, with
hubs and neighbourhoods as repositories have them, because its cost follows from the graph and not from the text.

    TRIALFLEET_BENCH_STAGES=FOLDER [TRIALFLEET_BENCH_CACHE=FOLDER] python -m tests.bench targets_clarte

prints before it what each stage brings. FOLDER holds clones or bare mirrors, with full history, of the training
repositories that `targets_clarte_stages.py` names.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.bench.bench_targets import CACHE
from tests.bench.figure import Figure
from tests.bench.targets_clarte_stages import stages
from trialfleet_targets.clarte.method import Clarte
from trialfleet_targets.clarte.prepare import prepare
from trialfleet_targets.snapshot import PastCommit, Snapshot, SourceFile
from trialfleet_targets.syntax_facts import (
    Definition,
    DefinitionKind,
    Edge,
    EdgeKind,
    FileFacts,
    Import,
    ParsedLanguage,
)

FILES, COMMITS, QUERIES = 10_000, 4_000, 200
NOW, EVERY_S = 1_700_000_000, 4 * 3600
STAGES = "TRIALFLEET_BENCH_STAGES"


def measure() -> list[Figure]:
    if below := os.environ.get(STAGES):
        with tempfile.TemporaryDirectory() as scratch:
            stages(Path(below), Path(os.environ.get(CACHE) or scratch))
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(4, 9))) for _ in range(6000)]
    drawn = _drawn(draw, words)
    began = time.perf_counter()
    prepared = prepare(drawn)
    anew = time.perf_counter()
    prepare(drawn, prepared)
    again = time.perf_counter()
    method = Clarte(prepared)
    loaded = time.perf_counter()
    walls, cores = [], []
    for _ in range(QUERIES):
        prompt = " ".join(_some(draw, words, draw.randint(3, 40)))
        start, spent = time.perf_counter(), time.process_time()
        method.rank(prompt)
        walls.append(time.perf_counter() - start)
        cores.append(time.process_time() - spent)
    wall, core = (float(np.percentile(taken, 95)) * 1000 for taken in (walls, cores))
    name = f"clarte, {FILES:,} files, {len(drawn.edges):,} dependencies"
    return [
        Figure(f"{name}: request, 95th percentile", wall, "ms", goal=50, note=f"{core:.0f} ms of a core"),
        Figure("  loaded", loaded - again, "s", goal=0.5),
        Figure("  prepared from nothing", anew - began, "s", note="without reading the files"),
        Figure("  prepared again, dependencies unchanged", again - anew, "s"),
    ]


def _drawn(draw: random.Random, words: list[str]) -> Snapshot:
    paths = sorted(_path(draw, words, at) for at in range(FILES))
    files = {path: _file(draw, words, path) for path in paths}
    kinds = list(EdgeKind)
    edges: dict[Edge, None] = {}
    for at, path in enumerate(paths):
        for _ in range(draw.randint(0, 14)):
            near = (at + draw.randint(-40, 40)) % FILES
            hub = min(int(draw.paretovariate(1) * 50), FILES - 1)
            target = near if draw.random() < 0.7 else hub
            if target != at:
                edges[Edge(path, paths[target], draw.choice(kinds), ("x",))] = None
    history = [
        PastCommit(f"{ago:040x}", NOW - ago * EVERY_S, "Change", "", tuple(sorted(_neighbours(draw, paths))))
        for ago in range(COMMITS)
    ]
    return Snapshot("0" * 40, NOW, files, tuple(edges), tuple(history))


def _path(draw: random.Random, words: list[str], at: int) -> str:
    one, other, third, fourth = _some(draw, words, 4)
    return f"src/{one}/{other}/{third}_{fourth}{at}.py" if at % 4 else f"tests/{one}/test_{third}_{fourth}{at}.py"


def _file(draw: random.Random, words: list[str], path: str) -> SourceFile:
    names = ["_".join(_some(draw, words, 2)) for _ in range(20)]
    facts = FileFacts(
        ParsedLanguage.PYTHON,
        definitions=tuple(Definition(name, DefinitionKind.FUNCTION, 1, 1, exported=True) for name in names[:12]),
        imports=tuple(Import(".".join(_some(draw, words, 2)), ((name, name),)) for name in names[12:]),
    )
    return SourceFile(path, path, facts, "", test=path.startswith("tests/"))


def _neighbours(draw: random.Random, paths: list[str]) -> set[str]:
    middle = draw.randrange(len(paths))
    return {paths[(middle + draw.randint(-20, 20)) % len(paths)] for _ in range(draw.randint(1, 7))}


def _some(draw: random.Random, words: list[str], count: int) -> list[str]:
    """Few words are frequent."""
    return [words[min(int(draw.paretovariate(0.9) * 12), len(words) - 1)] for _ in range(count)]
