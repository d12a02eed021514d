"""Sections of a context node: exact second-level headings, never a heading inside a code fence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trialfleet_runner.context.markdown import Kind, Line, scan

HOOK_SECTIONS = ("Pitfalls", "Contracts", "Patterns")


@dataclass(frozen=True)
class Section:
    """One `## title` with everything below it, subsections too, up to the next first- or second-level heading."""

    title: str
    lines: tuple[Line, ...]

    @property
    def body(self) -> str:
        """The text below the heading, without blank lines around it."""
        return "\n".join(line.text for line in self.lines).strip("\n")

    @property
    def text(self) -> str:
        """Heading and body."""
        return f"## {self.title}\n\n{self.body}"


def split(text: str) -> tuple[Section, ...]:
    """All second-level sections in order. What stands before the first one belongs to none."""
    found: list[tuple[str, list[Line]]] = []
    open_ = False
    for line in scan(text):
        if line.kind is Kind.HEADING and line.level <= 2:
            open_ = line.level == 2
            if open_:
                found.append((line.title, []))
        elif open_:
            found[-1][1].append(line)
    return tuple(Section(title, tuple(lines)) for title, lines in found)


def select(text: str, titles: Sequence[str]) -> tuple[Section, ...]:
    """The sections with exactly these titles, in the order of `titles`; empty ones and missing ones left out.
    Sections of the same title are joined."""
    everything = split(text)
    chosen: list[Section] = []
    for title in dict.fromkeys(titles):
        lines = [line for section in everything if section.title == title for line in section.lines]
        if any(line.text.strip() for line in lines):
            chosen.append(Section(title, tuple(lines)))
    return tuple(chosen)
