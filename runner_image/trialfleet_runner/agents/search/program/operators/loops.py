"""Loops and comprehensions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edit import Change, Edit
from .registry import Site, operator

Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp


@operator("loop", ast.For, ast.AsyncFor, prior=0.7)
def loop(site: Site[ast.For | ast.AsyncFor]) -> Iterator[Change]:
    yield from _iterated(site, site.node.iter, isinstance(site.node.target, ast.Tuple))


def _iterated(site: Site[ast.AST], node: ast.expr, pair: bool) -> Iterator[Change]:
    text = site.text(node)
    tight = text if isinstance(node, (ast.Name, ast.Call, ast.Attribute, ast.Subscript)) else f"({text})"
    options = [
        (f"{tight} or ()", 0.8),
        (f"list({text})", 0.8),
        (f"sorted({text})", 0.8),
        (f"reversed({text})", 0.7),
    ]
    options += [
        (f"{tight}[1:]", 0.6),
        (f"{tight}[:-1]", 0.5),
        (f"set({text})", 0.3),
        (f"dict.fromkeys({text})", 0.4),
    ]
    if pair and not text.endswith(".items()"):
        options += [(f"{tight}.items()", 1.2), (f"enumerate({text})", 0.5)]
    elif text.endswith(".items()"):
        options.append((text.removesuffix(".items()"), 0.4))
    wanted = site.facts.makes("sorted", "reversed", "dedupe", "drop_first", "drop_last")
    for other, weight in options:
        yield Change((site.source.put(node, other),), weight * (2.0 if wanted else 1.0))


@operator("comprehension", ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp, prior=1.0)
def filters(site: Site[ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp]) -> Iterator[Change]:
    for generator in site.node.generators:
        names = [n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name)]
        last: ast.expr = generator.ifs[-1] if generator.ifs else generator.iter
        _, end = site.source.span(last)
        for name in names:
            if not generator.ifs:
                wanted = 2.5 if site.facts.makes("truthy") else 1.0
                for condition, weight in ((name, 1.0), (f"{name} is not None", 0.9), (f"not {name}", 0.2)):
                    yield Change((Edit(end, end, f" if {condition}".encode()),), weight * wanted)
            else:
                yield Change((Edit(end, end, f" and {name}".encode()),), 0.7)
                yield Change((Edit(end, end, f" and {name} is not None".encode()),), 0.6)
        for test in generator.ifs:
            yield site.swap(test, f"not ({site.text(test)})", 0.7)
            yield site.swap(test, "True", 0.9)


@operator("comprehension", ast.comprehension, prior=0.5)
def source_of(site: Site[ast.comprehension]) -> Iterator[Change]:
    yield from _iterated(site, site.node.iter, isinstance(site.node.target, ast.Tuple))


@operator("comprehension", ast.ListComp, ast.SetComp, ast.GeneratorExp, prior=0.5)
def kind(site: Site[Comprehension]) -> Iterator[Change]:
    start, end = site.source.span(site.node)
    inner = site.source.data[start + 1 : end - 1].decode()
    if isinstance(site.node, ast.GeneratorExp):
        yield site.swap(site.node, f"[{inner}]", 0.6)
        return
    yield site.swap(site.node, f"[{inner}]" if isinstance(site.node, ast.SetComp) else f"{{{inner}}}")
    yield site.swap(site.node, f"sorted({inner})", 0.7)
    yield site.swap(site.node, f"list(dict.fromkeys({inner}))", 0.6)
