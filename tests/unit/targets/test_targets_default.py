"""The method `default` on small repositories, and what it is made of against numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.targets.clarte_fixture import commit
from tests.unit.targets.sources_fixture import source_files
from trialfleet_targets.default import history_index
from trialfleet_targets.default.features import NAMES, FeatureExtractor
from trialfleet_targets.default.functions import Functions
from trialfleet_targets.default.history_index import HistoryScorer
from trialfleet_targets.default.prepare import prepare
from trialfleet_targets.default.ranking import Default
from trialfleet_targets.default.request import Request
from trialfleet_targets.default.weights import (
    Confidence,
    FeatureWeights,
    ShippedWeights,
    log_odds,
    shipped,
    softmax,
)
from trialfleet_targets.index import build
from trialfleet_targets.snapshot import PastCommit, Snapshot

PROJECT = {
    "shop/session.py": "class Session:\n    def renew_cookie(self):\n        return expire(1)\n",
    "shop/prices.py": "def total(prices):\n    return sum(prices)\n\ndef rounding(total):\n    return total\n",
    "shop/mail.py": "def send(letter):\n    return letter\n",
    "tests/test_session.py": "from shop.session import Session\n\ndef test_renew_cookie():\n    Session()\n",
}
HISTORY = (
    commit(1, "shop/mail.py", subject="Letters are sent at night"),
    commit(2, "shop/prices.py", "shop/mail.py", subject="Invoices go to customers"),
    commit(3, "shop/session.py", subject="Log in"),
)


def of(project: dict[str, str], history: tuple[PastCommit, ...] = HISTORY) -> Snapshot:
    return Snapshot("c" * 40, 1_700_000_000, source_files(project), (), history)


def test_a_request_falls_into_parts() -> None:
    request = Request.of("fix(router): parse body twice\n\nSee `parseBody` in the body")
    assert request.core.keys() == {"pars", "bodi", "twice"}
    assert request.area.keys() == {"router"}
    assert request.subject.keys() == {"pars", "bodi", "twice", "router"}
    assert request.all["router"] == 1.5  # an area counts half again
    assert request.all["bodi"] == 1.25  # in the first line and in the rest
    assert request.all["parsebody"] == 0.5  # only in the rest
    assert request.whole.keys() == {"parsebody"}
    assert request.quoted.keys() == {"pars", "bodi", "parsebody"}
    assert {"parsebody", "bodytwice"} <= request.joined.keys()


def test_a_plain_prompt_is_its_first_line() -> None:
    request = Request.of("Parse the body")
    assert request.area == {}
    assert request.all == request.core == {"pars": 1.0, "bodi": 1.0}


def test_definitions_by_hand() -> None:
    """BM25 with k1 1.2 and b .75: one term, twice in a body of four terms where the mean is two."""
    own = Functions(
        files=np.array([0, 1], np.int32), body=np.array([0, 2], np.int32), terms=np.array([5, 7], np.int32),
        counts=np.array([2, 2], np.uint8), name=np.array([0, 1], np.int32), names=np.array([5], np.int32),
    )  # fmt: skip
    weights = np.zeros(9)
    weights[5] = 3.0
    body, name = own.scores(0, weights, mean_length=2.0)
    assert body == pytest.approx([3.0 * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 4 / 2))])
    assert name == pytest.approx([3.0 * 1 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 1 / 3))])


def test_the_past_by_hand() -> None:
    history_scorer = HistoryScorer(
        history_index.prepare(HISTORY, {"shop/mail.py": 0, "shop/prices.py": 1, "shop/session.py": 2}), 3
    )
    assert history_scorer.last.tolist() == [0, 1, 2]
    assert history_scorer.times.tolist() == [2, 1, 1]
    half = 1 / math.sqrt(2)  # the share of a commit that changed two paths
    assert history_scorer.decayed(1.0) == pytest.approx([1 + half / 2, half / 2, 1 / 4])
    assert history_scorer.of_best(np.array([4.0, 2.0, 1.0]), best=2) == pytest.approx([4 + 2 * half, 2 * half, 0])
    assert history_scorer.best(np.array([1.0, 2.0, 3.0])) == pytest.approx([2 * half, 2 * half, 3])
    assert history_scorer.messages({"letter": 1.0}).argmax() == 0
    idf, mean = math.log(1 + 1.5 / 2.5), (2 + 2 * half) / 3
    norms = [1.2 * (0.25 + 0.75 * length / mean) for length in (1 + half, half)]
    invoices = [idf * half * 2.2 / (half + norm) for norm in norms]
    assert history_scorer.profile({"invoic": 1.0, "unheard": 1.0}) == pytest.approx([*invoices, 0])


def test_a_file_that_moved_keeps_its_past() -> None:
    moved = PastCommit("m", 5, "Move", "", ("a/x.py", "b/x.py"), added=("b/x.py",), deleted=("a/x.py",))
    older = PastCommit("o", 4, "Write", "", ("a/x.py",))
    found = history_index.prepare((moved, older), {"b/x.py": 0})
    assert list(zip(found.commit.tolist(), found.file.tolist(), strict=True)) == [(0, 0), (0, 0), (1, 0)]


def test_two_of_one_name_are_not_taken_for_a_move() -> None:
    moved = PastCommit(
        "m", 5, "Move", "", ("a/x.py", "b/x.py", "c/x.py"), added=("b/x.py", "c/x.py"), deleted=("a/x.py",)
    )
    older = PastCommit("o", 4, "Write", "", ("a/x.py",))
    assert history_index.prepare((moved, older), {"b/x.py": 0, "c/x.py": 1}).commit.tolist() == [0, 0]


def test_ranks_the_file_that_says_it_and_never_a_test() -> None:
    ranked = Default(build(of(PROJECT))).rank("Renew the cookie before it expires")
    assert ranked[0].path == "shop/session.py"
    assert (ranked[0].symbols[0].name, ranked[0].symbols[0].line) in [("renew_cookie", 2), ("Session", 1)]
    assert "tests/test_session.py" not in [one.path for one in ranked]
    assert list(ranked[0].parts) == sorted(ranked[0].parts, key=lambda part: -part[1])
    assert ranked[0].parts[0][1] > 0


def test_a_message_of_the_past_finds_what_no_word_of_the_code_does() -> None:
    ranked = Default(build(of(PROJECT))).ranking("Customers miss invoices").targets
    assert ranked[0].path in ("shop/prices.py", "shop/mail.py")
    assert dict(ranked[0].parts)["messages"] > 0
    assert not Default(build(of(PROJECT, ()))).rank("Customers miss invoices")


@settings(max_examples=15, deadline=None)
@given(st.permutations(sorted(PROJECT)))
def test_the_order_of_files_changes_nothing(order: list[str]) -> None:
    shuffled = Default(build(of({path: PROJECT[path] for path in order})))
    assert shuffled.ranking("round the total of the session's prices") == Default(build(of(PROJECT))).ranking(
        "round the total of the session's prices"
    )


def test_no_files_no_past() -> None:
    assert Default(build(of({}, ()))).rank("Renew the cookie of the session") == ()
    assert Default(build(of(PROJECT, ()))).rank("Renew the cookie of the session")[0].path == "shop/session.py"


def test_every_feature_is_finite_and_named() -> None:
    found = FeatureExtractor(prepare(of(PROJECT))).candidates(
        "fix(shop): `renew_cookie` of the session\n\nand prices"
    )
    assert found.values.shape == (3, len(NAMES))
    assert np.isfinite(found.values).all()
    assert len(set(NAMES)) == len(NAMES)


def test_what_is_shipped_is_read() -> None:
    assert np.count_nonzero(shipped().by_feature) > 10
    assert 0 < shipped().confidence.abstains_below < 1


def test_weights_of_no_feature_are_refused() -> None:
    none = Confidence(intercept=0, mass=0, cover=0, files=0, abstains_below=0)
    with pytest.raises(ValueError, match="no such feature: moon"):
        FeatureWeights.of(ShippedWeights(weights={"moon": 1.0}, confidence=none, trained={}))


def test_confidence_by_hand() -> None:
    fitted = Confidence(intercept=1.0, mass=0.5, cover=2.0, files=-1.0, abstains_below=0.5)
    weights = FeatureWeights(np.zeros(len(NAMES)), fitted)
    odds = 1 + 0.5 * math.log(0.8 / 0.2) + 2 * 0.25 - math.log(10)
    said = weights.hit_probability(np.array([0.4, 0.2, 0.1, 0.05, 0.05, 0.2]), cover=0.25, files=9)
    assert said == pytest.approx(1 / (1 + math.exp(-odds)))
    assert softmax(np.array([math.log(3), 0.0])) == pytest.approx([0.75, 0.25])
    assert math.isfinite(log_odds(1.0))
