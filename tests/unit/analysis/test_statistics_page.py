"""docs/explanation/statistics.md and its how-to: examples run, functions exist, figures are the code's."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from tests.bench import bench_comparisons, bench_coverage
from tests.support import ledgers as made
from trialfleet_analysis.report.campaign_report import Report
from trialfleet_ledger.designs.contrast import Primary
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_statistics.multiplicity import Attainability

DOCS = Path(__file__).parents[3] / "docs"
PAGE, HOW_TO = DOCS / "explanation" / "statistics.md", DOCS / "how-to" / "use-the-statistics-from-python.md"
MODULES = (
    "intervals", "comparisons", "continuous", "timing", "missing", "multiplicity", "repeats", "drift", "power",
    "pooling", "trend",
)  # fmt: skip
NAMED = re.compile(rf"`({'|'.join(MODULES)})\.(\w+)`")


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def rows(heading: str) -> list[list[str]]:
    """The cells of a section's table, without its head."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def functions(module: str) -> set[str]:
    """The public ones."""
    of = importlib.import_module(f"trialfleet_statistics.{module}")
    names = getattr(of, "__all__", [name for name in vars(of) if not name.startswith("_")])
    found = {name: getattr(of, name) for name in names}
    return {
        name
        for name, one in found.items()
        if inspect.isfunction(one) and one.__module__.startswith(f"trialfleet_statistics.{module}")
    }


@pytest.mark.parametrize("page", [PAGE, HOW_TO], ids=["statistics", "how-to"])
def test_the_examples_give_what_the_page_says(page: Path) -> None:
    shown = "\n".join(block for block in blocks(page) if block.startswith(">>>"))
    test = doctest.DocTestParser().get_doctest(shown, {}, page.name, str(page), 0)
    ran = doctest.DocTestRunner().run(test)
    assert (ran.failed, ran.attempted >= 10) == (0, True)


def test_every_function_that_is_named_exists() -> None:
    for module, name in NAMED.findall(PAGE.read_text(encoding="utf-8")):
        assert name in functions(module), f"{module}.{name}"


def test_every_public_function_has_its_place_on_the_page() -> None:
    told = set(NAMED.findall(PAGE.read_text(encoding="utf-8")))
    assert {(module, name) for module in MODULES for name in functions(module)} == told


def test_what_one_cell_covers_is_what_the_bench_holds_it_to() -> None:
    told = {name: [float(value) for value in values] for name, *values in rows("A cell")}
    assert told == {
        method: [covers[place] for covers in bench_coverage.ONE_CELL.values()]
        for place, method in enumerate(("Wilson", "Clopper-Pearson", "Jeffreys"))
    }


@pytest.mark.parametrize("row", rows("Measured"), ids=lambda row: row[0])
def test_what_was_measured_is_said_where_the_method_is(row: list[str]) -> None:
    """In its docstring, or in the bench that measures it again."""
    method, _, figures = row
    (module, name), *_ = NAMED.findall(method)
    function = getattr(importlib.import_module(f"trialfleet_statistics.{module}"), name)
    benches = map(inspect.getsource, (bench_coverage, bench_comparisons))
    said = [inspect.getdoc(function) or "", *(source for source in benches if name in source)]
    for figure in re.findall(r"\.\d+", figures):
        assert re.search(rf"{re.escape(figure)}(?!\d)", " ".join(said)), figure


def test_the_labels_are_those_of_the_report() -> None:
    told = [label.replace("k tasks", "others") for label, _ in rows("Each task, and what it could have shown")]
    assert told == [label.value for label in Attainability if label is not Attainability.ALONE]


@pytest.fixture(scope="module")
def by_hand(store: DirectoryStore) -> dict[str, Any]:
    """What the how-to's examples on a store leave."""
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(store.root.parent)
        for block in (block for block in blocks(HOW_TO) if not block.startswith(">>>")):
            exec(compile(block, HOW_TO.name, "exec"), names)
    return names


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DirectoryStore:
    treatment, control = "intent_layer_preamble", "intent_layer"
    plan = made.plan(
        tuple(made.TASKS),
        (control, treatment),
        reps=6,
        primary=Primary(treatment=treatment, control=control),
        no_oracle=("pdm-lock-groups-order",),
    )
    return made.write(tmp_path_factory.mktemp("how-to") / "runs", plan, made.lifelike(4))


@pytest.fixture(scope="module")
def report(store: DirectoryStore) -> Report:
    return made.read(store)


def test_the_contrast_by_hand_is_the_report_s(by_hand: dict[str, Any], report: Report) -> None:
    assert report.headline.tasks == by_hand["both"].sum() == 5
    assert report.headline.these_tasks.test == by_hand["test"]


def test_the_robustness_by_hand_is_the_report_s(by_hand: dict[str, Any], report: Report) -> None:
    robust = by_hand["robust"]
    found = next(one for one in report.analysis.robustness if one.estimand == "these_tasks")
    assert robust.missing == found.missing_treatment + found.missing_control > 0
    measured, *on_first_runs = (one.p_value for one in found.scenarios)
    assert measured == by_hand["test"].p_value
    assert [one.p_value for one in robust.scenarios] == on_first_runs
    assert robust.tipping_point == found.tipping_point


def test_the_turns_by_hand_are_the_report_s(by_hand: dict[str, Any], report: Report) -> None:
    """Whose seeds are others."""
    interval, permuted = by_hand["interval"], by_hand["permuted"]
    found = next(one for one in report.analysis.measures if one.measure == "turns")
    assert interval.estimate == pytest.approx(found.mean_difference.estimate)
    assert permuted.statistic == found.permutation.statistic
    assert permuted.p_value == pytest.approx(found.permutation.p_value, abs=0.03)
    assert interval.n == found.trials_treatment + found.trials_control
