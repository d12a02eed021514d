"""Proof of `make affected`: which product modules each file of tests executes, the programs it starts included.

`python -m tests.executed [WHAT tests.pools IS GIVEN]` runs tests so, and prints each module that a file of tests
executed although `tests.affected` says that no change of the module reaches that file. Needs an environment of
Python 3.12 with requirements/dev.txt and this checkout: its sys.monitoring reports a function once and costs
nothing afterwards. Not recorded: programs from which a sandbox hides the records.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOOK = ROOT / "tests/support/execution_hook.py"
RECORDS = Path(tempfile.gettempdir(), "trialfleet-executed")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Of the plugin that this module is in the workers."""
    test = item.nodeid.split("::")[0]
    recorder = sys.modules[HOOK.stem].__dict__["recorder"]
    if recorder.test != test.replace("/", "|"):
        recorder.begin(test)
    return (yield)


def main(arguments: list[str]) -> int:
    """Exit code: 1 where a module was executed whose change would not have reached the file of tests."""
    shutil.rmtree(RECORDS, ignore_errors=True)
    for name in ("executed", "workers"):
        (RECORDS / name).mkdir(parents=True)
    hook = Path(sysconfig.get_path("purelib"), "zz_trialfleet_executed.pth")
    load = f"sys.path.insert(0, {str(HOOK.parent)!r}); import {HOOK.stem}; del sys.path[0]"
    hook.write_text(f"import sys; exec({load!r})\n", encoding="utf-8")
    try:
        subprocess.run(
            [sys.executable, "-m", "tests.pools", "-p", "tests.executed", *arguments], cwd=ROOT, check=False
        )
    finally:
        hook.unlink()
    return print_unreached(RECORDS / "executed")


def print_unreached(records: Path) -> int:
    """Each module that a file of tests executed and does not reach, with how many files were compared."""
    from tests.affected import Imports, affected_tests

    imports = Imports()
    reached: dict[str, set[str]] = {}
    unreached = 0
    files = sorted(records.iterdir())
    for record in files:
        test = record.name.replace("|", "/")
        for path in sorted(set(record.read_text(encoding="utf-8").split("\n")) - {""}):
            file = path.removeprefix(f"{ROOT}/")
            if file not in imports.files:
                continue
            if file not in reached:
                reached[file] = affected_tests([file], imports)
            if test not in reached[file]:
                unreached += 1
                print(f"{test} executes {file}")
    print(f"{len(files)} files of tests compared, {len(reached)} modules executed, {unreached} not reached")
    return 1 if unreached else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
