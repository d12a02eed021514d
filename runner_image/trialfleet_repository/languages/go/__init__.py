"""Go."""

from __future__ import annotations

import re

from trialfleet_repository.languages.protocol import Language, manifests, names_of

_FOREIGN = re.compile(
    r"(?:\.pb(?:\.gw)?|[._]gen|_easyjson|_ffjson|_mock|(?:^|/)(?:bindata|generated))\.go$"
    r"|(?:^|/)(?:zz_generated|mock_)[^/]*\.go$"
)


def _is_test_module(path: str) -> bool:
    return path.endswith("_test.go") and "testdata" not in path.split("/") and not GO.is_foreign(path)


GO = Language(
    name="Go",
    suffixes=(".go",),
    test_paths=re.compile(r"_test\.go\Z"),
    is_test_module=_is_test_module,
    is_manifest=manifests(r"go\.(?:mod|sum|work|work\.sum)|\.go-version|\.tool-versions"),
    foreign=_FOREIGN,
    harness=re.compile(names_of("go.mod", "go.sum", "go.work", "go.work.sum")),
)
