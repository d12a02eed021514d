"""What counts as a development command: in code, and in words."""

from __future__ import annotations

import re
from itertools import pairwise

_MAKE = r"make\s+(?:-\S+\s+)*(?:test|install|lint)\b(?!['’])"
_PIP = r"(?:python[\d.]*\s+-m\s+)?pip[\d.]*\s+(?:install|uninstall|wheel|download)"
PHRASE = re.compile(
    rf"(?<![\w./-])(?:{_MAKE}|uv\s+sync\b|uv\s+run\s+(?:-|\w)|(?:uv\s+)?{_PIP}\s+(?:-|\.)|poetry\s+install\b|"
    r"npm\s+(?:install|ci|test|run)\b|(?:yarn|pnpm)\s+(?:install|test)\b|tox\s+-\w|pre-commit\s+(?:install|run)\b)"
)
_CODE = (
    rf"(?:{_MAKE}|make(?:\s+(?:-\S+\s+)*[\w./-]+|\s*$)|uv\s+(?:sync|run|pip|venv|add|tool|lock)\b|{_PIP}(?:\s+\S|\s*$)|"
    r"(?:poetry|pipenv|hatch|rye|pixi|conda|mamba)\s+"
    r"(?:install|run|sync|shell|add|update|lock|build|env|create|activate|test)\b|"
    r"pdm\s+run\s+(?:test|tests|pytest|lint|tox|nox|pre-commit|doc|docs)\b|"
    r"ansible-test\s+(?:units|sanity|integration|coverage)\b|"
    r"(?:tox|nox)(?:\s+-\S+.*|\s*$)|(?:python[\d.]*\s+-m\s+)?pytest\s+\S|"
    r"python[\d.]*\s+-m\s+(?:pytest|unittest|tox|nox|build|venv)\b|python[\d.]*\s+setup\.py\s+\w|"
    r"npm\s+(?:install|i|ci|test|run|start|build)\b|npx\s+\S|(?:yarn|pnpm|bun)(?:\s+(?:install|test|run|add|build|dev)\b|\s*$)|"
    r"cargo\s+(?:test|build|run|check)\b|go\s+(?:test|build)\b|docker(?:-compose|\s+compose|\s+build|\s+run)\b|"
    r"pre-commit(?:\s+(?:install|run)\b|\s*$)|(?:ruff|mypy|pyright|black|isort|flake8)\s+[\w./-]|"
    r"(?:sudo\s+)?(?:apt|apt-get|brew|dnf|yum|apk)\s+(?:install|update|add)\b)"
)
_LEAD = r"(?:[$>%]\s+)?(?:sudo\s+)?(?:[A-Z_][A-Z0-9_]*=\S*\s+)*"
COMMAND = re.compile(rf"(?:^|&&|\|\||;|\|)\s*{_LEAD}{_CODE}")
BARE = re.compile(rf"^\s*{_LEAD}pytest\s*(?:#.*)?$")  # a command in a fence, a name in prose
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?])(?:[\"')\]*_]*)\s+(?=[\"'(\[*_`A-Z0-9])")


def in_code(code: str) -> bool:
    """Whether a line of code, or a code span, is a development command.

    >>> in_code("cd docs && make html"), in_code("makefile = 1")
    (True, False)
    """
    return bool(COMMAND.search(code) or PHRASE.search(code))


def in_prose(sentence: str) -> bool:
    """Whether a sentence tells to run one: in a code span, or in words.

    >>> in_prose("Run `tox` first."), in_prose("Then make test again."), in_prose("We make tests fast.")
    (True, True, False)
    """
    return any(in_code(span[2].strip()) for span in _SPAN.finditer(sentence)) or bool(PHRASE.search(sentence))


def sentences(text: str) -> list[str]:
    """Pieces of `text` that give it back when joined; nothing is cut inside a code span."""
    masked = _SPAN.sub(lambda m: "x" * len(m[0]), text)
    cuts = [0, *(m.end() for m in _SENTENCE_END.finditer(masked)), len(text)]
    return [text[a:b] for a, b in pairwise(cuts) if a < b]
