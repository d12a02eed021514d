"""Where a command's files go when nobody says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialfleet_analysis.source import CampaignSource, find_source

FILE = Path(__file__).parents[3] / "tasks" / "quickstart" / "demo.yaml"  # its store is ../../runs


def test_beside_the_campaign_by_a_plain_path() -> None:
    assert find_source(str(FILE), None).default_folder() == FILE.parents[2] / "runs" / "demo-report"


def test_a_folder_that_is_a_link_is_left_as_it_is_written(tmp_path: Path) -> None:
    """`link/..` is the parent of what the link leads to, not of the link."""
    (tmp_path / "far" / "campaigns").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "campaigns")
    folder = CampaignSource("../runs", "demo", base=tmp_path / "link").default_folder()
    assert folder == tmp_path / "link" / ".." / "runs" / "demo-report"
    assert folder.resolve() == tmp_path.resolve() / "far" / "runs" / "demo-report"


def test_a_link_that_changes_nothing_stays_in_the_path(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    folder = CampaignSource("../runs", "demo", base=tmp_path / "link" / "campaigns").default_folder()
    assert folder == tmp_path / "link" / "runs" / "demo-report"


def test_a_bucket_has_no_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    assert CampaignSource("s3://bucket/runs", "demo").default_folder() == Path("demo-report")
