"""The task's own text, the same bytes in every condition and rep."""

from __future__ import annotations

import re

_BUG = "There is a bug in this repository. Find its cause and fix it in the source code."
_FAILING = "A test of this repository fails. Find the cause and fix it in the source code. The test's output:"
_LEAVE = "Do not modify the tests."
_TRAILER = re.compile(
    r"^(?:co-authored-by|signed-off-by|reviewed-by|acked-by|tested-by|cc|change-id|\(cherry picked from).*$",
    re.IGNORECASE | re.MULTILINE,
)


def failing_test(output: str) -> str:
    """For `prompt_source: failing_test`; `output` is the frozen failure output."""
    return f"{_FAILING}\n\n{fenced(output)}\n\n{_LEAVE}\n"


def commit_message(message: str) -> str:
    """For `prompt_source: commit_message`: its subject and body, without trailers."""
    body = _TRAILER.sub("", message).strip()
    return f"{_BUG} The change that is wanted:\n\n{_collapsed(body)}\n"


def issue(text: str) -> str:
    """For `prompt_source: issue`."""
    return f"{_BUG} The report:\n\n{text.strip()}\n"


def fenced(text: str) -> str:
    """A code block whose fence is longer than every run of backticks in the text.

    >>> fenced("a ``` b")
    '````\\na ``` b\\n````'
    """
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text.rstrip(chr(10))}\n{fence}"


def _collapsed(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", text)
