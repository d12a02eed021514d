"""`make bench`: every figure, measured here and now, beside its goal. Names as arguments choose some."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.figure import Figure


def main(chosen: list[str]) -> int:
    names = chosen or sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))
    table = Table("figure", "measured", "goal", "", title="trialfleet bench")
    missed = 0
    for name in names:
        figures: list[Figure] = importlib.import_module(f"tests.bench.bench_{name}").measure()
        for figure in figures:
            missed += not figure.reached
            said = "[red]missed[/red] " if not figure.reached else ""
            table.add_row(figure.name, figure.measured, figure.wanted, said + figure.note)
    Console(width=max(Console().width, 110)).print(table)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
