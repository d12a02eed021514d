"""What several tests of the report read and leave as it is."""

from __future__ import annotations

import pytest

from tests.support.ledgers import lifelike, lifelike_plan, read, write
from trialfleet_analysis.report.campaign_report import Report


@pytest.fixture(scope="session")
def lively(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Of a campaign that looks like a real one."""
    return read(write(tmp_path_factory.mktemp("lively"), lifelike_plan(reps=4), lifelike()), "preamble-vs-pull")
