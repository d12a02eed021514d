"""What tells Python in a repository."""

from __future__ import annotations

import re
from collections.abc import Iterable

from trialfleet_repository.languages.survey_traits import SurveyTraits


def _test_runners(name: str, data: bytes) -> Iterable[str]:
    if name in ("pytest.ini", "conftest.py") or (name == "pyproject.toml" and b"pytest" in data):
        return ("pytest",)
    return (name.removesuffix(".ini").removesuffix("file.py"),) if name in ("tox.ini", "noxfile.py") else ()


SURVEY = SurveyTraits(
    {".py": "Python"},
    ("pyproject.toml", "setup.py", "setup.cfg"),
    ("uv.lock", "pdm.lock", "poetry.lock", "pylock.toml", "Pipfile.lock"),
    _test_runners,
    re.compile(r"\b(?:pytest|tox|nox|unittest)\b"),
)
