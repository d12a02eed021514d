"""Faults of the front matter of a skill or a sub-agent, of which each agent accepts some."""

from __future__ import annotations

from enum import Enum


class SkillFault(Enum):
    """What agents may not accept in the front matter of a SKILL.md or a sub-agent: as an operator reads it."""

    BYTE_ORDER_MARK = "a byte order mark"
    NO_FRONT_MATTER = "no block of YAML between two lines `---` at its very beginning"
    COLON = "a colon in a text without quotes"
    UNQUOTED = "a text that is no YAML without quotes"
    INVALID = "no YAML"
    DUPLICATE = "a key that stands twice"
    NO_NAME = "no name"
    NO_DESCRIPTION = "no description"
    NOT_TEXT = "a description that is no text"
    LONG = "a description of more than 1,024 characters"
