"""JavaScript and TypeScript."""

from __future__ import annotations

import re
from pathlib import Path

from trialfleet_repository.languages.built_paths import BUILT_TESTS
from trialfleet_repository.languages.ecmascript.formats import FORMATS, SUFFIXES
from trialfleet_repository.languages.ecmascript.names import NAMES
from trialfleet_repository.languages.ecmascript.pass_cautions import PASS_CAUTIONS
from trialfleet_repository.languages.ecmascript.preset import (
    MANAGERS,
    lacks_lock,
    lock_place,
    make_node_preset,
    tested_package,
)
from trialfleet_repository.languages.ecmascript.product import find_javascript_product
from trialfleet_repository.languages.ecmascript.registry import find_npm_registry
from trialfleet_repository.languages.ecmascript.survey import SURVEY
from trialfleet_repository.languages.protocol import Language, LockRules, manifests, names_of
from trialfleet_repository.languages.traces import TraceStyle

_TYPES_ALONE = (".d.ts", ".d.mts", ".d.cts")
_NAMED = re.compile(r"[._](?:test|spec)\.[cm]?[jt]sx?$|(?:^|/)__tests__/")
_FOLDER = re.compile(r"(?:^|/)(?:__tests__|tests?)/")
_SUPPORT = re.compile(
    r"(?:^|/)(?:__snapshots__|__fixtures__|__mocks__)/|(?:^|/)(?:__tests__|tests?)/(?:.*/)?fixtures?/"
    r"|[.](?:test|spec)-d[.][cm]?tsx?$"  # tests of types, which are only checked
)
_FOREIGN = re.compile(  # below src, build is a folder of source
    r"^(?!(?:.*/)?src/)(?:.*/)?build/|(?:^|/)(?:__generated__|generated|\.next|\.nuxt|\.yarn)/"
    r"|[.-]min\.[cm]?js$|\.gen\.[cm]?[jt]sx?$|(?:^|/)\.pnp\.c?js$"
)


def _is_test_module(path: str) -> bool:
    code = path.endswith(ECMASCRIPT.suffixes) and not path.endswith(_TYPES_ALONE)
    named = _NAMED.search(path) is not None or _FOLDER.search(path) is not None
    return code and named and not _SUPPORT.search(path) and not ECMASCRIPT.is_foreign(path)


ECMASCRIPT = Language(
    name="JavaScript",
    suffixes=SUFFIXES,
    test_paths=re.compile(
        r"[._](?:test|spec)(?:-d)?\.[cm]?[jt]sx?\Z|\.(?:e2e|cy)\.[cm]?[jt]sx?\Z|\.snap\Z"
        r"|/__(?:tests|snapshots|mocks|fixtures)__/"
        r"|\A(?!(?:[\s\S]*/)?src/)(?:[\s\S]*/)?(?:e2e|spec|cypress)/[\s\S]*\.[cm]?[jt]sx?\Z"  # src/spec is source
    ),
    is_test_module=_is_test_module,
    is_manifest=manifests(
        r"package(?:-lock)?\.json|npm-shrinkwrap\.json|pnpm-(?:lock|workspace)\.yaml|yarn\.lock|bun\.lockb?|bunfig\.toml"
        r"|\.npmrc|\.yarnrc(?:\.yml)?|\.nvmrc|\.node-version|\.tool-versions|\.mocharc.*|tsconfig.*\.json"
        r"|(?:vite|vitest|jest|babel|karma)\.conf(?:ig)?\..+|(?:vitest|jest)\.(?:workspace|setup)\..+"
    ),
    foreign=_FOREIGN,
    named_test=_NAMED,
    not_code=_TYPES_ALONE,
    harness=re.compile(
        names_of(
            *("package.json", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "pnpm-workspace.yaml"),
            *(
                "yarn.lock",
                "bun.lock",
                "bun.lockb",
                "bunfig.toml",
                "deno.json",
                "deno.jsonc",
                "deno.lock",
                ".npmrc",
            ),
            *(".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".swcrc"),
        )
        + r"|/(?:(?:(?:vite|vitest|jest|babel|karma|playwright|cypress)\.conf(?:ig)?"
        r"|(?:rollup|rolldown|webpack|rspack|tsup|tsdown|esbuild|unbuild)\.config|gulpfile|gruntfile"
        r"|(?:vitest|jest)\.(?:workspace|setup)|\.mocharc|\.babelrc|\.nycrc|\.c8rc)(?:\.[^/]+)?"
        r"|tsconfig[^/]*\.json)\Z"
    ),
    junk=re.compile(r"/node_modules(?:/|\Z)"),
    product_files=find_javascript_product,
    kind="node",
    preset=make_node_preset,
    find_package=tested_package,
    lock=LockRules(lacks_lock, lock_place, "npm install --package-lock-only"),
    programs=("node", "npm"),
    managers=("npm", "pnpm", "yarn", "bun"),
    program_of=MANAGERS,
    installs={name: f"npm install --global {name}" for name in ("pnpm", "yarn", "bun")},
    own_files=tuple(map(Path(__file__).with_name, ("node_reporter.mjs", BUILT_TESTS))),
    offline=("npm_config_offline",),
    registry=find_npm_registry,
    formats=FORMATS,
    traces=(
        TraceStyle(
            re.compile(
                r"\s*(?:(?:at |❯ )(?:[^\n]*? \(?)?|\S[^\n]*? \(|(?=file://))(?:file://)?"
                r"(?P<path>[^\s()'\"`]+\.[cm]?[jt]sx?)(?:\?[^\s:]*)?:\d+:\d+\)?(?: \{)?$"
            ),
            cause=re.compile(r"\s*(?:\[cause\]|Caused by): "),
            loose=True,
        ),
    ),
    names=NAMES,
    pass_cautions=PASS_CAUTIONS,
    runs_scripts=True,
    too_old=re.compile(
        r"(?i)ERR_PNPM_UNSUPPORTED_ENGINE|The engine \"\w+\" is incompatible with this module"
        r"|current global version of Yarn is 1\.|yarn\.lock is of Yarn 2 or newer"
    ),
    too_new=re.compile(r"(?i)ERR_PNPM_LOCKFILE_BREAKING_CHANGE|this machine has yarn [\d.]+, not 1\b"),
    survey=SURVEY,
)
