"""The pre-flight: reads the files that it is pointed at, once each, and says where the task's words come together.

Deterministic and without a model: it asks and answers in the form that a model's pre-flight does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .config import Config
from .transcript import BudgetSpent, Transcript
from .workspace import Unreadable, Workspace

_TARGET = re.compile(r"^- `([^`\n]+)`$", re.MULTILINE)
_TASK = "\nThe task:\n"
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]{2,}")
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "the and that this with from for not are was has have had its into test tests file files line self none "
        "true false assert error def class return import code source repository change find cause fix output name",
    )
)
_MOST = 3  # places that are named
_SHARE = 0.6  # of the best one's score that another needs


@dataclass(frozen=True)
class Place:
    """A function that shares words with the task."""

    path: str
    line: int
    name: str
    shared: tuple[str, ...]
    score: float


def look(config: Config, transcript: Transcript) -> None:
    """Reads and answers; the workspace stays as it is."""
    asked, _, task = config.prompt.partition(_TASK)
    wanted, workspace = words(task), Workspace(config.workspace)
    places: list[Place] = []
    stop = "finished"
    for path in dict.fromkeys(_TARGET.findall(asked)):
        try:
            transcript.spend("read", path, "read")
            places += found(path, workspace.read(path), wanted)
        except BudgetSpent:
            stop = "max_turns"
            break
        except Unreadable as error:
            transcript.say("message", path, str(error))
    text = answer(places)
    transcript.end("max_turns" if stop == "max_turns" else "finished", text.partition("\n")[0], text)


def words(text: str) -> frozenset[str]:
    """Parts of names and words, lower case, without the commonest.

    >>> sorted(words("parseHeader of HTTP_request"))
    ['header', 'http', 'parse', 'request']
    """
    return frozenset(word.lower() for word in _WORD.findall(text) if len(word) > 2) - _COMMON


def found(path: str, data: bytes, wanted: frozenset[str]) -> list[Place]:
    """The functions of a Python file that share words with the task; none where it is no Python."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [place for node in _functions(tree) if (place := _place(path, node, wanted)).shared]


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def _place(path: str, node: ast.FunctionDef | ast.AsyncFunctionDef, wanted: frozenset[str]) -> Place:
    """The function's own name counts three times; a long body has its many words by chance."""
    named, said = words(node.name) & wanted, words(ast.unparse(node)) & wanted
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    score = (3 * len(named) + len(said)) / (1 + lines / 40)
    return Place(path, node.lineno, node.name, tuple(sorted(said)), score)


def answer(places: list[Place]) -> str:
    """The best places in the form that was asked for."""
    best = sorted(places, key=lambda place: (-place.score, place.path, place.line))[:_MOST]
    kept = [place for place in best if place.score >= _SHARE * best[0].score]
    if not kept:
        return "UNCERTAIN: no function of these files shares a word with the task"
    return "\n\n".join(
        f"FILE: {place.path}\nLINE: {place.line}\nFUNCTION: {place.name}\nFIX: make it do what the task asks for\n"
        f"REASON: it is about {', '.join(place.shared[:6])}, as the task is"
        for place in kept
    )
