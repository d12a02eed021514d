"""Facts of one source file: the parsers' result and the resolvers' input."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath


class ParsedLanguage(StrEnum):
    """Languages with a grammar."""

    PYTHON = "python"
    JAVASCRIPT = "javascript"
    TYPESCRIPT = "typescript"
    GO = "go"
    RUST = "rust"
    JAVA = "java"


LANGUAGES = {
    **dict.fromkeys((".py", ".pyi"), ParsedLanguage.PYTHON),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), ParsedLanguage.JAVASCRIPT),
    **dict.fromkeys((".ts", ".tsx", ".mts", ".cts"), ParsedLanguage.TYPESCRIPT),
    ".go": ParsedLanguage.GO,
    ".rs": ParsedLanguage.RUST,
    ".java": ParsedLanguage.JAVA,
}
"""By suffix."""


def language_of(path: str) -> ParsedLanguage | None:
    """By the suffix.

    >>> language_of("a/b.tsx"), language_of("README.md")
    (<ParsedLanguage.TYPESCRIPT: 'typescript'>, None)
    """
    return LANGUAGES.get(PurePosixPath(path).suffix)


class DefinitionKind(StrEnum):
    """What is defined."""

    FUNCTION = "function"
    METHOD = "method"
    CLASS = "class"  # also struct, enum, trait, record
    INTERFACE = "interface"
    TYPE = "type"  # alias
    CONSTANT = "constant"  # at module level only
    MODULE = "module"  # Rust `mod x;` and `mod x {}`, TypeScript namespace


@dataclass(frozen=True, slots=True)
class Definition:
    """`line` and `end_line` count from 1, both included. `owner`: the class, struct or trait of a method, or the
    function or variable around a nested definition; empty at the top of a file."""

    name: str
    kind: DefinitionKind
    line: int
    end_line: int
    owner: str = ""
    exported: bool = False


@dataclass(frozen=True, slots=True)
class Import:
    """One import statement as written.

    `module`: "a.b" (Python; `level` counts leading dots), "./x" or "pkg/x" (JavaScript, TypeScript), Go's
    path, "crate::a::b" (Rust), "com.x.Y" (Java). `names`: (name there, name here); ("*", "") takes everything and
    ("*", "x") takes the module itself under the name x. Rust's `mod x;` is "self::x" without names, and with a
    `#[path]` "./file.rs" with ("*", "x").
    """

    module: str
    names: tuple[tuple[str, str], ...] = ()
    level: int = 0
    type_only: bool = False
    dynamic: bool = False  # import() or require() inside a function, importlib, a Python import inside a function
    re_export: bool = False  # export … from, pub use, `from .x import y` in an __init__.py


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call of `name`; `receiver`: the last word before the dot, or empty. Equal calls are recorded once."""

    name: str
    receiver: str = ""


@dataclass(frozen=True, slots=True)
class Inheritance:
    """`child` extends or implements `parent`, both as written, without type arguments."""

    child: str
    parent: str


@dataclass(frozen=True, slots=True)
class FileFacts:
    """`package`: Go's and Java's declared package. `problem`: why facts are missing ("too large", "time-out",
    "syntax errors", "generated", "not text"); what could be read is there all the same. `lines` of the file.
    `references`: in Go and Java, where files of a package need no import, the types and the members of packages
    ("pkg.Name") that the file names."""

    language: ParsedLanguage
    definitions: tuple[Definition, ...] = ()
    imports: tuple[Import, ...] = ()
    calls: tuple[CallSite, ...] = ()
    inheritance: tuple[Inheritance, ...] = ()
    package: str = ""
    lines: int = 0
    problem: str = ""
    references: tuple[str, ...] = ()

    @property
    def barrel(self) -> bool:
        """Whether more than half of the names that the file offers are defined elsewhere: `export … from`,
        `pub use`, `pub mod x;`, or imports of the package itself in an `__init__.py`. `export *` counts as one
        name."""
        re_exports = sum(max(len(i.names), 1) for i in self.imports if i.re_export)
        modules = {
            i.module.rpartition("::")[2] for i in self.imports if i.module.startswith("self::") and not i.names
        }
        own = 0
        for one in self.definitions:
            if one.kind is DefinitionKind.MODULE:
                re_exports += one.exported and one.name in modules
            elif not one.owner:
                own += 1
        return re_exports > own


class EdgeKind(StrEnum):
    """How one file depends on another. One pair of files may have several kinds."""

    CALL = "call"
    EXTENDS = "extends"
    VALUE = "value"  # an import of something that exists at run time
    TYPE = "type"  # a type-only import
    DYNAMIC = "dynamic"
    BARREL = "barrel"  # an import of, or by, a file that mostly re-exports


@dataclass(frozen=True, slots=True)
class Edge:
    """File `source` depends on file `target`, by `symbols` of the target."""

    source: str
    target: str
    kind: EdgeKind
    symbols: tuple[str, ...] = ()
