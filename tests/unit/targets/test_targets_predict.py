"""When files are named, and the reasons for naming none."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.unit.targets.sources_fixture import source_files
from trialfleet_targets.index import Index, build
from trialfleet_targets.predict import named, predict
from trialfleet_targets.prediction import Abstention
from trialfleet_targets.snapshot import Snapshot

PROJECT = {
    "shop/session.py": "class Session:\n    def renew_cookie(self):\n        return expire(1)\n",
    "shop/prices.py": "def total(prices):\n    return sum(prices)\n",
    "shop/util.py": "def slug(text):\n    return text\n",
    "mail/util.py": "def send(letter):\n    return letter\n",
    "tests/test_session.py": "def test_renew_cookie():\n    pass\n",
}


def index(project: dict[str, str] = PROJECT) -> Index:
    return build(Snapshot("c" * 40, 1_700_000_000, source_files(project), (), ()), methods=("default", "clarte"))


@pytest.fixture(scope="module")
def shop() -> Index:
    return index()


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("", Abstention.TOO_SHORT),
        ("fix it   ", Abstention.TOO_SHORT),
        ("ok, thanks, go on please!", Abstention.TRIVIAL),
        ("Run all tests, please", Abstention.TRIVIAL),
        ("The cookie in shop/session.py expires", Abstention.NAMES_A_TARGET),
        ("prices.py:3 adds wrongly", Abstention.NAMES_A_TARGET),
        ("qwertz uiopü asdfgh", Abstention.NOTHING_MATCHES),
    ],
)
def test_reasons(shop: Index, prompt: str, reason: Abstention) -> None:
    said = predict(shop, prompt)
    assert said.abstained is reason
    assert said.targets == ()
    assert said.why


def test_names_files_that_fit(shop: Index) -> None:
    said = predict(shop, "Renew the cookie of the session before it expires")
    assert said.abstained is None
    assert said.targets[0].path == "shop/session.py"
    assert 1 <= len(said.targets) <= 5
    assert said.confidence is not None
    assert 0 < said.confidence < 1
    assert (said.method, said.commit) == ("default", "c" * 40)


def test_the_published_method_answers_too(shop: Index) -> None:
    said = predict(shop, "Session cookie", method="clarte")
    assert said.targets[0].path == "shop/session.py"
    assert said.confidence is None


def test_without_source_nothing_is_named() -> None:
    only_tests = index({"tests/test_session.py": PROJECT["tests/test_session.py"]})
    assert predict(only_tests, "Renew the cookie of the session").abstained is Abstention.NO_SOURCE
    assert predict(index({}), "Renew the cookie of the session").abstained is Abstention.NO_SOURCE


def test_a_method_that_does_not_exist(shop: Index) -> None:
    with pytest.raises(ValueError, match="no method 'moon'"):
        predict(shop, "Renew the cookie of the session", method="moon")


def test_what_is_ruled_out_is_not_named(shop: Index) -> None:
    said = predict(shop, "Renew the cookie of the session, but do not edit session.py")
    assert said.abstained is not Abstention.NAMES_A_TARGET
    assert "shop/session.py" not in [one.path for one in said.targets]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("see shop/util.py", "shop/util.py"),
        ("see ./shop/util.py.", "shop/util.py"),
        (r"see shop\util.py", "shop/util.py"),
        ('File "/srv/app/shop/util.py", line 3', "shop/util.py"),
        ("see util.py", None),  # two files have that name
        ("see other.py", None),
        ("see tests/test_session.py", None),  # no target
        ("instead of shop/util.py", None),
        ("Do not touch prices.py. Fix session.py", "shop/session.py"),
    ],
)
def test_naming(text: str, first: str | None) -> None:
    assert named(text, [path for path in PROJECT if not path.startswith("tests/")])[0] == first


def test_a_text_without_names_looks_at_no_path() -> None:
    class Unread(list[str]):
        def __iter__(self) -> Iterator[str]:
            raise AssertionError("looked at")

    assert named("Renew the cookie", Unread(PROJECT)) == (None, frozenset())


def test_a_long_prompt_takes_no_time(shop: Index) -> None:
    for prompt in ("a" * 2**20, "ok " * 2**18, "x/" * 2**19, "Renew the cookie\n" * 2**16):
        began = time.process_time()
        predict(shop, prompt)
        assert time.process_time() - began < 2
