"""The task's own text, the same bytes in every condition and rep."""

from __future__ import annotations

import re

from trialfleet_deliveries.texts import render

_TRAILER = re.compile(
    r"^(?:co-authored-by|signed-off-by|reviewed-by|acked-by|tested-by|cc|change-id|\(cherry picked from).*$",
    re.IGNORECASE | re.MULTILINE,
)


def failing_test(output: str) -> str:
    """For `prompt_source: failing_test`; `output` is the frozen failure output."""
    return render("task_failing_test", output=fenced(output)) + "\n"


def commit_message(message: str) -> str:
    """For `prompt_source: commit_message`: its subject and body, without trailers."""
    body = _TRAILER.sub("", message).strip()
    return render("task_commit_message", message=_collapsed(body)) + "\n"


def issue(text: str) -> str:
    """For `prompt_source: issue`."""
    return render("task_issue", issue=text.strip()) + "\n"


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
