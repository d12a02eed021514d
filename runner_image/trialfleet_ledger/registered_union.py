"""A field of one of several models, to which other packages may add."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema


class RegisteredUnion:
    """In `Annotated`: validates as the model that `tell` names for a value. `models`: by tag; read when the model
    that has the field is built."""

    def __init__(self, models: Callable[[], Mapping[str, type[BaseModel]]], tell: Callable[[Any], str]) -> None:
        self.models, self._tell = models, tell

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        branches = {tag: handler.generate_schema(model) for tag, model in self.models().items()}
        return core_schema.tagged_union_schema(branches, self._tell)
