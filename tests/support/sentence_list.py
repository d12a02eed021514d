"""The list of every sentence that the product prints of a campaign, with one example of each.

`python -m tests.support.sentence_list` names what is not listed and what is no longer printed; with `--write`
it updates the list. Whoever adds a sentence reads it first: for grammar, and whether it is true of every campaign
that can print it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support import printed_samples as samples
from tests.support.random_campaigns import draw_campaign
from tests.support.sentence_shapes import find_faults, shape_of

LIST = Path(__file__).parents[1] / "unit" / "analysis" / "sentences.txt"
_HEAD = """\
# Every sentence that report, viewer, status, power and the comment on GitHub print, by where it is printed first.
# One line each: a real example. Two that differ by numbers and names alone are one. Written by
# `python -m tests.support.sentence_list --write`; read what it adds: grammar, and truth in every campaign.
"""


def unread(printed: Iterable[tuple[str, str]]) -> list[str]:
    """Sentences whose shape is not listed, and those with a fault that a machine sees. Empty: none."""
    listed = _listed_shapes()
    found: dict[str, str] = {}
    seen = set[str]()
    for section, sentence in printed:
        if sentence in seen:
            continue
        seen.add(sentence)
        faults = find_faults(sentence)
        if faults:
            found.setdefault(shape_of(sentence), f"{section}: {sentence} ({', '.join(faults)})")
        elif shape_of(sentence) not in listed:
            found.setdefault(shape_of(sentence), f"{section}: {sentence} (not listed)")
    return list(found.values())


ADVICE = (
    "Read each: is its grammar right, and is it true of every campaign that can print it? "
    "Then `python -m tests.support.sentence_list --write` lists it."
)


def read_list(text: str) -> dict[str, tuple[str, str]]:
    """By shape: section and example."""
    section, found = "", dict[str, tuple[str, str]]()
    for line in text.splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        elif line and not line.startswith("#"):
            found[shape_of(line)] = (section, line)
    return found


def write_list(printed: Iterable[tuple[str, str]], before: dict[str, tuple[str, str]]) -> str:
    """Of what is printed alone. An example of `before` stays."""
    found: dict[str, tuple[str, str]] = {}
    for section, sentence in printed:
        shape = shape_of(sentence)
        found.setdefault(shape, (section, before.get(shape, (section, sentence))[1]))
    sections: dict[str, list[str]] = {}
    for section, example in found.values():
        sections.setdefault(section, []).append(example)
    parts = (
        f"\n## {name}\n" + "".join(f"{one}\n" for one in sorted(some)) for name, some in sorted(sections.items())
    )
    return _HEAD + "".join(parts)


def every_sentence() -> Iterator[tuple[str, str]]:
    """What the tests print: section and sentence."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        samples.simulate_less(patch)
        yield from samples.every_sample(Path(folder))
        for seed in samples.WHOLE:
            yield from samples.of_file(draw_campaign(seed, largest=3).report)
        samples.leave_out_what_takes_long(patch)
        for seed in samples.READ:
            yield from samples.of_file(draw_campaign(seed, largest=3).report)


@cache
def _listed_shapes() -> frozenset[str]:
    return frozenset(read_list(LIST.read_text(encoding="utf-8")))


def _main(words: list[str]) -> int:
    before = read_list(LIST.read_text(encoding="utf-8")) if LIST.exists() else {}
    text = write_list(every_sentence(), before)
    after = read_list(text)
    for sign, one, other in (("+", after, before), ("-", before, after)):
        for shape in one.keys() - other.keys():
            print(sign, *one[shape])
    faults = [f"! {example}: {fault}" for _, example in after.values() for fault in find_faults(example)]
    print(*faults, sep="\n")
    if "--write" in words:
        LIST.write_text(text, encoding="utf-8")
    return int(bool(faults) or ("--write" not in words and after.keys() != before.keys()))


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
