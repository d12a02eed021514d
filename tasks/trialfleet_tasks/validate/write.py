"""Writes validation results into the task file and keeps every other character unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import yaml

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.records.task_order import ClassRule
from trialfleet_ledger.task import Status

_PLAIN = re.compile(r"[A-Za-z][\w./:\[\]+=@<>()-]*")
_Value: TypeAlias = str | list[str] | dict[str, int]
_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}


def filled_in(
    text: str,
    index: int,
    *,
    status: Status,
    fail_to_pass: Sequence[str],
    pass_to_pass: Sequence[str],
    left_out: Mapping[str, int] | None = None,
    classes: ClassRule | None = None,
) -> str:
    """The file's text with the fields of `tasks[index]` set, `left_out` and `classes` unless they are None. A
    field that says so already stays as it is written, and so do comments and layout outside of what changes.

    Raises `OperatorError` when the task is not written in block style.
    """
    fields: dict[str, _Value] = {
        "status": status.value,
        "fail_to_pass": list(fail_to_pass),
        "pass_to_pass": list(pass_to_pass),
        **({} if left_out is None else {"left_out": dict(left_out)}),
        **({"classes": classes} if classes else {}),
    }
    for key, value in fields.items():
        if (yaml.safe_load(text)["tasks"][index].get(key) or []) != (value or []):
            text = _set(text, index, key, value)
    return text


def _set(text: str, index: int, key: str, value: _Value) -> str:
    task = _task(text, index)
    column = task.value[0][0].start_mark.column
    block = _block(key, value, column)
    for name, node in task.value:
        if name.value == key:
            new = text[: _line_start(text, name)] + block + text[_line_end(text, _end(node, name)) :]
            return _checked(text, new, index, key, value)
    last_key, last_value = task.value[-1]
    at = _line_end(text, _end(last_value, last_key))
    head = text[:at] if text[:at].endswith("\n") else text[:at] + "\n"
    return _checked(text, head + block + text[at:], index, key, value)


def _task(text: str, index: int) -> yaml.MappingNode:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode), "the file has been loaded before"
    tasks = next(node for name, node in root.value if name.value == "tasks")
    task = tasks.value[index]
    if tasks.flow_style or task.flow_style or not isinstance(task, yaml.MappingNode):
        raise OperatorError(
            "the task cannot be filled in: it is not written as lines of `key: value`",
            where=f"tasks[{index}]",
            hint="write the task in block style, or copy the ids by hand",
        )
    return task


def _end(node: yaml.Node, name: yaml.Node) -> int:
    """Offset behind the last character of a value. A block collection's own end mark lies behind the comments
    that follow it, so its last leaf decides; an empty value and an alias, whose marks are those of the anchor,
    end with their key."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        if node.start_mark.index < name.start_mark.index:
            break
        last = node.value[-1]
        name, node = last if isinstance(node, yaml.MappingNode) else (node, last)
    if node.start_mark.index < name.start_mark.index or node.start_mark.index == node.end_mark.index:
        return int(name.end_mark.index)
    return int(node.end_mark.index)


def _line_start(text: str, node: yaml.Node) -> int:
    return text.rfind("\n", 0, int(node.start_mark.index)) + 1


def _line_end(text: str, offset: int) -> int:
    """Behind the line that holds the character before `offset` (a block scalar's end lies on the next line)."""
    end = text.find("\n", max(0, offset - 1))
    return len(text) if end < 0 else end + 1


def _block(key: str, value: _Value, column: int) -> str:
    pad = " " * column
    if isinstance(value, str):
        return f"{pad}{key}: {value}\n"
    if not value:
        return f"{pad}{key}: {'{}' if isinstance(value, dict) else '[]'}\n"
    if isinstance(value, dict):
        return f"{pad}{key}:\n" + "".join(f"{pad}  {_scalar(name)}: {n}\n" for name, n in value.items())
    return f"{pad}{key}:\n" + "".join(f"{pad}  - {_scalar(item)}\n" for item in value)


def _scalar(text: str) -> str:
    """Plain where YAML reads it back unchanged, else in double quotes (every JSON string is one).

    >>> _scalar("tests/test_a.py::test_b[x-1]"), _scalar("tests/test_a.py::test_b[x: y #]")
    ('tests/test_a.py::test_b[x-1]', '"tests/test_a.py::test_b[x: y #]"')
    """
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS and not text.endswith(":")
    return text if plain else json.dumps(text)


def _checked(old: str, new: str, index: int, key: str, value: Any) -> str:
    """The new text, after making sure that it differs from the old one in this field and nowhere else."""
    wanted = cast("dict[str, Any]", yaml.safe_load(old))
    wanted["tasks"][index][key] = value
    try:
        found = cast("dict[str, Any]", yaml.safe_load(new))
    except yaml.YAMLError:
        found = {}
    if wanted != found:
        raise OperatorError(
            f"`{key}` cannot be filled in without changing something else",
            where=f"tasks[{index}]",
            hint="give the field a line of its own at the task's indentation (an empty list will do)",
        )
    return new
