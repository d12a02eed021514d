"""A provider's key that could be a word: refused when a campaign is planned."""

from __future__ import annotations

import pytest

from trialfleet_controller.planning.key_check import check_length
from trialfleet_ledger.errors import OperatorError

PROVIDER = "https://api.anthropic.com"


@pytest.mark.parametrize(("url", "key"), [(PROVIDER, "placeholder"), ("http://litellm.internal:4000", "k" * 15)])
def test_a_short_key_is_refused_and_not_shown(url: str, key: str) -> None:
    with pytest.raises(OperatorError, match=rf"has {len(key)} characters") as caught:
        check_length([key], url)
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        (PROVIDER, "k" * 16),
        ("http://127.0.0.1:4000", "sk-1234"),
        ("http://[::1]:4000", "sk-1234"),
        ("http://localhost:4000/v1", "none"),
    ],
)
def test_a_long_key_and_any_key_of_a_server_on_this_machine_are_taken(url: str, key: str) -> None:
    check_length([key], url)
