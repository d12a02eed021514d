"""Finds the text of single tests in files of Go, JavaScript, Rust, Java and Kotlin. A rough scanner that takes
linear time: comments and literals are blanked, then brackets are matched."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

_COMMENT = r"//[^\n]*+|/\*[\s\S]*?(?:\*/|\Z)"
_STRING = r'"(?:[^"\\\n]|\\.)*+"?'
_QUOTED = r"'(?:[^'\\\n]|\\.)*+'?"
_CHARACTER = r"'(?:[^'\\\n]|\\[^\n][^'\n]{0,10})'"  # of Rust, where a quote alone begins a lifetime
_REGEX = r"(?<=[(,=:\[!&|?])[ \t]*+/(?![/*])(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*+\]?)++/?"
# A literal that is not closed matches to the end of its line or of the file, so that nothing is scanned twice.
_BLANKED: Mapping[str, re.Pattern[str]] = {
    "Go": re.compile(rf"{_COMMENT}|{_STRING}|`[^`]*+`?|{_QUOTED}"),
    "JavaScript": re.compile(rf"{_COMMENT}|{_STRING}|{_QUOTED}|`(?:[^`\\]|\\[\s\S])*+`?|{_REGEX}"),
    "Rust": re.compile(rf'{_COMMENT}|\br(#*+)"[\s\S]*?(?:"\1|\Z)|"(?:[^"\\]|\\[\s\S])*+"?|{_CHARACTER}'),
    "Java": re.compile(rf'{_COMMENT}|"""[\s\S]*?(?:"""|\Z)|{_STRING}|{_QUOTED}|`[^`\n]*+`?'),
}
_DECLARED: Mapping[str, re.Pattern[str]] = {
    "Go": re.compile(r"\bfunc\s*+(?:\([^()]*+\)\s*+)?(\w++)\s*+(?=\()"),
    "JavaScript": re.compile(r"(?<![\w$])(?:it|test|specify|[fx]it|xtest)(?:\.\w++){0,5}+\s*+(?=\()"),
    "Rust": re.compile(r"\bfn\s++(?:r#)?(\w++)"),
    "Java": re.compile(r"(?<![\w.$@`])(?:([A-Za-z_$][\w$]*+)\s*+|`\s*+)(?=\()"),
}
_TITLE = re.compile(r"\(\s*+([\"'`])")
_BODY = re.compile(r"[^;{}()=]*+(?=\{)")  # of a method, after its parameters
_BODY_OF_KOTLIN = re.compile(r"[^\n{}]{0,300}+(?=\{)|[^\n]{0,300}+")
_NO_METHOD = re.compile(r"\b(?:new|return|else|throw)\s*+$")
_STATEMENTS = {"if", "for", "while", "switch", "catch", "synchronized", "when", "try"}
_KOTLIN = re.compile(r"\bfun\s*+(?:<[^<>]*+>\s*+)?$")
_BLANK = re.compile(r"\s*+")
_BRACKETS = re.compile(r"[()\[\]{};]")
_OPENED_BY = {")": "(", "]": "[", "}": "{"}
_WORDS = 200  # of a reported name: so many of its ends are compared with titles
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
        spans = sorted({span for key in self._keys(name) for span in self._spans.get(key, ())})
        outer: list[tuple[int, int]] = []
        for start, end in spans:
            if not outer or end > outer[-1][1]:
                outer.append((start, end))
        return "\n".join(self.text[start:end] for start, end in outer) or None

    def _keys(self, name: str) -> list[str]:
        """The names by which the file may declare it."""
        match self.language:
            case "JavaScript":  # a title may hold what separates it from the titles around it
                ends = (name, *(name[match.end() :] for match in list(re.finditer(" ", name))[-_WORDS:]))
                return [end for end in ends if end in self._spans][:1]
            case "Go":  # a method of a suite is reported below the function that runs the suite
                return name.split("/")[:2]
            case "Rust":  # below the function: the case of a parametrised test
                return [part for part in name.split("::") if part in self._spans][-1:]
            case _:
                return [name, re.split(r"[(\[]", name, maxsplit=1)[0].rpartition(".")[2].strip()]

    @cached_property
    def _spans(self) -> dict[str, list[tuple[int, int]]]:
        """Name -> begin and end of each declaration."""
        found: dict[str, list[tuple[int, int]]] = {}
        for name, start, end in self._scan.declared():
            found.setdefault(name, []).append((start, end))
        return found

    @cached_property
    def _scan(self) -> _Scan:
        return _Scan(self.text, self.language)


@dataclass
class _Scan:
    """`code`: the text, as long as it was, with comments and the content of literals blanked. `literals`: begin ->
    end. `closed`: opening bracket -> end of the closing one. `bodies`: where a body begins, or a declaration ends
    without one. `statements`: where a statement may begin."""

    text: str
    language: str
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

        self.code = _BLANKED[self.language].sub(blank, self.text)
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
        find = {"JavaScript": self._call, "Java": self._method}.get(self.language, self._function)
        for match in _DECLARED[self.language].finditer(self.code):
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
        name = match[1] or self.text[start + 1 : self.literals.get(start, start) - 1]  # Kotlin's `adds two`
        if parameters is None or name in _STATEMENTS:
            return None
        before = self.code[max(0, start - _BACK) : start]
        kotlin = _KOTLIN.search(before) is not None
        body = (_BODY_OF_KOTLIN if kotlin else _BODY).match(self.code, parameters)
        if body is None or (not kotlin and _NO_METHOD.search(before)):
            return None
        end = self.closed.get(body.end(), body.end() if kotlin else None)
        return None if end is None else (name, self._begin(start), end)

    def _begin(self, at: int) -> int:
        """Of the statement there: its attributes and annotations come first, which Go has none of."""
        if self.language == "Go":
            return at
        begin = self.statements[bisect_right(self.statements, at) - 1]
        if begin not in self.begins:
            blank = _BLANK.match(self.code, begin)
            self.begins[begin] = blank.end() if blank else begin
        return self.begins[begin]
