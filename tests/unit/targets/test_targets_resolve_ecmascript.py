"""Imports of JavaScript and TypeScript projects, real-shaped."""

from __future__ import annotations

import time

import pytest

from tests.unit.targets.sources_fixture import edges_of, leads
from trialfleet_targets.syntax_facts import EdgeKind

MONOREPO = {
    "package.json": '{"name": "root", "workspaces": ["packages/*"]}',
    "tsconfig.base.json": """{
        // what every package shares
        "compilerOptions": {
            "baseUrl": ".",
            "paths": {"@acme/*": ["packages/*/src",], "~util": ["packages/util/src/main.ts"]}, /* and */
        },
    }""",
    "tsconfig.json": '{"extends": "./tsconfig.base"}',
    "packages/core/package.json": '{"name": "@acme/core", "main": "dist/index.js"}',
    "packages/core/src/index.ts": (
        "export { Hono } from './hono.js'\nexport type { Env } from './types'\nexport * from './router'\n"
    ),
    "packages/core/src/hono.ts": (
        "import type { Env } from './types'\nimport { Router as R } from './router'\nimport { log } from '~util'\n"
        "export class Hono extends R {\n  async go() { const { lazy } = await import('./lazy'); log(lazy()) }\n}\n"
    ),
    "packages/core/src/types.ts": "export interface Env {}\n",
    "packages/core/src/router/index.ts": "export class Router {}\n",
    "packages/core/src/lazy.tsx": "export const lazy = () => <App/>\n",
    "packages/util/package.json": (
        '{"name": "util-kit", "exports": {".": {"import": {"types": "./dist/main.d.ts",'
        ' "default": "./dist/main.js"}},'
        ' "./format": "./dist/format.js", "./deep/*": "./dist/deep/*.js"}, "imports": {"#own": "./src/format.ts"}}'
    ),
    "packages/util/src/main.ts": "import { format } from '#own'\nexport function log(x: unknown) { format(x) }\n",
    "packages/util/src/format.ts": "export const format = (x: unknown) => x\n",
    "packages/util/src/deep/one.ts": "export default 1\n",
    "apps/web/package.json": '{"name": "web"}',
    "apps/web/tsconfig.json": (
        '{"extends": ["../../tsconfig.base.json"], "compilerOptions": {"paths": {"@/*": ["./app/*"]}}}'
    ),
    "apps/web/app/main.ts": (
        "import { Hono, type Env } from '@acme/core'\nimport { log } from 'util-kit'\n"
        "import { format } from 'util-kit/format'\n"
        "import one from 'util-kit/deep/one'\nimport { view } from '@/view'\nimport React from 'react'\n"
        "new Hono()\nlog(format(one))\nview()\n"
    ),
    "apps/web/app/view.jsx": "const { main } = require('./legacy')\nexport function view() { return <main/> }\n",
    "apps/web/app/legacy.cjs": "module.exports = { main() {} }\n",
}


def test_workspaces_exports_and_paths() -> None:
    found = edges_of(MONOREPO)
    assert leads(found, "apps/web/app/main.ts") == {
        "packages/core/src/index.ts": (),
        "packages/core/src/hono.ts": ("Hono",),
        "packages/core/src/types.ts": ("Env",),
        "packages/util/src/main.ts": ("log",),
        "packages/util/src/format.ts": ("format",),
        "packages/util/src/deep/one.ts": (),
        "apps/web/app/view.jsx": ("view",),
    }
    assert leads(found, "apps/web/app/main.ts", EdgeKind.TYPE).keys() == {
        "packages/core/src/index.ts",
        "packages/core/src/types.ts",
    }
    assert leads(found, "apps/web/app/main.ts", EdgeKind.BARREL).keys() == {"packages/core/src/index.ts"}
    assert leads(found, "apps/web/app/main.ts", EdgeKind.CALL) == {
        "packages/core/src/hono.ts": ("Hono",),
        "packages/util/src/main.ts": ("log",),
        "packages/util/src/format.ts": ("format",),
        "apps/web/app/view.jsx": ("view",),
    }


def test_js_that_means_ts_index_files_and_dynamic_imports() -> None:
    found = edges_of(MONOREPO)
    assert leads(found, "packages/core/src/index.ts") == {
        "packages/core/src/hono.ts": ("Hono",),
        "packages/core/src/types.ts": ("Env",),
        "packages/core/src/router/index.ts": (),
    }
    assert leads(found, "packages/core/src/hono.ts", EdgeKind.TYPE) == {"packages/core/src/types.ts": ("Env",)}
    assert leads(found, "packages/core/src/hono.ts", EdgeKind.DYNAMIC) == {"packages/core/src/lazy.tsx": ("lazy",)}
    assert leads(found, "packages/core/src/hono.ts", EdgeKind.EXTENDS) == {
        "packages/core/src/router/index.ts": ("Router",)
    }
    assert leads(found, "packages/util/src/main.ts") == {"packages/util/src/format.ts": ("format",)}


def test_commonjs_beside_modules() -> None:
    assert leads(edges_of(MONOREPO), "apps/web/app/view.jsx") == {"apps/web/app/legacy.cjs": ("main",)}


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ('{"extends": "./b.json", "compilerOptions": {"paths": {"x": ["./x.ts"]}}}', "tsconfig.json"),
        ('{"extends": "./tsconfig.json"}', "tsconfig.json"),
        ('{"extends": 7, "compilerOptions": {"paths": [1]}}', "tsconfig.json"),
        ('{"compilerOptions": ', "tsconfig.json"),
        ("not JSON", "package.json"),
        ('{"name": 3, "exports": [[["./y.js"]]], "main": {}}', "package.json"),
        ("[" * 5000, "package.json"),
        ("\ufffd\0", "tsconfig.json"),
    ],
)
def test_configuration_that_nobody_can_read_is_as_if_it_were_not_there(config: str, path: str) -> None:
    project = {
        "a.ts": "import { b } from './b'\n",
        "b.ts": "export const b = 1\n",
        "tsconfig.b.json": '{"extends": "./tsconfig"}',
    }
    assert leads(edges_of({**project, path: config}), "a.ts") == {"b.ts": ("b",)}


PNPM = {
    "pnpm-workspace.yaml": (
        "# members\npackages:\n  - 'packages/*'   # all of them\n  - \"!**/fixtures/**\"\n  - apps/**\n"
    ),
    "package.json": '{"name": "root"}',
    "packages/core/package.json": '{"name": "@acme/core", "main": "./src/index.ts"}',
    "packages/core/src/index.ts": "export const core = 1\n",
    "apps/web/package.json": '{"name": "web", "dependencies": {"@acme/core": "workspace:*"}}',
    "apps/web/main.ts": "import { core } from '@acme/core'\n",
}
COPY = {
    "a_copy/package.json": '{"name": "@acme/core", "main": "./src/index.ts"}',
    "a_copy/src/index.ts": "export const core = 2\n",
}
MEANT, COPIED = {"packages/core/src/index.ts": ("core",)}, {"a_copy/src/index.ts": ("core",)}


def test_a_package_of_a_pnpm_workspace_is_found_by_its_name() -> None:
    assert leads(edges_of(PNPM), "apps/web/main.ts") == MEANT


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pnpm-workspace.yaml", PNPM["pnpm-workspace.yaml"]),
        ("pnpm-workspace.yaml", "packages: ['apps/*', \"packages/**\"] # two\ncatalog:\n  - a_copy\n"),
        (
            "pnpm-workspace.yaml",
            "onlyBuiltDependencies:\n- a_copy\npackages:\n- ./packages/co*/\n\n# and\n- apps/web\n",
        ),
        ("pnpm-workspace.yaml", "packages: [\n  apps/*,\n  packages/*,\n]\n"),
        ("package.json", '{"workspaces": ["packages/*"]}'),
        ("package.json", '{"workspaces": {"packages": ["**", "!a_copy"]}}'),
        ("lerna.json", '{"packages": ["packages/core"]}'),
    ],
)
def test_of_two_packages_of_one_name_the_member_is_meant(path: str, text: str) -> None:
    project = {**PNPM, **COPY, "pnpm-workspace.yaml": "", path: text}
    assert leads(edges_of(project), "apps/web/main.ts") == MEANT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "packages:\n  - *all\n",
        "packages:\n  - ../packages/*\n  - /packages/*\n  - packages/../packages/*\n",
        "packages: packages/*\n",
        "packages:\n  - 'packages/*'\n  - '!packages/core'\n",
        "\0\xff packages",
        "a: &a [x, x]\nb: &b [*a, *a]\npackages: *b\n",
    ],
)
def test_without_a_member_the_outermost_is(text: str) -> None:
    assert leads(edges_of({**PNPM, **COPY, "pnpm-workspace.yaml": text}), "apps/web/main.ts") == COPIED


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("link:../../a_copy", COPIED),
        ("file:../../a_copy/", COPIED),
        ("portal:../../a_copy", COPIED),
        ("workspace:../../a_copy", COPIED),
        ("workspace:^1.2.0", MEANT),
        ("link:../../../../etc", MEANT),
        ("link:/a_copy", MEANT),
        ("npm:elsewhere@1", MEANT),
    ],
)
def test_a_dependency_may_name_a_folder(said: str, found: dict[str, tuple[str, ...]]) -> None:
    web = f'{{"name": "web", "devDependencies": {{"@acme/core": "{said}"}}}}'
    assert leads(edges_of({**PNPM, **COPY, "apps/web/package.json": web}), "apps/web/main.ts") == found


def test_a_dependency_may_have_a_name_of_its_own() -> None:
    web = '{"name": "web", "dependencies": {"heart": "workspace:@acme/core@*", "@acme/none": "workspace:gone@*"}}'
    main = "import { core } from 'heart'\nimport 'heart/src/index'\nimport '@acme/none'\n"
    assert (
        leads(edges_of({**PNPM, "apps/web/package.json": web, "apps/web/main.ts": main}), "apps/web/main.ts")
        == MEANT
    )


@pytest.mark.parametrize(
    ("path", "filler"),
    [
        ("pnpm-workspace.yaml", "packages:\n - '**/*a*a*a*a*a*a*b'\n - \"" + "*a" * 100 + 'b"\n'),
        ("pnpm-workspace.yaml", "packages: [" + "a, " * 50 + "\n"),
        ("pnpm-workspace.yaml", "packages:\n" + " - '**/**/**/**/x'\n" * 200),
        ("pnpm-workspace.yaml", "- '"),
        ("pnpm-workspace.yaml", "packages:" + " " * 1000),
        ("tsconfig.json", "/*"),
        ("tsconfig.json", '"\\'),
        ("package.json", '{"workspaces": ["a/**"], /*'),
        ("package.json", ", "),
    ],
)
def test_a_megabyte_of_anything_is_read_at_once(path: str, filler: str) -> None:
    copies = {
        f"{above}{n}/{name}": text for n in range(50) for above, (name, text) in _parts(COPY, "a" * 80 + "/x")
    }
    began = time.process_time()
    found = edges_of({**PNPM, **COPY, **copies, path: filler * (2**20 // len(filler))})
    assert leads(found, "apps/web/main.ts")
    assert time.process_time() - began < 5


def _parts(project: dict[str, str], above: str) -> list[tuple[str, tuple[str, str]]]:
    return [(above, (path.partition("/")[2], text)) for path, text in project.items()]


def test_circular_extends_end() -> None:
    found = edges_of(
        {
            "tsconfig.json": '{"extends": "./tsconfig.a.json"}',
            "tsconfig.a.json": (
                '{"extends": "./tsconfig.json", "compilerOptions": {"paths": {"$lib/*": ["./lib/*"]}}}'
            ),
            "lib/x.ts": "export const x = 1\n",
            "main.ts": "import { x } from '$lib/x'\n",
        }
    )
    assert leads(found, "main.ts") == {"lib/x.ts": ("x",)}


def test_a_path_out_of_the_repository_leads_nowhere() -> None:
    assert edges_of({"a.js": "import '../../../b'\nimport '..'\nimport './a'\n", "b.js": ""}) == ()


def test_barrels_of_barrels_and_renames() -> None:
    found = edges_of(
        {
            "index.ts": "export * from './inner'\nexport { default as Main } from './main'\n",
            "inner/index.ts": "export { one as uno } from './one'\nexport * from '../index'\n",
            "inner/one.ts": "const one = 1\nexport { one }\n",
            "main.ts": "export default class Main {}\n",
            "use.ts": "import { uno, Main, gone } from '.'\nuno()\nclass A extends Main {}\n",
        }
    )
    assert leads(found, "use.ts") == {"index.ts": (), "inner/one.ts": ("one",), "main.ts": ()}
    assert leads(found, "use.ts", EdgeKind.CALL) == {"inner/one.ts": ("one",)}
    assert leads(found, "use.ts", EdgeKind.EXTENDS) == {"main.ts": ()}
