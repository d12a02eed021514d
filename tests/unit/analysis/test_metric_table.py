"""One table says what the metrics of a trial are; the record, the report and the documentation agree with it."""

from __future__ import annotations

from pathlib import Path

from trialfleet_ledger.metric_table import METRICS, REPORTED, Metric
from trialfleet_ledger.records.measurements import Metrics

PAGE = (Path(__file__).parents[3] / "docs/reference/metrics.md").read_text(encoding="utf-8")


def test_every_field_of_the_record_is_described_once() -> None:
    fields = [metric.name for metric in METRICS if not metric.parts]
    assert sorted(fields) == sorted(Metrics.model_fields)


def test_sums_are_made_of_fields_of_one_unit() -> None:
    by_name = {metric.name: metric for metric in METRICS}
    sums = [metric for metric in METRICS if metric.parts]
    assert sums
    for metric in sums:
        assert metric.name not in Metrics.model_fields
        assert {by_name[part].counted_in for part in metric.parts} == {metric.counted_in}


def test_a_yes_or_no_is_shown_as_a_share() -> None:
    for metric in METRICS:
        if not metric.parts:
            claim = "bool" in str(Metrics.model_fields[metric.name].annotation)
            assert (metric.unit == "share") == claim, metric.name


def test_labels_are_unique_and_what_is_compared_has_one() -> None:
    labels = [metric.label for metric in REPORTED]
    assert len(set(labels)) == len(labels)
    assert all(metric.label for metric in METRICS if metric.compared or metric.plot != "none")


def line(metric: Metric) -> str:
    unit = metric.counted_in or "yes or no"
    return f"| `{metric.name}` | {unit} | {metric.label or '–'} | {metric.meaning} | {metric.source} |"


def test_the_page_describes_every_metric() -> None:
    section = PAGE.split("\n## Metrics of a trial\n")[1].split("\n## ")[0]
    assert [row for row in section.splitlines() if row.startswith("| `")] == [line(metric) for metric in METRICS]
