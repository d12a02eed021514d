"""What a Go file says about itself."""

from __future__ import annotations

from trialfleet_targets.parsing import parse
from trialfleet_targets.syntax_facts import FileFacts, Import

SOURCE = """\
package server

import (
	"fmt"
	mux "example.com/app/router"
	_ "example.com/app/driver"
	. "example.com/app/dsl"
	"gopkg.in/yaml.v3"
)

const (
	Limit = 1
	small = 2
)

var Left, right = 1, 2

type Server struct {
	Base
	*mux.Router
	opts mux.Options
}

type Handler interface {
	Serve(r Request) error
	fmt.Stringer
}

type List[T any] []T

func New[T any](o mux.Options) *Server { return mux.Build(o) }

func (l *List[T]) Add(v T) {
	l.inner.Push(v)
	check(Limit)
}
"""


def facts(source: str = SOURCE) -> FileFacts:
    found = parse("server/server.go", source.encode())
    assert found is not None
    return found


def test_definitions() -> None:
    found = facts()
    assert (found.package, found.problem, found.lines) == ("server", "", 36)
    assert [(d.name, d.kind.value, d.line, d.owner, d.exported) for d in found.definitions] == [
        ("Limit", "constant", 12, "", True),
        ("small", "constant", 13, "", False),
        ("Left", "constant", 16, "", True),
        ("right", "constant", 16, "", False),
        ("Server", "class", 18, "", True),
        ("Handler", "interface", 24, "", True),
        ("Serve", "method", 25, "Handler", True),
        ("List", "type", 29, "", True),
        ("New", "function", 31, "", True),
        ("Add", "method", 33, "List", True),
    ]


def test_imports_under_the_names_they_have_here() -> None:
    assert facts().imports == (
        Import("fmt", (("*", "fmt"),)),
        Import("example.com/app/router", (("*", "mux"),)),
        Import("example.com/app/driver", ()),
        Import("example.com/app/dsl", (("*", ""),)),
        Import("gopkg.in/yaml.v3", (("*", "yaml"),)),
    )


def test_calls_embedding_and_references() -> None:
    found = facts()
    assert [(c.name, c.receiver) for c in found.calls] == [
        ("Build", "mux"),
        ("Push", "inner"),
        ("check", ""),
    ]
    assert [(i.child, i.parent) for i in found.inheritance] == [
        ("Server", "Base"),
        ("Server", "mux.Router"),
        ("Handler", "fmt.Stringer"),
    ]
    assert {"mux.Options", "mux.Build", "Base", "Request"} <= set(found.references)
