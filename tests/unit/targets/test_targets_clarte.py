"""The whole method on small repositories."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.targets.clarte_fixture import commit, edges, snapshot, source
from trialfleet_targets.clarte.fusion import FusionWeights
from trialfleet_targets.clarte.method import Clarte, Stages, _seeds, select
from trialfleet_targets.clarte.prepare import prepare
from trialfleet_targets.index.packing import packed, unpacked
from trialfleet_targets.prediction import Target
from trialfleet_targets.snapshot import PastCommit, Snapshot, SourceFile
from trialfleet_targets.syntax_facts import Edge, EdgeKind


def ranked(one: Snapshot, prompt: str) -> list[str]:
    return [target.path for target in Clarte(prepare(one)).rank(prompt)]


def test_worked_by_hand() -> None:
    """`zebra` is a path word of one file; its importer gets .4 of its score; Katz walks the edge between them."""
    files = [source("zebra.py", exports="stripe"), source("walrus.py", exports="tusk"), source("otter.py")]
    first, second = Clarte(prepare(snapshot(files, edges(("walrus.py", "zebra.py"))))).rank("the zebra")
    # along walrus -> zebra: a value edge's .5 times its prior of .7; back: .7 of that
    matrix = np.array([[0, 0.35 * 0.7], [0.35, 0]])  # rows walrus, zebra
    radius = np.sqrt(0.35 * 0.35 * 0.7)  # eigenvalues: ± this
    x = np.linalg.solve(np.eye(2) - 0.85 / radius * matrix, [0.4, 1.0])
    graph = x / x.max()
    expected = {"zebra.py": 0.35 * 1 + 0.35 * graph[1], "walrus.py": 0.35 * 0.4 + 0.35 * graph[0]}
    assert [first.path, second.path] == ["zebra.py", "walrus.py"]
    assert first.score == pytest.approx(expected["zebra.py"], abs=1e-4)
    assert second.score == pytest.approx(expected["walrus.py"], abs=1e-4)
    assert dict(first.parts) == pytest.approx({"lexical": 0.35, "graph": 0.35 * graph[1]}, abs=1e-4)
    assert [name for name, _ in second.parts] == ["graph", "spread"]


def test_each_stage_finds_a_file_of_its_own() -> None:
    files = [
        source("payment.py", imports="shared:cents"),
        source("invoice_writer.py"),
        source("tests/test_ledger.py", exports="refund_everything", test=True),
        source("ledger.py"),
        source("vat.py"),
        source("bank.py"),
        source("twin.py", imports="shared:cents"),
        *(source(f"other{at}.py", imports=f"m{at}:n{at}") for at in range(50)),
    ]
    history = [
        commit(day, *changed)
        for day in range(3)
        for changed in (["payment.py", "vat.py"], ["bank.py", "payment.py"])
    ]
    history.append(commit(4, "payment.py"))  # a Jaccard index of 3/7: too little to spread
    one = snapshot(files, edges(("invoice_writer.py", "payment.py")), history)
    found = {target.path: dict(target.parts) for target in Clarte(prepare(one)).rank("refund a payment")}
    assert "lexical" in found["payment.py"]
    assert "spread" in found["invoice_writer.py"]
    assert "test" in found["ledger.py"]
    assert "temporal" in found["vat.py"]
    assert "temporal" in found["bank.py"]
    assert "spread" not in found["bank.py"] | found["vat.py"]
    assert "temporal" not in found["ledger.py"]
    assert "similar" in found["twin.py"]
    assert "graph" in found["twin.py"]  # a seed of its own: nothing leads to it
    assert "tests/test_ledger.py" not in found
    assert not any(path.startswith("other") for path in found)


def test_a_stage_that_is_taken_out_finds_nothing() -> None:
    files = [
        source("payment.py", imports="shared:cents"),
        source("invoice_writer.py"),
        source("tests/test_ledger.py", exports="refund_everything", test=True),
        source("ledger.py"),
        source("login.py"),
        source("twin.py", imports="shared:cents"),
        source("buyer.py", imports="payment:payment payment:payment_error"),
        *(source(f"other{at}.py", imports=f"m{at}:n{at}") for at in range(50)),
    ]
    prepared = prepare(snapshot(files, edges(("invoice_writer.py", "payment.py"))))

    def lexical(prompt: str = "refund a payment", **stages: bool) -> dict[str, float]:
        method = Clarte(prepared, Stages(weights=FusionWeights((1, 0, 0, 0)), **stages))
        return {target.path: target.score for target in method.rank(prompt) if target.score > 0}

    whole = lexical()
    assert {"payment.py", "invoice_writer.py", "ledger.py", "twin.py", "buyer.py"} == whole.keys()
    assert whole.keys() - lexical(spreading=False).keys() == {"invoice_writer.py"}
    assert whole.keys() - lexical(tests=False).keys() == {"ledger.py"}
    assert whole.keys() - lexical(similar=False).keys() == {"twin.py"}
    assert lexical(ceiling=False)["buyer.py"] > whole["buyer.py"]
    assert lexical("auth").keys() == {"login.py"}
    assert not lexical("auth", synonyms=False)


def test_a_file_that_only_imports_a_word_stays_below_one_that_is_named_by_it() -> None:
    files = [
        source("parser.py"),
        *(source(f"user{at}.py", imports="parser:parser parser:parser_error") for at in range(3)),
        *(source(f"else{at}.py") for at in range(30)),
    ]
    first, second, *_ = Clarte(prepare(snapshot(files))).rank("parser")
    assert first.path == "parser.py"
    assert dict(second.parts)["lexical"] == pytest.approx(dict(first.parts)["lexical"] / 2)


def test_ten_seeds_and_of_equal_ones_the_first() -> None:
    scores = np.array([1.0] * 8 + [2.0] * 5)
    assert np.flatnonzero(_seeds(scores)).tolist() == [0, 1, 2, 3, 4, 8, 9, 10, 11, 12]
    assert _seeds(np.array([3.0, 0, 1])).tolist() == [3, 0, 1]


def test_confidence_is_what_is_believed_of_each_edge() -> None:
    files = [source("a.py"), source("b.py"), source("c.py")]
    links = [*edges(("a.py", "b.py")), *edges(("a.py", "c.py"), kind=EdgeKind.TYPE)]
    assert prepare(snapshot(files, links))["confidence"] == pytest.approx([0.7, 0.3])
    together = [commit(day, "a.py", "c.py") for day in range(200)]
    after = np.asarray(prepare(snapshot(files, links, together))["confidence"])
    assert after[0] < 0.1
    assert after[1] > 0.9


def test_a_synonym_finds_a_file_at_a_lower_score() -> None:
    files = [source("auth.py"), source("login.py"), source("zebra.py")]
    first, second = Clarte(prepare(snapshot(files))).rank("the login")
    assert [first.path, second.path] == ["login.py", "auth.py"]
    assert dict(second.parts)["lexical"] == pytest.approx(0.3 * 0.35)


def test_ties_are_broken_as_published() -> None:
    """All five have the word in their path and the same score: c only uses others; then b, which stands between;
    then a, which has an importer; then by path."""
    names = ["a", "b", "c", "d", "e"]
    files = [source(f"{name}_word.py") for name in names] + [source("x.py")]
    prepared = dict(prepare(snapshot(files)))
    method = Clarte(prepared)
    method._consumer_only = np.array([False, False, True, False, False, False])
    method._betweenness = np.zeros(6)
    method._importers = np.array([1, 0, 0, 0, 0, 0])
    assert [one.path[0] for one in method.rank("word")] == ["c", "a", "b", "d", "e"]
    candidates, equal = np.arange(5), np.full(5, 0.5)
    method._betweenness = np.array([0, 0.2, 0, 0, 0, 0])
    assert [names[at] for at in method._ordered(candidates, equal)] == ["c", "b", "a", "d", "e"]
    last_is_best = np.array([0, 0, 0, 0, 1.0])
    assert [names[at] for at in method._ordered(candidates, equal + 1e-12 * last_is_best)] == [
        "c",
        "b",
        "a",
        "d",
        "e",
    ]
    assert names[method._ordered(candidates, equal + 1e-3 * last_is_best)[0]] == "e"


@given(st.lists(st.sampled_from([0.1, 0.5, 0.9]), min_size=1, max_size=60))
def test_of_many_ties_the_first_twenty(scores: list[float]) -> None:
    ranking = MANY._ordered(np.arange(len(scores)), np.array(scores))
    assert ranking.tolist() == sorted(range(len(scores)), key=lambda at: (-scores[at], at))[:20]


MANY = Clarte(prepare(snapshot([source(f"f{at:02}.py") for at in range(60)])))


def test_selection() -> None:
    def targets(*scores: float) -> list[Target]:
        return [Target(f"{at}", score) for at, score in enumerate(scores)]

    assert [one.score for one in select(targets(1, 0.71, 0.7, 0.69))] == [1, 0.71]
    assert len(select(targets(*[1.0] * 9))) == 5
    assert len(select(targets(0.01))) == 1
    assert select([]) == ()


@pytest.mark.parametrize("prompt", ["", "?", "the", "unheard-of", "\0", "🦓", "x" * 1_000_000, "zebra " * 100_000])
def test_any_prompt_has_an_answer(prompt: str) -> None:
    files = [source("zebra.py"), source("walrus.py")]
    assert ranked(snapshot(files), prompt) == (["zebra.py"] if "zebra" in prompt else [])


@pytest.mark.parametrize("files", [[], [source("zebra.py")], [source("test_zebra.py", test=True)]])
def test_hardly_a_repository(files: list[SourceFile]) -> None:
    assert ranked(snapshot(files), "zebra") == [file.path for file in files if not file.test]


WORDS = ["zebra", "walrus", "otter", "lynx"]
names = st.lists(
    st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)), min_size=1, max_size=12, unique=True
).map(lambda pairs: [f"{one}/{other}.py" for one, other in pairs])


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    paths = draw(names)
    path = st.sampled_from(paths)
    files = [
        source(
            one,
            exports=" ".join(draw(st.lists(st.sampled_from(WORDS), max_size=2))),
            imports=" ".join(f"m:{word}" for word in draw(st.lists(st.sampled_from(WORDS), max_size=2))),
            test=draw(st.booleans()),
        )
        for one in paths
    ]
    triples = st.tuples(path, path, st.sampled_from(list(EdgeKind)))
    links = [Edge(one, other, kind, ("x",)) for one, other, kind in draw(st.lists(triples, max_size=15))]
    history = [
        commit(day, *changed) for day, changed in enumerate(draw(st.lists(st.sets(path, max_size=4), max_size=6)))
    ]
    return snapshot(files, list(dict.fromkeys(links)), history)


def same(one: Any, other: Any) -> bool:
    return one.keys() == other.keys() and all(
        np.asarray(one[name]).tobytes() == np.asarray(other[name]).tobytes() for name in one
    )


@settings(max_examples=25)
@given(snapshots(), st.randoms())
def test_the_order_of_files_and_edges_changes_no_byte(one: Snapshot, random: Any) -> None:
    files, links = list(one.files.items()), list(one.edges)
    random.shuffle(files)
    random.shuffle(links)
    shuffled = replace(one, files=dict(files), edges=tuple(links))
    assert same(prepare(one), prepare(shuffled))
    assert Clarte(prepare(one)).rank("zebra otter") == Clarte(prepare(shuffled)).rank("zebra otter")


@settings(max_examples=25)
@given(snapshots(), st.lists(st.sampled_from(WORDS), max_size=3))
def test_scores_are_finite_descend_and_are_the_sum_of_their_parts(one: Snapshot, words: list[str]) -> None:
    found = Clarte(prepare(one)).rank(" ".join(words))
    scores = [target.score for target in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 + 1e-9 for score in scores)
    assert all(sum(value for _, value in target.parts) == pytest.approx(target.score) for target in found)
    assert not any(one.files[target.path].test for target in found)
    assert len({target.path for target in found}) == len(found)


@settings(max_examples=25)
@given(snapshots(), snapshots())
def test_what_is_built_on_an_earlier_commit_is_what_is_built_anew(one: Snapshot, other: Snapshot) -> None:
    changed = {path: replace(file, blob="2") for path, file in other.files.items()}
    later = replace(other, files={**changed, **dict(list(one.files.items())[::2])})
    assert same(prepare(later, prepare(one)), prepare(later))
    assert same(prepare(one, prepare(one)), prepare(one))


@settings(max_examples=15)
@given(snapshots())
def test_what_an_index_file_gives_back_answers_the_same(one: Snapshot) -> None:
    prepared = prepare(one)
    back = unpacked(packed({}, prepared))[1]  # arrays that cannot be written
    assert Clarte(back).rank("zebra otter") == Clarte(prepared).rank("zebra otter")
    assert same(prepare(one, back), prepared)


def test_learned_weights_are_used() -> None:
    """Files that change together have like paths; the graph is drawn at random."""
    rng = np.random.default_rng(0)
    paths = [f"{part}_{at}.py" for part in ("alpha", "beta", "gamma", "delta") for at in range(15)]
    pairs = rng.integers(0, 60, (150, 2))
    links = edges(*{(paths[one], paths[other]) for one, other in pairs if one != other})
    history: list[PastCommit] = []
    for day in range(240):
        start = int(rng.integers(4)) * 15
        history.append(commit(day * 200, *(paths[start + at] for at in rng.choice(15, 3, replace=False))))
    prepared = prepare(snapshot([source(path) for path in paths], links, history))
    lexical, *others = np.asarray(prepared["weights"]).tolist()
    assert lexical > 0.6 > max(others)
