"""Lists what removes or replaces files: `python -m tests.architecture.deletions` prints each place."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tests.architecture.structure import ROOT, modules

TABLE = ROOT / "tests/architecture/deletions.tsv"
ALWAYS = frozenset({"unlink", "rmdir", "rmtree", "removedirs", "rename", "renames", "ftruncate"})  # nothing else
SOMETIMES = frozenset({"remove", "replace", "move", "truncate"})  # of os, posix, shutil and our own modules alone
WRITES = frozenset({"write_text", "write_bytes", "copyfile", "copytree", "copy2"})
PROGRAMS = frozenset({"rm", "mv", "shred", *ALWAYS})  # as a word: an argument list, or a name for `getattr`
SYSTEM = frozenset({"os", "posix", "shutil"})
OWN = {
    "trialfleet_ledger.removal": frozenset({"remove", "remove_entry", "remove_folder"}),
    "trialfleet_ledger.atomic_file": frozenset({"write_whole"}),
}
USERS = ("trialfleet_tasks", "trialfleet_controller", "trialfleet_analysis")  # packages that write where users say


class Place(NamedTuple):
    """A function (or the top of a module) and what it calls or names."""

    where: str
    call: str


def places() -> Counter[Place]:
    """How often each function of the product names something that removes or replaces files."""
    return Counter(
        place
        for name, path in modules().items()
        for place in scan(path.read_text(), name, writes=name.startswith(USERS))
    )


def scan(source: str, module: str, *, writes: bool = False) -> Iterator[Place]:
    """Of one module. References count as well as calls: a function may be handed over. `writes`: also what
    truncates."""
    tree = ast.parse(source)
    yield from _visit(tree, module, _names(tree), ALWAYS | (WRITES if writes else frozenset()))


def _names(tree: ast.AST) -> dict[str, str]:
    """Local name -> the module, or module.function, that it stands for, wherever it is imported."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {each.asname or each.name.partition(".")[0]: each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    return names


def _visit(node: ast.AST, where: str, names: Mapping[str, str], always: frozenset[str]) -> Iterator[Place]:
    for child in ast.iter_child_nodes(node):
        inner = where
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{where}{'.' if ':' in where else ':'}{child.name}"
        call = _call(child, names, always)
        if call is not None:
            yield Place(inner, call)
        yield from _visit(child, inner, names, always)


def _call(node: ast.AST, names: Mapping[str, str], always: frozenset[str]) -> str | None:
    match node:
        case ast.ImportFrom(module=str(module), names=[ast.alias(name="*")]) if module in SYSTEM | OWN.keys():
            return f"{module}.*"
        case ast.Name(id=name):
            module, _, function = names.get(name, "").rpartition(".")
            return f"{module}.{function}" if _removes(module, function) else None
        case ast.Attribute(attr=name, value=value):
            module = names.get(value.id, "") if isinstance(value, ast.Name) else ""
            if _removes(module, name):
                return f"{module}.{name}"
            return f".{name}" if name in always else None
        case ast.Call(func=ast.Attribute(attr="replace"), args=[_], keywords=[]):
            return ".replace"  # of a path: that of a string has two arguments
        case ast.Call(func=ast.Attribute(attr="open"), args=[ast.Constant(value=str(mode)), *_]):
            return f'.open("{mode}")' if _truncates(mode, always) else None
        case ast.Call(func=ast.Name(id="open"), args=[_, ast.Constant(value=str(mode)), *_]):
            return f'open("{mode}")' if _truncates(mode, always) else None
        case ast.Constant(value=str(word)) if word in PROGRAMS:
            return f'"{word}"'
        case _:
            return None


def _truncates(mode: str, always: frozenset[str]) -> bool:
    return always >= WRITES and "w" in mode


def _removes(module: str, name: str) -> bool:
    return (module in SYSTEM and name in ALWAYS | SOMETIMES) or name in OWN.get(module, ())


def proofs() -> dict[Place, tuple[int, str]]:
    """The table: place -> (how often, the proof that what is removed or replaced is ours)."""
    rows = (line.split("\t") for line in TABLE.read_text().splitlines()[1:])
    return {Place(where, call): (int(count), proof) for where, call, count, proof in rows}


if __name__ == "__main__":
    for place, count in sorted(places().items()):
        print(*place, count, proofs().get(place, (0, ""))[1], sep="\t")
