"""What JavaScript and TypeScript files say about themselves."""

from __future__ import annotations

from trialfleet_targets.parsing import parse
from trialfleet_targets.syntax_facts import FileFacts, Import, ParsedLanguage

TYPED = """\
import main, { one as uno, type Shape } from './shapes.js'
import type { Only } from '../types'
import * as all from '@scope/all'
import './side-effect'
import legacy = require('legacy')
export { a as b, type T } from './passed'
export * from './everything'
export * as ns from './space'
export default class Router<T> extends Base.Http<T> implements Routes, Closer<T> {
  private secret = () => 1
  handle(): void {}
}
export const serve = async () => {
  const lazy = await import('./lazy')
  const { x, y: z } = await import('./lazier')
  return new Router(lazy)
}
const local = 1, wrapped = defineStore({ setup() { start() }, stop: () => 0 })
export { local as renamed, wrapped, uno as eins }
export interface Routes extends Table<string>, Other { find(path: string): Routes }
export type Handler = (r: Routes) => void
export enum Verb { Get }
export function over(a: string): void
export namespace Inner { export const deep = 1 }
function App() { return <Router.Page><Link/><div/></Router.Page> }
"""


def facts(source: str, path: str = "src/a.tsx") -> FileFacts:
    found = parse(path, source.encode())
    assert found is not None
    return found


def test_definitions_with_owners_and_exports() -> None:
    found = facts(TYPED)
    assert (found.language, found.problem) == (ParsedLanguage.TYPESCRIPT, "")
    assert [(d.name, d.kind.value, d.line, d.owner, d.exported) for d in found.definitions] == [
        ("Router", "class", 9, "", True),
        ("secret", "method", 10, "Router", False),
        ("handle", "method", 11, "Router", True),
        ("serve", "function", 13, "", True),
        ("local", "constant", 18, "", True),
        ("wrapped", "constant", 18, "", True),
        ("setup", "method", 18, "wrapped", False),
        ("stop", "method", 18, "wrapped", False),
        ("renamed", "constant", 18, "", True),
        ("Routes", "interface", 20, "", True),
        ("find", "method", 20, "Routes", True),
        ("Handler", "type", 21, "", True),
        ("Verb", "class", 22, "", True),
        ("over", "function", 23, "", True),
        ("Inner", "module", 24, "", True),
        ("deep", "constant", 24, "", True),
        ("App", "function", 25, "", False),
    ]


def test_imports_type_only_dynamic_and_passed_on() -> None:
    assert facts(TYPED).imports == (
        Import("./shapes.js", (("default", "main"), ("one", "uno"))),
        Import("./shapes.js", (("Shape", "Shape"),), type_only=True),
        Import("../types", (("Only", "Only"),), type_only=True),
        Import("@scope/all", (("*", "all"),)),
        Import("./side-effect", ()),
        Import("legacy", (("*", "legacy"),)),
        Import("./passed", (("a", "b"),), re_export=True),
        Import("./passed", (("T", "T"),), type_only=True, re_export=True),
        Import("./everything", (("*", ""),), re_export=True),
        Import("./space", (("*", "ns"),), re_export=True),
        Import("./lazy", (("*", "lazy"),), dynamic=True),
        Import("./lazier", (("x", "x"), ("y", "z")), dynamic=True),
        Import("./shapes.js", (("one", "eins"),), re_export=True),
    )


def test_calls_constructions_and_components() -> None:
    assert [(c.name, c.receiver) for c in facts(TYPED).calls] == [
        ("Router", ""),
        ("defineStore", ""),
        ("start", ""),
        ("Page", "Router"),
        ("Link", ""),
    ]


def test_parents() -> None:
    assert [(i.child, i.parent) for i in facts(TYPED).inheritance] == [
        ("Router", "Base.Http"),
        ("Router", "Routes"),
        ("Router", "Closer"),
        ("Routes", "Table"),
        ("Routes", "Other"),
    ]


def test_commonjs() -> None:
    source = """\
const fs = require('fs'), { join } = require('./paths')
module.exports = { serve, stop: function () { return require('./late') }, alias: hidden }
exports.extra = () => join()
Server.prototype.listen = function () {}
function serve() {}
function hidden() {}
"""
    found = facts(source, "lib/server.js")
    assert [(d.name, d.owner, d.exported) for d in found.definitions] == [
        ("stop", "", True),
        ("extra", "", True),
        ("listen", "Server", False),
        ("serve", "", True),
        ("hidden", "", True),
    ]
    assert found.imports == (
        Import("fs", (("*", "fs"),)),
        Import("./paths", (("join", "join"),)),
        Import("./late", (), dynamic=True),
    )


def test_an_import_that_is_exported_again_is_passed_on() -> None:
    found = facts("import { a } from './a'\nimport { b } from './b'\nexport { a }\nb()\n", "x.mjs")
    assert [i.re_export for i in found.imports] == [True, False]


def test_what_the_grammar_gives_up_is_found_by_its_first_words() -> None:
    source = "export type A = 1\nexport interface I { %%% ((( <<< \n}\nexport const late = () => 1\n"
    source += "export class Last {}\n"
    found = facts(source, "types.ts")
    assert found.problem == "syntax errors"
    assert {"A", "late", "Last"} <= {d.name for d in found.definitions if d.exported}
