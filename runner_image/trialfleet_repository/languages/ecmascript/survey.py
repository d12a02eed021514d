"""What tells JavaScript and TypeScript in a repository."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from trialfleet_ledger.untrusted import json_object
from trialfleet_repository.languages.survey_traits import SurveyTraits

_RUNNERS = {
    "vitest": "vitest",
    "jest": "jest",
    "mocha": "mocha",
    "react-scripts test": "react-scripts",
    "bun test": "bun test",
}


def _test_runners(name: str, data: bytes) -> Iterable[str]:
    if name != "package.json":
        return ()
    text = _scripts_and_dependencies(data)
    return {runner for word, runner in _RUNNERS.items() if word in text}


def _scripts_and_dependencies(package: bytes) -> str:
    facts = json_object(package)
    return json.dumps([facts.get(key) for key in ("scripts", "devDependencies", "dependencies")])


SURVEY = SurveyTraits(
    {
        ".ts": "TypeScript",
        ".tsx": "TypeScript",
        ".js": "JavaScript",
        ".jsx": "JavaScript",
        ".mjs": "JavaScript",
    },
    ("package.json",),
    ("package-lock.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb"),
    _test_runners,
    re.compile(r"\b(?:(?:npm|pnpm|yarn|bun)(?: run)? test|vitest|jest)\b|\breact-scripts test\b"),
)
