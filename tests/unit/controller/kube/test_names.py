"""Names and labels that two controllers agree on."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from trialfleet_controller.backends.kube import names

UIDS = st.text("0123456789abcdef", min_size=32, max_size=32)
TRIALS = st.text("abcdefghijklmnopqrstuvwxyz234567", min_size=26, max_size=26)


@given(uid=UIDS, trial=TRIALS, attempt=st.integers(1, 10_000))
def test_a_pods_name_is_a_dns_label_that_says_its_attempt(uid: str, trial: str, attempt: int) -> None:
    name = names.pod(uid, trial, attempt)
    assert re.fullmatch(r"t-[a-z2-7]{16}-a[1-9][0-9]*", name)
    assert len(name) <= 63
    assert name == names.pod(uid, trial, attempt)


@given(
    uid=UIDS,
    trials=st.lists(TRIALS, min_size=2, max_size=2, unique=True),
    attempts=st.tuples(*[st.integers(1, 99)] * 2),
)
def test_another_campaign_trial_or_attempt_has_another_name(
    uid: str, trials: list[str], attempts: tuple[int, int]
) -> None:
    first, second = trials
    assert names.pod(uid, first, 1) != names.pod(uid, second, 1)
    assert names.pod(uid, first, 1) != names.pod(f"{uid[:-1]}x", first, 1)
    assert (names.pod(uid, first, attempts[0]) == names.pod(uid, first, attempts[1])) == (
        attempts[0] == attempts[1]
    )


@given(uid=UIDS, trial=TRIALS, attempt=st.integers(1, 10_000))
def test_labels_are_valid_and_matched_by_their_selector(uid: str, trial: str, attempt: int) -> None:
    labels = names.labels(uid, trial, attempt)
    assert all(re.fullmatch(r"[a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?", value) for value in labels.values())
    wanted = dict(part.split("=") for part in names.selector(uid).split(","))
    assert wanted.items() <= labels.items()
