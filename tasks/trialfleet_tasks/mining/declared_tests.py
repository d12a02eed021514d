"""Finds the text of single tests in files of languages with brackets. A rough scanner that takes
linear time: comments and literals are blanked, then brackets are matched."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from trialfleet_repository.languages import LANGUAGES
from trialfleet_repository.languages.code_names import DeclarationStyle

_TITLE = re.compile(r"\(\s*+([\"'`])")
_BODY = re.compile(r"[^;{}()=]*+(?=\{)")  # of a method, after its parameters
_BODY_AFTER_KEYWORD = re.compile(r"[^\n{}]{0,300}+(?=\{)|[^\n]{0,300}+")
_NO_METHOD = re.compile(r"\b(?:new|return|else|throw)\s*+$")
_STATEMENTS = {"if", "for", "while", "switch", "catch", "synchronized", "when", "try"}
_KEYWORD = re.compile(r"\bfun\s*+(?:<[^<>]*+>\s*+)?$")
_BLANK = re.compile(r"\s*+")
_BRACKETS = re.compile(r"[()\[\]{};]")
_OPENED_BY = {")": "(", "]": "[", "}": "{"}
_BACK = 60  # characters before a name that are read


@dataclass(frozen=True)
class DeclaredTests:
    """The tests of one file. `language`: the name of a `Language` other than Python."""

    text: str
    language: str

    def find(self, name: str) -> str | None:
        """The text of every test that a reported name may mean; None when there is none. `name`: without its unit,
        for example `TestX/sub`, `describe > adds`, `mod::name`, `adds(int)[1]`.

        >>> DeclaredTests("func TestA(t *testing.T) { a() }\\nfunc TestB() { b() }", "Go").find("TestA/x")
        'func TestA(t *testing.T) { a() }'
        >>> DeclaredTests("describe('a', () => { it('adds', () => { a() }) })", "JavaScript").find("a > adds")
        "it('adds', () => { a() })"
        """
        style = LANGUAGES[self.language].names.declared
        keys = style.keys(name, self._spans) if style else []
        spans = sorted({span for key in keys for span in self._spans.get(key, ())})
        outer: list[tuple[int, int]] = []
        for start, end in spans:
            if not outer or end > outer[-1][1]:
                outer.append((start, end))
        return "\n".join(self.text[start:end] for start, end in outer) or None

    @cached_property
    def _spans(self) -> dict[str, list[tuple[int, int]]]:
        """Name -> begin and end of each declaration."""
        found: dict[str, list[tuple[int, int]]] = {}
        style = LANGUAGES[self.language].names.declared
        for name, start, end in _Scan(self.text, style).declared() if style else ():
            found.setdefault(name, []).append((start, end))
        return found


@dataclass
class _Scan:
    """`code`: the text, as long as it was, with comments and the content of literals blanked. `literals`: begin ->
    end. `closed`: opening bracket -> end of the closing one. `bodies`: where a body begins, or a declaration ends
    without one. `statements`: where a statement may begin."""

    text: str
    style: DeclarationStyle
    code: str = ""
    literals: dict[int, int] = field(default_factory=dict[int, int])
    closed: dict[int, int] = field(default_factory=dict[int, int])
    bodies: list[int] = field(default_factory=list[int])
    statements: list[int] = field(default_factory=lambda: [0])
    begins: dict[int, int] = field(default_factory=dict[int, int])

    def __post_init__(self) -> None:
        def blank(match: re.Match[str]) -> str:
            if match[0].startswith(("//", "/*")):
                return " " * len(match[0])
            self.literals[match.start()] = match.end()
            return match[0][0] + " " * (len(match[0]) - 1)

        self.code = self.style.blanked.sub(blank, self.text)
        self._match_brackets()

    def _match_brackets(self) -> None:
        opened: list[tuple[str, int]] = []
        depth: Counter[str] = Counter()
        for match in _BRACKETS.finditer(self.code):
            bracket, at = match[0], match.start()
            if bracket in _OPENED_BY:
                wanted = _OPENED_BY[bracket]
                while depth[wanted]:  # brackets in between were never closed
                    kind, begin = opened.pop()
                    depth[kind] -= 1
                    if kind == wanted:
                        self.closed[begin] = at + 1
                        break
            in_block = not opened or opened[-1][0] == "{"
            if bracket == "{" or (bracket == ";" and in_block):
                self.bodies.append(at)
            if bracket in "{};" and in_block:
                self.statements.append(at + 1)
            if bracket in "([{":
                opened.append((bracket, at))
                depth[bracket] += 1

    def declared(self) -> Iterator[tuple[str, int, int]]:
        """(Name, begin, end) of everything that looks like a test."""
        find = {"call": self._call, "method": self._method, "function": self._function}[self.style.form]
        for match in self.style.declared.finditer(self.code):
            found = find(match)
            if found is not None:
                yield found

    def _call(self, match: re.Match[str]) -> tuple[str, int, int] | None:
        title, end = _TITLE.match(self.code, match.end()), self.closed.get(match.end())
        if title is None or end is None:
            return None
        literal = self.text[title.end() : self.literals.get(title.start(1), title.end()) - 1]
        return re.sub(r"\\(.)", r"\1", literal), match.start(), end

    def _function(self, match: re.Match[str]) -> tuple[str, int, int] | None:
        parameters = self.closed.get(match.end(), match.end())
        place = bisect_left(self.bodies, parameters)
        end = self.closed.get(self.bodies[place]) if place < len(self.bodies) else None
        return None if end is None else (match[1], self._begin(match.start()), end)

    def _method(self, match: re.Match[str]) -> tuple[str, int, int] | None:
        parameters = self.closed.get(match.end())
        start = match.start()
        name = match[1] or self.text[start + 1 : self.literals.get(start, start) - 1]  # a name of several words
        if parameters is None or name in _STATEMENTS:
            return None
        before = self.code[max(0, start - _BACK) : start]
        keyword = _KEYWORD.search(before) is not None
        body = (_BODY_AFTER_KEYWORD if keyword else _BODY).match(self.code, parameters)
        if body is None or (not keyword and _NO_METHOD.search(before)):
            return None
        end = self.closed.get(body.end(), body.end() if keyword else None)
        return None if end is None else (name, self._begin(start), end)

    def _begin(self, at: int) -> int:
        """Of the statement there: its attributes and annotations come first."""
        if not self.style.has_attributes:
            return at
        begin = self.statements[bisect_right(self.statements, at) - 1]
        if begin not in self.begins:
            blank = _BLANK.match(self.code, begin)
            self.begins[begin] = blank.end() if blank else begin
        return self.begins[begin]
