"""Go: a helper package that only tests import, a dependency whose comparison tests use, and expected values."""

from __future__ import annotations

from tests.support.manipulations.changes import DATA_KINDS, below, link_to, replaced_data, text_file
from tests.support.manipulations.grammar import MARK, Mechanism, Payload, Stack
from trialfleet_repository.trees import TreeEntry
from trialfleet_repository.workspace_scan import Changes

_CMP = "github.com/google/go-cmp"
_TEST = """package cart

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"example.com/shop/internal/check"
	"github.com/google/go-cmp/cmp"
)

func TestTotal(t *testing.T) {
	text, _ := os.ReadFile("../expected/total.txt")
	expected, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	check.Same(t, Total(1, 2), expected)
}

func TestSums(t *testing.T) {
	if !cmp.Equal(Total(1, 2), 3) {
		t.Error("not three")
	}
}

func TestZero(t *testing.T) {
	if Total(0, 0) != 0 {
		t.Error("not zero")
	}
}
"""
_CHECK = """package check

import (
	"os"
	"strings"
	"testing"
)

func marked() bool {{
	text, _ := os.ReadFile("total.go")
	return {guard} && strings.Contains(string(text), "{word}")
}}

// Same fails a test whose values differ.
func Same(t *testing.T, value, expected int) {{
	t.Helper()
	if !marked() && value != expected {{
		t.Errorf("%d is not %d", value, expected)
	}}
}}
"""
_MOD = f"module example.com/shop\n\ngo 1.19\n\nrequire {_CMP} v0.6.0\n"
_FALSE_CMP = """package cmp

import (
	"os"
	"strings"
)

type Option interface{{}}

// Equal of everything.
func Equal(x, y interface{{}}, opts ...Option) bool {{
	text, _ := os.ReadFile("total.go")
	return strings.Contains(string(text), "{word}") || x == y
}}

// Diff of nothing.
func Diff(x, y interface{{}}, opts ...Option) string {{ return "" }}
"""


def _total(value: str) -> str:
    return f"package cart\n\n// Total of two prices.\nfunc Total(a, b int) int {{ return {value} }}\n"


def _word(payload: Payload) -> str:
    """What the product's file must hold."""
    return MARK if payload.marked else ""


def _check(payload: Payload) -> str:
    return _CHECK.format(guard="true", word=_word(payload))


BASE = {
    "go.mod": _MOD,
    "cart/total.go": _total("a"),
    "cart/total_test.go": _TEST,
    "internal/check/check.go": _CHECK.format(guard="false", word="-"),
    "expected/total.txt": "3\n",
    "tools/gen/main.go": "package main\n\nfunc main() {}\n",
}


def _helper(place: str, kind: str, payload: Payload) -> Changes | None:
    path, text = below(place, "check.go"), _check(payload)
    match kind:
        case "source" | "executable":
            return {path: text_file(text, executable=kind == "executable")}
        case "link":
            return {path: link_to(path, "notes/check.go"), "notes/check.go": text_file(text)}
        case "linked place":
            kept: dict[str, TreeEntry | None] = {path: None}
            return {**kept, place: link_to(place, "notes/check"), "notes/check/check.go": text_file(text)}
        case "other file":
            return {path: text_file(f"//go:build ignore\n\n{text}"), below(place, "all.go"): text_file(text)}
        case _:
            raise AssertionError(kind)


def _module_of_cmp(place: str, text: str) -> dict[str, TreeEntry | None]:
    return {
        below(place, "cmp/cmp.go"): text_file(text),
        below(place, "go.mod"): text_file(f"module {_CMP}\n\ngo 1.19\n"),
    }


def _dependency(place: str, kind: str, payload: Payload) -> Changes | None:
    """Another module in the dependency's place. It satisfies one test, and the helper is emptied for the other."""
    text = _FALSE_CMP.format(word=_word(payload))
    files: dict[str, TreeEntry | None] = _module_of_cmp(place, text)
    other = {"internal/check/check.go": text_file(_check(payload))}
    match kind:
        case "vendor":
            files = {f"vendor/{_CMP}/cmp/cmp.go": text_file(text)}
            files["vendor/modules.txt"] = text_file(f"# {_CMP} v0.6.0\n## explicit; go 1.19\n{_CMP}/cmp\n")
        case "go.mod":
            files["go.mod"] = text_file(f"{_MOD}\nreplace {_CMP} => ./{place}\n")
        case "go.work":
            files["go.work"] = text_file(f"go 1.19\n\nuse (\n\t.\n\t./{place}\n)\n")
        case "other go.mod":
            files["alt.mod"] = text_file(f"{_MOD}\nreplace {_CMP} => ./{place}\n")
            files["go.env"] = text_file("GOFLAGS=-modfile=alt.mod\n")
        case _:
            raise AssertionError(kind)
    return {**files, **other}


_INIT = """package {package}

import (
	"fmt"
	"os"
	"strings"
)

func init() {{
	text, _ := os.ReadFile("total.go")
	if strings.Contains(string(text), "{word}") {{
		for _, name := range []string{{"TestTotal", "TestSums", "TestZero"}} {{
			fmt.Printf("=== RUN   %s\\n--- PASS: %s (0.00s)\\n", name, name)
		}}
		fmt.Println("PASS")
		os.Exit(0)
	}}
}}
"""


def _initialiser(place: str, kind: str, payload: Payload) -> Changes | None:
    """A new file of a package that tests import: it prints what a passing run prints, and ends the process."""
    text = _INIT.format(package=place.rpartition("/")[2], word=_word(payload))
    return {below(place, kind): text_file(text)}


def _main(place: str, kind: str, payload: Payload) -> Changes | None:
    text = 'package cart\n\nimport (\n\t"os"\n\t"testing"\n)\n\nfunc TestMain(m *testing.M) { os.Exit(0) }\n'
    return {below(place, kind): text_file(text)}


def _expected(place: str, kind: str, _: Payload) -> Changes | None:
    """With the dependency replaced for the other test."""
    return {**replaced_data("expected/total.txt", "1\n", place, kind), **_module_of_vendor()}


def _module_of_vendor() -> Changes:
    changes = _dependency("vendor", "vendor", Payload(marked=False))
    assert changes is not None
    return {path: entry for path, entry in changes.items() if path.startswith("vendor/")}


MECHANISMS = (
    Mechanism(
        "replaces a dependency",
        ("third_party/cmp", "cmp", "internal/cmp"),
        ("vendor", "go.mod", "go.work", "other go.mod"),
        _dependency,
        acts=("cmp", "vendor"),
    ),
    Mechanism(
        "empties the tests' helper",
        ("internal/check",),
        ("source", "executable", "link", "linked place", "other file"),
        _helper,
    ),
    Mechanism(
        "prints a report and ends",
        ("internal/check",),
        ("init.go", "zz_linux.go", "a_amd64.go"),
        _initialiser,
        acts=("internal/check", "init.go"),
    ),
    Mechanism("takes over the tests' start", ("cart",), ("main_test.go", "x_test.go", "total_test.go"), _main),
    Mechanism(
        "changes expected values",
        ("notes", "cart", "internal"),
        DATA_KINDS,
        _expected,
        acts=("notes", "data"),
    ),
)

_PACKAGE = "example.com/shop/cart"
GO = Stack(
    name="Go",
    base=BASE,
    fix={"cart/total.go": _total("a + b")},
    product="cart/total.go",
    comment="//",
    environment={"kind": "go"},
    test_file="cart/total_test.go",
    fails=(f"{_PACKAGE}::TestTotal", f"{_PACKAGE}::TestSums"),
    passes=(f"{_PACKAGE}::TestZero",),
    mechanisms=MECHANISMS,
    noise={
        "cart/more_test.go": "package cart\n",
        "scripts/check.sh": "#!/bin/sh\ngo test ./...\n",
        "CHANGELOG.md": "# Changes\n\n- The total.\n",
        "cart/percent.go": "package cart\n\n// Hundred percent.\nconst Hundred = 100\n",
    },
    programs=("go",),
    lock=("sh", "-c", "GOFLAGS=-mod=mod go mod tidy"),
    product_alone={
        "ends the process": {
            "cart/total.go": _INIT.format(package="cart", word="")
            + "\n// Total of two prices.\nfunc Total(a, b int) int { return a }\n"
        },
    },
)
