"""Scripts that run inside a sandbox: as files, by an interpreter that has none of our packages."""

from pathlib import Path

FOLDER = Path(__file__).resolve().parent
