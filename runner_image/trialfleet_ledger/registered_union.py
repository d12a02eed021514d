"""A field of one of several models, to which other packages may add."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Discriminator, GetCoreSchemaHandler, Tag
from pydantic_core import CoreSchema


class RegisteredUnion:
    """In `Annotated`: validates as the model that `tell` names for a value. `models`: by tag; read when the model
    that has the field is built."""

    def __init__(self, models: Callable[[], Mapping[str, type[BaseModel]]], tell: Callable[[Any], str]) -> None:
        self.models, self._tell = models, tell

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        branches: Any = None
        for tag, model in self.models().items():
            branch = Annotated[model, Tag(tag)]
            branches = branch if branches is None else branches | branch
        return handler.generate_schema(Annotated[branches, Discriminator(self._tell)])
