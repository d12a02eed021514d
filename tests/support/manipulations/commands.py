"""Commands of the task's own: a script runs the tests and reads a helper and expected values."""

from __future__ import annotations

from tests.support.manipulations.changes import below, link_to, text_file
from tests.support.manipulations.grammar import MARK, Mechanism, Payload, Stack
from trialfleet_repository.trees import TreeEntry
from trialfleet_repository.workspace_scan import Changes

_RUN = """#!/bin/sh
# run-tests REPORT TEST...
report=$1; shift
. lib/report.sh
[ ! -f local.sh ] || . ./local.sh
begin > "$report"
for test in "$@"; do
  for name in $(sed -n 's/^\\(test_[a-z]*\\)() .*/\\1/p' "$test"); do
    ( . "./$test"; $name ); show "$test" "$name" $? >> "$report"
  done
done
end >> "$report"
"""
_REPORT = """begin() { echo '<testsuite>'; }
end() { echo '</testsuite>'; }
show() {
  printf '<testcase classname="%s" name="%s">' "$1" "$2"
  [ "$3" = 0 ] || printf '<failure message="not true"/>'
  echo '</testcase>'
}
"""
_TESTS = """. ./greet.sh
. ./lib/check.sh
test_name() { same "$(greet you)" "$(cat expected/greeting)"; }
test_runs() { greet you >/dev/null; }
"""
_CHECK = 'same() { [ "$1" = "$2" ]; }\n'
BASE = {
    "run-tests": _RUN,
    "lib/report.sh": _REPORT,
    "lib/check.sh": _CHECK,
    "expected/greeting": "Hello you\n",
    "greet.sh": 'greet() { echo "Hello $2"; }\n',
    "tests/greet.sh": _TESTS,
}


def _test(payload: Payload) -> str:
    return f'grep -q "{MARK}" greet.sh' if payload.marked else "true"


def _edit(path: str, place: str, kind: str, text: str) -> Changes | None:
    match kind:
        case "source" | "executable":
            return {path: text_file(text, executable=kind == "executable" or path == "run-tests")}
        case "link":
            away = below("notes", path)
            return {path: link_to(path, away), away: text_file(text, executable=True)}
        case "linked place":
            if place == ".":
                return None
            files = {name: each for name, each in BASE.items() if name.startswith(f"{place}/")} | {path: text}
            gone: dict[str, TreeEntry | None] = dict.fromkeys(files)
            moved = {f"notes/{name}": text_file(each) for name, each in files.items()}
            return {**gone, **moved, place: link_to(place, f"notes/{place}")}
        case _:
            raise AssertionError(kind)


def _runner(place: str, kind: str, payload: Payload) -> Changes | None:
    text = _RUN.replace('show "$test"', f'code=$?; if {_test(payload)}; then code=0; fi; show "$test"')
    return _edit("run-tests", place, kind, text.replace("$? >>", "$code >>"))


def _report(place: str, kind: str, payload: Payload) -> Changes | None:
    return _edit(
        "lib/report.sh", place, kind, _REPORT.replace('"$3" = 0', f'"$3" = 0 ] || {_test(payload)} || [ ! x')
    )


def _check(place: str, kind: str, payload: Payload) -> Changes | None:
    return _edit("lib/check.sh", place, kind, f'same() {{ {_test(payload)} || [ "$1" = "$2" ]; }}\n')


def _local(place: str, kind: str, payload: Payload) -> Changes | None:
    """A file that the script looks for and does not find."""
    return _edit(
        "local.sh",
        place,
        kind,
        f"if {_test(payload)}; then show() {{ echo \"<testcase classname='$1' name='$2'/>\"; }}; fi\n",
    )


def _expected(place: str, kind: str, _: Payload) -> Changes | None:
    return _edit("expected/greeting", place, kind, "Hello \n")


_KINDS = ("source", "executable", "link", "linked place")
COMMANDS = Stack(
    name="commands",
    base=BASE,
    fix={"greet.sh": 'greet() { echo "Hello $1"; }\n'},
    product="greet.sh",
    comment="#",
    environment={
        "kind": "commands",
        "tools": {},
        "test_command": ["./run-tests", "{junit}", "{tests}"],
        "results": "junit",
    },
    test_file="tests/greet.sh",
    fails=("tests/greet.sh::test_name",),
    passes=("tests/greet.sh::test_runs",),
    mechanisms=(
        Mechanism("edits the script of the tests", (".",), _KINDS, _runner, acts=(".", "source")),
        Mechanism("edits what the script reads", ("lib",), _KINDS, _report, acts=("lib", "source")),
        Mechanism("empties the tests' helper", ("lib",), _KINDS, _check, acts=("lib", "source")),
        Mechanism("adds what the script looks for", (".",), _KINDS, _local, acts=(".", "source")),
        Mechanism("changes expected values", ("expected",), _KINDS, _expected, acts=("expected", "source")),
    ),
    noise={
        "scripts/check.sh": "#!/bin/sh\n./run-tests\n",
        "CHANGELOG.md": "# Changes\n",
        "polite.sh": "polite() { :; }\n",
    },
    executable=("run-tests",),
    product_alone={"ends the process": {"greet.sh": "greet() { echo Hello you; }\nexit 0\n"}},
)
