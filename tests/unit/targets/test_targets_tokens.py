"""Words of code and of requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_targets.text.tokens import LONGEST, STOP_WORDS, SYNONYMS, Tokenizer


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("src/auth/jwt-token.ts", ["src", "auth", "jwt", "token", "ts"]),
        ("parseHTTPResponse", ["parse", "http", "response"]),
        ("HTMLElement2Text", ["html", "element2", "text"]),
        ("sha256 a b c", ["sha256"]),
        ("snake_case_name", ["snake", "case", "name"]),
        ("the user is in the list", ["user", "list"]),
        ("getUser", ["user", "getuser"]),  # "get" stops: the compound stays
        ("toDo", ["todo"]),  # all parts stop: the compound alone
        ("isX", []),  # the compound would be three characters
        ("validateUser", ["validate", "user"]),  # nothing stopped, no compound
        ("get", []),
        ("Übergabe größe", ["übergabe", "größe"]),
        ("", []),
        ("?!", []),
    ],
)
def test_terms(text: str, terms: list[str]) -> None:
    assert Tokenizer().terms(text) == terms


def test_stems_join_forms_of_a_word_but_leave_compounds_alone() -> None:
    stemmed = Tokenizer(stem=True)
    assert stemmed.terms("parsing parsed parses") == ["pars"] * 3
    assert stemmed.terms("getResponses") == ["respons", "getresponses"]


def test_identifiers_stand_beside_their_parts_in_either_spelling() -> None:
    whole = Tokenizer(identifiers=True)
    assert whole.terms("parse_body") == ["parse", "body", "parsebody"]
    assert whole.terms("parseBody") == ["parse", "body", "parsebody"]
    assert whole.terms("getUser") == ["user", "getuser"]
    assert whole.terms("_private session") == ["private", "session"]


def test_a_query_weighs_what_only_a_synonym_brings_at_three_tenths() -> None:
    weights = Tokenizer().query("auth database auth")
    assert weights["auth"] == weights["database"] == 1
    assert weights["login"] == weights["sql"] == 0.3
    assert Tokenizer().query("auth login")["login"] == 1


def test_synonyms_are_symmetric_and_can_be_matched() -> None:
    for word, others in SYNONYMS.items():
        assert word not in others
        assert all(word in SYNONYMS[other] for other in others)
        assert Tokenizer().terms(word) == [word]


def test_encoded_data_is_no_word() -> None:
    assert Tokenizer(identifiers=True).terms("f" * (LONGEST + 1) + " kept") == ["kept"]


@given(st.lists(st.text(max_size=40), max_size=5))
def test_counting_texts_is_counting_their_terms(texts: list[str]) -> None:
    one = Tokenizer(stem=True, identifiers=True)
    counted = one.count(texts)
    assert sorted(counted.elements()) == sorted(term for text in texts for term in Tokenizer.terms(one, text))


@given(st.text(max_size=200))
def test_terms_are_lower_case_words_of_two_characters(text: str) -> None:
    for term in Tokenizer().terms(text):
        assert len(term) >= 2
        assert term not in STOP_WORDS
        assert "_" not in term
