"""YAML files that people write: read into a model, every refusal naming file, line and field.

Keys that start with `_` are notes for people and ignored (also as anchors to copy from); a key that stands twice
is refused. Values are taken strictly: `reps: "25"` and `version: 3.11` (a number) are refused, not converted. What
YAML 1.1 reads otherwise than people do (`010`, `1:30`, `1_000`, `no`) is refused, with the value that was meant.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Generic, TypeGuard, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.errors import FieldError, OperatorError
from trialfleet_ledger.registered_union import RegisteredUnion

M = TypeVar("M", bound=BaseModel)
Place = tuple[str | int, ...]

MAX_BYTES = 8 * 2**20
MAX_NODES = 250_000  # after aliases are expanded: a file of a few lines can grow without bound


@dataclass(frozen=True)
class Loaded(Generic[M]):
    """A file's value, its SHA-256, and where each field stands (for refusals that come later)."""

    path: Path
    value: M
    sha256: str
    lines: Mapping[Place, int] = field(repr=False)

    def where(self, *place: str | int) -> str:
        """`campaign.yaml:7: conditions[1]`; the nearest parent's line when the field is not written."""
        return located(self.path, self.lines, place)


def load(path: Path, model: type[M]) -> M:
    """The file's value. `OperatorError` names the file, the line and the field."""
    return read(path, model).value


def read(path: Path, model: type[M]) -> Loaded[M]:
    """Like `load`, with digest and positions."""
    raw = _bytes(path)
    reader = _PlainReader(path)
    try:
        value = reader.walk(_compose(path, raw), (), ())
        text = json.dumps(value)
    except RecursionError:
        raise OperatorError("is nested too deeply", where=str(path), hint="use fewer levels of brackets") from None
    try:
        parsed = model.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise _refusal(reader, model, value, error) from None
    return Loaded(path, parsed, sha256(raw), reader.lines)


def located(path: Path, lines: Mapping[Place, int], place: Place) -> str:
    """File, line and dotted field of one place."""
    known = place
    while known not in lines and known:
        known = known[:-1]
    at = f"{path}:{lines[known]}" if known in lines else str(path)
    return f"{at}: {dotted(place)}" if place else at


def dotted(place: Place) -> str:
    """A place as people write it.

    >>> dotted(("tasks", 3, "id"))
    'tasks[3].id'
    """
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _bytes(path: Path) -> bytes:
    if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe would be waited for, a device never ends
        raise OperatorError("is not a regular file", where=str(path), hint="write the text into a file")
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise OperatorError("no such file", where=str(path), hint="check the path") from None
    except IsADirectoryError:
        raise OperatorError("is a directory, not a file", where=str(path), hint="name the YAML file") from None
    except OSError as error:
        raise OperatorError(
            f"cannot be read: {error.strerror}", where=str(path), hint="check its owner and permissions"
        ) from None
    if len(raw) > MAX_BYTES:
        raise OperatorError(f"is larger than {MAX_BYTES} bytes", where=str(path), hint="split the file")
    return raw


def _not_yaml(path: Path, error: yaml.YAMLError) -> OperatorError:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark
        line = f":{mark.line + 1}" if mark is not None else ""
        return OperatorError(f"is not YAML: {error.problem}", where=f"{path}{line}", hint="correct this line")
    return OperatorError(
        f"is not YAML: {error}", where=str(path), hint="name a YAML file; remove characters that are not text"
    )


def _compose(path: Path, raw: bytes) -> yaml.Node:
    try:
        node = yaml.compose(raw.decode(), Loader=yaml.SafeLoader)
    except UnicodeDecodeError as error:
        raise OperatorError(
            f"is not UTF-8 (byte {error.start})",
            where=str(path),
            hint="name a YAML file; if it is one, save it as UTF-8 text",
        ) from None
    except yaml.YAMLError as error:
        raise _not_yaml(path, error) from None
    if not isinstance(node, yaml.MappingNode):
        raise OperatorError(
            "must be a mapping (key: value lines)", where=str(path), hint="start with lines such as `key: value`"
        )
    return node


@dataclass
class _PlainReader:
    """Nodes of one file as plain values. `lines`: the line of every place; `bare`: what stands there without
    quotes."""

    path: Path
    lines: dict[Place, int] = field(default_factory=dict[Place, int])
    bare: dict[Place, str] = field(default_factory=dict[Place, str])
    scalars: yaml.SafeLoader = field(default_factory=lambda: yaml.SafeLoader(""))
    count: int = 0

    def walk(self, node: yaml.Node, place: Place, open_nodes: tuple[int, ...]) -> Any:
        self.count += 1
        self.lines.setdefault(place, _line(node))
        if self.count > MAX_NODES or id(node) in open_nodes:
            raise OperatorError(
                "the aliases expand to too much text",
                where=located(self.path, self.lines, place),
                hint="write the values out instead of *aliases",
            )
        inner = (*open_nodes, id(node))
        if isinstance(node, yaml.SequenceNode):
            return [self.walk(child, (*place, i), inner) for i, child in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, place, inner)
        return self.scalar(node, place)

    def mapping(self, node: yaml.MappingNode, place: Place, inner: tuple[int, ...]) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, child in node.value:
            key = self._key(key_node)
            if key == "<<":
                merged.update(_merge(self.path, self.walk(child, (*place, "<<"), inner), _line(key_node)))
                continue
            if key in own:
                raise OperatorError(
                    "this key is used twice",
                    where=f"{self.path}:{_line(key_node)}: {dotted((*place, key))}",
                    hint=f"the first is on line {self.lines[(*place, key)]}: keep one",
                )
            self.lines[(*place, key)] = _line(key_node)
            own[key] = self.walk(child, (*place, key), inner)
        return {key: value for key, value in {**merged, **own}.items() if not key.startswith("_")}

    def _key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode) or _NO_TEXT.search(node.value):
            raise OperatorError(
                "a key must be plain text",
                where=f"{self.path}:{_line(node)}",
                hint="write `key: value`; braces of a template need quotes around them",
            )
        return str(node.value)

    def scalar(self, node: yaml.Node, place: Place) -> Any:
        if node.tag == "tag:yaml.org,2002:timestamp":
            return node.value
        try:
            value: Any = self.scalars.construct_object(node)  # pyright: ignore[reportUnknownMemberType]
            str(value)  # Python refuses to write whole numbers of more than 4,300 digits
        except (yaml.YAMLError, ValueError, OverflowError):
            hint = "if it is text, put it in quotes; tags (!…) are not allowed"
            raise self._wrong(f"{_short(node.value)} cannot be read", place, hint) from None
        if isinstance(value, str) and _NO_TEXT.search(value):
            raise self._wrong("holds NUL or half a character, which no text can hold", place, "remove it")
        if isinstance(value, float) and not math.isfinite(value):
            raise self._wrong("must be a finite number", place, "write the number in digits")
        if not isinstance(value, str | int | float | bool | None):
            hint = "write plain text, a number, true, false or null"
            raise self._wrong(f"tag {node.tag} is not allowed", place, hint)
        if isinstance(node, yaml.ScalarNode) and node.style is None:
            self.bare[place] = str(node.value)
            self._refuse_other_notation(str(node.value), value, place)
        return value

    def _refuse_other_notation(self, text: str, value: object, place: Place) -> None:
        if isinstance(value, str | None) or _AS_PEOPLE_READ_IT.fullmatch(text):
            return
        plain = json.dumps(value)
        raise self._wrong(
            f"YAML reads `{_short(text)[1:-1]}` as {plain}",
            place,
            f"write {plain} if that is meant, {text.lstrip('0') or 0} if a decimal number is, "
            f'or "{text}" in quotes if it is text'
            if text.isdigit()
            else f'write {plain}, or "{text}" in quotes if it is text',
        )

    def _wrong(self, message: str, place: Place, hint: str) -> OperatorError:
        return OperatorError(message, where=located(self.path, self.lines, place), hint=hint)


# Of what is not text. YAML 1.1 also has octal (010), hexadecimal, binary and sexagesimal (1:30) numbers, digits in
# groups (1_000), and yes, no, on and off.
_AS_PEOPLE_READ_IT = re.compile(
    r"[-+]?(0|[1-9]\d*)|[-+]?(\d+\.\d*|\.\d+)([eE][-+]?\d+)?|true|True|TRUE|false|False|FALSE"
)
_NO_TEXT = re.compile("[\0\ud800-\udfff]")  # of "\\0" and "\\ud800" in quotes
_A_NUMBER = re.compile(r"[-+]?[\d_]*\.?\d[\d_]*([eE][-+]?\d{1,2})?|0o[0-7]+")


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1 if node.start_mark is not None else 1


def _merge(path: Path, value: Any, line: int) -> dict[str, Any]:
    parts = value if _is_list(value) else [value]
    merged: dict[str, Any] = {}
    for part in reversed(parts):  # YAML: the earlier one wins
        if not _is_mapping(part):
            raise OperatorError(
                "`<<` needs a mapping",
                where=f"{path}:{line}",
                hint="give it an *alias of a mapping",
            )
        merged.update(part)
    return merged


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _is_mapping(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


# --- refusals ---------------------------------------------------------------------------------------

_WORDS = {
    "extra_forbidden": "unknown key",
    "missing": "is required and missing",
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
}
_HINTS = {
    "string_type": "put it in quotes",
    "int_type": "write it without quotes and without a decimal point",
    "float_type": "write the number without quotes",
    "missing": "add it",
    "bool_type": "write true or false without quotes",
    "int_from_float": "write it without a decimal point",
    "tuple_type": "write [a, b], or one `- a` line for each",
    "list_type": "write [a, b], or one `- a` line for each",
    "dict_type": "write {key: value}, or `key: value` lines below it",
    "model_type": "write {key: value}, or `key: value` lines below it",
    "model_attributes_type": "write {key: value}, or `key: value` lines below it",
    "string_too_short": "write some text",
    "string_pattern_mismatch": "write it as the pattern says",
    "union_tag_not_found": "add the key that says which kind it is",
}
_ANY_HINT = "correct the value, or remove the line to use the default"
_PATTERNS = {  # pattern of a field -> way out in words
    r"^[0-9a-f]{64}$": "give all 64 lower-case hexadecimal digits, as `sha256sum` prints them",
    r"^([0-9a-f]{40}|[0-9a-f]{64})$": "give all 40 lower-case hexadecimal digits (64 in a SHA-256 repository), as "
    "`git rev-parse` prints them",
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$": "use letters, digits, . _ and -, a letter or digit first, at most 100",
    r"^[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+$": "write name==version",
}
_BOUNDS = {  # error type -> (name of the bound in its context, way out)
    "greater_than_equal": ("ge", "set it to {} or more"),
    "greater_than": ("gt", "set it to more than {}"),
    "less_than_equal": ("le", "set it to {} or less"),
    "less_than": ("lt", "set it to less than {}"),
    "too_short": ("min_length", "give at least {}"),
    "literal_error": ("expected", "choose one of {}"),
    "enum": ("expected", "choose one of {}"),
    "union_tag_invalid": ("expected_tags", "choose one of {}"),
}


def _refusal(reader: _PlainReader, model: type[BaseModel], value: Any, error: ValidationError) -> OperatorError:
    """One message: the errors that lie deepest (of a union, the branch that got furthest), in file order."""
    path, lines = reader.path, reader.lines
    found: dict[Place, list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False):
        found.setdefault(_place(detail["loc"], value, detail["type"] == "missing"), []).append(detail)
    deepest = [p for p in found if not any(q != p and q[: len(p)] == p for q in found)]
    unwritten = 1 << 30  # a missing key is often a misspelt one: say first what stands in the file
    deepest.sort(key=lambda place: (lines.get(place, unwritten), dotted(place)))
    first, *rest = deepest
    words = " or ".join(dict.fromkeys(_word(detail) for detail in found[first]))
    more = "".join(f"\n  also {located(path, lines, place)}: {_word(found[place][0])}" for place in rest[:4]) + (
        f"\n  and {len(rest) - 4} more" if len(rest) > 4 else ""
    )
    hint = _hint_of_bare(found[first][0], reader.bare.get(first)) or _hint(found[first][0], first, model)
    return OperatorError(words + more, where=located(path, lines, first), hint=hint)


def _hint_of_bare(detail: ErrorDetails, bare: str | None) -> str | None:
    """Where quotes are missing, or YAML takes a number for text: `1e3`, `08`.

    >>> _hint_of_bare({"type": "int_type", "loc": (), "msg": "", "input": "1e3"}, "1e3")
    'YAML takes 1e3 for text: write 1000'
    """
    if bare is None:
        return None
    if detail["type"] == "string_type":
        return f'put it in quotes: "{bare}"'
    takes_text = detail["type"] in ("int_type", "float_type") and isinstance(detail["input"], str)
    if takes_text and _A_NUMBER.fullmatch(bare):
        number = int(bare, 8) if bare.startswith("0o") else float(bare.replace("_", ""))
        plain = f"{number:.12f}".rstrip("0").rstrip(".") if abs(number) < 1e6 else ""
        return f"YAML takes {bare} for text: write {plain}" if float(plain or "nan") == number else None
    return None


def _place(loc: Place, value: Any, missing: bool) -> Place:
    """A pydantic location without the names of union branches: only parts that the file has."""
    place: list[str | int] = []
    for i, part in enumerate(loc):
        last = i == len(loc) - 1
        if _is_mapping(value):
            if isinstance(part, str) and (part in value or (missing and last)):
                place.append(part)
                value = value.get(part)
        elif _is_list(value) and isinstance(part, int):
            place.append(part)
            value = value[part]
    return tuple(place)


def _word(detail: ErrorDetails) -> str:
    kind = detail["type"]
    if kind in _WORDS:
        return _WORDS[kind]
    message = detail["msg"].removeprefix("Value error, ")
    if kind == "value_error":
        return message
    given = detail["input"]
    shown = f" (given: {given!r})" if isinstance(given, str | int | float | bool) else ""
    return message[:1].lower() + message[1:] + shown


def _hint(detail: ErrorDetails, place: Place, model: type[BaseModel]) -> str:
    context = detail.get("ctx", {})
    if detail["type"] == "extra_forbidden" and place:
        return _of_unknown(str(place[-1]), place[:-1], model)
    if detail["type"] in _BOUNDS:
        bound = context.get(_BOUNDS[detail["type"]][0])
        return _BOUNDS[detail["type"]][1].format(bound)
    if isinstance(refused := context.get("error"), FieldError):
        return refused.hint
    if (words := _PATTERNS.get(str(context.get("pattern")))) is not None:
        return words
    return _HINTS.get(detail["type"], _ANY_HINT)


def _of_unknown(name: str, parent: Place, model: type[BaseModel]) -> str:
    """A key that is known elsewhere is misplaced; a key that is like one of its neighbours is misspelt."""
    near = difflib.get_close_matches(name, sorted(_keys_at(model, parent)), n=2)
    if near:
        return f"did you mean {' or '.join(near)}?"
    homes = sorted(set(_homes(model, name, (), ())), key=len)
    if homes:
        return f"move it: this file knows {name} {' and '.join(map(_said, homes[:2]))}"
    return "remove it, or start it with _ to keep it as a note"


def _said(home: Place) -> str:
    return f"as {dotted(home)}" if home[:-1] else "at its top level"


def _keys_at(model: Any, place: Place) -> set[str]:
    """The keys that a mapping at `place` may have."""
    found = [model]
    for part in place:
        found = [inner for one in found for inner in _inside(one, part)]
    return {name for one in found for option in _options(one) if _is_model(option) for name in option.model_fields}


def _inside(annotation: Any, part: str | int) -> Iterator[Any]:
    for option in _options(annotation):
        if _is_model(option):
            if part in option.model_fields:
                yield option.model_fields[str(part)].annotation
        elif get_origin(option) is dict:
            yield get_args(option)[1]
        elif get_origin(option) in (tuple, list):
            yield get_args(option)[0]


def _options(annotation: Any) -> Iterator[Any]:
    """Of a union its branches, of an annotated type the type."""
    if get_origin(annotation) is Annotated:
        found, *notes = get_args(annotation)
        registered = [
            model for note in notes if isinstance(note, RegisteredUnion) for model in note.models().values()
        ]
        yield from registered or _options(found)
    elif get_origin(annotation) in (Union, UnionType):
        for branch in get_args(annotation):
            yield from _options(branch)
    else:
        yield annotation


def _homes(annotation: Any, name: str, above: Place, seen: tuple[Any, ...]) -> Iterator[Place]:
    """Where a key of this name belongs, by fields alone: mappings with keys of the user's own are left out."""
    for option in _options(annotation):
        if not _is_model(option) or option in seen:
            continue
        for field_name, info in option.model_fields.items():
            if field_name == name:
                yield (*above, name)
            yield from _homes(info.annotation, name, (*above, field_name), (*seen, option))


def _is_model(annotation: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
