"""Imports of JavaScript and TypeScript projects, real-shaped."""

from __future__ import annotations

import pytest

from tests.unit.targets.sources_fixture import edges_of, leads
from trialfleet_targets.facts import EdgeKind

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
