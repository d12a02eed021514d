"""What each stage of the method `clarte` brings, on commits of training repositories."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from rich.console import Console
from rich.table import Table

from tests.bench.targets_repositories import Listed, listed
from trialfleet_targets.arrays import Flags, Floats, Ints, Stored
from trialfleet_targets.clarte import examples, fusion
from trialfleet_targets.clarte.fusion import DEFAULT, FusionWeights
from trialfleet_targets.clarte.method import ALL, MAX_RANKED, Clarte, Stages
from trialfleet_targets.clarte.prepare import prepare
from trialfleet_targets.evaluation.baselines import PATH_AND_CONTENT
from trialfleet_targets.evaluation.cases import cases
from trialfleet_targets.evaluation.metrics import CaseScore, measures, outcome, paired
from trialfleet_targets.evaluation.run import of_language
from trialfleet_targets.graph.model import FileGraph
from trialfleet_targets.repository import Repository
from trialfleet_targets.snapshot import Snapshot
from trialfleet_targets.snapshot_reader import snapshot_at
from trialfleet_targets.text import fields
from trialfleet_targets.text.bm25f import BM25F
from trialfleet_targets.text.postings import Postings
from trialfleet_targets.text.tokens import Tokenizer

CHOSEN = ("encode/httpx", "colinhacks/zod", "spf13/cobra", "sharkdp/bat", "google/gson")
"""One of each language; no figure of the product is reported of them."""
COMMITS = 40
CONTENT, EVERY_WORD = "BM25 path + content, for scale", "a  BM25F, published fields"
LEXICAL, GRAPH, TEMPORAL = FusionWeights((1, 0, 0, 0)), FusionWeights((0, 1, 0, 0)), FusionWeights((0, 0, 1, 0))
OWN_WORDS = Stages(spreading=False, tests=False, ceiling=False, similar=False, weights=LEXICAL)
LEARNED, LEAKING, METHOD = "i  λ learned instead", "i′ λ learned from the published distance", "the method"
IN_TURN: Mapping[str, Stages] = {
    "b1 + stop words": Stages(False, False, False, False, False, LEXICAL),
    "b2 + synonyms": OWN_WORDS,
    "c  + spreading": Stages(tests=False, ceiling=False, similar=False, weights=LEXICAL),
    "d  + tests": Stages(ceiling=False, similar=False, weights=LEXICAL),
    "e  + ceiling": Stages(similar=False, weights=LEXICAL),
    "f  + similar files (LSA)": Stages(weights=LEXICAL),
    "g  + Katz, as much as words": Stages(weights=FusionWeights((0.5, 0.5, 0, 0))),
    "h  + coupling, betweenness: default λ": Stages(weights=DEFAULT),
}
"""Each beside all before it."""
ALONE: Mapping[str, Stages] = {
    "spreading": Stages(tests=False, ceiling=False, similar=False, weights=LEXICAL),
    "tests": Stages(spreading=False, ceiling=False, similar=False, weights=LEXICAL),
    "ceiling": Stages(spreading=False, tests=False, similar=False, weights=LEXICAL),
    "similar files (LSA)": Stages(spreading=False, tests=False, ceiling=False, weights=LEXICAL),
    "Katz, for the words": Stages(spreading=False, tests=False, ceiling=False, similar=False, weights=GRAPH),
    "coupling, for the words": Stages(
        spreading=False, tests=False, ceiling=False, similar=False, weights=TEMPORAL
    ),
    "betweenness, .15 beside .85 of words": Stages(
        spreading=False, tests=False, ceiling=False, similar=False, weights=FusionWeights((0.85, 0, 0, 0.15))
    ),
}
"""Each beside the words of b2 alone."""


@dataclass(frozen=True)
class Taken:
    """One commit, asked in every way. `learned`: λ from the older commits; `used`: whether the newest confirmed
    it; `leaking`: λ learned with the published distance."""

    outcomes: Mapping[str, CaseScore]
    learned: tuple[float, ...]
    leaking: tuple[float, ...]
    used: bool


def stages(below: Path, cache: Path) -> None:
    """Prints the tables."""
    taken: list[Taken] = []
    weights = Table("repository", "λ learned (L, G, T, B)", "λ, published distance", "learned λ used")
    for one in listed("train", below):
        if one.name in CHOSEN:
            own = _kept(one, cache)
            taken += own
            learned, leaking = (
                " ".join(f"{value:.2f}" for value in np.mean(rows, axis=0))
                for rows in ([case.learned for case in own], [case.leaking for case in own])
            )
            weights.add_row(one.name, learned, leaking, f"{sum(case.used for case in own)} of {len(own)}")
    turn = [CONTENT, EVERY_WORD, *IN_TURN, LEARNED, LEAKING, METHOD]
    before = {name: turn[max(at - 1, 0)] for at, name in enumerate(turn)}
    default = [*IN_TURN][-1]
    before |= {EVERY_WORD: CONTENT, LEARNED: default, LEAKING: default, METHOD: EVERY_WORD}
    _print(_table(taken, turn, before, "stages in turn", "this − row before (i, i′: − h; the method: − a): MRR"))
    alone = [f"b2 and {name} alone" for name in ALONE]
    _print(_table(taken, alone, dict.fromkeys(alone, "b2 + synonyms"), "stages alone", "this − b2: MRR"))
    _print(weights)


def _table(
    taken: Sequence[Taken], names: Sequence[str], before: Mapping[str, str], title: str, difference: str
) -> Table:
    table = Table("", "hit@1", "hit@5", "recall@5", "MRR", difference, title=f"{title} ({len(taken)} commits)")
    for name in names:
        own, other = ([case.outcomes[one] for case in taken] for one in (name, before[name]))
        found = measures(own)
        if found is not None:
            gain = paired(
                [one.reciprocal for one in own], [one.reciprocal for one in other], [one.repository for one in own]
            )
            said = f"{gain.mean:+.3f} ({gain.low:+.3f} to {gain.high:+.3f})" if before[name] != name else ""
            cells = (found.hit_at_1, found.hit_at_5, found.recall_at_5, found.mrr)
            table.add_row(name, *(f"{cell:.3f}" for cell in cells), said)
    return table


def _kept(one: Listed, cache: Path) -> list[Taken]:
    kept = cache / f"{one.name.replace('/', '+')}.{COMMITS}.stages"
    if not kept.exists():
        kept.write_bytes(pickle.dumps(list(_taken(one, cache))))
    return cast("list[Taken]", pickle.loads(kept.read_bytes()))


def _taken(one: Listed, cache: Path) -> Iterator[Taken]:
    repository = Repository.open(one.folder)
    asked = cases(repository, one.name, COMMITS, language=one.language)
    prepared: Stored | None = None
    content: Postings | None = None
    every_word: Postings | None = None
    plain, all_words = Tokenizer(), Tokenizer(stop_words=frozenset())
    for case in reversed(asked):
        snapshot = of_language(snapshot_at(repository, case.parent, cache=cache), case.language)
        prepared = prepare(snapshot, prepared)
        content = fields.prepare(snapshot.files, plain, ("path", "content"), previous=content)
        every_word = fields.prepare(snapshot.files, all_words, previous=every_word)
        trained, leaking = _trained(snapshot, prepared), _trained(snapshot, prepared, leave_one_out=False).learned
        asks = {
            **IN_TURN,
            **{f"b2 and {name} alone": chosen for name, chosen in ALONE.items()},
            LEARNED: Stages(weights=trained.learned),
            LEAKING: Stages(weights=leaking),
            METHOD: ALL,
        }
        rankings = {
            name: [target.path for target in Clarte(prepared, chosen).rank(case.prompt) if target.score > 0]
            for name, chosen in asks.items()
        }
        targets = {path for path, file in snapshot.files.items() if not file.test}
        rankings[CONTENT] = _best(BM25F.of(content, PATH_AND_CONTENT), plain.terms(case.prompt), targets)
        rankings[EVERY_WORD] = _best(BM25F.of(every_word), all_words.terms(case.prompt), targets)
        truth = set(case.truth)
        yield Taken(
            {name: outcome(one.name, ranked, truth) for name, ranked in rankings.items()},
            trained.learned.values,
            leaking.values,
            trained.weights == trained.learned,
        )


def _best(index: BM25F, terms: Sequence[str], targets: set[str]) -> list[str]:
    scores, names = index.scores(dict.fromkeys(terms, 1.0)), index.postings.names
    order = [at for at in np.argsort(-scores, kind="stable").tolist() if scores[at] > 0 and names[at] in targets]
    return [names[at] for at in order[:MAX_RANKED]]


def _trained(snapshot: Snapshot, prepared: Stored, *, leave_one_out: bool = True) -> fusion.Training:
    indexed = examples.IndexedFiles(
        FileGraph.of(snapshot.files, snapshot.edges),
        cast(Flags, prepared["tests"]),
        cast(Ints, prepared["communities"]),
        cast(Floats, prepared["betweenness"]).astype(np.float64),
    )
    return fusion.train(examples.groups(indexed, snapshot.history, leave_one_out=leave_one_out))


def _print(table: Table) -> None:
    Console(width=max(Console().width, 150)).print(table)
