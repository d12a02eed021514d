"""Files of tests that must fail, as they are made for each language."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trialfleet_repository.languages import format_named
from trialfleet_repository.languages.must_fail import MAX_CHARS, MAX_TESTS, FailingFile, FailToPass, NoMustFail

MARK = "z0a1b2c3d"
PYTHON = '''"""Of prices."""
import unittest
from unittest import mock

import pytest

from shop import total
from tests.tools import assert_same

@pytest.mark.parametrize("name", ["a", "b"])
def test_total(name, fixture):
    """All of them."""
    with pytest.raises(ValueError):
        total(None)
    assert total([1]) == 1  # a comment
    called = mock.Mock()
    called.assert_called_with(1)
    assert_same(total([1]), 1, name=name)


class TestShop(unittest.TestCase):
    def test_it(self):
        self.assertEqual(3, total([1, 2]))
        self.assertTrue(total)

    def test_other(self):
        for _ in []:
            return
        self.assertIn(1, [1])
'''


def make(results: str, *ids: str, **files: str) -> FailingFile:
    return format_named(results).must_fail(FailToPass(ids, files, MARK))


def python(text: str, *ids: str) -> FailingFile:
    return make("pytest", *(f"t/test_a.py::{name}" for name in ids), **{"t/test_a.py": text})


def body(made: FailingFile, number: int) -> str:
    """Of the test of that number, without its indentation."""
    functions = [node for node in ast.walk(ast.parse(made.text)) if isinstance(node, ast.FunctionDef)]
    (function,) = (one for one in functions if one.name.endswith(f"_{MARK}_{number}"))
    return "\n".join(map(ast.unparse, function.body))


def test_a_python_function_is_copied_with_its_decorators_and_fixtures() -> None:
    made = python(PYTHON, "test_total[a]", "test_total[b]")
    assert made.path == f"t/test_a_{MARK}.py"
    assert made.tests[0] == f"t/test_a_{MARK}.py::test_total_{MARK}_1"
    (copy,) = (
        n for n in ast.walk(ast.parse(made.text)) if isinstance(n, ast.FunctionDef) and n.name.endswith("_1")
    )
    assert len(copy.decorator_list) == 1
    assert [argument.arg for argument in copy.args.args] == ["name", "fixture"]


def test_each_assertion_of_a_python_test_fails_in_a_test_of_its_own() -> None:
    made = python(PYTHON, "test_total[a]")
    bodies = [body(made, number) for number in range(1, len(made.tests) + 1)]
    assert bodies[0].endswith("assert 1 == 2"), "after the test's own statements"
    assert "assert total([1]) == object()" in bodies[1], "what the product returns equals no new object"
    assert "called" not in bodies[1], "the statements behind it are left out"
    assert "assert total([1]) == 1000004" in bodies[2], "nor another number"
    rest = bodies[3:]
    (local,) = (one for one in rest if one.endswith("called.assert_called_with(object())"))
    assert "called = mock.Mock()" in local, "a local name is bound by the test's statements"
    rest.remove(local)
    assert sorted(rest) == ["assert_same(object(), object())", "with pytest.raises(ArithmeticError):\n    pass"]


@pytest.mark.parametrize(
    "expected",
    [
        "True",
        "0",
        "-1",
        "90.0",
        "'a'",
        "''",
        "b'a'",
        "[1, 'a']",
        "(1,)",
        "{'a': [1]}",
        "-0",
        "1e999",
        "[]",
        "None",
    ],
)
def test_another_value_of_the_expected_type_is_not_equal_to_it(expected: str) -> None:
    made = python(f"def test_a():\n    assert f() == {expected}\n", "test_a")
    claims = [body(made, number).removeprefix("assert f() == ") for number in range(2, len(made.tests) + 1)]
    assert claims[0] == "object()"
    right = ast.literal_eval(expected)
    assert all(type(other) is type(right) and other != right for other in map(ast.literal_eval, claims[1:]))
    assert len(claims) == (1 if expected in ("True", "-0", "1e999", "[]", "None") else 2)


@pytest.mark.parametrize(
    "first",
    ["len(drawer) == 0", "drawer == ['a']", "drawer.pop() == 'a'", "(drawer.append(1) is None) == True"],
)
def test_what_an_honest_product_leaves_behind_makes_no_other_value_right(first: str) -> None:
    """Tests that must fail run after the test itself in its process: a list that all instances share may be longer
    or empty then."""
    made = python(f"def test_a():\n    assert {first}\n    drawer.append('a')\n", "test_a")
    for left in ([], ["a"], ["a", "a"], ["a", 1]):
        for number in range(1, len(made.tests) + 1):
            with pytest.raises((AssertionError, IndexError)):
                exec(body(made, number), {"drawer": list(left)})


def test_a_method_is_copied_into_its_class() -> None:
    made = python(PYTHON, "TestShop::test_it")
    assert made.tests[0] == f"t/test_a_{MARK}.py::TestShop::test_it_{MARK}_1"
    assert body(made, 2) == "self.assertEqual(object(), total([1, 2]))"
    assert body(made, 3) == "self.assertEqual(1000006, total([1, 2]))"
    assert {body(made, number) for number in (4, 5)} == {
        "self.assertEqual(object(), object())",
        "self.assertTrue(False)",
    }


def test_the_statements_of_a_test_that_may_end_early_are_not_copied() -> None:
    made = python(PYTHON, "TestShop::test_other")
    assert [body(made, number) for number in (1, 2)] == ["assert 1 == 2", "self.assertIn(1, [])"]


def test_the_first_test_that_is_in_its_file_is_copied() -> None:
    made = python(PYTHON, "TestShop::test_inherited", "test_total[a]")
    assert "::test_total_" in made.tests[0]


@pytest.mark.parametrize(
    "text",
    [
        "def test_a(:",
        "x = '\0'",
        "def other(): pass",
        "x = " + "(" * 5000,
        "x = " + "-" * 100_000 + "1",
        "x = a" + ".b" * 100_000,
        "def test_a(): pass\n" + "#" * MAX_CHARS,
        "def test_a():\n    x = " + "not " * 5000 + "1",
    ],
)
def test_odd_python_is_refused(text: str) -> None:
    with pytest.raises(NoMustFail):
        python(text, "test_a")


def test_no_more_tests_than_the_limit() -> None:
    calls = "".join(f"    assert_{number}(1, 2)\n" for number in range(1000))
    assert len(python(f"def test_a():\n{calls}", "test_a").tests) == MAX_TESTS


STATEMENTS = (
    "assert x == 1, 'no'",
    "assert 1 == f'{x!r:>{3}}'",
    "with pytest.warns(A) as b, open('c'):\n    d()",
    "self.assertEqual(a, b, msg='c')",
    "self.assertAlmostEqual(*a, **b)",
    "assert_all(*a)",
    "np.testing.assert_allclose(a, b, rtol=1)",
    "lambda: (yield)",
    "for a in b:\n    assert a\nelse:\n    pass",
    "match a:\n    case {'b': [c, *_]}:\n        assert c",
    "async def f(): return await g()",
    "'''text\n\\n'''",
    "return",
    "x: int = (y := 2)",
    "a.b().assert_that(1)",
    "global z; z = 1",
)


@given(
    st.lists(st.sampled_from(STATEMENTS), min_size=1, max_size=6),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["", "@d(1)\n", "@pytest.mark.x\n@e\n"]),
)
def test_made_python_compiles(statements: list[str], in_class: bool, asynchronous: bool, decorators: str) -> None:
    lines = "\n".join(statements).replace("\n", "\n    ")
    text = f"{decorators}{'async ' * asynchronous}def test_a(self, x=1):\n    {lines}\n"
    if in_class:
        text = "class B:\n    " + text.replace("\n", "\n    ")
    try:
        compile(text, "test_a.py", "exec", dont_inherit=True)
    except SyntaxError:
        assume(False)
    made = python(text, "B::test_a" if in_class else "test_a")
    compile(made.text, made.path, "exec", dont_inherit=True)
    assert 1 <= len(made.tests) <= MAX_TESTS


def test_every_made_python_test_fails_under_the_right_product(tmp_path: Path) -> None:
    """Run by pytest, with helpers of the project."""
    (tmp_path / "t").mkdir()
    text = PYTHON.replace("from shop import total\n", "def total(prices): return sum(prices)\n")
    text = text.replace(
        "from tests.tools import assert_same\n",
        "def assert_same(a, b, name=None): assert a == b\n@pytest.fixture\ndef fixture(): pass\n",
    ).replace("with pytest.raises(ValueError)", "with pytest.raises(TypeError)")
    text = text.replace("    called.assert", "    called(1)\n    called.assert")
    made = [python(text, "test_total[a]"), python(text, "TestShop::test_it")]
    (tmp_path / "t/test_a.py").write_text(text)
    for number, one in enumerate(made):
        (tmp_path / f"t/test_b{number}.py").write_text(one.text)
    tests = [f"t/test_b{n}.py::{test.partition('::')[2]}" for n, one in enumerate(made) for test in one.tests]
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-c", "/dev/null"]
    ended = subprocess.run(
        [*argv, f"--rootdir={tmp_path}", "t/test_a.py", *tests],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "17 failed, 4 passed" in ended.stdout, ended.stdout


JAVASCRIPT = """import { describe, expect, it } from "vitest";
import { total } from "../src/total.js";

describe("total", () => {
  it("adds", () => { expect(total(1, 2)).toBe(3); expect(total(1, 2)).toEqual(3); });
  it("waits", async () => { await expect(total(1, 2)).resolves.toBe(3); });
}); // end"""
NODE = """const assert = require("node:assert/strict");
const { test } = require("node:test");
test("adds", () => { assert.equal(1, 1); assert.throws(() => {}); });
"""


def test_a_javascript_file_is_copied_with_tests_at_its_end() -> None:
    made = make("vitest", "t/total.test.ts::total > adds", **{"t/total.test.ts": JAVASCRIPT})
    assert (made.path, made.tests) == (f"t/total_{MARK}.test.ts", (f"t/total_{MARK}.test.ts",))
    assert made.text.startswith(JAVASCRIPT)
    assert made.text.removeprefix(JAVASCRIPT).splitlines() == [
        "",
        f';it("{MARK} 1", async () => {{ expect(1).toBe(2); }});',
        "",
        f';it("{MARK} 2", async () => {{ expect([1]).toEqual([2]); }});',
        "",
        f';it("{MARK} 3", async () => {{ await expect(Promise.resolve(1)).resolves.toBe(2); }});',
    ]


def test_nodes_assert_fails_by_the_name_that_the_file_gives_it() -> None:
    made = make("node", "a-test.js::adds", **{"a-test.js": NODE})
    assert made.path == f"a_{MARK}-test.js"
    calls = [line.partition("{ ")[2] for line in made.text.splitlines() if MARK in line]
    assert calls == ["assert(0); });", "assert.equal(1, 2); });", "assert.throws(() => {}); });"]


GO = """/* package other */
// package another
package cart_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTotal(t *testing.T) {
	require.Equal(t, 1, 1)
	require.NoError(t, nil)
	t.Run("two", func(t *testing.T) { t.Fatalf("%d", 1) })
}
"""


def test_a_go_file_is_added_to_the_package() -> None:
    made = make("go", "example.com/shop/cart::TestTotal/two", **{"cart/total_linux_test.go": GO})
    assert made.path == f"cart/total_linux_{MARK}_test.go"
    assert made.text == (
        'package cart_test\n\nimport "testing"\nimport "errors"\n'
        'import require "github.com/stretchr/testify/require"\n\n'
        f'func TestTotal_{MARK}_1(t *testing.T) {{ t.Fatalf("x") }}\n\n'
        f'func TestTotal_{MARK}_2(t *testing.T) {{ t.Error("x") }}\n\n'
        f"func TestTotal_{MARK}_3(t *testing.T) {{ require.Equal(t, 1, 2) }}\n\n"
        f'func TestTotal_{MARK}_4(t *testing.T) {{ require.NoError(t, errors.New("x")) }}\n'
    )


@pytest.mark.parametrize(
    ("results", "test", "path", "text"),
    [
        ("vitest", "a.test.js::x", "b.test.js", JAVASCRIPT),
        ("jest", "a.test.js::x", "a.test.js", "check(1)"),
        ("jest", "a.test.js::x", "a.test.js", "it('a', () => " + "expect (" * 100_000),
        ("go", "m::TestA", "a_test.go", "package a"),
        ("go", "m::ExampleA", "a_test.go", "package a\nfunc ExampleA() {}"),
        ("go", "m::TestA", "a_test.go", "/*" * 200_000 + "\nfunc TestA("),
        ("libtest", "a.rs::x", "a.rs", "#[test]"),
        ("junit", "a::x", "a", ""),
    ],
)
def test_no_file_is_made_of_others(results: str, test: str, path: str, text: str) -> None:
    started = time.process_time()
    with pytest.raises(NoMustFail):
        make(results, test, **{path: text})
    assert time.process_time() - started < 2


@pytest.mark.parametrize("unit", ["it(", ".toA(", "expect(", "import a ", "const a = require(", "assert."])
def test_a_hostile_javascript_file_takes_no_long_time(unit: str) -> None:
    text = "it('a', () => expect(1))" + unit * (MAX_CHARS // len(unit) - 10)
    started = time.process_time()
    make("jest", "a.test.js::a", **{"a.test.js": text})
    assert time.process_time() - started < 2
