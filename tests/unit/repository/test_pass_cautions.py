"""Added lines of a passing patch that a person should read."""

from __future__ import annotations

import time

import pytest

from trialfleet_repository.pass_cautions import MAX_CAUTIONS, find_pass_cautions

STACK, MODULES, RUNNER, ENDS, ASSERTIONS = (
    "reads the stack",
    "reads the loaded modules",
    "looks for the test runner",
    "ends the process",
    "changes the assertions",
)
LINES = {
    "a.py": {
        "x = inspect.stack()": STACK,
        "f = sys._getframe(1)": STACK,
        "import traceback": STACK,
        "from inspect import getsource, stack": STACK,
        "if 'x' in sys.modules:": MODULES,
        "from sys import modules": MODULES,
        'os.environ.get("PYTEST_CURRENT_TEST")': RUNNER,
        "import _pytest.reports": RUNNER,
        "checks.same.__code__ = nothing.__code__": ASSERTIONS,
        "builtins.AssertionError = Quiet": ASSERTIONS,
        "unittest.TestCase.assertEqual = lambda *_: None": ASSERTIONS,
        "os._exit(0)": ENDS,
    },
    "a.mts": {
        "const s = new Error('x').stack;": STACK,
        "Object.keys(require.cache)": MODULES,
        "if (process.env.JEST_WORKER_ID)": RUNNER,
        "process.env.VITEST === 'true'": RUNNER,
        'if (process.env.NODE_ENV === "test") {': RUNNER,
        "if ('test' == process.env.NODE_ENV)": RUNNER,
        'process.env["NODE_ENV"] !== "test"': RUNNER,
        "process.exit(0)": ENDS,
        "assert.equal = () => {};": ASSERTIONS,
        "for (const name of names) assert[name] = () => {};": ASSERTIONS,
        "expect.extend({ toBe: () => true });": ASSERTIONS,
        "Object.assign(assert, { equal() {} });": ASSERTIONS,
        "Object.defineProperty(assert, 'equal', { value() {} });": ASSERTIONS,
        "asymmetricMatch: () => true,": ASSERTIONS,
    },
    "a.go": {
        "pc, _, _, _ := runtime.Caller(1)": STACK,
        'flag.Lookup("test.v") != nil': RUNNER,
        "if testing.Testing() {": RUNNER,
        'strings.HasSuffix(os.Args[0], ".test")': RUNNER,
        "os.Exit(0)": ENDS,
    },
    "a.rs": {
        "Backtrace::capture()": STACK,
        "if cfg!(test) {": RUNNER,
        "#[cfg(not(test))]": RUNNER,
        "std::process::exit(0);": ENDS,
        "macro_rules! assert_eq {": ASSERTIONS,
    },
    "A.java": {
        "Thread.currentThread().getStackTrace()": STACK,
        "StackWalker.getInstance()": STACK,
        'Class.forName("org.junit.Test")': RUNNER,
        "System.exit(0);": ENDS,
    },
    "a.kt": {"exitProcess(0)": ENDS, "Throwable().stackTrace": STACK},
}
HONEST = {
    "a.py": [
        "# os._exit(0)",
        "sys.exit(main())",
        "stack = [1]",
        "modules = {}",
        "def trace(self):",
        "if f.__code__ == g.__code__:",
    ],
    "a.js": [
        "// process.exit(0)",
        'if (process.env.NODE_ENV === "production")',
        "const stack = [];",
        "assert.equal(a == b, c => c);",
    ],
    "a.go": ["// os.Exit(1)", "return errors.New(stack)", 'name := "latest.v1"'],
    "a.rs": ["#[cfg(test)]", "mod tests {", "stack.push(1);", "macro_rules! total {"],
    "A.java": ["// System.exit(0);", "stack.push(1);"],
    "README.md": ["os._exit(0)"],
    "tests/test_a.py": ["os._exit(0)", "import traceback"],
    "a_test.go": ["os.Exit(0)"],
}


def diff(path: str, *lines: str, mark: str = "+") -> str:
    count = len(lines)
    hunk = f"@@ -{1 if mark == '-' else 0},{count if mark == '-' else 0} +1,{count if mark == '+' else 0} @@"
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n{hunk}\n" + "".join(
        f"{mark}{line}\n" for line in lines
    )


@pytest.mark.parametrize(
    ("path", "line", "what"), [(p, line, w) for p, rows in LINES.items() for line, w in rows.items()]
)
def test_a_line_is_named_by_its_place(path: str, line: str, what: str) -> None:
    assert find_pass_cautions(diff(f"src/{path}", "", line), [f"src/{path}"]) == (f"src/{path}:2 {what}",)


@pytest.mark.parametrize(("path", "line"), [(p, line) for p, lines in HONEST.items() for line in lines])
def test_other_lines_are_not(path: str, line: str) -> None:
    assert find_pass_cautions(diff(path, line), [path]) == ()


def test_only_added_lines_of_files_that_are_scored() -> None:
    assert find_pass_cautions(diff("a.py", "os._exit(0)", mark="-"), ["a.py"]) == ()
    assert find_pass_cautions(diff("a.py", "os._exit(0)"), ["b.py"]) == ()
    kept = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,3 @@\n os._exit(0)\n+++ b/b.py\n x = 1\n"
    assert find_pass_cautions(kept + diff("b.py", "x"), ["a.py", "b.py"]) == (), (
        "an added line that looks like a header"
    )


def test_each_kind_once_a_file_and_a_limit() -> None:
    many = "".join(diff(f"{n}.py", "os._exit(0)", "os._exit(1)") for n in range(30))
    cautions = find_pass_cautions(many, [f"{n}.py" for n in range(30)])
    assert cautions[0] == "0.py:1 ends the process"
    assert (len(cautions), cautions[-1]) == (MAX_CAUTIONS + 1, "10 more")


def test_a_long_line_takes_no_long_time() -> None:
    started = time.process_time()
    for word in ("from inspect import ", "Error(", "cfg!(", "'test' == "):
        for path in ("a.py", "a.js", "a.rs"):
            find_pass_cautions(diff(path, word * 200_000), [path])
    assert time.process_time() - started < 2
