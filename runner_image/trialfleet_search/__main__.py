"""`python -I <this folder> <config.json>`: one search."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    sys.path[0] = str(here.parent)  # so that this folder is a package, under its own name
    sys.exit(importlib.import_module(f"{here.name}.entry").main(sys.argv[1:]))
