"""BM25F and its postings."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trialfleet_targets.text.bm25f import BM25F, PUBLISHED, FieldWeight
from trialfleet_targets.text.postings import Document, Postings, build, without

FIELDS = ("path", "symbols", "imports")
WORDS = ("auth", "jwt", "session", "db", "token", "user")


def document(name: str, **counts: dict[str, int]) -> Document:
    return Document(name, f"{name}@1", counts)


CORPUS = [
    document("a", path={"auth": 1, "jwt": 1}, symbols={"validate": 1, "jwt": 2}, imports={"crypto": 1}),
    document("b", path={"session": 1}, symbols={"session": 1, "guard": 1}, imports={"jwt": 1, "auth": 1}),
    document("c", path={"db": 1, "pool": 1, "deep": 1}, symbols={}, imports={}),
]


def test_worked_by_hand() -> None:
    """jwt: df 2 of 3 (once a document, though three fields have it). Mean lengths: path 2, symbols 5/3 and imports
    1, both below their floor of 5."""
    index = BM25F.of(build(CORPUS, FIELDS))
    idf = log((3 - 2 + 0.5) / (2 + 0.5) + 1)
    in_a = 2 * 1 / (1 - 0.3 + 0.3 * 2 / 2) + 1 * 2 / (1 - 0.4 + 0.4 * 3 / 5)
    in_b = 0.5 * 1 / (1 - 0.5 + 0.5 * 2 / 5)
    expected = [idf * in_a * 2.2 / (in_a + 1.2), idf * in_b * 2.2 / (in_b + 1.2), 0]
    assert index.scores({"jwt": 1.0}).tolist() == pytest.approx(expected, rel=1e-6)
    assert index.scores({"jwt": 0.3}).tolist() == pytest.approx([0.3 * one for one in expected], rel=1e-6)
    assert not index.scores({"nowhere": 1.0}).any()


counts = st.dictionaries(st.sampled_from(WORDS), st.integers(1, 4), max_size=4)
corpora = st.lists(st.fixed_dictionaries(dict.fromkeys(FIELDS, counts)), min_size=1, max_size=8).map(
    lambda rows: [Document(f"{at:02}", "", row) for at, row in enumerate(rows)]
)
queries = st.dictionaries(st.sampled_from(WORDS), st.sampled_from([0.3, 1.0]), max_size=4)


def plainly(corpus: list[Document], query: dict[str, float]) -> list[float]:
    """The formula as it is written, document by document."""
    scores: list[float] = []
    for one in corpus:
        score = 0.0
        for word, weight in query.items():
            df = sum(any(word in other.counts[field.name] for field in PUBLISHED) for other in corpus)
            blended = 0.0
            for field in PUBLISHED:
                lengths = [sum(other.counts[field.name].values()) for other in corpus]
                mean = max(sum(lengths) / len(corpus), field.floor)
                length = sum(one.counts[field.name].values())
                tf = one.counts[field.name].get(word, 0)
                blended += field.weight * tf / (1 - field.b + field.b * length / mean)
            idf = log((len(corpus) - df + 0.5) / (df + 0.5) + 1)
            score += weight * idf * blended * 2.2 / (blended + 1.2)
        scores.append(score)
    return scores


@settings(max_examples=40)
@given(corpora, queries)
def test_any_corpus_scores_as_the_formula_says(corpus: list[Document], query: dict[str, float]) -> None:
    assert BM25F.of(build(corpus, FIELDS)).scores(query).tolist() == pytest.approx(
        plainly(corpus, query), abs=1e-5
    )


@settings(max_examples=40)
@given(corpora, queries, st.randoms())
def test_the_order_of_documents_changes_nothing(
    corpus: list[Document], query: dict[str, float], random: Any
) -> None:
    shuffled = list(corpus)
    random.shuffle(shuffled)
    first, second = (BM25F.of(build(some, FIELDS)).scores(query) for some in (corpus, shuffled))
    assert first.tobytes() == second.tobytes()


@settings(max_examples=40)
@given(corpora, st.sampled_from(WORDS))
def test_one_more_occurrence_never_lowers_a_score_when_lengths_do_not_count(
    corpus: list[Document], word: str
) -> None:
    weights = [FieldWeight(field, 1.0, 0.0) for field in FIELDS]
    first = corpus[0]
    more = dict(first.counts["path"]) | {word: first.counts["path"].get(word, 0) + 1}
    raised = [Document(first.name, "", {**first.counts, "path": more}), *corpus[1:]]
    had = any(word in first.counts[field] for field in FIELDS)
    before = BM25F.of(build(corpus, FIELDS), weights).scores({word: 1.0})[0]
    after = BM25F.of(build(raised, FIELDS), weights).scores({word: 1.0})[0]
    assert after > before if not had else after >= before


def same(first: Postings, second: Postings) -> bool:
    kept, other = first.stored("x"), second.stored("x")
    return kept.keys() == other.keys() and all(
        np.array_equal(np.asarray(kept[name]), np.asarray(other[name])) for name in kept
    )


@settings(max_examples=40)
@given(corpora, st.data())
def test_a_build_on_unchanged_postings_equals_one_build_of_all(
    corpus: list[Document], data: st.DataObject
) -> None:
    gone = data.draw(st.sets(st.sampled_from([one.name for one in corpus])))
    stays = without(build(corpus, FIELDS), gone)
    assert same(stays, build([one for one in corpus if one.name not in gone], FIELDS))
    back = build([one for one in corpus if one.name in gone], FIELDS, unchanged=stays)
    assert same(back, build(corpus, FIELDS))


def test_postings_come_back_from_what_is_stored() -> None:
    built = build(CORPUS, FIELDS)
    back = Postings.restored(built.stored("text"), "text")
    assert same(back, built)
    assert back.documents_with(["jwt"], ["path", "symbols"]).tolist() == [True, False, False]
    assert back.documents_with(["jwt"], FIELDS).tolist() == [True, True, False]
    assert back.positions == {"a": 0, "b": 1, "c": 2}


def test_no_documents_and_documents_without_words() -> None:
    assert BM25F.of(build([], FIELDS)).scores({"a": 1.0}).shape == (0,)
    assert BM25F.of(build([document("a", path={}, symbols={}, imports={})], FIELDS)).scores(
        {"a": 1.0}
    ).tolist() == [0]


def test_a_name_that_stands_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        build([CORPUS[0], CORPUS[0]], FIELDS)
    with pytest.raises(ValueError, match="twice"):
        build([CORPUS[0]], FIELDS, unchanged=build(CORPUS, FIELDS))
