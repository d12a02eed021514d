"""Go."""

from __future__ import annotations

import re

from trialfleet_repository.languages.go.module import find_module
from trialfleet_repository.languages.go.names import NAMES
from trialfleet_repository.languages.go.pass_cautions import PASS_CAUTIONS
from trialfleet_repository.languages.go.preset import make_go_preset
from trialfleet_repository.languages.go.product import find_go_product
from trialfleet_repository.languages.go.registry import find_go_proxy
from trialfleet_repository.languages.go.results import GO_TEST
from trialfleet_repository.languages.protocol import Language, manifests, names_of
from trialfleet_repository.languages.survey_traits import SurveyTraits
from trialfleet_repository.languages.tool_traits import ToolTraits
from trialfleet_repository.languages.traces import TraceStyle

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
    product_files=find_go_product,
    kind="go",
    preset=make_go_preset,
    find_package=find_module,
    programs=("go",),
    linkers=("go",),
    asks={"go": "version"},
    offline=("GOPROXY",),
    registry=find_go_proxy,
    tools=ToolTraits(
        left_out=lambda path: path.parts[0] == "modules" and path.parts[1:2] not in ((), ("cache",)),
        marked="build",
        compiled=("build",),
        trimmed=("trim.txt",),  # once a day it would remove an older environment's links
    ),
    formats=(GO_TEST,),
    traces=(
        TraceStyle(
            re.compile(r"\s+(?P<path>[^\s:][^\n:]*\.go):\d+(?: \+0x[0-9a-f]+)?$"),
            between=re.compile(r"\S[^\n]*\)$|created by "),
        ),
    ),
    names=NAMES,
    pass_cautions=PASS_CAUTIONS,
    takes_packages=True,
    settings_in_code=False,
    too_old=re.compile(r"(?i)requires go >= [\d.]+ \(running go|maximum (?:supported )?version is [\d.]+"),
    survey=SurveyTraits(
        {".go": "Go"},
        ("go.mod",),
        ("go.sum",),
        lambda name, _: ("go test",) if name == "go.mod" else (),
        re.compile(r"\bgo test\b"),
    ),
)
