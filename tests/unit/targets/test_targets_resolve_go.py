"""Imports of Go projects, real-shaped."""

from __future__ import annotations

import time

import pytest

from tests.unit.targets.sources_fixture import edges_of, leads
from trialfleet_targets.syntax_facts import EdgeKind

APP = {
    "go.mod": "module example.com/app/v2 // the app\n\ngo 1.22\n\nrequire example.com/kit v1.0.0\n\n"
    "replace (\n\texample.com/kit => ./third/kit\n)\n",
    "main.go": (
        'package main\n\nimport (\n\t"fmt"\n\t"example.com/app/v2/router"\n'
        '\tmw "example.com/app/v2/router/middleware"\n'
        '\t_ "example.com/app/v2/driver"\n\t"example.com/kit/log"\n\t"example.com/app/v2/tools"\n)\n\n'
        "func main() {\n\tr := router.New()\n\tr.Use(mw.Logger)\n\tlog.Info(router.Version)\n"
        "\tserve(r)\n\tfmt.Println()\n"
        "\ttools.Run()\n}\n"
    ),
    "serve.go": 'package main\n\nimport "example.com/app/v2/router"\n\nfunc serve(r *router.Mux) {}\n',
    "router/mux.go": "package router\n\ntype Mux struct{ *tree }\n\nfunc New() *Mux { return build() }\n",
    "router/tree.go": (
        "package router\n\ntype tree struct{}\n\nconst Version = 1\n\nfunc build() *Mux { return nil }\n"
    ),
    "router/mux_test.go": "package router\n\nfunc helper() { New() }\n",
    "router/middleware/logger.go": "package middleware\n\nfunc Logger() {}\n",
    "driver/driver.go": "package driver\n\nfunc init() {}\n",
    "driver/other.go": "package driver\n\nfunc used() { helper() }\n",
    "third/kit/go.mod": "module example.com/kit\n",
    "third/kit/log/log.go": "package log\n\nfunc Info(x any) {}\n",
    "tools/go.mod": "module example.com/app/v2/tools\n",
    "tools/run.go": 'package tools\n\nimport . "example.com/app/v2/router"\n\nfunc Run() { New() }\n',
    "go.work": "go 1.22\n\nuse (\n\t.\n\t./tools\n)\n",
}


def test_packages_are_folders_and_only_what_is_used_of_them_counts() -> None:
    found = edges_of(APP)
    assert leads(found, "main.go") == {
        "router/mux.go": ("New",),
        "router/tree.go": ("Version",),
        "router/middleware/logger.go": ("Logger",),
        "driver/driver.go": (),
        "third/kit/log/log.go": ("Info",),
        "tools/run.go": ("Run",),
    }
    assert leads(found, "main.go", EdgeKind.CALL) == {
        "router/mux.go": ("New",),
        "third/kit/log/log.go": ("Info",),
        "tools/run.go": ("Run",),
        "serve.go": ("serve",),
    }


def test_files_of_one_package_see_each_other() -> None:
    found = edges_of(APP)
    assert leads(found, "router/mux.go") == {"router/tree.go": ("tree",)}
    assert leads(found, "router/mux.go", EdgeKind.EXTENDS) == {"router/tree.go": ("tree",)}
    assert leads(found, "router/mux.go", EdgeKind.CALL) == {"router/tree.go": ("build",)}
    assert leads(found, "serve.go") == {"router/mux.go": ("Mux",)}


def test_product_code_does_not_depend_on_tests_of_its_package() -> None:
    found = edges_of({**APP, "driver/driver_test.go": "package driver\n\nfunc helper() { used() }\n"})
    assert leads(found, "driver/other.go", EdgeKind.CALL) == {}
    assert leads(found, "driver/driver_test.go", EdgeKind.CALL) == {"driver/other.go": ("used",)}


def test_a_dot_import_and_a_nested_module() -> None:
    assert leads(edges_of(APP), "tools/run.go", EdgeKind.CALL) == {"router/mux.go": ("New",)}


def test_the_package_is_called_as_it_declares() -> None:
    found = edges_of(
        {
            "go.mod": "module m\n",
            "go-color/c.go": "package color\n\nfunc Red() {}\n",
            "a/a.go": 'package a\n\nimport "m/go-color"\n\nfunc F() { color.Red() }\n',
        }
    )
    assert leads(found, "a/a.go", EdgeKind.CALL) == {"go-color/c.go": ("Red",)}


@pytest.mark.parametrize("garbage", ["", "module\n", "\0\0\0", "modul e x\n", "replace => ../../..\nmodule m\n"])
def test_garbage_in_go_mod_does_not_stop_the_rest(garbage: str) -> None:
    found = edges_of(
        {
            "go.mod": garbage,
            "sub/go.mod": "module example.com/sub\n",
            "sub/a/a.go": "package a\n\nfunc F() {}\n",
            "sub/b.go": 'package sub\n\nimport "example.com/sub/a"\n\nfunc G() { a.F() }\n',
        }
    )
    assert leads(found, "sub/b.go") == {"sub/a/a.go": ("F",)}


TWICE = {
    "a_copy/go.mod": "module example.com/lib\n",
    "a_copy/x/x.go": "package x\n\nfunc X() {}\n",
    "modules/lib/go.mod": "module example.com/lib\n",
    "modules/lib/x/x.go": "package x\n\nfunc X() {}\n",
    "modules/app/go.mod": "module example.com/app\n\nrequire example.com/lib v0.0.0\n",
    "modules/app/a.go": 'package app\n\nimport "example.com/lib/x"\n\nfunc A() { x.X() }\n',
}


@pytest.mark.parametrize(
    "work",
    [
        'go 1.22\n\nuse (\n\t./modules/app // the program\n\t"./modules/lib"\n)\n',
        "use ./modules/lib\n",
        "use modules/lib/ // a comment\nuse ../outside\nuse (\n",
        "use(\n./modules/lib)\n)\nuse\nuse ./modules/lib\n",
    ],
)
def test_of_two_modules_of_one_name_that_of_the_workspace_is_meant(work: str) -> None:
    assert leads(edges_of({**TWICE, "go.work": work}), "modules/app/a.go") == {"modules/lib/x/x.go": ("X",)}


@pytest.mark.parametrize("work", [None, "", "use ../../a\n", "use (\n./modules/none\n)\n", "\0use ./modules/lib"])
def test_without_one_the_outermost_is(work: str | None) -> None:
    project = TWICE if work is None else {**TWICE, "go.work": work}
    assert leads(edges_of(project), "modules/app/a.go") == {"a_copy/x/x.go": ("X",)}


def test_an_outer_workspace_says_more_than_one_among_test_data() -> None:
    works = {"go.work": "use ./modules/lib\n", "a_copy/go.work": "use .\n"}
    assert leads(edges_of({**TWICE, **works}), "modules/app/a.go") == {"modules/lib/x/x.go": ("X",)}


@pytest.mark.parametrize("name", ["go.mod", "go.work"])
@pytest.mark.parametrize(
    "filler", ["\n", " ", "\t\n", "a", "use ", "a =>", "=> ./", "replace a ", "module", "use (\n"]
)
def test_a_megabyte_of_anything_is_read_at_once(name: str, filler: str) -> None:
    """Blank lines took time that grew with their square: minutes for a hundred kilobytes."""
    began = time.process_time()
    assert leads(edges_of({**TWICE, name: filler * (2**20 // len(filler))}), "modules/app/a.go")
    assert time.process_time() - began < 5


def test_before_modules_the_path_says_host_owner_repository() -> None:
    found = edges_of(
        {
            "helpers/h.go": "package helpers\n\nfunc H() {}\n",
            "hugolib/site.go": (
                'package hugolib\n\nimport "github.com/spf13/hugo/helpers"\n\nfunc S() { helpers.H() }\n'
            ),
        }
    )
    assert leads(found, "hugolib/site.go") == {"helpers/h.go": ("H",)}
