"""Tests that must fail, in JavaScript: a copy of a fail-to-pass test's file with tests at its end, one for each
assertion function that it uses. They run after the tests of the copy, in the same process.

The file is searched for words only: a call that is not one, as in a comment, adds a test that fails as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from trialfleet_repository.languages.must_fail import (
    MAX_CHARS,
    MAX_TESTS,
    FailingFile,
    FailToPass,
    NoMustFail,
    path_beside,
    tests_of_files,
)

_START = r"(?<![\w.$])"
_TEST = re.compile(rf"{_START}(it|test)(?:\.\w{{1,20}}){{0,3}}\s{{0,9}}\(")
_EXPECT = re.compile(rf"{_START}expect\s{{0,9}}\(")
_MATCHER = re.compile(r"\.(to[A-Z]\w{1,30})\s{0,9}\(")
_SETTLED = re.compile(r"\.(resolves|rejects)\b")
_CHAI = re.compile(r"[\"']chai[\"']")
_MODULE = r"[\"'](?:node:)?assert(?:/strict)?[\"']"
_ASSERT = re.compile(
    rf"import\s{{1,9}}(?:\*\s{{1,9}}as\s{{1,9}})?(\w{{1,40}})\s{{1,9}}from\s{{0,9}}{_MODULE}"
    rf"|(?:const|let|var)\s{{1,9}}(\w{{1,40}})\s{{0,9}}=\s{{0,9}}require\(\s{{0,9}}{_MODULE}"
)
_MATCHERS = {
    "toBe": "expect(1).toBe(2)",
    "toEqual": "expect([1]).toEqual([2])",
    "toStrictEqual": "expect([1]).toStrictEqual([2])",
    "toMatchObject": "expect({ a: 1 }).toMatchObject({ a: 2 })",
    "toThrow": "expect(() => {}).toThrow()",
    "toThrowError": "expect(() => {}).toThrowError()",
    "toBeTruthy": "expect(0).toBeTruthy()",
    "toBeFalsy": "expect(1).toBeFalsy()",
    "toBeNull": "expect(1).toBeNull()",
    "toBeUndefined": "expect(1).toBeUndefined()",
    "toBeDefined": "expect(undefined).toBeDefined()",
    "toContain": "expect('a').toContain('b')",
    "toMatch": "expect('a').toMatch('b')",
    "toHaveLength": "expect('a').toHaveLength(2)",
    "toBeInstanceOf": "expect([]).toBeInstanceOf(Map)",
    "toBeCloseTo": "expect(1).toBeCloseTo(2)",
    "toBeGreaterThan": "expect(1).toBeGreaterThan(2)",
    "toBeLessThan": "expect(2).toBeLessThan(1)",
    "resolves": "await expect(Promise.resolve(1)).resolves.toBe(2)",
    "rejects": "await expect(Promise.resolve(1)).rejects.toThrow()",
}
_CALLS = {
    "equal": "(1, 2)",
    "strictEqual": "(1, 2)",
    "deepEqual": "([1], [2])",
    "deepStrictEqual": "([1], [2])",
    "notEqual": "(1, 1)",
    "notStrictEqual": "(1, 1)",
    "ok": "(0)",
    "match": "('a', /b/)",
    "throws": "(() => {})",
    "fail": "('x')",
}


def make_javascript_file(tests: FailToPass) -> FailingFile:
    """From the file of the first fail-to-pass test that names its functions. Raises `NoMustFail`."""
    for path in tests_of_files(tests):
        text = tests.files[path][: MAX_CHARS + 1]
        used = _TEST.search(text)
        calls = list(islice(_failing_calls(text), MAX_TESTS))
        if len(text) > MAX_CHARS or used is None or not calls:
            continue
        added = "".join(
            f'\n;{used[1]}("{tests.mark} {number}", async () => {{ {call}; }});\n'
            for number, call in enumerate(calls, start=1)
        )
        new = path_beside(path, tests.mark, ("-test", "-spec", "_test", "_spec"))
        return FailingFile(new, text + added, (new,))
    raise NoMustFail("no file of its fail-to-pass tests calls `it` or `test`, and `expect` or node's assert")


def _failing_calls(text: str) -> Iterator[str]:
    """A call of each function that must throw, each once."""
    if _EXPECT.search(text):
        chai = _CHAI.search(text) is not None
        yield "expect(1).to.equal(2)" if chai else _MATCHERS["toBe"]
        names = dict.fromkeys([*_MATCHER.findall(text), *_SETTLED.findall(text)])
        yield from (_MATCHERS[name] for name in names if name in _MATCHERS and name != "toBe" and not chai)
    bound = _ASSERT.search(text)
    if bound:
        name = bound[1] or bound[2]
        yield f"{name}(0)"
        used = dict.fromkeys(re.findall(rf"{_START}{name}\.(\w{{1,30}})\s{{0,9}}\(", text))
        yield from (f"{name}.{each}{_CALLS[each]}" for each in used if each in _CALLS)
