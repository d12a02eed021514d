"""Frames of other languages than Python: what their runners print, and the file that `nearest` starts from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_deliveries.anchor import anchor_for, deepest_frame
from trialfleet_deliveries.stack_traces import traces

GO = """\
--- FAIL: TestTotal (0.00s)
    --- FAIL: TestTotal/two (0.00s)
panic: runtime error: index out of range [2] with length 1 [recovered, repanicked]

goroutine 19 [running]:
testing.tRunner.func1.2({0x574440, 0x90e203da000})
	/usr/local/go/src/testing/testing.go:1974 +0x232
panic({0x574440?, 0x90e203da000?})
	/usr/local/go/src/runtime/panic.go:860 +0x13a
example.com/shop/cart.at(...)
	/workspace/cart/deep.go:6
example.com/shop/cart.Total(...)
	/workspace/cart/total.go:3
example.com/shop/cart.TestTotal.func1(0x90e203a46c8?)
	/workspace/cart/total_test.go:7 +0xb
created by testing.(*T).Run in goroutine 18
	/usr/local/go/src/testing/testing.go:2101 +0x4c5
FAIL	example.com/shop/cart	0.005s
"""
NODE = """\
FAILED test/total.test.js total > adds
a.plus is not a function
TypeError: a.plus is not a function
    at plus (file:///workspace/src/deep.js:3:12)
    at total (file:///workspace/src/total.js:1:32)
    at TestContext.<anonymous> (file:///workspace/test/total.test.js:3:18)
    at async Test.run (node:internal/test_runner/test:797:9)
"""
TAP = """\
  location: '/workspace/test/total.test.js:3:1'
  stack: |-
    plus (file:///workspace/src/deep.js:3:12)
    total (file:///workspace/src/total.js:1:32)
    node:internal/process/task_queues:140:7
"""
JEST = """\
  ● total › adds

    TypeError: a.plus is not a function

    > 3 |   return a.plus(b);
        |            ^

      at plus (src/deep.js:3:12)
      at src/total.js:1:32
      at Object.<anonymous> (test/total.test.js:5:7)
"""
VITEST = """\
 FAIL  test/total.test.js > total > adds
TypeError: a.plus is not a function
 ❯ plus src/deep.js:3:12
      1| export const plus = …
 ❯ test/total.test.js:5:10
"""
CAUSE = """\
Error: no total
    at total (/workspace/src/total.js:4:9)
    at /workspace/test/total.test.js:3:18 {
  [cause]: TypeError: a.plus is not a function
      at plus (/workspace/src/deep.js:3:12)
"""
RUST = """\
---- adds stdout ----

thread 'adds' (525) panicked at src/deep.rs:2:5:
index out of bounds: the len is 1 but the index is 2
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""
OLD_RUST = "thread 'adds' panicked at 'index out of bounds: the len is 1', src/deep.rs:2:5\n"
RUST_IN_A_DEPENDENCY = """\
thread 'adds' panicked at /home/agent/.cargo/registry/src/index/itoa-1.0.0/src/lib.rs:2:5:
no
stack backtrace:
   0: core::panicking::panic_fmt
             at /rustc/59807616/library/core/src/panicking.rs:80:14
   1: shop::deep
             at ./src/deep.rs:2:5
   2: shop::total
             at ./src/total.rs:2:5
   3: total::adds
             at ./tests/total.rs:2:24
"""
MAVEN = """\
[ERROR] org.example.TotalTest.adds  Time elapsed: 0.01 s  <<< ERROR!
java.lang.ArrayIndexOutOfBoundsException: Index 2 out of bounds for length 1
	at java.base/java.util.Objects.check(Objects.java:3)
	at org.example.Deep$Row.at(Deep.java:5)
	at org.example.Total.of(Total.java:9)
	at org.example.TotalTest.adds(TotalTest.java:11)
"""
CAUSED = """\
java.lang.IllegalStateException: no total
	at app//org.example.Total.of(Total.java:9)
	at app//org.example.TotalTest.adds(TotalTest.java:11)
Caused by: java.lang.NullPointerException
	at app//org.example.Deep.at(Deep.java:5)
	... 3 more
"""
TREES = {
    "go": ["cart/deep.go", "cart/total.go", "cart/total_test.go"],
    "js": ["src/deep.js", "src/total.js", "test/total.test.js"],
    "rs": ["src/deep.rs", "src/total.rs", "tests/total.rs"],
    "java": [
        "src/main/java/org/example/Deep.java",
        "src/main/java/org/example/Total.java",
        "src/test/java/org/example/TotalTest.java",
    ],
}


@pytest.mark.parametrize(
    ("output", "tree"),
    [
        (GO, "go"),
        (NODE, "js"),
        (TAP, "js"),
        (JEST, "js"),
        (VITEST, "js"),
        (CAUSE, "js"),
        (RUST, "rs"),
        (OLD_RUST, "rs"),
        (RUST_IN_A_DEPENDENCY, "rs"),
        (MAVEN, "java"),
        (CAUSED, "java"),
    ],
)
def test_the_deepest_frame(output: str, tree: str) -> None:
    """Of the repository and outside its tests, whichever way round the language prints its frames."""
    deep, outer, test = TREES[tree]
    assert deepest_frame(output, TREES[tree]) == deep
    assert deepest_frame(output.replace("/workspace/", ""), TREES[tree]) == deep, "as an output is frozen"
    shown = f"{outer.rpartition('/')[2]}:" in output
    assert deepest_frame(output, [outer, test]) == (outer if shown else None)
    assert deepest_frame(output, [test]) is None, "a frame of a test is no anchor"
    assert deepest_frame(output, []) is None


@pytest.mark.parametrize(("output", "tree"), [(RUST, "rs"), (JEST, "js"), (MAVEN, "java")])
def test_a_package_below_the_root(output: str, tree: str) -> None:
    """Its runner prints paths that start in its own folder, or names of classes that another package has too."""
    paths = [f"{folder}/{path}" for folder in ("other", "tools") for path in TREES[tree]]
    assert deepest_frame(output, paths, "tools") == f"tools/{TREES[tree][0]}"
    if tree == "java":
        assert deepest_frame(output, paths) is None, "two files may be meant"
    mode = {"prompt_source": "failing_test", "paths": paths, "failure_output": output, "directory": "tools"}
    assert anchor_for("traceback", **mode) == f"tools/{TREES[tree][0]}"  # type: ignore[arg-type]


def test_the_first_failure_that_reaches_the_repository_decides() -> None:
    only_tests = "    at Object.<anonymous> (test/total.test.js:5:7)\n\nError: no\n"
    both = only_tests + "    at total (src/total.js:1:2)\n\n    at plus (src/deep.js:1:2)\n"
    assert deepest_frame(both, TREES["js"]) == "src/total.js"


@pytest.mark.parametrize(
    "line",
    [
        "src/total.js:3:9 - error TS2322: no number",
        "see src/total.js:3:9",
        "src/total.js:3",
        "    total.go:3: no total",
        "[ERROR]   TotalTest.adds:11 expected: <3> but was: <1>",
        "error[E0308]: mismatched types --> src/total.rs:2:5",
    ],
)
def test_lines_that_are_no_frames(line: str) -> None:
    assert list(traces(line + "\n")) == []


def test_a_python_traceback_comes_first() -> None:
    output = "    at total (src/total.js:1:2)\n" + 'File "/workspace/shop/cart.py", line 3, in total\n'
    assert deepest_frame(output, ["src/total.js", "shop/cart.py"]) == "shop/cart.py"


@given(st.text(alphabet="at (/.:jsrgo1)\n\t❯'", max_size=3000))
def test_any_text_is_read(text: str) -> None:
    assert all(path for trace in traces(text) for path in trace)


def test_a_hostile_output_takes_no_time() -> None:
    assert list(traces("    at " + "a (" * 10**6 + "\n" + "'x', " * 10**6)) == []
