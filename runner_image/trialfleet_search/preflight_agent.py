"""The pre-flight: read each predicted file once and name the functions that share most words with the task.

Deterministic and without a model; the prompt and the answer have the form of a model's pre-flight.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Literal

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
_MAX_NAMED = 3
_MIN_SHARE = 0.6  # of the best score


@dataclass(frozen=True)
class CandidateFunction:
    """A function that shares words with the task."""

    path: str
    line: int
    name: str
    shared: tuple[str, ...]
    score: float


def run_preflight(config: Config, transcript: Transcript) -> None:
    """Read the predicted files and answer. Changes no file."""
    instructions, _, task = config.prompt.partition(_TASK)
    wanted, workspace = words(task), Workspace(config.workspace)
    candidates: list[CandidateFunction] = []
    stop: Literal["finished", "max_turns"] = "finished"
    for path in dict.fromkeys(_TARGET.findall(instructions)):
        try:
            transcript.use_turn("read", path, "read")
            candidates += matching_functions(path, workspace.read(path), wanted)
        except BudgetSpent:
            stop = "max_turns"
            break
        except Unreadable as error:
            transcript.record("message", path, str(error))
    text = format_answer(candidates)
    transcript.end(stop, text.partition("\n")[0], answer=text)


def words(text: str) -> frozenset[str]:
    """Words and parts of names, in lower case, without the most common ones.

    >>> sorted(words("parseHeader of HTTP_request"))
    ['header', 'http', 'parse', 'request']
    """
    return frozenset(word.lower() for word in _WORD.findall(text) if len(word) > 2) - _COMMON


def matching_functions(path: str, data: bytes, wanted: frozenset[str]) -> list[CandidateFunction]:
    """The functions of a Python file that share words with the task; none when the file is not Python."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    lines = data.decode("utf-8", errors="replace").split("\n")
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return [one for node in functions if (one := _scored(path, node, lines, wanted)).shared]


def _scored(
    path: str, node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str], wanted: frozenset[str]
) -> CandidateFunction:
    """The function's name counts three times. The score falls with length: a long body shares words by chance."""
    body = lines[node.lineno - 1 : node.end_lineno]
    in_name, in_body = words(node.name) & wanted, words("\n".join(body)) & wanted
    score = (3 * len(in_name) + len(in_body)) / (1 + len(body) / 40)
    return CandidateFunction(path, node.lineno, node.name, tuple(sorted(in_body)), score)


def format_answer(candidates: list[CandidateFunction]) -> str:
    """The best candidates, in the form that the prompt asks for."""
    best = sorted(candidates, key=lambda one: (-one.score, one.path, one.line))[:_MAX_NAMED]
    named = [one for one in best if one.score >= _MIN_SHARE * best[0].score]
    if not named:
        return "UNCERTAIN: no function in these files shares a word with the task"
    return "\n\n".join(
        f"FILE: {one.path}\nLINE: {one.line}\nFUNCTION: {one.name}\nFIX: make it do what the task asks for\n"
        f"REASON: the task also mentions {', '.join(one.shared[:6])}"
        for one in named
    )
