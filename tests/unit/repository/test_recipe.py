"""An image's environments are named by what they are made of, whatever machine planned them."""

from __future__ import annotations

import pytest

from trialfleet_ledger.records.environment import PythonEnvironmentRef
from trialfleet_repository.environments.environment import recipe

REF = PythonEnvironmentRef(digest="0" * 64, python="3.11", lock="1" * 64, setup=(("true",),))


def test_the_planning_machine_is_no_part_of_it() -> None:
    assert recipe(REF) == recipe(REF.model_copy(update={"digest": "f" * 64}))


@pytest.mark.parametrize(
    "change",
    [
        {"python": "3.12"},
        {"lock": "2" * 64},
        {"setup": ()},
    ],
)
def test_everything_else_is(change: dict[str, object]) -> None:
    assert recipe(REF) != recipe(REF.model_copy(update=change))


def test_projects_of_all_versions_share_their_packages() -> None:
    named = {"metadata": {"shop-2.0.dist-info/METADATA": "Name: shop"}}
    assert recipe(REF) == recipe(REF.model_copy(update=named))
