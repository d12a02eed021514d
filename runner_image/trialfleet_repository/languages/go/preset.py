"""Go modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trialfleet_ledger.errors import OperatorError
from trialfleet_repository.languages.preset import ToolPreset, VersionOf, name_place, restrict_tree
from trialfleet_repository.trees import ROOT, Tree

if TYPE_CHECKING:
    from trialfleet_ledger.task import ToolEnvironment

# What every test needs of Go itself, its library and vet, takes 25 core seconds to compile.
_ANY_TEST = r"""cd "$(mktemp -d)" && printf 'module warm\n' > go.mod &&
printf 'package warm\n\nimport "testing"\n\nfunc TestNothing(t *testing.T) {}\n' > warm_test.go &&
go test -count=1 ."""

# Of a go.mod without a version, `go mod download` leaves out modules that only tests of its packages need.
_TESTS_TOO = "go list -e -deps -test ./... >/dev/null 2>&1 || true"


_VARIABLES = {
    "GOMODCACHE": "{environment}/modules",
    "GOCACHE": "{home}/.cache/go-build",
    "GOPROXY": "off",
    "GOFLAGS": "-buildvcs=false",
    "GOTOOLCHAIN": "local",
    "GOTELEMETRY": "off",
}


def make_go_preset(environment: ToolEnvironment, tree: Tree, _: VersionOf) -> ToolPreset:
    tree = restrict_tree(tree, environment.directory)
    if "go.mod" not in tree and "go.work" not in tree:
        raise OperatorError(
            f"{name_place(environment.directory)} has no go.mod",
            where="environment",
            hint="choose commits since it has Go modules, or name the module's folder as `directory`",
        )
    vendored = "vendor/modules.txt" in tree
    return ToolPreset(
        tools={"go": ""},
        inputs=("go.mod", "go.sum", "go.work", "go.work.sum"),
        directory=environment.directory or ROOT,
        fetch=() if vendored else (("go", "mod", "download"), ("sh", "-c", _TESTS_TOO)),
        alone=(("sh", "-c", _ANY_TEST),),
        warm=(("go", "test", "-count=1", "-run=^$", "./..."),),
        variables=_VARIABLES,
        links={"build": "{home}/.cache/go-build"},
        test_command=("go", "test", "-json", "-count=1", "{tests}"),
        results="go",
    )
