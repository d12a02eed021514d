"""Arguments: swapped, dropped, added by habit of the file, replaced."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..edit import Change, Edit
from ..scope import BUILTIN_NAMES, callee_name, parameters
from .registry import Site, operator

_COMMON: dict[str, tuple[str, ...]] = {
    "open": ('encoding="utf-8"', 'newline=""', 'errors="surrogateescape"', 'errors="replace"'),
    "read_text": ('encoding="utf-8"', 'errors="replace"'),
    "write_text": ('encoding="utf-8"', 'newline="\\n"'),
    "decode": ('errors="replace"', 'errors="surrogateescape"', 'errors="ignore"'),
    "encode": ('errors="replace"', 'errors="surrogateescape"'),
    "mkdir": ("exist_ok=True", "parents=True, exist_ok=True", "parents=True"),
    "makedirs": ("exist_ok=True",),
    "unlink": ("missing_ok=True",),
    "rmtree": ("ignore_errors=True",),
    "copytree": ("dirs_exist_ok=True", "symlinks=True"),
    "zip": ("strict=True",),
    "sorted": ("reverse=True", "key=str", "key=len", "key=str.lower"),
    "sort": ("reverse=True", "key=str", "key=len"),
    "max": ("default=None", "default=0", "key=len"),
    "min": ("default=None", "default=0", "key=len"),
    "next": ("None",),
    "getattr": ("None",),
    "iter": ("None",),
    "split": ("1", "maxsplit=1"),
    "rsplit": ("1", "maxsplit=1"),
    "replace": ("1",),
    "sub": ("count=1",),
    "dumps": ("ensure_ascii=False", "sort_keys=True", "default=str", "indent=2"),
    "dump": ("ensure_ascii=False", "sort_keys=True", "default=str", "allow_unicode=True", "sort_keys=False"),
    "run": ("check=True", "check=False", "text=True", "capture_output=True"),
    "enumerate": ("1", "start=1"),
    "resolve": ("strict=False", "strict=True"),
    "quote": ('safe=""', 'safe="/"', 'safe="~"'),
    "gather": ("return_exceptions=True",),
    "splitlines": ("True", "keepends=True"),
    "int": ("0", "16", "8"),
    "round": ("2",),
    "pop": ("None", "0"),
    "get": ("None",),
    "urlencode": ("doseq=True",),
    "parse_qs": ("keep_blank_values=True",),
    "parse_qsl": ("keep_blank_values=True",),
    "strip": ('"/"', '"\\n"', '"."'),
    "rstrip": ('"/"', '"\\n"', '"."'),
    "lstrip": ('"/"', '"."'),
    "model_dump": ("exclude_none=True", 'mode="json"', "by_alias=True", "exclude_unset=True"),
    "wrap": ("break_long_words=False", "break_on_hyphens=False"),
    "field": ("default=None", "compare=False", "repr=False"),
    "Field": ("default=None", "default_factory=list"),
    "add_argument": ("default=None", 'action="store_true"', "type=int"),
}


def add_argument(site: Site[ast.Call], text: str, weight: float) -> Change | None:
    """`text` as the last argument. None when the call's end cannot be told."""
    node, source = site.node, site.source
    _, end = source.span(node)
    if source.data[end - 1 : end] != b")" or not source.editable(node):
        return None
    if not node.args and not node.keywords:
        return Change((Edit(end - 1, end - 1, text.encode()),), weight)
    lasts: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
    _, last = max(source.span(item) for item in lasts)
    if len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp) and not node.keywords:
        return None
    while last < end - 1 and source.data[last : last + 1] == b")":
        last += 1  # an argument in its own parentheses
    return Change((Edit(last, last, f", {text}".encode()),), weight)


def _positional_ok(node: ast.Call) -> bool:
    return not node.keywords and not any(isinstance(a, ast.Starred) for a in node.args)


@operator("argument_swap", ast.Call, prior=0.6)
def swap_arguments(site: Site[ast.Call]) -> Iterator[Change]:
    for one, other in zip(site.node.args, site.node.args[1:], strict=False):
        yield Change((site.source.put(one, site.text(other)), site.source.put(other, site.text(one))))


@operator("argument_drop", ast.Call, prior=0.9)
def drop_argument(site: Site[ast.Call]) -> Iterator[Change]:
    unexpected = any("unexpected keyword" in m or "positional argument" in m for m in site.facts.messages)
    items: list[ast.expr | ast.keyword] = [*site.node.args, *site.node.keywords]
    spans = sorted(site.source.span(item) for item in items)
    for at, (start, end) in enumerate(spans):
        after = spans[at + 1][0] if at + 1 < len(spans) else end
        before = spans[at - 1][1] if at and at + 1 == len(spans) else start
        yield Change((Edit(before, after, b""),), 2.0 if unexpected else 0.8)


@operator("argument_add", ast.Call, prior=1.2)
def add_by_habit(site: Site[ast.Call]) -> Iterator[Change]:
    """What the enclosing function was given, what sibling calls pass, what the callee's signature takes."""
    node, scope = site.node, site.scope
    name = callee_name(node)
    if name is None:
        return
    passed = {k.arg for k in node.keywords} | {a.id for a in node.args if isinstance(a, ast.Name)}
    usable = [n for n in scope.bound_before(node) if n not in passed]
    accepted = _accepted(site, name)
    known = 1.0 if _of_the_project(site, node.func) else 0.3
    for keyword in accepted if accepted is not None else ():
        if keyword not in passed:
            if keyword in usable:
                yield from _maybe(add_argument(site, f"{keyword}={keyword}", 2.2))
            if keyword in scope.self_attributes(node):
                yield from _maybe(add_argument(site, f"{keyword}=self.{keyword}", 1.4))
            for value, weight in (("True", 0.8), ("False", 0.6), ("None", 0.4)):
                yield from _maybe(add_argument(site, f"{keyword}={value}", weight))
    for text in _habits(site, name):
        yield from _maybe(add_argument(site, text, 1.3))
    if accepted is None:
        around = site.source.function(node)
        given = parameters(around) if around is not None else []
        for own in [n for n in usable if n in given][:6]:
            yield from _maybe(add_argument(site, f"{own}={own}", 0.7 * known))
    if _positional_ok(node):
        for own in usable[:8]:
            yield from _maybe(add_argument(site, own, 0.4 * known))


def _maybe(change: Change | None) -> list[Change]:
    return [change] if change is not None else []


def _of_the_project(site: Site[ast.Call], func: ast.expr) -> bool:
    """Whether the callee is likely no method of a built-in type."""
    root = func
    while isinstance(root, ast.Attribute):
        root = root.value
    name = root.id if isinstance(root, ast.Name) else ""
    return name in ("self", "cls", "super", *site.scope.module_names) and name not in BUILTIN_NAMES


def _accepted(site: Site[ast.Call], name: str) -> list[str] | None:
    """Keywords that the callee takes, when the file or the failure shows its signature."""
    missing = [n for m in site.facts.messages if "missing" in m for n in re.findall(r"'(\w+)'", m)]
    function = site.scope.functions.get(name)
    klass = site.scope.classes.get(name)
    if function is None and klass is not None:
        inits = [s for s in klass.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"]
        function = inits[0] if inits else None
        if function is None:
            return [
                s.target.id for s in klass.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
            ]
    if function is not None:
        return parameters(function)
    return missing or None


def _habits(site: Site[ast.Call], name: str) -> list[str]:
    """Keywords that other calls of the same name pass, as they are written there."""
    mine = {k.arg for k in site.node.keywords}
    local = {*site.scope.bound_before(site.node), *site.scope.module_names, "self", "cls"}
    found: dict[str, None] = {}
    for call in site.scope.calls.get(name, []):
        for keyword in call.keywords if call is not site.node else ():
            names = {n.id for n in ast.walk(keyword.value) if isinstance(n, ast.Name)}
            if keyword.arg not in mine and keyword.arg and names <= local:
                found[site.text(keyword)] = None
    return list(found)


@operator("keyword_common", ast.Call, prior=0.8)
def common_keyword(site: Site[ast.Call]) -> Iterator[Change]:
    mine = {k.arg for k in site.node.keywords}
    for text in _COMMON.get(callee_name(site.node) or "", ()):
        keyword = text.split("=")[0] if "=" in text else None
        if (keyword and keyword not in mine) or (not keyword and _positional_ok(site.node)):
            yield from _maybe(add_argument(site, text, 1.0))


@operator("argument_add", ast.Call, prior=0.5)
def add_test_keyword(site: Site[ast.Call]) -> Iterator[Change]:
    """Keywords that the failing test uses and this file knows as names."""
    mine = {k.arg for k in site.node.keywords}
    usable = site.scope.bound_before(site.node)
    for keyword in [k for k in site.facts.keywords if k in usable and k not in mine][:4]:
        yield from _maybe(add_argument(site, f"{keyword}={keyword}", 1.0))


@operator("argument_replace", ast.Call, prior=0.6)
def replace_argument(site: Site[ast.Call]) -> Iterator[Change]:
    """An argument as sibling calls pass it in the same place."""
    name = callee_name(site.node)
    local = {*site.scope.bound_before(site.node), *site.scope.module_names, "self", "cls"}
    for call in site.scope.calls.get(name, []) if name else ():
        if call is site.node:
            continue
        for mine, theirs in zip(site.node.args, call.args, strict=False):
            names = {n.id for n in ast.walk(theirs) if isinstance(n, ast.Name)}
            if names <= local and site.text(mine) != site.text(theirs) and len(site.text(theirs)) < 60:
                yield site.swap(mine, site.text(theirs), 0.8)
        own = {k.arg: k for k in site.node.keywords}
        for keyword in call.keywords:
            names = {n.id for n in ast.walk(keyword.value) if isinstance(n, ast.Name)}
            if keyword.arg in own and names <= local:
                yield site.swap(own[keyword.arg].value, site.text(keyword.value), 0.9)


@operator("star", ast.Call, prior=0.35)
def star(site: Site[ast.Call]) -> Iterator[Change]:
    for item in site.node.args:
        if isinstance(item, ast.Starred):
            yield Change((site.source.put(item, site.text(item.value)),))
        elif isinstance(item, (ast.Name, ast.Attribute)) and len(site.node.args) <= 2:
            yield Change((site.source.put(item, f"*{site.text(item)}"),), 0.6)
    around = site.source.function(site.node)
    takes = parameters(around) if around is not None else []
    if "kwargs" in takes and not any(k.arg is None for k in site.node.keywords):
        yield from _maybe(add_argument(site, "**kwargs", 2.0))


@operator("isinstance_widen", ast.Call, prior=1.3)
def widen(site: Site[ast.Call]) -> Iterator[Change]:
    node = site.node
    if callee_name(node) not in ("isinstance", "issubclass") or len(node.args) != 2:
        return
    kinds = node.args[1]
    present = [site.text(e) for e in kinds.elts] if isinstance(kinds, ast.Tuple) else [site.text(kinds)]
    classes = [*site.scope.classes] + [n for n in site.scope.imported if n[:1].isupper()]
    held = site.held(node.args[0].id) if isinstance(node.args[0], ast.Name) else frozenset[str]()
    seen = [k.removeprefix("empty:") for k in sorted(held) if k != "None"]
    for other in dict.fromkeys(
        [*seen, "str", "bytes", "list", "tuple", "dict", "set", "int", "float", "bool", *sorted(classes)]
    ):
        if other not in present:
            weight = 1.5 if other in seen else 0.5
            yield site.swap(kinds, f"({', '.join([*present, other])})", weight)
            if len(present) == 1:
                yield site.swap(kinds, other, weight * 0.4)
    for at in range(len(present) if len(present) > 1 else 0):
        yield site.swap(kinds, f"({', '.join(p for i, p in enumerate(present) if i != at)},)", 0.7)
