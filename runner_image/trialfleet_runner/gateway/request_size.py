"""How many tokens a request has, as far as its JSON tells: text by its length, embedded media apart.

An image of a few bytes may have thousands of tokens, and one of a megabyte has no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

IMAGE_TOKENS = 5_000  # at most, in every API
_BYTES_PER_TOKEN = 4  # of text, rather more than less
_KINDS = ("media_type", "mimeType", "mime_type")  # fields next to `data`
# Fields below which an API has media. All else is text to a model, whatever the agent names it: schemas of tools,
# inputs of calls.
_HOLDERS = frozenset(
    (
        *("system", "messages", "content", "source"),
        *("input", "output", "image_url", "file"),
        *("contents", "parts", "systemInstruction", "system_instruction"),
        *("inlineData", "inline_data", "functionResponse", "function_response"),
    )
)


@dataclass(frozen=True)
class RequestSize:
    """`text_bytes`: of the JSON without embedded media. `images`, `documents`: how many of each are embedded;
    whatever is no image is a document, whose bytes say nothing of its tokens."""

    text_bytes: int
    images: int = 0
    documents: int = 0

    @property
    def least_tokens(self) -> int:
        return self.text_bytes // _BYTES_PER_TOKEN

    def most_media_tokens(self, window: int) -> int:
        """Of the media. `window`: of the model, which every document may fill; no prompt has more."""
        return window if self.documents else min(window, self.images * IMAGE_TOKENS)


def measure_request(body: dict[str, object], size: int) -> RequestSize:
    """`size`: bytes of the body as JSON.

    >>> image = {"type": "base64", "media_type": "image/png", "data": "iVBO"}
    >>> measure_request({"messages": [{"content": [{"type": "image", "source": image}]}]}, 1000)
    RequestSize(text_bytes=996, images=1, documents=0)
    """
    media = [*_media(body)]
    images = sum(kind.startswith("image/") for kind, _ in media)
    return RequestSize(size - sum(length for _, length in media), images, len(media) - images)


def _media(root: object) -> Iterator[tuple[str, int]]:
    """(MIME type, length in JSON) of all that is embedded. Without recursion: a body may be deep."""
    open_values = [root]
    while open_values:
        value = open_values.pop()
        if isinstance(value, list):
            open_values += cast("list[object]", value)
        elif isinstance(value, dict):
            fields = cast("dict[str, object]", value)
            own = fields.get("type") == "shell_call_output"
            kind = next((str(fields[name]) for name in _KINDS if name in fields), "")
            for name, inner in fields.items():
                if not isinstance(inner, str):
                    called = name == "input" and isinstance(inner, dict)
                    open_values += [inner] if name in _HOLDERS and not (called or own) else []
                elif name == "file_data" or (name == "data" and kind and not kind.startswith("text/")):
                    yield kind, len(inner)
                elif name in ("url", "image_url") and inner.startswith("data:"):
                    yield inner[5:50].partition(";")[0], len(inner)
