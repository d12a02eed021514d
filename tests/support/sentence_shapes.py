"""What the product prints, as sentences, and the shape that all sentences of one kind share. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from functools import cache
from html.parser import HTMLParser

LEAST_WORDS = 4


def _number(found: re.Match[str]) -> str:
    """1 stays where a noun may follow: grammar depends on it."""
    after = found.string[found.end() : found.end() + 2]
    return "1" if found[0] == "1" and re.match(r" [a-z]", after) else "N"


# Of the fixtures and the random campaigns.
_NAMES = (
    r"intent_layer_preamble|intent_layer|flat_llm|preamble_only|placebo|none(?! of\b)(?=[ ,;:.)’]|$)"
    r"|(?:ansible|graphiti|pdm|luigi|keras|scrapy|httpie|black)(?:-[a-z0-9]+)+|task\d+"
    r"|alpha(?= [^=0-9])|beta|gamma|delta|[A-Z]{2,}[a-z0-9]{20,}|[a-z2-7]{26}"
)
_SHAPE: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"`[^`]*`"), "X"),
    (re.compile(r"(?<![\w/.])(?:[\w.~-]*/)+[\w.-]+"), "PATH"),
    (re.compile(rf"(?<![\w-])(?:{_NAMES})(?![\w-])"), "X"),
    (re.compile(r"\b[0-9a-f]{12,64}\b"), "X"),
    (re.compile(r"[+−-]?(?<![\w.])\$?\d+(?:,\d{3})*(?:\.\d+)?(?!\w)"), _number),
    (re.compile(r"\bX(?: [1N](?: of [1N])?)?(?:(?:, | and |, and )X(?: [1N](?: of [1N])?)?)+\b"), "X"),
    (re.compile(r"\b[0-9N](?:(?:, | and )[0-9N])+\b"), "N"),
    (re.compile(r"\bN% \(X\)(?: → N% \(X\))+"), "N% (X) → N% (X)"),
    (
        re.compile(r"\b\w+ \((added|dropped|changed)\)(?:(?:, | and )\w+ \((?:added|dropped|changed)\))*"),
        "X (changed)",
    ),
)
_SENTENCE_END = re.compile(r"(?<=[.:;!?]) (?=\S)")
_WRONG = (
    (re.compile(r"(?<!\w)[−-]0(?:\.0+)?(?![\d.,])(?! *(?:to|/))"), "zero has no sign"),
    (
        re.compile(r"[,;:]\s*[,;:.]|(?<!\.)\.\.(?!\.)|\(\s|\s\)|\s[,;](?:\s|$)|  "),
        "punctuation or a blank is doubled",
    ),
    (re.compile(r"\b(?:None None|nan|inf|NaN|null|True|False)\b"), "a value of the program, no word"),
    (
        re.compile(
            r"(?<![\w.,×/–-])1 (?:more |other |lost |valid |complete |informative |measured )*"
            r"(?:trials|tasks|reps|blocks|pairs|looks|conditions|runs|differences|campaigns|attempts|points|stages|stops|strata)\b"
        ),
        "one thing in the plural",
    ),
    (
        re.compile(r"\b(?:0|[2-9]|\d{2,}) (?:trial|task|rep|block|pair|look|condition|run|attempt)\b(?!['’-])"),
        "many in the singular",
    ),
)


@cache  # reports say most of their sentences again
def shape_of(sentence: str) -> str:
    """The sentence with numbers, names and paths replaced.

    >>> shape_of("On these 12 tasks, intent_layer passed 3 of 4 trials; 1 task is at +0.5 points.")
    'On these N tasks, X passed N of N trials; 1 task is at N points.'
    """
    for pattern, replacement in _SHAPE:
        sentence = pattern.sub(replacement, sentence)
    return sentence


def find_faults(sentence: str) -> list[str]:
    """What a machine can see: signs of zero, punctuation, values of the program, numbers that disagree with nouns.

    >>> find_faults("a difference of −0.0 points in 1 trials")
    ['zero has no sign', 'one thing in the plural']
    """
    return [fault for pattern, fault in _WRONG if pattern.search(sentence)]


def split_sentences(line: str) -> Iterator[str]:
    """Parts of a line that end as sentences or clauses do, of `LEAST_WORDS` words or more beside names."""
    for part in _SENTENCE_END.split(line.strip()):
        words = re.findall(r"[A-Za-z][\w’'-]*", shape_of(part))
        if sum(word not in ("X", "N", "PATH") for word in words) >= LEAST_WORDS:
            yield part.strip()


def of_lines(text: str) -> Iterator[str]:
    """Of plain text: of each line, and of each cell of a row."""
    for line in text.splitlines():
        for cell in re.split(r"\s{2,}", line.strip()):
            yield from split_sentences(cell)


def of_markdown(text: str) -> Iterator[tuple[str, str]]:
    """Section and sentence, of prose, headings and cells; without fenced blocks, which hold a bibliography."""
    section = ""
    for line in re.sub(r"```.*?```", "", text, flags=re.DOTALL).splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        for cell in re.split(r"(?<!\\)\|", line) if line.startswith("|") else (line,):
            bare = re.sub(r"\\(?=[^\w\s])", "", re.sub(r"^(?:#+|-|>) |\*\*|\u200b", "", cell.strip()))
            for sentence in split_sentences(html.unescape(bare)):
                yield section, sentence


_INLINE = {"a", "abbr", "b", "bdi", "code", "em", "i", "mark", "strong", "sub", "sup", "time", "wbr"}
_SKIPPED = {"script", "style", "svg", "pre"}


class _Blocks(HTMLParser):
    """`found`: the text of each block of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found = [""]
        self._skipped, self._parted = 0, False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._skipped += tag in _SKIPPED
        self._apart(tag)

    def handle_endtag(self, tag: str) -> None:
        self._skipped -= tag in _SKIPPED
        self._apart(tag)

    def _apart(self, tag: str) -> None:
        if tag in ("span", "small"):
            self._parted = True
        elif tag not in _INLINE:
            self.found.append("")

    def handle_data(self, data: str) -> None:
        if self._skipped:
            return
        if self._parted and data[:1].isalnum() and self.found[-1][-1:].isalnum():  # drawn apart, as two words
            self.found.append("")
        self.found[-1] += data
        self._parted = False


def of_page(text: str) -> Iterator[str]:
    """Of HTML, without drawings, scripts, and what programs printed."""
    blocks = _Blocks()
    blocks.feed(text)
    for block in blocks.found:
        yield from split_sentences(" ".join(block.split()))
