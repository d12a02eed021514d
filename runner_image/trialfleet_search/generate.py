"""Ranked candidate edits for one file and its suspicious lines."""

from __future__ import annotations

import ast
import math
import random
from collections.abc import Iterable
from dataclasses import replace

from .edit import Candidate, Edit, OverlappingEdits, apply
from .facts import Facts
from .guidance import Guidance
from .localise import IMPORTED
from .operators import REGISTRY, EditSite, Operator
from .scope import FileScope, bound_names
from .source import ParsedSource, last_name, parse_source

BY_EXCEPTION: dict[str, dict[str, float]] = {
    "KeyError": {"get_default": 2.0, "exception_widen": 1.5},
    "AttributeError": {"or_default": 1.3},
    "TypeError": {"argument_add": 1.5, "parameter_default": 1.8},
    "IndexError": {"early_exit": 1.5, "guard_insert": 1.4, "exception_widen": 1.4},
    "Failed": {"condition_refine": 1.3, "exception_raise": 1.5, "early_exit": 1.3},
    "UnicodeDecodeError": {"exception_widen": 1.6},
    "UnicodeEncodeError": {"exception_widen": 1.6},
    "ValueError": {"early_exit": 1.3, "guard_insert": 1.3, "exception_widen": 1.4},
    "FileNotFoundError": {"guard_insert": 1.4, "exception_widen": 1.6},
}
_SAME_OPERATOR = 0.85  # each further candidate of one operator on one line
_SAME_LINE = 0.95  # each further candidate on one line
_JITTER = 0.3  # standard deviation of the seeded noise on a score's logarithm
_DECLARED = 0.5  # share of its users' weight that a declaration inherits
_MAX_CANDIDATES = 12_000  # of one file: far more than a turn budget allows


class NodeWeights:
    """The suspiciousness of each node of a file."""

    def __init__(self, source: ParsedSource, lines: dict[int, float], guidance: Guidance, facts: Facts) -> None:
        self.source, self.guidance = source, guidance
        self.lines = dict(lines)
        self._declare(facts)
        self._guide()

    def of(self, node: ast.AST) -> float:
        """Weight of the heaviest line of an expression, or of the first line of a statement; 0: not executed."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return self._inside(node) * 0.8
        first = getattr(node, "lineno", 0)
        last = getattr(node, "end_lineno", first) or first
        if isinstance(node, ast.stmt):
            last = first if hasattr(node, "body") else last
        best = max((self.lines.get(line, 0.0) for line in range(first, min(last, first + 40) + 1)), default=0.0)
        statement = self.source.statement(node)
        around = self.lines.get(statement.lineno, 0.0) if statement is not None and best == 0 else 0.0
        if isinstance(node, ast.ExceptHandler) and best == 0:
            holder = self.source.parent(node)
            around = self._inside(holder) * 0.9 if isinstance(holder, ast.stmt) else 0.0
        return max(best, around)

    def _inside(self, node: ast.stmt) -> float:
        last = node.end_lineno or node.lineno
        return max((w for line, w in self.lines.items() if node.lineno < line <= last), default=0.0)

    def _declare(self, facts: Facts) -> None:
        """Constants and class fields get half the weight of the code that uses them."""
        used, least = self._used(), self.lines.pop(IMPORTED, 0.0)
        for name in facts.names:
            used[name] = max(used.get(name, 0.0), 0.5)
        classes = [n for n in ast.walk(self.source.tree) if isinstance(n, ast.ClassDef)]
        holders: list[ast.Module | ast.ClassDef] = [self.source.tree, *classes]
        for holder in holders:
            owner = used.get(holder.name, 0.0) * 0.6 if isinstance(holder, ast.ClassDef) else 0.0
            for statement in holder.body:
                names = bound_names(ast.Module(body=[statement], type_ignores=[]))
                weight = max([owner, *(used.get(n, 0.0) for n in names)]) * _DECLARED or least
                if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and weight:
                    for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1):
                        self.lines[line] = max(self.lines.get(line, 0.0), weight)

    def _used(self) -> dict[str, float]:
        """Names and attributes that executed functions mention, with the largest weight of a mention."""
        found: dict[str, float] = {}
        for node in ast.walk(self.source.tree):
            name = last_name(node)
            if name and self.source.function(node) is not None:
                weight = self.lines.get(getattr(node, "lineno", 0), 0.0)
                if weight > found.get(name, 0.0):
                    found[name] = weight
        return found

    def _guide(self) -> None:
        """Raise the weight of named functions and classes, and of lines that mention named symbols."""
        boosts: dict[int, float] = {}
        for node in ast.walk(self.source.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                extra = self.guidance.symbol(node.name) * (0.6 if isinstance(node, ast.ClassDef) else 1.5)
                for line in range(node.lineno, (node.end_lineno or node.lineno) + 1) if extra else ():
                    boosts[line] = max(boosts.get(line, 0.0), extra)
            elif extra := self.guidance.symbol(last_name(node)) * 0.8:
                line = getattr(node, "lineno", 0)
                boosts[line] = max(boosts.get(line, 0.0), extra)
        file = 1 + 0.5 * self.guidance.path(self.source.path)
        for line in self.lines:
            self.lines[line] *= file * (1 + boosts.get(line, 0.0))


def candidates(
    source: ParsedSource, lines: dict[int, float], facts: Facts, guidance: Guidance, rng: random.Random
) -> tuple[list[Candidate], int]:
    """Candidates, best first, and the number of times an operator failed on this file."""
    weights = NodeWeights(source, lines, guidance, facts)
    scope = FileScope(source)
    best: dict[tuple[Edit, ...], Candidate] = {}
    broken = 0
    for weight, node in _heaviest(source, weights, rng):
        if len(best) > _MAX_CANDIDATES:
            break
        for operator in REGISTRY[type(node)]:
            try:
                found = _proposed(EditSite(source, scope, facts, node), operator, weight, guidance, facts)
            except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
                broken += 1  # unusual code must not end the search
                continue
            for one in found:
                if one.edits not in best or best[one.edits].score < one.score:
                    best[one.edits] = one
    spread = _spread(best.values())
    jittered = [replace(c, score=c.score * math.exp(rng.gauss(0, _JITTER))) for c in spread]
    return sorted(jittered, key=lambda c: -c.score), broken


def _heaviest(source: ParsedSource, weights: NodeWeights, rng: random.Random) -> list[tuple[float, ast.AST]]:
    """Nodes with operators, heaviest first, ties in random order."""
    weighed = [(weights.of(node), node) for node in ast.walk(source.tree) if type(node) in REGISTRY]
    found = [(weight, node) for weight, node in weighed if weight > 0]
    rng.shuffle(found)
    return sorted(found, key=lambda pair: -pair[0])


def _proposed(
    site: EditSite[ast.AST], operator: Operator, weight: float, guidance: Guidance, facts: Facts
) -> list[Candidate]:
    prior = operator.prior * guidance.operators.get(operator.name, 1.0)
    for exception in dict.fromkeys(facts.exceptions[:3]):
        prior *= BY_EXCEPTION.get(exception, {}).get(operator.name, 1.0)
    line = getattr(site.node, "lineno", 1)
    return [
        Candidate(
            site.source.path, operator.name, line, tuple(sorted(change.edits)), weight * prior * change.weight
        )
        for change in operator.propose(site)
        if change.edits
    ]


def _spread(found: Iterable[Candidate]) -> list[Candidate]:
    """Reduce the score of each further candidate of an operator or of any operator on a line: breadth first."""
    ranked = sorted(found, key=lambda c: (-c.score, c.line, c.operator, c.edits))
    per_operator: dict[tuple[int, str], int] = {}
    per_line: dict[int, int] = {}
    spread: list[Candidate] = []
    for one in ranked:
        own, on_line = per_operator.get((one.line, one.operator), 0), per_line.get(one.line, 0)
        per_operator[one.line, one.operator], per_line[one.line] = own + 1, on_line + 1
        spread.append(replace(one, score=one.score * _SAME_OPERATOR**own * max(_SAME_LINE**on_line, 0.2)))
    return spread


def written(source: ParsedSource, candidate: Candidate) -> bytes | None:
    """The file with the candidate's edits; None when it does not compile or has the same syntax tree."""
    try:
        data = apply(source.data, candidate.edits)
        tree = parse_source(data)
        compile(data, source.path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, OverlappingEdits, RecursionError):
        return None
    return None if ast.dump(tree) == source.meaning else data
