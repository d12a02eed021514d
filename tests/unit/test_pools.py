"""Which files of tests run beside which, in which order, and what is recorded of a run."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.costs import Cost, merge_costs, read_costs, write_costs
from tests.failures import MOST_REPEATED, SUFFIX, FailurePlugin, may_repeat, read_failures
from tests.pools import Pool, Running, divide_files, names_why, select_files

FOLDERS = ("cluster", "integration", "integration/store", "unit")
FILES = st.sampled_from([f"tests/{folder}/test_{n}.py" for folder in FOLDERS for n in range(5)])
SECONDS = st.floats(0, 900)
COSTS = st.dictionaries(FILES, st.builds(Cost, SECONDS, SECONDS))


@given(st.sets(FILES), COSTS)
def test_each_file_is_in_one_pool_units_first_then_the_longest(files: set[str], costs: dict[str, Cost]) -> None:
    pools = divide_files(files, costs)
    assert sorted(file for pool in pools for file in pool.files) == sorted(files)
    for pool in pools:
        places = [
            (file.startswith("tests/unit/"), costs[file].seconds if file in costs else float("inf"))
            for file in pool.files
        ]
        assert places == sorted(places, reverse=True)


def test_what_needs_servers_is_in_a_pool_that_starts_when_they_are_free() -> None:
    pools = {pool.name: pool.files for pool in divide_files(select_files([]), {})}
    assert "tests/integration/test_hosting.py" in pools["local"]
    assert "tests/integration/test_campaign_on_s3.py" in pools["stores"]
    assert "tests/integration/test_revoked_key_here.py" in pools["stores"]
    assert {file.split("/")[1] for name in ("pods", "controllers") for file in pools[name]} == {"cluster"}
    assert "tests/cluster/test_submit.py" in pools["controllers"]
    assert "tests/cluster/test_kept_pods.py" in pools["pods"]


def test_paths_choose_files_and_folders() -> None:
    here = "tests/unit/test_pools.py"
    assert select_files([here]) == [here]
    assert here in select_files(["tests/unit/"])
    assert here in select_files([])
    assert select_files(["tests/unit/test_pools"]) == []
    assert set(select_files(["tests/unit"])) < set(select_files([]))


@given(COSTS, COSTS)
def test_a_record_keeps_what_a_run_did_not_change(known: dict[str, Cost], measured: dict[str, Cost]) -> None:
    merged = merge_costs(known, measured)
    assert merged.keys() == known.keys() | measured.keys()
    for file, cost in merged.items():
        assert cost == (known[file] if file not in measured else cost)
        assert file not in measured or not cost.differs(measured[file])


def test_small_and_relative_changes_stay_out_of_the_record() -> None:
    assert not Cost(1.0, 1.0).differs(Cost(3.5, 1.0))
    assert not Cost(100.0, 50.0).differs(Cost(190.0, 30.0))
    assert Cost(100.0, 50.0).differs(Cost(100.0, 20.0))


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    costs = {"tests/unit/test_b.py": Cost(1.5, 0.3), "tests/unit/test_a.py": Cost(0.0, 12.0)}
    write_costs(costs, tmp_path / "costs.tsv")
    assert read_costs(tmp_path / "costs.tsv") == costs
    assert read_costs(tmp_path / "none.tsv") == {}


def _report(name: str, outcome: Literal["passed", "failed"]) -> pytest.TestReport:
    return pytest.TestReport(name, ("file", 1, "test"), {}, outcome, "E  why", "call")


def test_the_tests_that_failed_are_left_for_the_run_of_all_pools(tmp_path: Path) -> None:
    costs = [tmp_path / f"{name}.tsv" for name in ("pods", "stores", "crashed")]
    for path in costs[:2]:
        plugin = FailurePlugin(path)
        plugin.pytest_runtest_logreport(_report(f"tests/cluster/{path.stem}.py::test_a[x y]", "failed"))
        plugin.pytest_runtest_logreport(_report("tests/cluster/test_b.py::test_b", "passed"))
        plugin.pytest_sessionfinish()
    assert read_failures(costs) == ["tests/cluster/pods.py::test_a[x y]", "tests/cluster/stores.py::test_a[x y]"]


def test_only_a_few_tests_that_wait_for_others_run_once_more() -> None:
    few = ["tests/cluster/test_a.py::test_a", "tests/integration/test_b.py::test_b"]
    assert may_repeat(few)
    assert not may_repeat([])
    assert not may_repeat([*few, "tests/unit/test_c.py::test_c"])
    assert not may_repeat(few * MOST_REPEATED)


@pytest.mark.parametrize(
    ("code", "named", "why"),
    [(0, "", True), (1, "a\n", True), (1, "", False), (2, "a\n", False), (-9, "a\n", False)],
)
def test_a_pool_that_ended_otherwise_is_not_passed_by_what_is_repeated(
    tmp_path: Path, code: int, named: str, why: bool
) -> None:
    costs = tmp_path / "pods.tsv"
    costs.with_suffix(SUFFIX).write_text(named)
    with subprocess.Popen(["true"]) as process:
        assert names_why(Running(Pool("pods", ()), process, None, costs), code) is why
